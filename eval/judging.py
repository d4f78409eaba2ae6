"""From responses to grades: a judge's verdicts, kept one response at a time, so that none is paid for twice."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.cases import Case
from data.endpoint import EndpointStats
from data.jsonl import Appender, write_json
from eval.progress import progress_bar
from eval.results import (
    Grade,
    InputError,
    Key,
    Response,
    ResponseFile,
    SettingsError,
    complete_verdicts,
    pin_settings,
    read_grades,
)
from eval.workers import work_through
from rewards.answer import final_answer, is_empty
from rewards.gates import GateConfig, gate
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.judge_card import verdict_settings
from rewards.mini_judge import count_extra_issues
from rewards.score import Judgment, nothing_found, score_case

if TYPE_CHECKING:
    from rewards.mini_judge import MiniJudge

MAX_UNJUDGED_IN_A_ROW = 8  # after as many responses without one verdict between them, the judge is dead
COSTS = ("calls", "retries", "given_up", "tokens_in", "tokens_cached", "tokens_out")
RECORDED = "recorded"  # in place of a judge: the verdicts that the response file holds


class DeadJudgeError(Exception):
    """The judge gave not one verdict on a row of responses; says what it gave instead."""

    def __init__(self, stats: EndpointStats, num_in_a_row: int) -> None:
        failure = stats.most_frequent_failure()
        super().__init__(f"The judge gave no verdict at all on {num_in_a_row} responses in a row: {failure}")


def grade_response(
    case: Case,
    response: Response,
    judge: str,
    judgments: Mapping[str, Judgment | None],
    gates: GateConfig,
    quorum: float,
) -> Grade:
    """The grade that verdicts make of a response; the gate's reason is told and costs nothing here."""
    answer = final_answer(response.text)
    num_extra_issues = count_extra_issues(case, answer) if "mini" in case.extra else None
    reason = gate(answer, response.finish_reason, gates, case.question)
    return Grade(response, judge, judgments, score_case(case, judgments, quorum), reason, num_extra_issues)


async def judge_responses(
    judge: "Judge | MiniJudge",
    pairs: Sequence[tuple[Case, Response]],
    keep: Callable[[Case, Response, Mapping[str, Judgment | None]], None],
    num_workers: int,
) -> None:
    """Have each response judged, and keep its verdicts, None where the judge failed, as soon as they are all in.

    Raises:
        DeadJudgeError: not one verdict on a row of responses.
    """
    num_in_a_row = 0

    async def judge_one(pair: tuple[Case, Response]) -> None:
        nonlocal num_in_a_row
        case, response = pair
        answer = final_answer(response.text)
        if is_empty(answer):
            keep(case, response, nothing_found(case))
            return
        judgments = await judge.judge_case(case, answer)
        keep(case, response, judgments)
        num_in_a_row = num_in_a_row + 1 if all(verdict is None for verdict in judgments.values()) else 0
        if num_in_a_row == MAX_UNJUDGED_IN_A_ROW:
            raise DeadJudgeError(judge.stats, num_in_a_row)

    async with AsyncExitStack() as stack:
        if isinstance(judge, Judge):
            await stack.enter_async_context(judge.endpoint)
        await work_through(pairs, judge_one, num_workers)


