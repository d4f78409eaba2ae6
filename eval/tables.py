"""One table for the terminal, the page and the paper."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval.tallies import Estimate

WIDTH = 128
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$"}
)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, shown in per cent."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:.1%}"


@dataclass(frozen=True, slots=True)
class Change:
    """A difference with its interval, shown with its sign."""

    estimate: Estimate

    def __str__(self) -> str:
        centre, low, high = self.estimate.centre, self.estimate.low, self.estimate.high
        return f"{centre:+.2f} [{low:+.2f},{high:+.2f}]"

    @property
    def direction(self) -> str:
        """ "rose" or "fell" where the interval is clear of zero, else "unclear"."""
        return "rose" if self.estimate.low > 0 else "fell" if self.estimate.high < 0 else "unclear"


Cell = Estimate | Change | Share | float | str | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table before it is drawn: rows of cells under `columns`; `name` for anchors, `note` on how to read it."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    INTERVALS: ClassVar[str] = "With 95 % intervals, bootstrap over cases."

    def titled(self, title: str) -> "Sheet":
        """The same table under another title."""
        return replace(self, title=title)


def share(value: float | None) -> Share | None:
    """A part of a whole as a cell, None where there is no whole."""
    return None if value is None else Share(value)


def text(cell: Cell) -> str:
    """A cell in words; a dash where there is nothing to tell."""
    if cell is None:
        return "–"
    return f"{cell:,g}" if isinstance(cell, int | float) else str(cell)


def to_rich(sheet: Sheet) -> Table:
    """The table for a terminal."""
    table = Table(title=sheet.title, caption=sheet.note, box=SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for place, column in enumerate(sheet.columns):
        table.add_column(column, justify="right" if place else "left")
    for row in sheet.rows:
        table.add_row(*(Text(text(cell)) for cell in row))  # Text: names and ids may look like markup
    return table


def print_sheets(sheets: Iterable[Sheet]) -> None:
    """The tables onto stdout, wide enough to be read where it is no terminal."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for sheet in sheets:
        console.print(to_rich(sheet))


def to_latex(sheets: Iterable[Sheet]) -> str:
    """The tables for a paper, one float each; needs the package booktabs."""
    return "\n\n".join(map(_latex_table, sheets)) + "\n"


def _latex_table(sheet: Sheet) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escaped(sheet.title)}. {_escaped(sheet.note)}}}",
        rf"\label{{tab:{sheet.name}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(sheet.columns) - 1)}}}",
        r"\toprule",
        " & ".join(map(_escaped, sheet.columns)) + r" \\",
        r"\midrule",
        *(" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in sheet.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _latex_cell(cell: Cell) -> str:
    """The interval small and below the line of the mean, as papers print it."""
    if isinstance(cell, Estimate | Change):
        centre, _, bounds = str(cell).partition(" ")
        return f"${centre}$ {{\\scriptsize ${bounds}$}}"
    return _escaped(text(cell))


def _escaped(words: str) -> str:
    return words.translate(_LATEX)
