"""Text cut to what a spreadsheet's cell can hold and a screen can show; pure."""

import re
import unicodedata
from collections.abc import Iterator

MAX_LINES = 22  # of 17 points each: a row is at most 409 points high, and what is longer could not be seen
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_NONCHARACTER = re.compile("[\ufffe\uffff]")


def storable(text: str) -> str:
    """The text as the file format wants it: its own escapes escaped, and without what XML cannot hold.

    >>> storable("_x0041_")
    '_x005F_x0041_'
    """
    return _ESCAPE.sub("_x005F_", _NONCHARACTER.sub("\ufffd", text))


def split_text(text: str, width: int) -> list[str]:
    """The text in pieces of at most MAX_LINES lines of `width` columns, a wide character taking two; never empty.

    >>> "".join(split_text("가" * 999, 10)) == "가" * 999
    True
    """
    pieces, num_lines = [""], 0
    for line in _LINE.findall(text):
        for part in _cut(line, width * MAX_LINES):
            lines = num_lines_of(part, width)
            if pieces[-1] and num_lines + lines > MAX_LINES:
                pieces.append("")
                num_lines = 0
            pieces[-1] += part
            num_lines += lines
    return pieces


def num_lines_of(text: str, width: int) -> int:
    """How many lines of `width` columns the text takes."""
    return sum(max(1, -(-_columns(line) // width)) for line in text.removesuffix("\n").split("\n"))


def _cut(line: str, columns: int) -> Iterator[str]:
    """The line in parts of at most so many columns."""
    start, used = 0, 0
    for place, char in enumerate(line):
        used += _columns(char)
        if used > columns and char != "\n":
            yield line[start:place]
            start, used = place, _columns(char)
    yield line[start:]


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
