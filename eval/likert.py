"""Likert grades of responses, kept and resumed as LEGIT grades are: the baseline that rubrics are compared with."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np

from data.bootstrap import bootstrap_means, interval
from data.cases import Case
from data.command import InputError
from data.jsonl import JsonlError, read_jsonl
from eval.estimates import Panel
from eval.grading import AnyJudge, Scheme, grade_by
from eval.metrics import Figures
from eval.raters import Item, Rater, item_of, named_path, panels, scores_of
from eval.results import Key, Response, ResponseFile, response_of
from eval.tables import Sheet, share
from eval.tallies import estimate
from eval.verdicts import check_again, of_case
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

    @property
    def is_unjudged(self) -> bool:
        """Whether there is no grade."""
        return self.likert is None

    def to_record(self) -> dict[str, Any]:
        """The line of likert.jsonl."""
        likert = self.likert
        grade = {"likert": likert and likert.score, "rationales": likert and likert.rationales}
        return self.response.to_record() | {"judge": self.judge} | grade


def grade_likert(
    cases: Mapping[str, Case], responses: ResponseFile, out: Path, config: JudgeConfig
) -> dict[Key, LikertGrade]:
    """Likert grades of the responses, kept in `out`/likert.jsonl (see `eval.grading.grade_by`).

    Raises:
        InputError: no endpoint is configured.
    """
    if config.judge != "endpoint":
        raise InputError(
            "--scheme likert needs a model as judge (--judge URL): the mini world's judge reads issues only"
        )
    scheme = Scheme(
        name="likert",
        settings=lambda language: (
            verdict_settings(config, [language]) | {"scheme": "likert", "prompt_version": prompt_version(language)}
        ),
        read=lambda path: {grade.response.key: grade for grade in read_likert(path)},
        grade=lambda _, response, likert: LikertGrade(response, str(config.judge_model), likert),
        nothing=lambda _: NO_ANSWER,
        load=_load,
    )
    return grade_by(scheme, cases, responses, out, config, "likert")


def read_likert(path: Path) -> list[LikertGrade]:
    """The last grade of each response in a file of Likert grades; none where there is no such file.

    Raises:
        JsonlError: a line that is no Likert grade, or grades a response again to no purpose; names line, case and key.
    """
    grades: dict[tuple[str, Key], LikertGrade] = {}
    for line, record in read_jsonl(path) if path.exists() else ():
        response = response_of(path, line, record)
        score = record.get("likert", "")
        if score is not None and (type(score) is not int or not 0 <= score <= TOP):
            reason = f'no Likert grade: "likert" must be an integer from 0 to {TOP}, or null'
            raise JsonlError(path, line, of_case(record, reason))
        likert = None if score is None else Likert(score, str(record.get("rationales") or ""))
        grade = LikertGrade(response, str(record.get("judge")), likert)
        if before := grades.get((response.model, response.key)):
            check_again(path, line, record, 1 - before.num_missing, 1 - grade.num_missing)
        grades[response.model, response.key] = grade
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


def likert_sheet(title: str, figures: Figures) -> Sheet:
    """The mean grade with its interval, and what stands behind it."""
    rows = (
        ("likert", estimate(figures, "mean/likert")),
        ("cases", figures["num_cases"]),
        ("unscored", share(figures["unscored_frac"])),
    )
    return Sheet("likert", title, ("", "all"), rows, Sheet.INTERVALS)


def _load(config: JudgeConfig, _: Sequence[Case]) -> AnyJudge[Likert | None]:
    judge = cast(Judge, load_judge(config))
    return LikertJudge(config, judge.endpoint, judge.store)
