"""A Korean judgment in its parts: header, order (주문), purposes of claim (청구취지), reasons (이유), appendices.

Pure, and total: of a text that is no judgment, the parts are empty; `data.selection` says what is missing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Literal

from data.judgment_header import Header, Party, spaced
from data.legal_marks import Citation, Section, find_citations, find_sections
from data.page_text import clean, fold

_HEADINGS = {
    "order": spaced("주문"),
    "purposes": spaced("청구취지및항소취지", "청구취지", "신청취지"),
    "appeal": spaced("부대항소취지", "항소취지"),
    "reasons": spaced("이유"),
}
_HEADING = re.compile(
    rf"^[ \t]*(?P<open>[\[【<〔][ \t]*)?(?:{'|'.join(f'(?P<{part}>{words})' for part, words in _HEADINGS.items())})"
    r"[ \t]*(?(open)[\]】>〕]|:?[ \t]*$)",
    re.MULTILINE,
)
_JUDGES = re.compile(r"^[ \t]*(?:재판장[ \t]*)?판[ \t]*사(?:[ \t]+[^\s.]{1,12}){1,6}[ \t]*$", re.MULTILINE)
_APPENDIX = re.compile(r"^[ \t]*[\[【<(〔]?\s*별[ \t]*지[ \t]*\d*[ \t]*[\]】>)〕]?[ \t]*(?::.*)?$", re.MULTILINE)
_PURPOSE = re.compile(
    r"^\s*(?:[\d가-하]{1,2}[.)]\s*)?[\[【<(]?\s*(?P<label>(?:본소|반소|주위적|(?:제?\s?\d\s?)?예비적|청구취지|(?:부대)?항소취지)"
    r"(?:\s*(?:본소|반소|주위적|예비적|및|청구취지|청구|으로))*)\s*(?:[\]】>)]\s*:?|:|,|$)\s*"
)
_AS_ORDERED = re.compile(
    r"\s*(?:주문|주문\s?제\s?(?P<items>[\d,\s제항및내지]+?)항)\s*(?:기재)?(?:과|와)?\s*같(?:다|음|은\s판결)\.?\s*"
)
_ITEM = re.compile(r"(\d{1,2})\.\s+")
_COSTS = re.compile(r"소송(?:총)?비용|가집행")
_FACTS = re.compile(
    r"(?:기초|인정|전제|기본)(?:적|된|되는)?\s?(?:인\s)?사실|사실\s?관계|(?:처분|사건)의\s?경위|다툼\s?없는\s?사실|사안의\s?개요"
)


@dataclass(frozen=True, slots=True)
class Purpose:
    """What one side asks for; `label` is the heading that the judgment puts before it ("반소", "예비적 청구취지")."""

    claimer: str
    kind: Literal["main", "counterclaim"]
    rank: Literal["only", "primary", "alternative"]
    label: str
    text: str


@dataclass(frozen=True)
class Judgment:
    """One judgment. Every number that says where something stands counts characters of `text`, the cleaned text.

    `closed` is the day on which the hearings ended, `decided` that of the judgment, None where it is not told.
    `lower_cases` are the case numbers of the judgment that is appealed against.
    """

    text: str
    court: str
    case_numbers: tuple[str, ...]
    case_name: str
    parties: tuple[Party, ...]
    closed: date | None
    decided: date | None
    lower_cases: tuple[str, ...]
    order: str
    purposes: tuple[Purpose, ...]
    reasons_start: int
    reasons_end: int
    appendices: tuple[str, ...]

    @property
    def doc_id(self) -> str:
        """Court and first case number, as in "예제지방법원-2021가합4001"; empty where one of them is not told."""
        return f"{self.court}-{self.case_numbers[0]}" if self.court and self.case_numbers else ""

    @property
    def reasons(self) -> str:
        """The reasons, without their heading, the judges' names and the appendices."""
        return self.text[self.reasons_start : self.reasons_end]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The numbered sections of the reasons."""
        return find_sections(self.text, self.reasons_start, self.reasons_end)

    @property
    def facts(self) -> str:
        """The text of the sections whose headings say that they tell the facts; empty where none does."""
        told = [section for section in self.sections if _FACTS.search(section.title)]
        outer = [s for s in told if not any(o is not s and o.start <= s.start < o.end for o in told)]
        return "\n".join(self.text[section.start : section.end].strip() for section in outer)

    @cached_property
    def citations(self) -> tuple[Citation, ...]:
        """Statutes and precedents that the whole text names."""
        return find_citations(self.text)


def parse_judgment(raw: str) -> Judgment:
    """The judgment that a text tells, in whatever way pages, brackets and stretched headings present it."""
    text = clean(raw)
    folded = fold(text)
    spans = _parts(folded)
    order = _dedent(text[slice(*spans["order"])])
    header = Header(text[: spans["header"][1]])
    start, end = spans["reasons"]
    judges = _JUDGES.search(folded, start, end)
    annexes = [m.start() for m in _APPENDIX.finditer(folded, judges.end() if judges else start, end)]
    return Judgment(
        text=text,
        court=header.court,
        case_numbers=header.case_numbers,
        case_name=header.case_name,
        parties=header.parties,
        closed=header.day("closed"),
        decided=header.day("decided"),
        lower_cases=header.lower_cases,
        order=order,
        purposes=tuple(_purposes(_dedent(text[slice(*spans["purposes"])]), order, header.parties)),
        reasons_start=start,
        reasons_end=judges.start() if judges else min([*annexes, end]),
        appendices=tuple(text[a:b].strip() for a, b in pairwise([*annexes, end])),
    )


def _parts(folded: str) -> dict[str, tuple[int, int]]:
    """Where each part stands, (0, 0) where there is none; a heading that comes again later is a quotation."""
    spans = dict.fromkeys(("header", *_HEADINGS), (0, 0))
    headings = list(_HEADING.finditer(folded))
    while headings and not headings[0]["order"]:
        del headings[0]
    for i, match in enumerate(headings):
        part = next(name for name in _HEADINGS if match[name])
        is_last = part == "reasons" or i + 1 == len(headings)
        if spans[part] == (0, 0):
            spans[part] = (match.end(), len(folded) if is_last else headings[i + 1].start())
        if is_last:
            break
    spans["header"] = (0, headings[0].start() if headings else 0)
    return spans


def _purposes(text: str, order: str, parties: Sequence[Party]) -> Iterator[Purpose]:
    """What is asked for, side by side; "as ordered" is replaced by the order, for it would give the order away."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        match = _PURPOSE.match(fold(line))
        if match:
            blocks.append((re.sub(r"\s+", " ", match["label"]).strip(), [line[match.end() :]]))
        else:
            blocks[-1][1].append(line)
    is_counterclaim = False
    for label, lines in blocks:
        is_counterclaim = "반소" in label or (is_counterclaim and "본소" not in label)
        asked = _dedent("\n".join(lines))
        if asked and not label.endswith("항소취지"):  # an appeal asks for nothing that was not asked before
            yield Purpose(
                claimer=_claimer(parties, is_counterclaim),
                kind="counterclaim" if is_counterclaim else "main",
                rank="primary" if "주위적" in label else "alternative" if "예비적" in label else "only",
                label=label if label != "청구취지" else "",
                text=_as_ordered(asked, order),
            )


