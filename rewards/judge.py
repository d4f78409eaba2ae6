"""The judge: a verdict on every issue of a response, or None where none could be had.

The only module of rewards/ that talks to a network, through `data.endpoint`. What a verdict is worth is decided
elsewhere (`rewards.score`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from data.cases import Case, Claim, Issue
from data.endpoint import Endpoint, EndpointError, EndpointStats, Reply
from data.store import Store
from rewards.rubric import parse, prompt_version, render, response_format
from rewards.score import Judgment

if TYPE_CHECKING:
    from rewards.mini_judge import MiniJudge

K = TypeVar("K")
V = TypeVar("V")

JudgeKind = Literal["endpoint", "mini"]


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """Which judge gives the verdicts, and how much patience it gets."""

    judge: JudgeKind = field(
        default="endpoint",
        metadata={"help": "endpoint: a language model over HTTP; mini: the exact judge of the mini world."},
    )
    judge_base_url: str | None = field(
        default=None, metadata={"help": "OpenAI-compatible URL up to and with /v1, such as http://localhost:8000/v1."}
    )
    judge_model: str | None = field(default=None, metadata={"help": "The model's name at that endpoint."})
    judge_api_key_env: str = field(
        default="JUDGE_API_KEY", metadata={"help": "Environment variable that holds the endpoint's key."}
    )
    judge_temperature: float = field(default=0.0, metadata={"help": "Sampling temperature of the judge."})
    judge_max_tokens: int = field(default=512, metadata={"help": "Longest reply, the judge's thinking included."})
    judge_rationales: bool = field(
        default=True,
        metadata={"help": "Ask for a short reason before the verdict: helps large judges, misleads very small ones."},
    )
    judge_timeout_s: float = field(default=60.0, metadata={"help": "Seconds for one try of one verdict."})
    judge_max_retries: int = field(default=4, metadata={"help": "Further tries for one verdict."})
    judge_deadline_s: float = field(
        default=600.0, metadata={"help": "Seconds for all verdicts of a batch; what is missing then counts as missing."}
    )
    judge_max_concurrency: int = field(
        default=64, metadata={"help": "Requests in flight per process: the server sees processes x this."}
    )
    judge_quorum: float = field(
        default=1.0, metadata={"help": "Share of a response's verdicts that must have arrived for it to be scored."}
    )
    judge_store: str | None = field(
        default=None, metadata={"help": "Folder that keeps verdicts, so that none is paid twice; shared by processes."}
    )

    def __post_init__(self) -> None:
        if self.judge not in get_args(JudgeKind):
            raise ValueError(f"judge must be one of {', '.join(get_args(JudgeKind))}, got {self.judge!r}")
        if self.judge == "endpoint":
            for name in ("judge_base_url", "judge_model"):
                if not getattr(self, name):
                    raise ValueError(f"{name} must be set for judge: endpoint (or use judge: mini with mini cases)")
        lowest: Mapping[str, float] = {"judge_max_tokens": 16, "judge_max_retries": 0, "judge_max_concurrency": 1}
        for name, low in lowest.items():
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)}")
        for name in ("judge_timeout_s", "judge_deadline_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.judge_temperature <= 2:
            raise ValueError(f"judge_temperature must lie in [0, 2], got {self.judge_temperature}")
        if not 0 < self.judge_quorum <= 1:
            raise ValueError(f"judge_quorum must lie in (0, 1], got {self.judge_quorum}")


class Judge:
    """A language model that judges one issue per request, all issues at once within the endpoint's limit.

    All requests of a response begin with the same long prefix (see `rewards.rubric.render`). Verdicts go through the
    store where there is one: a question that was answered before, by whichever process, is not asked again.
    """

    def __init__(self, config: JudgeConfig, endpoint: Endpoint, store: Store | None = None) -> None:
        self.endpoint = endpoint
        self.store = store
        self._rationales = config.judge_rationales
        self._sampling: dict[str, Any] = {
            "temperature": config.judge_temperature,
            "max_tokens": config.judge_max_tokens,
            "response_format": response_format(config.judge_rationales),
        }

    @property
    def stats(self) -> EndpointStats:
        """Calls, failures by kind, tokens and latencies since they were last taken."""
        return self.endpoint.stats

    async def judge_case(
        self, case: Case, answer: str, *, deadline_s: float | None = None
    ) -> dict[str, Judgment | None]:
        """The verdict on each issue of the case, by issue id; None where the judge failed or the time ran out."""
        tasks = {issue.id: asyncio.create_task(self._judge_or_miss(issue, answer)) for issue in case.issues}
        return await _finished(tasks, deadline_s)

    async def judge_issue(self, issue: Issue, answer: str) -> Judgment:
        """The verdict on one issue, from the store if it has been given before.

        Raises:
            EndpointError: there is none to be had.
        """
        messages = self.render(issue, answer)
        if self.store is None:
            return (await self.ask(messages))[0]
        key = Store.key(
            model=self.endpoint.model,
            temperature=self._sampling["temperature"],
            response_format=self._sampling["response_format"],
            prompt_version=prompt_version(),
            messages=messages,
            sample=0,
        )
        if (stored := self.store.get(key)) is not None:
            self.stats.reused += 1
            return Judgment(**stored)
        judgment, _ = await self.ask(messages)
        self.store.put(key, asdict(judgment))
        return judgment

    def render(self, issue: Issue, answer: str) -> list[dict[str, str]]:
        """The messages that this judge is asked with."""
        return render(issue, answer, rationales=self._rationales)

    async def ask(self, messages: list[dict[str, str]]) -> tuple[Judgment, Reply]:
        """A fresh verdict, past the store, with the reply that it was read from."""

        def verdict(reply: Reply) -> tuple[Judgment, Reply]:
            return parse(reply, rationales=self._rationales), reply

        return await self.endpoint.ask(messages, verdict, **self._sampling)

    async def _judge_or_miss(self, issue: Issue, answer: str) -> Judgment | None:
        try:
            return await self.judge_issue(issue, answer)
        except EndpointError:
            return None  # counted by the endpoint; a missing verdict is no grade


async def judge_batch(
    judge: "Judge | MiniJudge", items: Sequence[tuple[Case, str]], deadline_s: float
) -> list[dict[str, Judgment | None]]:
    """The verdicts on each (case, answer), in order: issue id -> verdict, None for what the judge could not give.

    Never waits longer than the deadline: verdicts that are there by then count, the others are None. Identical pairs
    are judged once. A dead judge is all None; `judge.stats` says what it died of.
    """
    tasks = {item: asyncio.create_task(_judge(judge, *item, deadline_s)) for item in dict.fromkeys(items)}
    verdicts = await _finished(tasks)
    return [dict(verdicts[item] or {}) for item in items]


def load_judge(config: JudgeConfig) -> "Judge | MiniJudge":
    """The judge that the configuration names; no request is sent yet."""
    if config.judge == "mini":
        from rewards.mini_judge import MiniJudge

        return MiniJudge()
    endpoint = Endpoint(
        cast(str, config.judge_base_url),  # the config has checked both
        cast(str, config.judge_model),
        api_key_env=config.judge_api_key_env,
        timeout_s=config.judge_timeout_s,
        max_retries=config.judge_max_retries,
        max_concurrency=config.judge_max_concurrency,
    )
    return Judge(config, endpoint, Store(config.judge_store) if config.judge_store else None)


async def check_judge(judge: "Judge | MiniJudge") -> str:
    """One real question put to the judge: a line that says how it went.

    Raises:
        EndpointError: there was no usable answer; its message says what to change.
    """
    if not isinstance(judge, Judge):
        return "mini judge: exact, needs no endpoint"
    try:
        judgment, reply = await judge.ask(judge.render(_EASY_ISSUE, _EASY_ANSWER))
    except EndpointError as error:
        advice = _ADVICE.get(error.status or error.kind, _ADVICE.get(error.kind, _ADVICE["unusable"]))
        raise EndpointError(error.kind, f"{error.message}\n{advice}", error.status) from None
    right = judgment.contains_issue and judgment.correct_conclusion
    return (
        f"judge {judge.endpoint.model} at {judge.endpoint.shown_url}: answered in {reply.latency_s:.1f} s, "
        f"{reply.tokens_in} tokens in, {reply.tokens_out} out; an easy question was judged "
        + ("rightly" if right else "WRONGLY: a judge that misses this one gives no signal")
    )


async def _judge(
    judge: "Judge | MiniJudge", case: Case, answer: str, deadline_s: float
) -> Mapping[str, Judgment | None]:
    if isinstance(judge, Judge):
        return await judge.judge_case(case, answer, deadline_s=deadline_s)
    try:
        return await asyncio.wait_for(judge.judge_case(case, answer), deadline_s)
    except TimeoutError:
        return {issue.id: None for issue in case.issues}


async def _finished(tasks: Mapping[K, asyncio.Task[V]], deadline_s: float | None = None) -> dict[K, V | None]:
    """The results of the tasks that end in time, None for the others, which are cancelled; so are all if we are."""
    if not tasks:
        return {}
    try:
        await asyncio.wait(tasks.values(), timeout=deadline_s, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        late = {task for task in tasks.values() if not task.done()}
        for task in late:
            task.cancel()
    if late:
        await asyncio.wait(late, timeout=1.0)  # lets them close their connections
    return {key: None if task in late else task.result() for key, task in tasks.items()}


_EASY_ISSUE = Issue(
    "1",
    "대여금 채무의 소멸시효가 완성되었는지 여부",
    (
        Claim("피고", "변제기로부터 10년이 지나 대여금 채무는 시효로 소멸하였다."),
        Claim("원고", "피고가 2019년에 이자를 지급하여 시효가 중단되었다."),
    ),
    "피고가 2019. 5. 2. 이자를 지급함으로써 채무를 승인하여 시효가 중단되었으므로, 소멸시효는 완성되지 않았다.",
)
_EASY_ANSWER = (
    "피고는 소멸시효의 완성을 주장한다. 그러나 피고는 2019. 5. 2. 원고에게 이자를 지급하였고, "
    "이는 채무의 승인에 해당하여 시효를 중단시킨다(민법 제168조 제3호). "
    "그때부터 다시 10년이 지나지 않았으므로 소멸시효는 완성되지 않았다. 피고의 항변은 받아들일 수 없다."
)
_ADVICE: Mapping[int | str, str] = {
    "connection": "Is the server running, and does judge_base_url name its host, port and /v1?",
    "timeout": "Raise judge_timeout_s, or lower judge_max_concurrency to what the server can answer at once.",
    401: "Put the key into the environment variable that judge_api_key_env names.",
    403: "The key (environment variable judge_api_key_env) may not use judge_model at this endpoint.",
    404: "Check judge_model (a server lists its models under /v1/models) and that judge_base_url ends in /v1.",
    "http_4xx": "The endpoint refuses our request, see its words; it must take a response_format of type json_schema.",
    "http_429": "The endpoint limits our rate or the account is used up: lower judge_max_concurrency, or pay.",
    "http_5xx": "The server fails at answering: see its log.",
    "malformed": "Something answers, but no OpenAI-compatible server: check judge_base_url.",
    "length": "Raise judge_max_tokens, or set judge_rationales: false; a judge that thinks first needs thousands.",
    "whitespace": "The judge writes only white space: in vLLM use structured outputs with the guidance backend and "
    "disable_any_whitespace.",
    "filtered": "The endpoint's content filter withholds replies: use another judge.",
    "unusable": "The judge does not keep to the JSON schema: the server must enforce response_format json_schema.",
}
