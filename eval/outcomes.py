"""What went wrong on an issue, how it spreads up the tree, and where a wrong order begins; pure."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from data.cases import ROOT_ID, Case, Issue
from eval.results import Grade, Key
from eval.tallies import Estimate, Tally
from rewards.score import Judgment

NUM_BINS = 5
T = TypeVar("T", bound=Hashable)


class Outcome(StrEnum):
    """What became of an issue. A probability counts as True from 0.5 on."""

    RIGHT = "right"
    DEDUCTION = "deduction error"  # covered, and wrongly decided
    DECOMPOSITION = "decomposition error"  # not covered
    UNJUDGED = "unjudged"


ERRORS = (Outcome.DEDUCTION, Outcome.DECOMPOSITION)


class Below(StrEnum):
    """What became of the issues below an issue: exactly one of these holds."""

    NONE_COVERED = "none covered"
    SOME_WRONG = "some wrong"
    MIXED = "some right, the others not covered"
    ALL_RIGHT = "all right"
    UNJUDGED = "unjudged"  # a verdict is missing, on one of them or on the issue above


class Reach(StrEnum):
    """How far down "below" goes."""

    CHILDREN = "children"
    DESCENDANTS = "descendants"


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its interval, None where there is nothing to share out, and how many stand behind it."""

    estimate: Estimate | None
    num: float


@dataclass(frozen=True, slots=True)
class ErrorAnalysis:
    """The errors of a graded set. Rates are over issues or wrong orders, intervals over resampled cases.

    `outcomes`: share of each outcome among the issues besides the root, the unjudged counted in.
    `parents`: how often an issue, the root included, is right, given what became of the issues below it.
    `origins`: (depth, outcome) of the issue where a wrong order begins -> its share of the wrong orders that are judged
    throughout; a wrong order that begins in k places counts 1/k for each.
    `heat_map`: (bin of the share of children covered, bin of the share of children covered and right) -> how often the
    issue above is right; bins 0 to 4 of a fifth each.
    `num_without_tree` responses answer cases whose tree is unknown: they count in `outcomes` alone.
    """

    outcomes: Mapping[Outcome, Rate]
    parents: Mapping[tuple[Reach, Below], Rate]
    origins: Mapping[tuple[int, Outcome], Rate]
    heat_map: Mapping[tuple[int, int], Rate]
    num_wrong_orders: int
    num_unjudged_orders: int
    num_without_tree: int


def analyse_errors(grades: Mapping[Key, Grade], cases: Mapping[str, Case]) -> ErrorAnalysis:
    """The errors of all responses of a set."""
    tally = Tally[Hashable]()  # one for all: its intervals cost a pass over the resamples
    begins: list[tuple[str, tuple[tuple[int, Outcome], ...] | None]] = []
    num_without_tree = 0
    for grade in grades.values():
        case = cases[grade.response.case_id]
        outcomes = issue_outcomes(grade.judgments)
        for issue in case.sub_issues:
            for kind in Outcome:
                tally.add(kind, case.id, outcomes[issue.id] is kind)
        if not case.has_tree:
            num_without_tree += 1
            continue
        for issue in case.issues:
            is_right = outcomes[issue.id] is Outcome.RIGHT
            for reach, issues in ((Reach.CHILDREN, case.children(issue)), (Reach.DESCENDANTS, case.descendants(issue))):
                if not issues:
                    continue
                below = [outcomes[other.id] for other in issues]
                state = Below.UNJUDGED if outcomes[issue.id] is Outcome.UNJUDGED else what_is_below(below)
                tally.add((reach, state), case.id, is_right)
                if reach is Reach.CHILDREN and state is not Below.UNJUDGED:
                    tally.add(heat_map_cell(below), case.id, is_right)
        if outcomes[ROOT_ID] in ERRORS:
            found = where_errors_begin(case, outcomes)
            begins.append((case.id, None if found is None else tuple((i.depth, outcomes[i.id]) for i in found)))
    places = _tally_origins(tally, begins)
    estimates = tally.estimates()

    def rates(keys: Iterable[T]) -> dict[T, Rate]:
        return {key: Rate(estimates.get(key), tally.count(key)) for key in keys}

    return ErrorAnalysis(
        rates(Outcome),
        rates([(reach, below) for reach in Reach for below in Below]),
        rates(places),
        rates([(covered, right) for covered in range(NUM_BINS) for right in range(covered + 1)]),
        len(begins),
        sum(found is None for _, found in begins),
        num_without_tree,
    )


def issue_outcomes(judgments: Mapping[str, Judgment | None]) -> dict[str, Outcome]:
    """The outcome of each issue of a response; the order is right whenever its conclusion is, as in the score."""
    return {
        issue_id: Outcome.UNJUDGED
        if judgment is None
        else Outcome.RIGHT
        if judgment.correct_conclusion >= 0.5 and (judgment.contains_issue >= 0.5 or issue_id == ROOT_ID)
        else Outcome.DEDUCTION
        if judgment.contains_issue >= 0.5
        else Outcome.DECOMPOSITION
        for issue_id, judgment in judgments.items()
    }


def what_is_below(outcomes: Collection[Outcome]) -> Below:
    """Sums up the issues below an issue; there must be one.

    >>> what_is_below([Outcome.RIGHT, Outcome.DECOMPOSITION])
    <Below.MIXED: 'some right, the others not covered'>
    """
    found = set(outcomes)
    if Outcome.UNJUDGED in found:
        return Below.UNJUDGED
    if found == {Outcome.DECOMPOSITION}:
        return Below.NONE_COVERED
    if Outcome.DEDUCTION in found:
        return Below.SOME_WRONG
    return Below.ALL_RIGHT if found == {Outcome.RIGHT} else Below.MIXED


def where_errors_begin(case: Case, outcomes: Mapping[str, Outcome]) -> tuple[Issue, ...] | None:
    """The issues at the lower ends of all unbroken chains of errors that reach up to a wrong order.

    That is the root itself when every issue directly below it is right. An error under an issue that is right did
    not bring the order down, and begins no chain. None where a missing verdict hides whether a chain goes on.
    """
    ends: list[Issue] = []
    chain = [case.root]
    while chain:
        issue = chain.pop(0)
        children = case.children(issue)
        if any(outcomes[child.id] is Outcome.UNJUDGED for child in children):
            return None
        erring = [child for child in children if outcomes[child.id] in ERRORS]
        chain += erring
        if not erring:
            ends.append(issue)
    return tuple(ends)


def heat_map_cell(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Bins 0 to 4 of the share of issues covered, and of the share covered and right.

    >>> heat_map_cell([Outcome.RIGHT, Outcome.DEDUCTION, Outcome.DECOMPOSITION])  # 2/3 and 1/3
    (3, 1)
    """
    num_right = sum(outcome is Outcome.RIGHT for outcome in outcomes)
    num_covered = num_right + sum(outcome is Outcome.DEDUCTION for outcome in outcomes)
    covered, right = (min(num * NUM_BINS // len(outcomes), NUM_BINS - 1) for num in (num_covered, num_right))
    return covered, right


def _tally_origins(
    tally: Tally[Hashable], begins: Sequence[tuple[str, tuple[tuple[int, Outcome], ...] | None]]
) -> list[tuple[int, Outcome]]:
    """Put each place's share of every wrong order that could be followed down under it, and return the places."""
    places = sorted({place for _, found in begins for place in found or ()})
    for case_id, found in begins:
        if found is None:
            continue
        for place in places:
            tally.add(place, case_id, found.count(place) / len(found))
    return places
