"""The LEGIT score: the one formula that training and evaluation share (arXiv 2512.01020, section 4)."""

from collections.abc import Mapping
from dataclasses import dataclass

from data.cases import ROOT_ID, Case

ORDER_POINTS = 5
COVERAGE_POINTS = 2
CORRECTNESS_POINTS = 3


@dataclass(frozen=True, slots=True)
class Judgment:
    """The judge's verdict on one issue of one response.

    Hard verdicts are False or True. Soft ones are the judge's probability of True, in [0, 1].
    A verdict that the judge failed to give is no Judgment but None.
    """

    contains_issue: float
    correct_conclusion: float
    rationales: str = ""

    def __post_init__(self) -> None:
        for name in ("contains_issue", "correct_conclusion"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {value!r}")


@dataclass(frozen=True, slots=True)
class Score:
    """A response's score with its parts: order, coverage and correctness lie in [0, 1], total in [0, 10].

    `correct_without_coverage` is the share of issues whose conclusion was called right although the issue was
    called absent: it earns nothing, and much of it means a confused judge. `num_judged` of `num_issues`
    verdicts (the root counted) stand behind the figures.
    """

    order: float
    coverage: float
    correctness: float
    correct_without_coverage: float
    num_issues: int
    num_judged: int

    @property
    def total(self) -> float:
        """5 * order + 2 * coverage + 3 * correctness."""
        return ORDER_POINTS * self.order + COVERAGE_POINTS * self.coverage + CORRECTNESS_POINTS * self.correctness


def score_case(case: Case, judgments: Mapping[str, Judgment | None], quorum: float = 1.0) -> Score | None:
    """Score of one response, or None when too few of the verdicts on it arrived.

    With N issues besides the root, the total is 5 if the root's conclusion is right, plus 2/N for each other
    issue that is contained, plus 3/N for each that is contained and right. Soft verdicts enter as
    probabilities (contained and right: their product). A missing verdict (None) is the judge's failure and never
    a grade: the response is unscored, unless the root and at least `quorum` of the other issues, one or more,
    were judged; then those stand for all.

    Args:
        judgments: issue id -> verdict or None, for every issue of the case and no other.
        quorum: share in (0, 1] of the issues besides the root that must have a verdict.

    Raises:
        ValueError: an issue without an entry, an entry without an issue, or a quorum outside (0, 1].

    >>> from data.cases import Case, Issue
    >>> case = Case("c", "q", tuple(Issue(id, "s", (), "yes") for id in ("", "1", "2")))
    >>> right, absent = Judgment(True, True), Judgment(False, False)
    >>> score_case(case, {"": right, "1": right, "2": absent}).total  # 5 + 2/2 + 3/2
    7.5
    >>> score_case(case, {"": right, "1": right, "2": None}) is None
    True
    """
    if not 0 < quorum <= 1:
        raise ValueError(f"quorum must lie in (0, 1], got {quorum}")
    ids = {issue.id for issue in case.issues}
    if absent := ids - judgments.keys():
        raise ValueError(f"case {case.id!r}: no judgment for issues {sorted(absent)}; a failed one must be None")
    if foreign := judgments.keys() - ids:
        raise ValueError(f"case {case.id!r}: judgments for issues it does not have: {sorted(foreign)}")

    root = judgments[ROOT_ID]
    judged = [judgment for id, judgment in judgments.items() if id != ROOT_ID and judgment is not None]
    if root is None or not judged or len(judged) / (len(ids) - 1) < quorum - 1e-9:
        return None
    return Score(
        order=float(root.correct_conclusion),
        coverage=sum(j.contains_issue for j in judged) / len(judged),
        correctness=sum(j.contains_issue * j.correct_conclusion for j in judged) / len(judged),
        correct_without_coverage=sum((1 - j.contains_issue) * j.correct_conclusion for j in judged) / len(judged),
        num_issues=len(ids),
        num_judged=len(judged) + 1,
    )


def nothing_found(case: Case) -> dict[str, Judgment]:
    """The verdicts on an empty answer, by rule and without a call: it treats no issue and gives no order."""
    return {issue.id: Judgment(False, False) for issue in case.issues}
