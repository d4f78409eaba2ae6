"""The one way in which responses are graded: each verdict kept as it comes, resumed where it was, paid for once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from data.cases import Case
from data.command import NoAnswerError
from data.endpoint import Endpoint, EndpointStats
from data.jsonl import Appender
from data.progress import progress_bar
from eval.pins import SettingsError, by_language, holds, pin_cases, pin_settings, sampling_of
from eval.results import Key, Response, ResponseFile
from eval.workers import work_through
from rewards.answer import final_answer, is_empty
from rewards.judge_config import JudgeConfig

MAX_UNJUDGED_IN_A_ROW = 8  # after as many responses without one verdict between them, the judge is dead
PINS = ("meta", "sampling", "cases")  # beside a file of grades: how it was judged, how drawn, and what
COSTS = ("calls", "retries", "given_up", "tokens_in", "tokens_cached", "tokens_out")
V_co = TypeVar("V_co", covariant=True)


class DeadJudgeError(NoAnswerError):
    """The judge gave not one verdict on a row of responses; says what it gave instead."""

    def __init__(self, stats: EndpointStats, num_in_a_row: int) -> None:
        failure = stats.most_frequent_failure()
        super().__init__(f"The judge gave no verdict at all on {num_in_a_row} responses in a row: {failure}")


class Graded(Protocol):
    """A response with what a judge has said of it."""

    @property
    def response(self) -> Response: ...

    @property
    def num_missing(self) -> int: ...

    @property
    def is_unjudged(self) -> bool: ...

    def to_record(self) -> dict[str, Any]: ...


class AnyJudge(Protocol[V_co]):
    """Whoever gives one kind of verdict on responses."""

    @property
    def stats(self) -> EndpointStats: ...

    @property
    def endpoint(self) -> Endpoint | None: ...

    async def judge_case(self, case: Case, answer: str) -> V_co: ...


V = TypeVar("V")
G = TypeVar("G", bound=Graded)


@dataclass(frozen=True)
class Scheme(Generic[V, G]):
    """One way of grading responses, in files of that `name`.

    `settings` are all that its grades of cases in a language depend on; `grade` is the grade that a verdict makes of a
    response; `nothing` the verdict on an empty answer, by rule and without a call. Verdicts are `recorded`, or those of
    the judge that `load` gives for some cases.
    """

    name: str
    settings: Callable[[str], Mapping[str, Any]]
    read: Callable[[Path], Mapping[Key, G]]
    grade: Callable[[Case, Response, V], G]
    nothing: Callable[[Case], V]
    load: Callable[[JudgeConfig, Sequence[Case]], AnyJudge[V]]
    recorded: Callable[[Case, Response], V] | None = None


async def judge_responses(
    judge: AnyJudge[V],
    nothing: Callable[[Case], V],
    pairs: Sequence[tuple[Case, Response]],
    keep: Callable[[Case, Response, V], Graded],
    num_workers: int,
) -> None:
    """Have each response judged, and keep the verdict, whatever the judge has failed to give, as soon as it is in.

    Raises:
        DeadJudgeError: nothing at all on a row of responses.
    """
    num_in_a_row = 0

    async def judge_one(pair: tuple[Case, Response]) -> None:
        nonlocal num_in_a_row
        case, response = pair
        answer = final_answer(response.text)
        if is_empty(answer):
            keep(case, response, nothing(case))
            return
        grade = keep(case, response, await judge.judge_case(case, answer))
        num_in_a_row = num_in_a_row + 1 if grade.is_unjudged else 0
        if num_in_a_row == MAX_UNJUDGED_IN_A_ROW:
            raise DeadJudgeError(judge.stats, num_in_a_row)

    async with judge.endpoint or nullcontext():
        await work_through(pairs, judge_one, num_workers)


def grade_by(
    scheme: Scheme[V, G],
    cases: Mapping[str, Case],
    responses: ResponseFile,
    out: Path,
    config: JudgeConfig | None,
    title: str,
) -> dict[Key, G]:
    """Grade what the scheme's file in `out` lacks, try again what its judge failed on; all grades of the responses.

    Raises:
        SettingsError: `out` holds grades of another judge or of other responses.
        DeadJudgeError: the judge gives nothing; the grades that it gave before are kept.
    """
    pairs = [(cases[response.case_id], response) for response in responses.responses if response.case_id in cases]
    path = out / f"{scheme.name}.jsonl"
    pinned = {kind: path.with_suffix(f".{kind}.json") for kind in PINS}
    if not holds(path, lambda record: not _is_unjudged(record)):  # all that a dead judge has left binds nobody
        for left in (path, *pinned.values()):
            left.unlink(missing_ok=True)
    pin_settings(pinned["meta"], by_language(scheme.settings, {case.language for case, _ in pairs}))
    if sampling := sampling_of(responses.path.with_suffix(".meta.json")):
        pin_settings(pinned["sampling"], sampling)
    grades = dict(scheme.read(path))
    for _, response in pairs:
        if response.key in grades and grades[response.key].response.text != response.text:
            raise SettingsError(
                f"{path}: the grade of case {response.case_id!r} is one of another response; give another output"
            )
    pin_cases(pinned["cases"], [case for case, _ in pairs])
    new = [pair for pair in pairs if pair[1].key not in grades]
    failed = [pair for pair in pairs if pair[1].key in grades and grades[pair[1].key].num_missing]
    with Appender(path) as file, progress_bar(title, len(new) + len(failed)) as advance:

        def keep(case: Case, response: Response, verdict: V) -> G:
            grade = scheme.grade(case, response, verdict)
            before = grades.get(response.key)
            if before is None or grade.num_missing < before.num_missing:
                file.append(grade.to_record())
                grades[response.key] = grade
            advance()
            return grade

        if scheme.recorded is not None:
            for case, response in new + failed:
                keep(case, response, scheme.recorded(case, response))
        elif config is not None and (new or failed):
            judge = scheme.load(config, [case for case, _ in new + failed])
            ask = partial(judge_responses, judge, scheme.nothing, keep=keep, num_workers=config.judge_max_concurrency)
            try:
                asyncio.run(ask(new))
                asked = [grade for grade in grades.values() if not is_empty(final_answer(grade.response.text))]
                if new and asked and all(grade.is_unjudged for grade in asked):
                    raise DeadJudgeError(judge.stats, len(new))
                # Some responses no judge can read, such as those beyond its context: they stay unscored, and must not
                # look like a dead judge when nothing else is left to do.
                with suppress(DeadJudgeError):
                    asyncio.run(ask(failed))
            finally:
                keep_cost(out, config, judge.stats)
    return {response.key: grades[response.key] for _, response in pairs}


def _is_unjudged(record: Mapping[str, Any]) -> bool:
    """Whether a line is a grade that no judge has given: no verdict in it, or that of an empty answer."""
    evaluation = {"": record["likert"]} if "likert" in record else record.get("evaluation_result")
    if not isinstance(evaluation, dict):
        return False
    text = record.get("response")
    is_by_rule = isinstance(text, str) and is_empty(final_answer(text))
    return is_by_rule or all(verdict is None for verdict in evaluation.values())


def keep_cost(out: Path, config: JudgeConfig, stats: EndpointStats) -> None:
    """Print what a judge has been asked for, and add it to `out`/cost.jsonl: verdicts from the store cost nothing.

    Money where judge_prices are set.
    """
    if not stats.calls:
        return
    money = config.cost(stats.tokens)
    cost = {name: getattr(stats, name) for name in COSTS} | {"latency_s": sum(stats.latencies_s), "cost": money}
    with Appender(out / "cost.jsonl") as file:
        file.append(cost)
    tokens = f"{stats.tokens_in:,} tokens in ({stats.tokens_cached:,} cached), {stats.tokens_out:,} out"
    if stats.unmetered:
        tokens += f", those of {stats.unmetered:,} replies unknown"
    print(f"judge: {stats.calls:,} calls, {tokens}" + ("" if money is None else f", cost {money:,.4g}"))
