"""A simulated judge server: real HTTP, invented compute. For benchmarks that need a server of many GPUs and have none.

Nothing here judges. A reply is the smallest value that the request's JSON schema allows, and what takes time is worked
out from token counts: prefill at a rate, decoding in a batch, a limit of slots, a prefix cache of blocks with least
recently used first out, as vLLM has them. Nothing here takes time either: server and client share an event loop whose
clock jumps to the next thing to happen, so that figures are of the schedule alone, however busy the machine is. They
are simulated, and are to be called so. Which of several replicas gets a response depends on their ports, which the
system draws anew for each server: there, figures vary from run to run by some seconds.
"""

import asyncio
import json
import selectors
from collections import OrderedDict, deque
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tests.fake_llm_server import FakeLLM, Reply, Request, completion

CHARS_PER_TOKEN = 1.6  # of Korean text, roughly
BLOCK_TOKENS = 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a server can do, in simulated seconds; the defaults stand for a 27B model in bfloat16 on 4 H100.

    They are fitted to an estimate, not measured: 2,560 verdicts on 256 responses, from prompts of 2,250 tokens of which
    a response's share 2,050, take 74 s with a prefix cache that always hits, and 263 s without any.
    """

    prefill_tokens_per_s: float = 25_000
    step_s: float = 0.020  # one forward pass, however small: 50 tokens/s for a sequence alone
    decode_s: float = 0.00005  # on top, for each sequence in the batch: 7,800 tokens/s for 256 of them
    max_num_seqs: int = 256
    max_batched_tokens: int = 8192
    cache_tokens: int = 400_000
    verdict_tokens: int = 100  # a reply to a question about one issue
    grouped_verdict_tokens: int = 30  # each verdict of a reply about several issues, with reasons as short as that

    def half(self) -> "Hardware":
        """One of two replicas that share these GPUs."""
        return replace(
            self,
            prefill_tokens_per_s=self.prefill_tokens_per_s / 2,
            decode_s=self.decode_s * 2,
            max_num_seqs=self.max_num_seqs // 2,
            cache_tokens=self.cache_tokens // 2,
        )


@dataclass(slots=True)
class _Job:
    blocks: list[int]
    num_prompt_tokens: int
    num_reply_tokens: int
    done: "asyncio.Future[None]"
    waiting_tokens: int = 0


@dataclass
class Totals:
    """What a server has computed."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    busy_s: float = 0.0


