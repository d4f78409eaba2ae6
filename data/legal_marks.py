"""What a judgment marks by itself: numbered sections, and citations of statutes and precedents. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from data.page_text import fold

_SYLLABLES = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허"
_ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV"]
_MARK = re.compile(r"[ \t]*((\(?)(\d{1,2}|[IVX]{1,5}|[Ⅰ-Ⅻ]|[A-Za-z]|[가-허])([.)])|[①-⑳])(?=\s)")
_SENTENCE = re.compile(r"[다요까]\.|:")
_TITLE_CHARS = 80

_ARTICLE = re.compile(
    r"제\s?\d+조(?:의\s?\d+)?(?:\s?제\s?\d+항)?(?:\s?제\s?\d+호)?(?:\s?[가-하]목)?(?:\s?(?:본문|단서|전문|후문))?"
)
_LAW = re.compile(
    r"(?P<name>(?:구 )?「?[가-힣ㆍ·]*(?:(?:법|법률)」?(?: 시행령| 시행규칙)?|규칙|조례)」?) ?(?:\([^()]*\) ?)?$"
)
_BEFORE_ABOUT = re.compile(
    r"(?:(?:[가-힣ㆍ·]*[^\s은는이가을를로고면서며여다,.])\s){1,5}(?:관한|위한|대한)\s(?:[가-힣]+\s){0,3}$"
)
_LIST = re.compile(r"\s?(?:,|및|와|과|내지|·)\s?")
_PRECEDENT = re.compile(
    r"(?P<court>대법원|헌법재판소|[가-힣]{2,8}법원(?:\s?[가-힣]{2,4}지원)?)\s?"
    r"\d{4}\.\s?\d{1,2}\.\s?\d{1,2}\.?\s?(?:자|선고)\s?\d{2,4}[가-힣]{1,3}\d+"
    r"(?:\s?(?:,|·|및)\s?(?:\d{2,4}[가-힣]{1,3})?\d+)*(?:\s?\([가-힣]+\))?\s?(?:전원(?:합의체|재판부)\s?)?(?:판결|결정)"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered part: `number` is its path ("3.나.1)", in plain digits), `text[start:end]` holds it and all below it.

    `title` is empty where the number begins a paragraph and not a heading.
    """

    number: str
    title: str
    depth: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citation:
    """A statute or precedent that the text names at `text[start:end]`; `source` is the statute, or the court."""

    kind: Literal["law", "precedent"]
    source: str
    text: str
    start: int
    end: int


def find_sections(text: str, start: int, end: int) -> tuple[Section, ...]:
    """The numbered sections of `text[start:end]`, in the order of the text.

    A mark counts where it goes on a series that is open ("나." after "가.") or begins a new one below; any other,
    such as a date at the start of a line or the "② …" of a clause that is quoted, is text.
    """
    found: list[tuple[str, str, int, int]] = []
    open_marks: list[tuple[str, int, str]] = []  # kind, ordinal and number of each section around this place
    for line_start, line in _lines(text, start, end):
        match = _MARK.match(fold(line))
        if match is None:
            continue
        for kind, ordinal in _readings(match):
            depth = next((i for i, (other, *_) in enumerate(open_marks) if other == kind), None)
            if ordinal != (1 if depth is None else open_marks[depth][1] + 1):
                continue
            del open_marks[len(open_marks) if depth is None else depth :]
            number = (open_marks[-1][2] if open_marks else "") + match[1]
            open_marks.append((kind, ordinal, number))
            title = line[match.end() :].strip()
            if len(title) > _TITLE_CHARS or _SENTENCE.search(title):
                title = ""
            found.append((number, title, len(open_marks), line_start))
            break
    ends = [next((s for *_, d, s in found[i + 1 :] if d <= depth), end) for i, (*_, depth, _) in enumerate(found)]
    return tuple(Section(n, t, d, s, e) for (n, t, d, s), e in zip(found, ends, strict=True))


def find_citations(text: str) -> tuple[Citation, ...]:
    """Every article of a named statute and every precedent, in the order of the text.

    >>> [(c.source, c.text) for c in find_citations("민법 제213조, 제214조(대법원 1993. 5. 25. 선고 92다51280 판결)")]
    [('민법', '민법 제213조'), ('민법', '제214조'), ('대법원', '대법원 1993. 5. 25. 선고 92다51280 판결')]
    """
    folded = fold(text)
    citations = [_citation("precedent", m["court"], text, *m.span()) for m in _PRECEDENT.finditer(folded)]
    last: Citation | None = None
    for article in _ARTICLE.finditer(folded):
        law = _LAW.search(folded, max(0, article.start() - 120), article.start())
        if law:
            start = law.start()
            about = _BEFORE_ABOUT.search(folded, max(0, start - 60), start)
            if about and law["name"].startswith(("법률", "특례법", "특별법", "법")):
                start = about.start()
            name = text[start : law.end("name")].strip("「」 ")
            if name.startswith("법 ") or name == "법" or folded[:start].endswith(("같은 ", "동")):
                continue  # "the same act": which one it is, only the sentences before can tell
            last = _citation("law", name, text, start, article.end())
        elif last and _LIST.fullmatch(folded, last.end, article.start()):
            last = _citation("law", last.source, text, article.start(), article.end())
        else:
            continue
        citations.append(last)
    return tuple(sorted(citations, key=lambda citation: citation.start))


def _citation(kind: Literal["law", "precedent"], source: str, text: str, start: int, end: int) -> Citation:
    return Citation(kind, source, text[start:end], start, end)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop + 1
        yield start, text[start:stop]
        start = stop


def _readings(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """What a mark can be, as its kind and its place in the series of that kind: "I." is a numeral or a letter."""
    sign = match[3] or match[1]
    shape = f"{match[2] or ''}{{}}{match[4] or ''}"
    if sign.isdecimal():
        yield shape.format("1"), int(sign)
    elif sign in _SYLLABLES:
        yield shape.format("가"), _SYLLABLES.index(sign) + 1
    elif "①" <= sign <= "⑳":
        yield "①", ord(sign) - ord("①") + 1
    elif "Ⅰ" <= sign <= "Ⅻ":
        yield shape.format("I"), ord(sign) - ord("Ⅰ") + 1
    else:
        if sign in _ROMAN:
            yield shape.format("I"), _ROMAN.index(sign) + 1
        if len(sign) == 1:
            yield shape.format("a" if sign.islower() else "A"), ord(sign.lower()) - ord("a") + 1
