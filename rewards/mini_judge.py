"""The exact judge of the mini world: reads well-formed answers, needs no model, and is never wrong or missing."""

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.cases import ROOT_ID, Case
from data.command import InputError
from data.endpoint import Endpoint, EndpointStats
from data.mini import ACCEPTED, ORDER_NAME, REJECTED, WORLD_VERSION
from rewards.score import Judgment

_DECISIONS = {ACCEPTED: True, REJECTED: False}


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an answer decides: issue name -> accepted, None where two lines contradict; the orders it gives."""

    decisions: Mapping[str, bool | None]
    orders: frozenset[str]


class MiniJudge:
    """Judges answers to mini cases by what the case itself holds; a drop-in for the judge that asks a model.

    Only whole lines count, as `data.mini.gold_answer` writes them, in any order; spaces at their ends and around the
    colon are free, everything else is taken strictly:

    - a line decides an issue if it is its name, a colon and one of the two decisions, nothing more. Any other line,
      also one that is right in part ("변제: 인정 부정", "변제: 인정한다", a line cut off), is as if not written;
    - an issue decided twice alike is decided once; decided twice in contradiction it earns nothing, not even
      coverage, or naming each issue both ways would be rewarded;
    - the order is right if every order line gives the court's order word for word; no order line, or two that
      differ, is wrong;
    - other lines, and issues that the court did not treat, change nothing; `count_extra_issues` counts the latter.
    """

    def __init__(self) -> None:
        self.stats = EndpointStats()  # stays at zero: nobody is asked
        self.endpoint: Endpoint | None = None

    async def judge_case(
        self,
        case: Case,
        answer: str,
        *,
        until: float = math.inf,  # noqa: ARG002
    ) -> dict[str, Judgment]:
        """Issue id -> judgment for every issue of the case, the root included; none is ever missing, or late.

        Raises:
            InputError: the case is not of the mini world.
        """
        issues = _mini_issues(case)
        read = _read(answer)
        judgments = {ROOT_ID: _judge_order(read.orders, _spaced(case.answer))}
        for id, issue in issues.items():
            judgments[id] = _judge_issue(read.decisions, issue["name"], issue["accepted"])
        return judgments


def count_extra_issues(case: Case, answer: str) -> int:
    """How many different names the answer decides that the court did not treat: the score does not punish them.

    Raises:
        InputError: the case is not of the mini world.
    """
    return len(_read(answer).decisions.keys() - {issue["name"] for issue in _mini_issues(case).values()})


def _mini_issues(case: Case) -> Mapping[str, Mapping[str, Any]]:
    mini = case.extra.get("mini")
    if mini is None:
        raise InputError(
            f'case {case.id!r} is not of the mini world (its record has no key "mini"): the exact judge knows only '
            "cases that data/mini.py wrote. For real cases set judge: endpoint, judge_base_url and judge_model."
        )
    try:
        version, issues = mini["version"], mini["issues"]
        is_sound = issues.keys() == {issue.id for issue in case.sub_issues} and all(
            isinstance(issue["name"], str) and isinstance(issue["accepted"], bool) for issue in issues.values()
        )
    except (TypeError, KeyError, AttributeError):
        version, issues, is_sound = WORLD_VERSION, {}, False
    if version != WORLD_VERSION:
        raise InputError(
            f"case {case.id!r} is of version {version} of the mini world, this judge knows version "
            f"{WORLD_VERSION}: write the cases again with data/mini.py."
        )
    if not is_sound:
        raise InputError(
            f'case {case.id!r}: its key "mini" is damaged, it must hold version and issues with a name and a decision '
            "for every issue of the case: write the cases again with data/mini.py."
        )
    checked: Mapping[str, Mapping[str, Any]] = issues
    return checked


def _read(answer: str) -> _Answer:
    decisions: dict[str, bool | None] = {}
    orders: set[str] = set()
    for line in answer.split("\n"):
        name, _, said = map(_spaced, line.partition(":"))
        if name == ORDER_NAME:
            orders.add(said)
        elif name and said in _DECISIONS:
            accepted = _DECISIONS[said]
            decisions[name] = accepted if decisions.get(name, accepted) is accepted else None
    return _Answer(decisions, frozenset(orders))


def _judge_order(orders: frozenset[str], gold: str) -> Judgment:
    if orders == {gold}:
        return Judgment(contains_issue=True, correct_conclusion=True, rationales="주문이 판결과 같다.")
    if not orders:
        return Judgment(contains_issue=False, correct_conclusion=False, rationales="주문이 없다.")
    said = "주문이 서로 다르다." if len(orders) > 1 else "주문이 판결과 다르다."
    return Judgment(contains_issue=True, correct_conclusion=False, rationales=said)


def _judge_issue(decisions: Mapping[str, bool | None], name: str, accepted: bool) -> Judgment:
    if name not in decisions:
        return Judgment(contains_issue=False, correct_conclusion=False, rationales=f"{name}: 판단이 없다.")
    said = decisions[name]
    if said is None:
        return Judgment(contains_issue=False, correct_conclusion=False, rationales=f"{name}: 판단이 서로 다르다.")
    verdict = "같다" if said is accepted else "다르다"
    return Judgment(contains_issue=True, correct_conclusion=said is accepted, rationales=f"{name}: 판결과 {verdict}.")


def _spaced(text: str) -> str:
    """The text with every run of spaces made one, so that only words count."""
    return " ".join(unicodedata.normalize("NFC", text).split())
