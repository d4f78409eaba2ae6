"""The lines before a judgment's order: court, case, parties, dates. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from data.page_text import fold


def spaced(*words: str) -> str:
    """A pattern for words that are printed stretched: "주       문"."""
    return "|".join(r"\s*".join(word) for word in words)


_ROLE = spaced(
    *("원고보조참가인", "피고보조참가인", "독립당사자참가인", "원고승계참가인", "승계참가인", "보조참가인", "참가인"),
    *("선정당사자", "피신청인", "신청인", "채권자", "채무자", "피항소인", "항소인", "원고", "피고"),
)
_KINDS = ("role", "name", "case", "closed", "decided", "below")
_LABEL = re.compile(
    rf"\s*[\[【]?\s*(?:(?P<role>(?:{_ROLE})(?:\s*[,·]\s*(?:{_ROLE})|\s*\((?:{_ROLE}|반소|본소|재심|[,·\s])+\))*)"
    rf"|(?P<name>{spaced('사건명')})|(?P<case>{spaced('사건번호', '사건')})"
    rf"|(?P<closed>{spaced('변론종결일', '변론종결')})|(?P<decided>{spaced('판결선고일', '선고일자', '판결선고')})"
    rf"|(?P<below>{spaced('제1심판결', '원심판결')}))(?:\s*[\]】]\s*:?|\s*:|(?=\s)|$)\s*(?P<value>.*)$"
)
_NO_PARTY = re.compile(r"\d+(?:\s*,\s*\d+)*\s*[^\d.,\s]|[^(]*(?:대리인|수행자|담당변호사)")  # "원고 3은 미성년자이므로"
_NUMBERED = re.compile(r"(?:^|(?<=\s))\d{1,3}\.\s+")
_CASE_NUMBER = re.compile(r"(\d{4}\s?[가-힣]{1,3}\s?\d+)(?:\s?\((?:본소|반소|병합|참가)[^)]*\))?")
_COURT = re.compile(r"[가-힣]{2,}?법원(?:[가-힣]{2,4}지원)?")
_DATE = re.compile(r"(\d{4})\s*[.년]\s*(\d{1,2})\s*[.월]\s*(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Party:
    """A party as the header names it; `details` are its address, representatives and counsel."""

    role: str
    name: str
    details: tuple[str, ...]


class Header:
    """The header's lines, each labelled line ("원 고  A") with those that go on under it."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._blocks: list[tuple[str, str, list[str]]] = []  # kind, label as written, lines
        for line in self._lines:
            match = _LABEL.match(fold(line))
            if match and not (match["role"] and _NO_PARTY.match(match["value"])):
                kind = next(kind for kind in _KINDS if match[kind])
                self._blocks.append((kind, re.sub(r"\s+", "", match[kind]), []))
                line = line[match.start("value") :]
            if self._blocks and line.strip():
                self._blocks[-1][2].append(line.strip())

    @property
    def court(self) -> str:
        match = _COURT.match(self._title)
        return match[0] if match else ""

    @property
    def case_numbers(self) -> tuple[str, ...]:
        told = _case_numbers(self._told("case") or fold("\n".join(self._lines)))
        return tuple(number for number in told if number not in self.lower_cases)

    @property
    def lower_cases(self) -> tuple[str, ...]:
        return _case_numbers(self._told("below"))

    @property
    def case_name(self) -> str:
        named = self._told("name") or next((fold(lines[0]) for kind, _, lines in self._blocks if kind == "case"), "")
        return _CASE_NUMBER.sub("", named).strip(" ,")

    @property
    def parties(self) -> tuple[Party, ...]:
        return tuple(party for kind, role, lines in self._blocks if kind == "role" for party in _parties(role, lines))

    def day(self, kind: str) -> date | None:
        """The day of "closed" or "decided", None where it is not told or no day."""
        match = _DATE.search(self._told(kind)) or (_DATE.search(self._title) if kind == "decided" else None)
        try:
            return date(*map(int, match.groups())) if match else None
        except ValueError:
            return None

    @property
    def _title(self) -> str:
        """The line that begins with the court's name, without spaces; empty if there is none."""
        lines = (re.sub(r"[\s\[【]+", "", fold(line)) for line in self._lines)
        return next((line for line in lines if _COURT.match(line)), "")

    def _told(self, kind: str) -> str:
        return fold(" ".join(" ".join(lines) for told, _, lines in self._blocks if told == kind))


def _case_numbers(text: str) -> tuple[str, ...]:
    return tuple(match[1].replace(" ", "") for match in _CASE_NUMBER.finditer(text))


def _parties(role: str, lines: Sequence[str]) -> Iterator[Party]:
    """The parties of one role: the numbered ones, or the one that the first line names."""
    found: list[tuple[str, list[str]]] = []
    for place, line in enumerate(lines):
        if place and not _NUMBERED.match(fold(line)):
            found[-1][1].append(line)
            continue
        marks = [match.span() for match in _NUMBERED.finditer(fold(line))] or [(0, 0)]
        for (_, start), (end, _) in pairwise([*marks, (len(line), 0)]):
            name, bracket, detail = line[start:end].strip().partition("(")
            found.append((name.strip(), [detail.rstrip(") ")]) if name else (bracket + detail, []))
    for name, details in found:
        yield Party(role, name, tuple(filter(None, details)))
