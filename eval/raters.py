"""Raters of every kind - judges' grades, evaluators' and experts' files, annotation sheets - as one table of marks."""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data.cases import Case, CaseError, Issue
from data.command import InputError
from data.jsonl import JsonlError, read_jsonl
from eval.estimates import Panel
from eval.expert_file import read_expert_file
from eval.graded import named
from eval.metrics import PARTS
from eval.results import Key, Response, response_of
from eval.verdicts import check_again, complete_verdicts, of_case, shown, verdicts_of
from rewards.score import Judgment, Score, score_case

MARKS = ("contains_issue", "correct_conclusion", "outcome")
OUTCOMES = ("absent", "wrong", "right")  # not contained; contained with another conclusion; with the court's
_SAME_SCORE = 0.005  # stored scores are often rounded to two digits

Marks = Mapping[str, Judgment | None]


class Item(NamedTuple):
    """A response that raters mark: who wrote it, on which case, and which of the writer's samples it is."""

    generator: str
    doc_id: str
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater's marks on each response, by issue id, None where one is missing; and the scores its file states."""

    name: str
    marks: Mapping[Item, Marks]
    stored_scores: Mapping[Item, float]


def read_rater(spec: str, aliases: Mapping[str, str]) -> Rater:
    """The rater in a file or folder, PATH or NAME=PATH.

    Takes our grades files and official evaluators' (JSON Lines), official experts' files (one JSON object: generator,
    then doc_id, then marks) and our annotation sheets (.xlsx, its key.json beside it). A folder is one rater: all
    grades.jsonl below it, or else the JSON files in it. A file is one rater too, whoever is named as annotator within.

    Args:
        aliases: a generator's name in files -> the name to know it by.

    Raises:
        InputError, JsonlError: what the file holds cannot be read as marks.
    """
    name, path = named_path(spec)
    if path.is_dir():
        files = sorted(path.rglob("grades.jsonl")) or sorted(p for p in path.iterdir() if p.suffix.startswith(".json"))
    else:
        files = [path]
    marks: dict[Item, Marks] = {}
    stored: dict[Item, float] = {}
    places: dict[Item, Path] = {}
    for file in files:
        for response, marked, score in _read(file):
            item = item_of(response, aliases)
            if (other := places.setdefault(item, file)) != file:
                what = f"{item.generator}'s response to case {item.doc_id!r} (sample {item.sample})"
                raise InputError(f"{other} and {file} both mark {what}: give one of them, not {path} as a whole")
            marks[item] = marked  # the last one holds: our grades files are only ever added to
            stored.pop(item, None)
            if isinstance(score, (int, float)):
                stored[item] = score
    if not marks:
        raise InputError(f"{path} holds no marks")
    return Rater(name, marks, stored)


def item_of(response: Response, aliases: Mapping[str, str]) -> Item:
    """The response as raters know it, its generator by the name that the aliases give it."""
    doc_id = unicodedata.normalize("NFC", response.case_id)
    return Item(aliases.get(response.model, response.model), doc_id, response.sample)


def fit_to_cases(raters: Sequence[Rater], cases: Mapping[str, Case]) -> tuple[list[Rater], list[str]]:
    """The raters with one entry for every issue of the known cases, and a note for whatever had to be left out."""
    fitted, notes = [], []
    for rater in raters:
        known = {item: marks for item, marks in rater.marks.items() if item.doc_id in cases}
        if unknown := sorted(rater.marks.keys() - known.keys()):
            example = f"such as {unknown[0].doc_id!r}"
            notes.append(f"{rater.name}: {len(unknown)} responses to unknown cases left out, {example}")
        foreign = [
            (item.doc_id, issue_id)
            for item, marks in known.items()
            for issue_id in marks.keys() - {issue.id for issue in cases[item.doc_id].issues}
        ]
        if foreign:
            notes.append(
                f"{rater.name}: {len(foreign)} marks on issues that their case does not have left out, such as "
                f"issue {foreign[0][1]!r} of {foreign[0][0]!r}"
            )
        complete = {item: complete_verdicts(cases[item.doc_id], marks) for item, marks in known.items()}
        fitted.append(Rater(rater.name, complete, rater.stored_scores))
    return fitted, notes


def check_common(raters: Sequence[Rater]) -> None:
    """Nothing, if at least two raters have marked one response in common.

    Raises:
        InputError: none have; says what each has marked.
    """
    items = [item for rater in raters for item in rater.marks]
    if len(set(items)) < len(items):
        return
    told = [
        f"  {rater.name}: {len(rater.marks)} responses of {', '.join(sorted({item.generator for item in rater.marks}))}"
        for rater in raters
    ]
    case_ids = [doc_id for rater in raters for doc_id in {item.doc_id for item in rater.marks}]
    hint = "They have no case in common."
    if len(set(case_ids)) < len(case_ids):
        hint = "If two generators are one and the same, say so: --alias NAME_IN_FILE=NAME"
    raise InputError("No response was marked by two of the raters:\n" + "\n".join(told) + f"\n{hint}")


