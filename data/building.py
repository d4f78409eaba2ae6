"""Judgments taken through the stages: each answer is paid for once, the budget kept, the checks made."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from data.blocks import Entry, Folder, Plan
from data.checks import check_case
from data.endpoint import Endpoint, EndpointError, EndpointStats, Reply
from data.judgment_text import parse_judgment
from data.near_duplicates import signature
from data.shapes import Shape, json_format, read_shaped
from data.stages import OPINION, STAGES, Draft, Stage, case_record, messages, read_prompt
from data.store import Store

MAX_LOST_IN_A_ROW = 16  # after as many questions without one usable reply, the endpoint is down
CHARS_PER_TOKEN = 1.4  # Qwen2.5's tokenizer on the reasons in tests/judgments; only estimates rest on it
_WRONG_SETUP = (401, 403, 404)


class Advance(Protocol):
    """Told of judgments that are done with, in this run (new) or before it, or by another worker."""

    def __call__(self, count: int, *, is_new: bool) -> None: ...


class StopBuilding(Exception):  # noqa: N818  (nothing failed: the budget is spent, or there is nobody to ask)
    """No further question is to be asked; says why."""


class Meter:
    """What replies cost, in the currency of the prices per million tokens in and out, and how much may be spent."""

    def __init__(self, stats: EndpointStats, prices: tuple[float, float], budget: float | None) -> None:
        self.stats = stats
        self.prices = prices
        self.num_estimated = 0  # replies of which the endpoint did not tell the tokens
        self._estimated = (0.0, 0.0)
        self._budget = budget
        self._under_way = 0.0

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens in and out of all replies of this run, the unusable ones too; from lengths where nobody tells them."""
        told = (self.stats.tokens_in, self.stats.tokens_out)
        return round(told[0] + self._estimated[0]), round(told[1] + self._estimated[1])

    @property
    def spent(self) -> float:
        """What they cost."""
        return self.cost(*self.tokens)

    def note(self, question: Sequence[dict[str, str]], reply: Reply) -> None:
        """Take account of a reply without usage, or with one of no tokens, by the lengths of it and of its question."""
        if not (reply.tokens_in and reply.tokens_out):
            self.num_estimated += 1
            tokens_in = 0 if reply.tokens_in else num_chars(question) / CHARS_PER_TOKEN
            tokens_out = 0 if reply.tokens_out else len(reply.content + reply.reasoning) / CHARS_PER_TOKEN
            self._estimated = (self._estimated[0] + tokens_in, self._estimated[1] + tokens_out)

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        return (tokens_in * self.prices[0] + tokens_out * self.prices[1]) / 1e6

    @contextmanager
    def call(self, expected: float) -> Iterator[None]:
        """Within it a question is under way that may cost so much.

        Raises:
            StopBuilding: the budget has no room for it beside those under way.
        """
        if self._budget is not None and self.spent + self._under_way + expected > self._budget:
            raise StopBuilding(f"the budget of {self._budget:g} allows no further question")
        self._under_way += expected
        try:
            yield
        finally:
            self._under_way -= expected


class Builder:
    """Makes cases of judgments. `stop_reason` says why no more is asked, `failures` what each source lacks."""

    def __init__(self, endpoint: Endpoint, meter: Meter, language: str, sampling: dict[str, Any]) -> None:
        self.stop_reason: str | None = None
        self.failures: dict[str, str] = {}
        self._endpoint = endpoint
        self._meter = meter
        self._language = language
        self._sampling = sampling
        self._lost_in_a_row = 0
        self._examples = "\n".join(read_prompt(stage.name, language) for stage in STAGES)

    async def build(self, entry: Entry, text: str, store: Store) -> dict[str, Any] | None:
        """A judgment's result: its case, and the reasons to reject it; None if it could not be finished."""
        draft = Draft(parse_judgment(text))
        try:
            for stage in stages(entry):
                if stage.asks(draft):
                    draft = await self._ask(stage, draft, store)
                if draft.opinion in ("no", "unclear"):
                    reason = f"selection: a model finds discretion ({draft.opinion}); {'; '.join(entry.borderline)}"
                    return {"key": entry.key, "reasons": [reason], "case": None, "signature": ()}
        except StopBuilding as error:
            self.stop_reason = str(error)
            return None
        except EndpointError as error:
            self.failures[entry.source] = str(error)
            return None
        case = case_record(draft, self._language)
        reasons, spans = check_case(draft, case, self._examples)
        return {"key": entry.key, "reasons": reasons, "case": case | {"spans": spans}, "signature": signature(text)}

    async def _ask(self, stage: Stage, draft: Draft, store: Store) -> Draft:
        question = messages(stage, draft, self._language)
        key = call_key(self._endpoint.model, self._sampling, stage, question)
        if (stored := store.get(key)) is not None:
            return stage.put(draft, stored["reply"])
        if self.stop_reason is not None:
            raise StopBuilding(self.stop_reason)
        request = self._sampling | {"response_format": json_format(f"legit_{stage.name}", stage.shape)}

        def read(reply: Reply) -> tuple[Any, Draft]:
            self._meter.note(question, reply)
            value = read_shaped(reply, stage.shape)
            return value, stage.put(draft, value)  # which may find it unusable too

        with self._meter.call(self._meter.cost(*expected_tokens(stage, draft, question))):
            try:  # one judgment, one server: its stages share a prefix
                value, after = await self._endpoint.ask(question, read, affinity=draft.judgment.doc_id, **request)
            except EndpointError as error:
                self._lost_in_a_row += 1
                if error.status in _WRONG_SETUP or self._lost_in_a_row >= MAX_LOST_IN_A_ROW:
                    raise StopBuilding(f"the endpoint answers nothing of use: {error}") from error
                raise
        self._lost_in_a_row = 0
        store.put(key, {"reply": value})
        return after