@dataclass
class Engine:
    """One replica: its waiting line, its batch, its cache."""

    hardware: Hardware
    totals: Totals = field(default_factory=Totals)

    def __post_init__(self) -> None:
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._cache: OrderedDict[int, None] = OrderedDict()
        self._arrival = asyncio.Event()

    async def answer(self, prompt: str, num_reply_tokens: int) -> None:
        """Returns when the reply would be complete."""
        size = int(BLOCK_TOKENS * CHARS_PER_TOKEN)
        blocks, chained = [], 0
        for start in range(0, len(prompt) - size + 1, size):
            chained = hash((chained, prompt[start : start + size]))
            blocks.append(chained)
        num_tokens = int(len(prompt) / CHARS_PER_TOKEN)
        job = _Job(blocks, num_tokens, num_reply_tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrival.set()
        await job.done

    async def run(self) -> None:
        """One forward pass after another, for ever."""
        while True:
            if not self._waiting and not self._running:
                self._arrival.clear()
                await self._arrival.wait()
            cost_s = self._step()
            self.totals.busy_s += cost_s
            await asyncio.sleep(cost_s)
            for job in [job for job in self._running if job.waiting_tokens == 0 and job.num_reply_tokens <= 0]:
                self._running.remove(job)
                job.done.set_result(None)

    def _step(self) -> float:
        """The batch's next pass: a token for each sequence that decodes, and prompts in what room is left."""
        decoding = [job for job in self._running if job.waiting_tokens == 0]
        for job in decoding:
            job.num_reply_tokens -= 1
        room = self.hardware.max_batched_tokens - len(decoding)
        prefilled = 0
        for job in [job for job in self._running if job.waiting_tokens]:
            taken = min(room, job.waiting_tokens)
            job.waiting_tokens -= taken
            room, prefilled = room - taken, prefilled + taken
        while self._waiting and room > 0 and len(self._running) < self.hardware.max_num_seqs:
            job = self._waiting.popleft()
            cached = self._admit(job)
            job.waiting_tokens = max(1, job.num_prompt_tokens - cached)
            self.totals.requests += 1
            self.totals.prompt_tokens += job.num_prompt_tokens
            self.totals.cached_tokens += cached
            taken = min(room, job.waiting_tokens)
            job.waiting_tokens -= taken
            room, prefilled = room - taken, prefilled + taken
            self._running.append(job)
        return (
            self.hardware.step_s
            + self.hardware.decode_s * len(decoding)
            + prefilled / self.hardware.prefill_tokens_per_s
        )

    def _admit(self, job: _Job) -> int:
        """Tokens of the prompt that need no computing; its blocks are in the cache from here on, as in vLLM."""
        num_known = 0
        for block in job.blocks:
            if block not in self._cache:
                break
            num_known += 1
        for block in job.blocks:
            self._cache[block] = None
            self._cache.move_to_end(block)
        while len(self._cache) * BLOCK_TOKENS > self.hardware.cache_tokens:
            self._cache.popitem(last=False)
        return num_known * BLOCK_TOKENS


class SimulatedJudge(FakeLLM):
    """Serves one replica, or several in turn as a load balancer that knows nothing of prefixes does.

    Not from a thread of its own, as its kind otherwise does, but in the running event loop: `async with`.
    """

    def __init__(self, hardware: Hardware, num_replicas: int = 1) -> None:
        super().__init__(self._enter, model="simulated")
        self._loop.close()
        self._hardware = hardware
        self._engines = [Engine(hardware) for _ in range(num_replicas)]

    async def __aenter__(self) -> "SimulatedJudge":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096)
        self._tasks = [asyncio.create_task(engine.run()) for engine in self._engines]
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()

    @property
    def totals(self) -> list[Totals]:
        """What each replica has computed."""
        return [engine.totals for engine in self._engines]

    async def _send(self, reply: Any, writer: asyncio.StreamWriter) -> bool:
        return await super()._send(reply if isinstance(reply, Reply) else await reply, writer)

    def _enter(self, request: Request) -> Coroutine[Any, Any, Reply]:
        """The reply to come, for `_send` to wait for."""
        return self._reply(request)

    async def _reply(self, request: Request) -> Reply:
        engine = self._engines[request.index % len(self._engines)]
        value = smallest(request.body["response_format"]["json_schema"]["schema"])
        num_verdicts = max(1, json.dumps(value).count("contains_issue"))
        per_verdict = self._hardware.verdict_tokens if num_verdicts == 1 else self._hardware.grouped_verdict_tokens
        await engine.answer(request.text, num_verdicts * per_verdict)
        self.requests[request.index] = replace(request, body={})  # thousands of prompts are not kept
        return completion(json.dumps(value), tokens_out=num_verdicts * per_verdict)


def smallest(schema: Mapping[str, Any]) -> Any:
    """A value of that JSON schema, with as little in it as is allowed; true for a boolean.

    >>> smallest({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]})
    {'a': True}
    """
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: smallest(schema["properties"][name]) for name in schema["required"]}
        case "array":
            prefix = schema.get("prefixItems") or [schema["items"]] * schema.get("minItems", 0)
            return [smallest(item) for item in prefix]
        case kind:
            return {"boolean": True, "string": "", "integer": 0, "number": 0.0}[kind]


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for no timer: where no socket has anything to say, it is later at once."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(None if timeout is None else 0)
        if not events and timeout is not None:
            self.now_s += timeout
        return events


class _SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now_s


def run_simulated(work: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` does, in simulated time: `asyncio.sleep(3600)` is over at once, an hour later.

    Sockets on this machine take no simulated time, nor does computing.
    """
    with asyncio.Runner(loop_factory=_SimulatedLoop) as runner:
        return runner.run(work)
