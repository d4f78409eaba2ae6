"""A graded set cut by kind of case, length, truncation, depth and place in the tree; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from data.cases import Case, by_level
from eval.metrics import PARTS, Figures
from eval.results import Grade, Key
from eval.summary import scores_by_case
from eval.tallies import Estimate, Tally, estimate
from rewards.answer import final_answer

RESPECTS = ("kind", "length", "truncation", "depth", "place")
PER_ISSUE = ("depth", "place")
ISSUE_PARTS = ("coverage", "correctness")
NO_KIND = "unnamed"


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a graded set that is alike in one respect: `by` "depth", `name` "2".

    Behind the means stand `num` cases, or `num` issues where whole issues are sorted and not responses: there only
    coverage and correctness can be told. `unscored_frac` of its responses (of its issues) have no score (verdict).
    """

    by: str
    name: str
    parts: Mapping[str, Estimate | None]
    num: int
    unscored_frac: float


def slice_grades(
    grades: Mapping[Key, Grade], cases: Mapping[str, Case], figures: Figures, length_edges: Sequence[int]
) -> list[Slice]:
    """The set by difficulty (as `figures` of `summarize_grades` tell it), kind, length, truncation, depth and place.

    Lengths are characters of the final answer, cut at `length_edges`. Issues of cases whose tree is unknown have
    no depth and no place; the root is never among the issues.
    """
    tally = Tally[tuple[str, str, str]]()
    asked = _tally_responses(tally, grades, cases, length_edges) | _tally_issues(tally, grades, cases)
    estimates = tally.estimates()
    slices = _difficulty_slices(figures)
    for (by, name), (num_asked, num_answered) in sorted(asked.items(), key=lambda item: _place(*item[0])):
        parts = ISSUE_PARTS if by in PER_ISSUE else PARTS
        num = int(tally.count((by, name, "coverage")))
        unscored_frac = 1 - num_answered / num_asked
        slices.append(Slice(by, name, {part: estimates.get((by, name, part)) for part in parts}, num, unscored_frac))
    return slices


def case_kind(case: Case) -> str:
    """What the record calls its kind: the claim of a mini case, "civil" or "administrative" elsewhere."""
    if "mini" in case.extra:
        return str(case.extra["mini"]["kind"])
    return str(case.extra.get("kind") or NO_KIND)


def truncation(grade: Grade) -> str:
    """Whether the token limit cut the response off; "unknown" where its file does not tell."""
    reason = grade.response.finish_reason
    return "unknown" if reason is None else "cut off" if reason == "length" else "whole"


def length_edges(grades: Iterable[Grade]) -> tuple[int, ...]:
    """Quartiles of the lengths of the final answers, without repetitions: what cuts a set into four."""
    lengths = [len(final_answer(grade.response.text)) for grade in grades]
    if not lengths:
        return ()
    return tuple(sorted({int(edge) for edge in np.percentile(lengths, (25, 50, 75))}))


def length_name(length: int, edges: Sequence[int]) -> str:
    """The bin that a length falls into.

    >>> [length_name(length, (100, 200)) for length in (100, 101, 201)]
    ['up to 100', '101 to 200', 'over 200']
    """
    if not edges or length <= edges[0]:
        return f"up to {edges[0]:,}" if edges else "any"
    for low, high in pairwise(edges):
        if length <= high:
            return f"{low + 1:,} to {high:,}"
    return f"over {edges[-1]:,}"


def _difficulty_slices(figures: Figures) -> list[Slice]:
    names = [name.split("/")[1] for name in figures if name.startswith("difficulty/") and name.endswith("/num_cases")]
    slices = []
    for name in sorted(names, key=by_level):
        prefix = f"difficulty/{name}"
        parts = {part: estimate(figures, f"{prefix}/mean/{part}") for part in PARTS}
        slices.append(
            Slice(
                "difficulty",
                name,
                parts,
                int(figures[f"{prefix}/num_cases"] or 0),
                figures[f"{prefix}/unscored_frac"] or 0,
            )
        )
    if "macro/score" in figures:
        parts = {part: estimate(figures, f"macro/{part}") for part in PARTS}
        slices.append(
            Slice("difficulty", "macro", parts, int(figures["num_cases"] or 0), figures["unscored_frac"] or 0)
        )
    return slices


def _tally_responses(
    tally: Tally[tuple[str, str, str]],
    grades: Mapping[Key, Grade],
    cases: Mapping[str, Case],
    edges: Sequence[int],
) -> dict[tuple[str, str], tuple[int, int]]:
    """(respect, name) -> how many responses, and how many of them have a score."""
    groups: dict[tuple[str, str], dict[Key, Grade]] = {}
    for key, grade in grades.items():
        names = {
            "kind": case_kind(cases[grade.response.case_id]),
            "length": length_name(len(final_answer(grade.response.text)), edges),
            "truncation": truncation(grade),
        }
        for group in names.items():
            groups.setdefault(group, {})[key] = grade
    if [name for by, name in groups if by == "kind"] == [NO_KIND]:
        del groups["kind", NO_KIND]  # no record names its kind
    for (by, name), group_grades in groups.items():
        tally.add_scores({part: (by, name, part) for part in PARTS}, scores_by_case(group_grades))
    return {
        group: (len(group_grades), sum(grade.score is not None for grade in group_grades.values()))
        for group, group_grades in groups.items()
    }


def _tally_issues(
    tally: Tally[tuple[str, str, str]], grades: Mapping[Key, Grade], cases: Mapping[str, Case]
) -> dict[tuple[str, str], tuple[int, int]]:
    """(respect, name) -> how many issues, and how many of them have a verdict."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for grade in grades.values():
        case = cases[grade.response.case_id]
        if not case.has_tree:
            continue
        leaves = {issue.id for issue in case.leaves()}
        for issue in case.sub_issues:
            judgment = grade.judgments[issue.id]
            for group in (("depth", str(issue.depth)), ("place", "leaf" if issue.id in leaves else "with children")):
                num_asked, num_judged = counts.get(group, (0, 0))
                counts[group] = num_asked + 1, num_judged + (judgment is not None)
                if judgment is not None:
                    covered = judgment.contains_issue
                    tally.add((*group, "coverage"), case.id, covered)
                    tally.add((*group, "correctness"), case.id, covered * judgment.correct_conclusion)
    return counts


def _place(by: str, name: str) -> tuple[int, float, str]:
    """Sorts by respect, then "up to 100" before "101 to 200" before "over 200", other names by the alphabet."""
    number = next((word.replace(",", "") for word in name.split() if word.replace(",", "").isdigit()), "0")
    return RESPECTS.index(by), float(number) + name.startswith("over"), name