def stages(entry: Entry) -> tuple[Stage, ...]:
    """The stages that a judgment goes through."""
    return (OPINION, *STAGES) if entry.borderline else STAGES


def call_key(model: str, sampling: dict[str, Any], stage: Stage, question: Sequence[dict[str, str]]) -> str:
    """The store's key of a stage's question."""
    return Store.key(model=model, sampling=sampling, shape=stage.shape, messages=question)


def expected_tokens(stage: Stage, draft: Draft, question: Sequence[dict[str, str]]) -> tuple[float, float]:
    """Tokens in and out that a question will take, told by lengths."""
    return num_chars(question) / CHARS_PER_TOKEN, stage.length_frac * len(draft.judgment.reasons) / CHARS_PER_TOKEN


def num_chars(question: Sequence[dict[str, str]]) -> int:
    """Characters of all messages of a question."""
    return sum(len(message["content"]) for message in question)


def estimate(
    plan: Plan, folder: Folder, model: str, language: str, sampling: dict[str, Any]
) -> tuple[int, float, float]:
    """Questions, tokens in and tokens out that a plan still needs: stored replies are used, missing ones made up."""
    num_questions, tokens_in, tokens_out = 0, 0.0, 0.0
    for block, entries in plan.blocks.items():
        store = Store(folder.calls(block)) if folder.calls(block).exists() else None
        for entry in entries:
            draft = Draft(parse_judgment(plan.text(entry)))
            for stage in stages(entry):
                if not stage.asks(draft):
                    continue
                question = messages(stage, draft, language)
                stored = store.get(call_key(model, sampling, stage, question)) if store else None
                if stored is None:
                    one_in, one_out = expected_tokens(stage, draft, question)
                    num_questions, tokens_in, tokens_out = num_questions + 1, tokens_in + one_in, tokens_out + one_out
                length = int(stage.length_frac * len(draft.judgment.reasons))
                draft = stage.put(draft, stored["reply"] if stored else _made_up(stage.shape, length))
    return num_questions, tokens_in, tokens_out


async def build_all(plan: Plan, folder: Folder, builder: Builder, way: str, num_slots: int, advance: Advance) -> int:
    """Builds all blocks that no other worker has; returns how many judgments others have.

    Args:
        way: says how this run builds; blocks that were finished in the same way are left as they are.
        num_slots: judgments under way at one time.
    """
    blocks = iter(sorted(plan.blocks.items()))
    slots = asyncio.Semaphore(num_slots)
    num_elsewhere = 0

    async def build_one(entry: Entry, store: Store) -> dict[str, Any] | None:
        async with slots:
            result = await builder.build(entry, plan.text(entry), store)
        advance(1, is_new=True)
        return result

    async def work() -> None:
        nonlocal num_elsewhere
        for block, entries in blocks:
            stamp = hashlib.sha256("".join([way, *(entry.key for entry in entries)]).encode()).hexdigest()
            with folder.claimed(block) as is_own:
                if not is_own or folder.is_built(block, stamp):
                    num_elsewhere += 0 if is_own else len(entries)
                    advance(len(entries), is_new=False)
                    continue
                with Store(folder.calls(block)) as store:
                    results = await asyncio.gather(*(build_one(entry, store) for entry in entries))
                done = [result for result in results if result is not None]
                folder.write(block, stamp, done, unfinished=len(done) < len(entries))

    # As many blocks open as fill the slots twice: the end of one must not leave slots empty.
    num_open = -(-2 * num_slots * len(plan.blocks) // max(plan.num_kept, 1)) + 1
    await asyncio.gather(*(work() for _ in range(num_open)))
    return num_elsewhere


def code_id() -> str:
    """Changes with every program line, prompt and rule that a result can depend on."""
    room = Path(__file__).parent
    files = sorted([*room.glob("*.py"), *room.glob("*.yaml"), *room.glob("languages/*/*")])
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _made_up(shape: Shape, length: int) -> Any:
    """A reply of that shape, in all about so many characters long."""
    if isinstance(shape, dict):
        return {key: _made_up(value, length // len(shape)) for key, value in shape.items()}
    if isinstance(shape, list):
        return [_made_up(shape[0], length)]
    if isinstance(shape, tuple | range):
        return shape[0]
    return "가" * length if isinstance(shape, int) else False
