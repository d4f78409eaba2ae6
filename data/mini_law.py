"""The written rules of the mini world: a small procedural law in which every conclusion can be computed.

1. An issue's own finding is what the facts tell of it; where they leave it open, the court decides by a coin.
2. An element, an admissibility requirement and a counter-defence are accepted if their own finding holds.
3. A defence, full or partial, is accepted if its own finding holds and no counter-defence to it is accepted.
4. The order is the first that applies: inadmissible if an admissibility requirement is not accepted; dismissed if
   an element is not accepted or a full defence is; granted in part if a partial defence is accepted; granted.

The claims, issues, statutes and the sentences that tell them stand in mini_law.yaml.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any


class Role(StrEnum):
    """What an issue does to the claim."""

    ELEMENT = "element"
    DEFENCE = "defence"
    PARTIAL = "partial"
    COUNTER = "counter"
    ADMISSIBILITY = "admissibility"


class Told(StrEnum):
    """What the facts tell of an issue."""

    HOLDS = "holds"
    FAILS = "fails"
    UNCLEAR = "unclear"


class Outcome(StrEnum):
    """What the order does with the claim."""

    GRANTED = "granted"
    PARTIAL = "partial"
    DISMISSED = "dismissed"
    INADMISSIBLE = "inadmissible"


@dataclass(frozen=True, slots=True)
class LegalIssue:
    """An issue that the law knows for a kind of claim; "1.2.1" answers "1.2"."""

    id: str
    name: str
    role: Role
    statute: str
    sentences: Mapping[Told, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of claim: its purpose in several wordings, its orders, its issues (a parent before its children)."""

    name: str
    purposes: tuple[str, ...]
    orders: Mapping[Outcome, str]
    issues: tuple[LegalIssue, ...]


@cache
def kinds() -> tuple[Kind, ...]:
    """The six kinds of claim, in the order of mini_law.yaml."""
    import yaml

    law = yaml.safe_load(Path(__file__).with_name("mini_law.yaml").read_text(encoding="utf-8"))
    return tuple(_kind(name, entry) for name, entry in law.items())


def possible_outcomes(issues: Iterable[LegalIssue]) -> tuple[Outcome, ...]:
    """The orders that a dispute over these issues can end in."""
    roles = {issue.role for issue in issues}
    needs = {Outcome.PARTIAL: Role.PARTIAL, Outcome.INADMISSIBLE: Role.ADMISSIBILITY}
    return tuple(outcome for outcome in Outcome if needs.get(outcome, Role.ELEMENT) in roles)


def conclude(issues: Iterable[LegalIssue], findings: Mapping[str, bool]) -> dict[str, bool]:
    """Issue id -> accepted or not, from what was found on each issue by itself (rules 2 and 3).

    >>> loan = kinds()[0].issues[:3]  # the loan, its repayment, its appropriation to another debt
    >>> conclude(loan, {"1": True, "1.1": True, "1.1.1": True})
    {'1': True, '1.1': False, '1.1.1': True}
    """
    issues = tuple(issues)
    answered = {issue.id.rpartition(".")[0] for issue in issues if issue.role is Role.COUNTER and findings[issue.id]}
    return {issue.id: findings[issue.id] and issue.id not in answered for issue in issues}


def outcome(issues: Iterable[LegalIssue], accepted: Mapping[str, bool]) -> Outcome:
    """The order that the conclusions lead to (rule 4)."""
    issues = tuple(issues)
    accepted_roles = {issue.role for issue in issues if accepted[issue.id]}
    rejected_roles = {issue.role for issue in issues if not accepted[issue.id]}
    if Role.ADMISSIBILITY in rejected_roles:
        return Outcome.INADMISSIBLE
    if Role.ELEMENT in rejected_roles or Role.DEFENCE in accepted_roles:
        return Outcome.DISMISSED
    return Outcome.PARTIAL if Role.PARTIAL in accepted_roles else Outcome.GRANTED


def find(told: Mapping[str, Told], coins: Mapping[str, bool]) -> dict[str, bool]:
    """Issue id -> own finding (rule 1); `coins` holds the court's choice for the issues left open."""
    return {id: coins[id] if state is Told.UNCLEAR else state is Told.HOLDS for id, state in told.items()}


def decidable(issues: Iterable[LegalIssue], told: Mapping[str, Told]) -> tuple[frozenset[str], bool]:
    """What follows from the facts whatever the coins show: the ids of such issues, and whether the order does."""
    issues = tuple(issues)
    open_ids = [id for id, state in told.items() if state is Told.UNCLEAR]
    worlds = [
        conclude(issues, find(told, dict(zip(open_ids, coins, strict=True))))
        for coins in product((True, False), repeat=len(open_ids))
    ]
    settled = frozenset(issue.id for issue in issues if len({world[issue.id] for world in worlds}) == 1)
    return settled, len({outcome(issues, world) for world in worlds}) == 1


def _kind(name: str, entry: Mapping[str, Any]) -> Kind:
    return Kind(
        name=name,
        purposes=tuple(entry["purpose"]),
        orders={
            Outcome.GRANTED: entry["granted"],
            Outcome.PARTIAL: entry["partial"],
            Outcome.DISMISSED: "원고의 청구를 기각한다.",
            Outcome.INADMISSIBLE: "이 사건 소를 각하한다.",
        },
        issues=tuple(_legal_issue(id, issue) for id, issue in entry["issues"].items()),
    )


def _legal_issue(id: str, entry: Mapping[str, Any]) -> LegalIssue:
    name, role, statute = entry["issue"]
    return LegalIssue(id, name, Role(role), statute, {told: tuple(entry[told]) for told in Told})
