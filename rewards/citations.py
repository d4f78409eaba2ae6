"""Which laws an answer cites: whether they exist, and whether they are those that the court applied. Pure."""

from collections.abc import Set
from dataclasses import dataclass

from data.cases import Case
from data.citations import find_laws


@dataclass(frozen=True, slots=True)
class Citations:
    """The laws that an answer cites, by their keys (`data.citations`), and those that the case's tree names.

    An act before its amendment counts as the act: answers seldom say which they mean.

    >>> cited = frozenset(["민법 제1조", "민법 제2조", "대법원 99다1"])
    >>> told = Citations(cited, own=frozenset(["민법 제1조", "상법 제9조"]))
    >>> told.num_own, told.num_known({"민법 제1조", "민법 제2조"})  # precision 1/3, recall 1/2, existing 2/3
    (1, 2)
    """

    cited: frozenset[str]
    own: frozenset[str]

    @property
    def num_own(self) -> int:
        """Cited laws that are the case's own."""
        return len(self.cited & self.own)

    def num_known(self, known: Set[str]) -> int:
        """Cited laws that a corpus has, in the present or in a former version."""
        return sum(law in known or f"구 {law}" in known for law in self.cited)


def citations_of(case: Case, answer: str) -> Citations:
    """What the answer cites, beside what the court of the case did."""
    own = (_cited(law) for issue in case.issues for law in issue.relevant_law)
    return Citations(_cited(answer), frozenset().union(*own))


def unknown_precedents(answer: str, known: Set[str]) -> list[str]:
    """The precedents that an answer cites and a corpus has not: invented ones, if the corpus has all.

    >>> unknown_precedents("대법원 2099. 1. 1. 선고 2098다1 판결 참조", {"대법원 2017다37324"})
    ['대법원 2098다1']
    """
    cited = (law.key for law in find_laws(answer) if law.kind == "precedent")
    return [key for key in dict.fromkeys(cited) if key not in known]


def _cited(text: str) -> frozenset[str]:
    return frozenset(law.key.removeprefix("구 ") for law in find_laws(text))
