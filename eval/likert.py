"""Likert grades of responses, kept and resumed as LEGIT grades are: the baseline that rubrics are compared with."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.table import Table

from data.cases import Case
from data.jsonl import Appender, JsonlError, read_jsonl
from eval.estimates import Panel
from eval.judging import MAX_UNJUDGED_IN_A_ROW, DeadJudgeError, keep_cost
from eval.metrics import bootstrap_means, interval
from eval.progress import progress_bar
from eval.raters import Item, Rater, item_of, named_path, panels, scores_of
from eval.results import InputError, Key, Response, ResponseFile, SettingsError, pin_settings, response_of
from eval.summary import interval_cell, new_table
from eval.workers import work_through
from rewards.answer import final_answer, is_empty
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.judge_card import verdict_settings
from rewards.likert import TOP, Likert, LikertJudge, prompt_version

NO_ANSWER = Likert(0, "답안이 비어 있다.")  # by rule and without a call, as with LEGIT's verdicts


@dataclass(frozen=True, slots=True)
class LikertGrade:
    """A response with its Likert grade, None where the judge failed: the record of likert.jsonl."""

    response: Response
    judge: str
    likert: Likert | None

    @property
    def num_missing(self) -> int:
        """1 where there is no grade."""
        return int(self.likert is None)

    def to_record(self) -> dict[str, Any]:
        """The line of likert.jsonl."""
        likert = self.likert
        grade = {"likert": likert and likert.score, "rationales": likert and likert.rationales}
        return self.response.to_record() | {"judge": self.judge} | grade


def grade_likert(
    cases: Mapping[str, Case], responses: ResponseFile, out: Path, config: JudgeConfig
) -> dict[Key, LikertGrade]:
    """Grade what `out`/likert.jsonl lacks or lacks a grade for, and return the grades of all responses.

    Raises:
        InputError: no endpoint is configured, or `out` holds grades of another judge or of other responses.
        DeadJudgeError: the judge gives nothing; the grades that it gave before are kept.
    """
    judge = _load(config)
    pairs = [(cases[response.case_id], response) for response in responses.responses if response.case_id in cases]
    settings = verdict_settings(config) | {"scheme": "likert", "prompt_version": prompt_version()}
    pin_settings(out / "likert.meta.json", settings)
    grades = {grade.response.key: grade for grade in read_likert(out / "likert.jsonl")}
    for _, response in pairs:
        if response.key in grades and grades[response.key].response.text != response.text:
            raise SettingsError(f"{out / 'likert.jsonl'}: case {response.case_id!r} was graded for another response")
    open_pairs = [pair for pair in pairs if pair[1].key not in grades or grades[pair[1].key].likert is None]
    num_in_a_row = 0
    with Appender(out / "likert.jsonl") as file, progress_bar("likert", len(open_pairs)) as advance:

        async def grade_one(pair: tuple[Case, Response]) -> None:
            nonlocal num_in_a_row
            case, response = pair
            answer = final_answer(response.text)
            likert = NO_ANSWER if is_empty(answer) else await judge.judge_case(case, answer)
            if likert is not None or response.key not in grades:
                grades[response.key] = LikertGrade(response, judge.endpoint.model, likert)
                file.append(grades[response.key].to_record())
            advance()
            num_in_a_row = num_in_a_row + 1 if likert is None else 0
            if num_in_a_row == min(MAX_UNJUDGED_IN_A_ROW, len(pairs)):
                raise DeadJudgeError(judge.stats, num_in_a_row)

        async def grade_all() -> None:
            async with judge.endpoint:
                await work_through(open_pairs, grade_one, config.judge_max_concurrency)

        try:
            asyncio.run(grade_all())
        finally:
            keep_cost(out, config, judge.stats)
    return {response.key: grades[response.key] for _, response in pairs}


def read_likert(path: Path) -> list[LikertGrade]:
    """The last grade of each response in a file of Likert grades; none where there is no such file.

    Raises:
        JsonlError: a line that is no Likert grade, by number.
    """
    grades: dict[tuple[str, Key], LikertGrade] = {}
    for line, record in read_jsonl(path) if path.exists() else ():
        response = response_of(path, line, record)
        score = record.get("likert", "")
        if score is not None and (type(score) is not int or not 0 <= score <= TOP):
            raise JsonlError(path, line, f'no Likert grade: "likert" must be an integer from 0 to {TOP}, or null')
        likert = None if score is None else Likert(score, str(record.get("rationales") or ""))
        grades[response.model, response.key] = LikertGrade(response, str(record.get("judge")), likert)
    return list(grades.values())


def summarize_likert(grades: Mapping[Key, LikertGrade]) -> dict[str, float | None]:
    """`mean/likert` over cases with its interval, `num_cases`, `num_responses` and `unscored_frac`."""
    scores: dict[str, list[int]] = {}
    for grade in grades.values():
        if grade.likert is not None:
            scores.setdefault(grade.response.case_id, []).append(grade.likert.score)
    means = np.array([[fmean(of_case)] for of_case in scores.values()])
    low, high = interval(bootstrap_means(means)) if scores else (None, None)
    num_scored = sum(map(len, scores.values()))
    return {
        "mean/likert": float(means.mean()) if scores else None,
        "mean/likert/low": None if low is None else float(low[0]),
        "mean/likert/high": None if high is None else float(high[0]),
        "num_cases": len(scores),
        "num_responses": len(grades),
        "unscored_frac": 1 - num_scored / len(grades) if grades else None,
    }


def common_scores(
    raters: Sequence[Rater], likert: Sequence[tuple[str, Mapping[Item, int]]], cases: Mapping[str, Case]
) -> tuple[Panel, Panel]:
    """LEGIT scores and Likert grades of the responses that have both, each from two raters or more.

    Raises:
        InputError: there is none such.
    """
    scores = [scores_of(rater, cases) for rater in raters]
    counts: Counter[Item] = Counter(item for found in scores for item, score in found.items() if score is not None)
    likert_counts: Counter[Item] = Counter(item for _, grades in likert for item in grades)
    items = sorted(item for item, count in counts.items() if min(count, likert_counts[item]) >= 2)
    if not items:
        raise InputError("No response has LEGIT scores and Likert grades (--likert) from two judges each")
    rows = [[grades.get(item, np.nan) for item in items] for _, grades in likert]
    names, case_ids = tuple(name for name, _ in likert), tuple(item.doc_id for item in items)
    return panels(raters, cases, items)["score"], Panel(names, case_ids, np.array(rows, dtype=np.float64))


def read_likert_rater(spec: str, aliases: Mapping[str, str]) -> tuple[str, dict[Item, int]]:
    """The name and the grades of a Likert rater, PATH or NAME=PATH; a folder is all likert.jsonl below it."""
    name, path = named_path(spec)
    files = sorted(path.rglob("likert.jsonl")) if path.is_dir() else [path]
    grades = [grade for file in files for grade in read_likert(file) if grade.likert is not None]
    if not grades:
        raise InputError(f"{path} holds no Likert grades; eval/grade.py --scheme likert makes them")
    items = ((grade.response, grade.likert) for grade in grades)
    return name, {item_of(response, aliases): likert.score for response, likert in items if likert is not None}


def likert_table(title: str, figures: Mapping[str, float | None]) -> Table:
    """The mean grade with its interval, and what stands behind it."""
    table = new_table(title)
    table.add_column("", no_wrap=True)
    table.add_column("all", justify="right")
    table.add_row("likert", interval_cell(figures, "mean/likert"))
    table.add_row("cases", f"{figures['num_cases']:g}")
    table.add_row("unscored", "-" if figures["unscored_frac"] is None else f"{figures['unscored_frac']:.1%}")
    return table


def _load(config: JudgeConfig) -> LikertJudge:
    try:
        judge = load_judge(config)
    except ValueError as error:
        raise InputError(str(error)) from error
    if not isinstance(judge, Judge):
        raise InputError(
            "--scheme likert needs a model as judge (--judge URL): the mini world's judge reads issues only"
        )
    return LikertJudge(config, judge.endpoint, judge.store)