def grade_file(
    cases: Mapping[str, Case],
    responses: ResponseFile,
    out: Path,
    config: JudgeConfig | None,
    gates: GateConfig,
    title: str = "grades",
) -> dict[Key, Grade]:
    """Grade what `out`/grades.jsonl lacks, try again what its judge failed on, and return all grades of the responses.

    Without a judge's config, the verdicts are those that the response file itself brings.

    Raises:
        SettingsError: `out` holds grades of another judge or of other responses.
        DeadJudgeError: the judge gives nothing; the grades that it gave before are kept.
    """
    pairs = [(cases[response.case_id], response) for response in responses.responses if response.case_id in cases]
    quorum = 1.0 if config is None else config.judge_quorum
    pin_settings(out / "grades.meta.json", judge_settings(config))
    grades = read_grades(out / "grades.jsonl", cases, quorum)
    for _, response in pairs:
        if response.key in grades and grades[response.key].response.text != response.text:
            raise SettingsError(
                f"{out / 'grades.jsonl'}: the grade of case {response.case_id!r} is one of another response; "
                "give another output"
            )
    pin_cases(out / "grades.cases.json", [case for case, _ in pairs])
    new = [pair for pair in pairs if pair[1].key not in grades]
    failed = [pair for pair in pairs if pair[1].key in grades and grades[pair[1].key].num_missing]
    name = ", ".join(responses.evaluators) if config is None else config.judge_model or config.judge
    with Appender(out / "grades.jsonl") as file, progress_bar(title, len(new) + len(failed)) as advance:

        def keep(case: Case, response: Response, judgments: Mapping[str, Judgment | None]) -> None:
            grade = grade_response(case, response, name, judgments, gates, quorum)
            before = grades.get(response.key)
            if before is None or grade.num_missing < before.num_missing:
                file.append(grade.to_record())
                grades[response.key] = grade
            advance()

        if config is None:
            for case, response in new + failed:
                keep(case, response, complete_verdicts(case, responses.verdicts.get(response.key, {})))
        elif new or failed:
            judge = _load_judge(config, [case for case, _ in new + failed])
            try:
                asyncio.run(judge_responses(judge, new, keep, config.judge_max_concurrency))
                if new and not any(len(grade.judgments) > grade.num_missing for grade in grades.values()):
                    raise DeadJudgeError(judge.stats, len(new))
                # Some responses no judge can read, such as those beyond its context: they stay unscored, and must not
                # look like a dead judge when nothing else is left to do.
                with suppress(DeadJudgeError):
                    asyncio.run(judge_responses(judge, failed, keep, config.judge_max_concurrency))
            finally:
                keep_cost(out, config, judge.stats)
    return {response.key: grades[response.key] for _, response in pairs}


def pin_cases(path: Path, cases: Iterable[Case]) -> None:
    """Keep, case by case, a fingerprint of what is judged; a case that has changed since its grade is refused.

    Raises:
        SettingsError: a case has other issues, claims or conclusions than when its responses were graded.
    """
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    now = {case.id: hashlib.sha256(repr(case.issues).encode("utf-8", "surrogatepass")).hexdigest() for case in cases}
    if changed := sorted(id for id, print in now.items() if known.get(id, print) != print):
        raise SettingsError(
            f"{path.parent}: holds grades of {len(changed)} cases that have changed since, such as {changed[0]!r}: "
            "give another output, or grade these anew with --rejudge all"
        )
    write_json(path, known | now)


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
    print(f"judge: {stats.calls:,} calls, {tokens}" + ("" if money is None else f", cost {money:,.4g}"))


def _load_judge(config: JudgeConfig, cases: Sequence[Case]) -> "Judge | MiniJudge":
    """The configured judge, if it can judge these cases."""
    try:
        judge = load_judge(config)
        if not isinstance(judge, Judge):
            asyncio.run(_judge_nothing(judge, cases))
        for case in cases:
            if "mini" in case.extra:
                count_extra_issues(case, "")  # what cannot be graded is told before a verdict is paid
    except ValueError as error:
        raise InputError(str(error)) from error
    return judge


async def _judge_nothing(judge: "MiniJudge", cases: Sequence[Case]) -> None:
    for case in cases:
        await judge.judge_case(case, "")


def judge_settings(config: JudgeConfig | None) -> dict[str, Any]:
    """What verdicts depend on: not where the judge runs, nor how patiently it is asked."""
    if config is None:
        return {"judge": RECORDED}
    if config.judge == "mini":
        return {"judge": "mini"}
    names = ("judge_max_tokens", "judge_quorum")
    return verdict_settings(config) | {name: getattr(config, name) for name in names}