def _claimer(parties: Sequence[Party], is_counterclaim: bool) -> str:
    wanted = ("반소원고",) if is_counterclaim else ("원고", "신청인", "채권자", "독립당사자참가인")
    sides = [party.role for party in parties if is_counterclaim or not party.role.startswith("피")]
    roles = [role for role in sides if any(word in role for word in wanted)]
    if not roles:
        return "피고" if is_counterclaim else "원고"
    return roles[0] + "들" if len(roles) > 1 and roles[0] == "원고" else roles[0]


def _as_ordered(asked: str, order: str) -> str:
    match = _AS_ORDERED.fullmatch(fold(asked))
    if not match:
        return asked
    items: list[list[str]] = []  # of the order: its number, and its text with the lines below
    for line in order.split("\n"):
        number = _ITEM.match(fold(line))
        if number or not items:
            items.append([number[1] if number else "", line[number.end() if number else 0 :]])
        else:
            items[-1][1] += "\n" + line
    wanted = re.findall(r"\d+", match["items"] or "")
    kept = [item for item in items if (item[0] in wanted if wanted else not _COSTS.search(item[1]))]
    return kept[0][1] if len(kept) == 1 else "\n".join(f"{number}. {text}" for number, text in kept) or asked


def _dedent(text: str) -> str:
    """The lines that are not blank, without the indentation that all share."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return "\n".join(line[indent:] for line in lines).strip()
