"""A legal case as a tree of issues (LEGIT, arXiv 2512.01020, section 3)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from data.language import DEFAULT_LANGUAGE

ROOT_ID = ""
LEVELS = ("easy", "medium", "hard")  # of difficulty, in the order to show them in
_ID = re.compile(r"[0-9]+(\.[0-9]+)*")


class CaseError(ValueError):
    """A record is no valid case; `problems` lists every reason as (issue id or None, what is wrong)."""

    def __init__(self, case_id: str, problems: list[tuple[str | None, str]]) -> None:
        self.case_id = case_id
        self.problems = problems
        lines = (reason if issue_id is None else f"issue {issue_id!r}: {reason}" for issue_id, reason in problems)
        super().__init__(f"case {case_id!r}: " + "; ".join(lines))


@dataclass(frozen=True, slots=True)
class Claim:
    """What one party asserts on an issue."""

    claimer: str
    content: str


@dataclass(frozen=True, slots=True)
class Issue:
    """One node of the tree: the parties' claims and the court's conclusion on them.

    The root (id "") holds the parties' purposes of claim and the whole order.
    """

    id: str
    summary: str
    claims: tuple[Claim, ...]
    conclusion: str
    relevant_law: tuple[str, ...] = ()
    analysis: tuple[str, ...] = ()

    @property
    def parent_id(self) -> str | None:
        """Id of the issue above, None for the root.

        >>> Issue("1.2.10", "", (), "").parent_id
        '1.2'
        """
        if self.id == ROOT_ID:
            return None
        return self.id.rpartition(".")[0]

    @property
    def depth(self) -> int:
        """Edges between the root and this issue: 0 for "", 1 for "10", 3 for "1.2.10"."""
        return 0 if self.id == ROOT_ID else self.id.count(".") + 1

    def is_ancestor_of(self, other: "Issue") -> bool:
        """Strictly above `other` in the issue tree.

        >>> Issue("1", "", (), "").is_ancestor_of(Issue("10", "", (), ""))
        False
        >>> Issue("1", "", (), "").is_ancestor_of(Issue("1.10", "", (), ""))
        True
        """
        if self.id == ROOT_ID:
            return other.id != ROOT_ID
        return other.id.startswith(self.id + ".")  # the dot: "1" is not above "10"


@dataclass(frozen=True, slots=True)
class Case:
    """A dispute as told to the policy, and the tree that its court found.

    Guaranteed: one root, at least one issue besides it, unique ids, every parent exists, every conclusion and
    the question are non-empty. `has_tree` is False where the source tells the issues but not their tree: then
    ids are "1" ... "N" and depth means nothing. `extra` keeps the record's other keys.

    Raises:
        CaseError: with every problem found, not only the first.
    """

    id: str
    question: str
    issues: tuple[Issue, ...]
    difficulty: str | None = None
    has_tree: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise CaseError(self.id, problems)

    @property
    def language(self) -> str:
        """The language pack in which the case is asked and judged."""
        return self.extra.get("language") or DEFAULT_LANGUAGE

    @property
    def root(self) -> Issue:
        """The issue that stands for the whole dispute; its conclusion is the order."""
        return next(issue for issue in self.issues if issue.id == ROOT_ID)

    @property
    def answer(self) -> str:
        """The court's order in full."""
        return self.root.conclusion

    @property
    def sub_issues(self) -> tuple[Issue, ...]:
        """All issues besides the root: the N of the score."""
        return tuple(issue for issue in self.issues if issue.id != ROOT_ID)

    def parent(self, issue: Issue) -> Issue | None:
        """The issue directly above, None for the root."""
        return next((other for other in self.issues if other.id == issue.parent_id), None)

    def children(self, issue: Issue) -> tuple[Issue, ...]:
        """The issues directly below, in the record's order."""
        return tuple(other for other in self.issues if other.parent_id == issue.id)

    def ancestors(self, issue: Issue) -> tuple[Issue, ...]:
        """The issues strictly above, from the root down."""
        above = (other for other in self.issues if other.is_ancestor_of(issue))
        return tuple(sorted(above, key=lambda other: other.depth))

    def descendants(self, issue: Issue) -> tuple[Issue, ...]:
        """The issues strictly below, in the record's order."""
        return tuple(other for other in self.issues if issue.is_ancestor_of(other))

    def leaves(self) -> tuple[Issue, ...]:
        """The issues that nothing hangs on, in the record's order."""
        parents = {issue.parent_id for issue in self.issues}
        return tuple(issue for issue in self.issues if issue.id not in parents)


def _problems(case: Case) -> Iterator[tuple[str | None, str]]:
    if not case.question.strip():
        yield None, "the question is empty"
    ids = [issue.id for issue in case.issues]
    if ROOT_ID not in ids:
        yield None, 'no root: one issue must have the id ""'
    elif len(set(ids)) == 1:
        yield None, "no issue besides the root: nothing to cover, the score divides by their number"
    seen: set[str] = set()
    for issue in case.issues:
        if issue.id in seen:
            yield issue.id, "the id occurs twice"
        seen.add(issue.id)
        if issue.id != ROOT_ID and not _ID.fullmatch(issue.id):
            yield issue.id, 'the id must be numbers joined by dots, like "1" or "1.2.10"'
        elif issue.parent_id is not None and issue.parent_id not in ids:
            yield issue.id, f"its parent {issue.parent_id!r} is missing"
        if not issue.conclusion.strip():
            yield issue.id, "the conclusion is empty"
        if issue.id != ROOT_ID and not issue.summary.strip() and not issue.claims:
            yield issue.id, "neither summary nor claim: the issue cannot be told"


def difficulty(num_issues: int) -> str:
    """The paper's name for a case with so many issues, the root counted."""
    return "easy" if num_issues <= 4 else "medium" if num_issues <= 8 else "hard"


def by_level(difficulty: str) -> tuple[int, str]:
    """Sorts difficulties from easy to hard, and others behind them.

    >>> sorted(["odd", "hard", "easy"], key=by_level)
    ['easy', 'hard', 'odd']
    """
    return LEVELS.index(difficulty) if difficulty in LEVELS else len(LEVELS), difficulty