def cases_of_marks(raters: Sequence[Rater]) -> dict[str, Case]:
    """Cases with only as much as the marks tell of them, their issues' ids: enough for a score.

    Raises:
        InputError: the ids make no tree.
    """
    ids: dict[str, set[str]] = {}
    for rater in raters:
        for item, marks in rater.marks.items():
            ids.setdefault(item.doc_id, set()).update(marks)
    try:
        return {
            doc_id: Case(doc_id, "-", tuple(Issue(id, "-", (), "-") for id in sorted(found)))
            for doc_id, found in ids.items()
        }
    except CaseError as error:
        raise InputError(f"The marks alone do not tell the issues; give --cases. {error}") from error


def scores_of(rater: Rater, cases: Mapping[str, Case]) -> dict[Item, Score | None]:
    """Each response's score, computed from the marks; None where one is missing."""
    return {item: score_case(cases[item.doc_id], marks) for item, marks in rater.marks.items()}


def differing_scores(rater: Rater, scores: Mapping[Item, Score | None]) -> list[tuple[Item, float, float | None]]:
    """The responses whose stored score is not what the marks make, with both scores."""
    pairs = [(item, stored, scores[item]) for item, stored in rater.stored_scores.items() if item in scores]
    return [
        (item, stored, None if score is None else score.total)
        for item, stored, score in pairs
        if score is None or abs(score.total - stored) > _SAME_SCORE
    ]


def panels(
    raters: Sequence[Rater], cases: Mapping[str, Case], items: Iterable[Item], threshold: float = 0.5
) -> dict[str, Panel]:
    """What the raters agree or disagree on, by name, of these responses.

    The score and its parts with one unit per response; contains_issue, correct_conclusion and outcome with one unit per
    issue besides the root, soft verdicts counting as yes from the threshold on. An outcome is a place in OUTCOMES.
    """
    items = sorted(items)
    names = tuple(rater.name for rater in raters)
    doc_ids = tuple(item.doc_id for item in items)
    scores = [scores_of(rater, cases) for rater in raters]
    found = {}
    for part, name in zip(PARTS, ("total", *PARTS[1:]), strict=True):
        rows = [[getattr(of_rater.get(item), name, np.nan) for item in items] for of_rater in scores]
        found[part] = Panel(names, doc_ids, np.array(rows, dtype=np.float64))

    units = [(item, issue.id) for item in items for issue in cases[item.doc_id].sub_issues]
    verdicts = [[rater.marks.get(item, {}).get(issue_id) for item, issue_id in units] for rater in raters]
    codes = {name: [[code(v, threshold)[name] for v in row] for row in verdicts] for name in MARKS}
    doc_ids = tuple(item.doc_id for item, _ in units)
    return found | {name: Panel(names, doc_ids, np.array(rows, dtype=np.float64)) for name, rows in codes.items()}


def code(judgment: Judgment | None, threshold: float) -> dict[str, float]:
    """A verdict as numbers, by the names of MARKS; NaN where it is missing."""
    if judgment is None:
        return dict.fromkeys(MARKS, np.nan)
    contained = judgment.contains_issue >= threshold
    correct = judgment.correct_conclusion >= threshold
    return {"contains_issue": contained, "correct_conclusion": correct, "outcome": contained + (contained and correct)}


def named_path(spec: str) -> tuple[str, Path]:
    """NAME=PATH taken apart; a path alone gives its own name, or its folder's where all files have the same."""
    name, path = named(spec)
    return name or (path.parent.name if path.stem in ("grades", "likert") else path.stem) or path.name, path


def _read(path: Path) -> Iterator[tuple[Response, Marks, Any]]:
    """Each response that was marked, with its marks and its stored score."""
    if path.suffix.lower() == ".xlsx":
        from eval.annotation import read_marks

        for response, marks in read_marks(path):
            yield response, marks, None
        return
    experts = read_expert_file(path)
    if experts is not None:
        yield from experts
        return
    nums_given: dict[tuple[str, Key], int] = {}
    for line, record in read_jsonl(path):
        response = response_of(path, line, record)
        if "evaluation_result" not in record:
            raise JsonlError(path, line, 'holds no marks ("evaluation_result"); eval/grade.py has responses judged')
        marks, score = verdicts_of(path, line, record), record.get("score")
        if isinstance(score, float) and not math.isfinite(score):
            raise JsonlError(path, line, of_case(record, f'"score" must be a number, got {shown(score)}'))
        written = response.model, response.key
        if written in nums_given:
            check_again(path, line, record, nums_given[written], _num_given(marks))
        nums_given[written] = _num_given(marks)
        yield response, marks, score


def _num_given(marks: Marks) -> int:
    return sum(mark is not None for mark in marks.values())
