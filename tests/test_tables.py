"""One table in three dresses."""

from eval.tables import Change, Share, Sheet, print_sheets, text, to_latex
from eval.tallies import Estimate

UP, NONE = Change(Estimate(1.234, 0.5, 2)), Change(Estimate(-0.1, -0.3, 0.1))
SHEET = Sheet(
    "s", "50 % of [bold]x_1[/bold]", ("", "a & b"), (("결론_1 {}", Estimate(0.5, 0.25, 0.75)), ("[red]", UP)), "note"
)


def test_cells_in_words():
    cells = (None, 3, 1234.5, "x", Share(0.1234), Estimate(1, 0.123, 2), UP, NONE)
    assert [text(cell) for cell in cells] == [
        "–",
        "3",
        "1,234.5",
        "x",
        "12.3%",
        "1.00 [0.12,2.00]",
        "+1.23 [+0.50,+2.00]",
        "-0.10 [-0.30,+0.10]",
    ]
    assert (UP.direction, NONE.direction, Change(Estimate(-1, -2, -0.1)).direction) == ("rose", "unclear", "fell")


def test_the_terminal_shows_names_as_they_are(capsys):
    print_sheets([SHEET])
    shown = capsys.readouterr().out
    assert "[red]" in shown
    assert "0.50 [0.25,0.75]" in shown


def test_latex_escapes_what_is_no_table():
    latex = to_latex([SHEET, SHEET])
    assert latex.count(r"\begin{table}") == 2
    assert r"50 \% of [bold]x\_1[/bold]. note" in latex
    assert r"결론\_1 \{\} & $0.50$ {\scriptsize $[0.25,0.75]$} \\" in latex
    assert r"a \& b" in latex
