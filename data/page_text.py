"""A judgment's pages as one clean text: what printers and extractors put into it is taken out again. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from data.visible import visible

_DASHED = re.compile(r"\s*[-–—‐]\s*(\d{1,4})\s*[-–—‐]\s*")
_OF_ALL = re.compile(r"\s*(\d{1,4})\s*/\s*(\d{1,4})\s*")
_ALONE = re.compile(r"\s*\d{1,4}\s*")
_MARK = re.compile(
    r"\s*(?:\d{1,2}\.|[가-하]\.|\d{1,2}\)|[가-하]\)|\((?:\d{1,2}|[가-하])\)|[IVXⅠ-Ⅻ]+\.|[A-Z]\.|[a-z]\)|[①-⑳]|[○◎■▣◆●*·-])\s"
)
_HEADING = re.compile(r"\s*[\[【<(]|\s*(?:\S\s+){1,5}\S\s*$")
_DATE_BREAKS_OFF = re.compile(r"\d{4}\.(?:\s?\d{1,2}\.)?$")
_ENDING = re.compile(r"(?:[은는이가을를의에와과도로라고며다]|기로)(?![가-힣])|으로|에게|에서|부터|까지|하[였는고]|되")
_PARTICLE = re.compile(r"[가-힣'][은는을를와과에로고의이며서]$")
_PAPER_CELLS = 120  # what fits on a page; a line that is longer was broken by nobody
_HANJA = str.maketrans(
    "判決主文請求趣旨理由原被告事件甲乙丙民刑法訴訟行政第條項號目別紙宣辯論終結大院地方部反本豫備位的控抗亡氏",
    "판결주문청구취지이유원피고사건갑을병민형법소송행정제조항호목별지선변론종결대원지방부반본예비위적공항망씨",
)
_FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xA0: 0x20}
_FOLDED: dict[int, int | str] = {**_HANJA, **_FULL_WIDTH}
_FOLDABLE = re.compile(f"[{''.join(map(chr, _FOLDED))}]")  # none of them has a meaning in a class of characters


def clean(raw: str) -> str:
    """The text as it was written, one paragraph a line: without page numbers, running heads, form feeds and the line
    breaks of a page's width. NFC; no two blank lines in a row. Not a word is lost, but characters that nobody sees.
    """
    text = "\f".join(map(visible, raw.split("\f")))
    lines = [line.expandtabs(8).rstrip() for line in _without_page_marks(text.split("\n"))]
    joined = "\n".join(_join(lines))
    return re.sub(r"\n{3,}", "\n\n", joined).strip("\n")


def fold(text: str) -> str:
    """The same text for matching, character by character in the same places: full-width letters and digits as plain
    ones, the Hanja of headings and statutes as Hangul.

    >>> fold("民法 第２７５條")
    '민법 제275조'
    """
    return text.translate(_FOLDED) if _FOLDABLE.search(text) else text  # most have nothing to fold


def _without_page_marks(lines: Sequence[str]) -> list[str]:
    """The lines without page numbers, the running heads beside them, and the blank lines around both."""
    blank = [not line.strip(" \f\u3000") for line in lines]
    numbers = _page_numbers(lines, blank)
    dropped = set(numbers)
    for step in (1, -1):
        beside = [place for i in numbers if (place := _next_line(blank, i, step))]
        times = Counter(lines[place].strip() for place in beside)
        enough = max(2, len(numbers) // 2)
        dropped |= {i for i in beside if times[lines[i].strip()] >= enough and not lines[i].endswith(".")}
    for i in list(dropped):
        for step in (1, -1):
            j = i + step
            while 0 <= j < len(lines) and blank[j]:
                dropped.add(j)
                j += step
    return [line.replace("\f", "") for i, line in enumerate(lines) if i not in dropped]


def _page_numbers(lines: Sequence[str], blank: Sequence[bool]) -> set[int]:
    """The lines that are page numbers: "- 7 -" that go up, "7 / 9" from the first to the last, "7" beside a page break.

    Whatever else looks like one, such as a share of 1/3 in a table, is text.
    """
    dashed = [(i, int(match[1])) for i, line in enumerate(lines) if (match := _DASHED.fullmatch(line))]
    numbers = {i for i, _ in dashed} if all(a < b for (_, a), (_, b) in pairwise(dashed)) else set()
    of_all = [(i, int(m[1]), int(m[2])) for i, line in enumerate(lines) if (m := _OF_ALL.fullmatch(line))]
    if [number for _, number, _ in of_all] == [*range(1, len(of_all) + 1)] and {m for *_, m in of_all} == {len(of_all)}:
        numbers |= {i for i, *_ in of_all}
    breaks = {i for i, line in enumerate(lines) if "\f" in line}
    alone = {i for i, line in enumerate(lines) if _ALONE.fullmatch(line)}
    return numbers | {i for i in alone if breaks & {i, _next_line(blank, i, 1)}}


def _next_line(blank: Sequence[bool], start: int, step: int) -> int:
    """The nearest line that is not blank, 0 where there is none: no page begins before the first line."""
    i = start + step
    while 0 <= i < len(blank) and blank[i]:
        i += step
    return i if 0 <= i < len(blank) else 0


def _join(lines: Sequence[str]) -> list[str]:
    """The paragraphs, where lines were broken at a page's width; else the lines as they are."""
    widths = [_cells(line) for line in lines]
    width = max(widths, default=0)
    wide = [cells for cells in widths if cells > 0.8 * width]
    if width > _PAPER_CELLS or len(wide) < max(10, 0.25 * sum(map(bool, widths))):
        return list(lines)
    # Either words are moved to the next line as a whole, or lines are cut wherever they are full, in mid-word too.
    cuts_words = sum(cells >= width - 4 for cells in wide) > 0.9 * len(wide)
    words = Counter(word for line in lines for word in line.split()[1:-1])
    paragraphs: list[str] = []
    open_cells = 0  # of the line that may go on; 0 where none may
    for line, cells in zip(lines, widths, strict=True):
        first = line.split(maxsplit=1)[0] if line.strip() else ""
        whole = re.findall(r"[!-~]*", first)[0] if cuts_words else first  # what is not cut: a number, or any word
        is_full = (cuts_words and open_cells >= width - 4) or open_cells + _cells(whole) >= width
        if first and open_cells and is_full and _goes_on(paragraphs[-1], line):
            space = " " if not cuts_words else _space(paragraphs[-1].rsplit(maxsplit=1)[-1], first, words)
            paragraphs[-1] += space + line.lstrip()
        else:
            paragraphs.append(line)
        open_cells = cells
    return paragraphs


def _goes_on(paragraph: str, line: str) -> bool:
    if _DATE_BREAKS_OFF.search(paragraph):
        return True  # "2021." / "4. 9." looks like a numbered paragraph and is none
    return not paragraph.endswith(("다.", "라.", "함.")) and not _MARK.match(line) and not _HEADING.match(line)


def _space(last: str, first: str, words: Counter[str]) -> str:
    """What stood between two words, or halves of one, at the end of a full line: a space or nothing.

    Decided by what the document writes elsewhere. It costs no word to be wrong: all comparing overlooks spaces.
    """
    whole, apart = words[last + first], min(words[last], words[first])
    if whole or apart:
        return "" if whole >= apart else " "
    if _ENDING.match(first):
        return ""
    return " " if words[last] or last.endswith((".", ",", ":", ";")) or _PARTICLE.search(last) else ""


def _cells(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_width, text))


@cache
def _width(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WFA" else 1
