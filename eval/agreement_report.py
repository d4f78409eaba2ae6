"""Agreement as tables, as pictures, as a matrix for a spreadsheet, and as the text of a judge card."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.agreement_figures import ALPHAS, CATEGORICAL, Agreement, Estimates
from eval.estimates import Estimate
from eval.judge_check import THRESHOLDS, JudgeCheck, reading
from eval.metrics import PARTS
from eval.raters import OUTCOMES, Rater
from eval.tables import Cell, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTE = f"{Sheet.INTERVALS} {THRESHOLDS}"
COLOURS = ("#0072b2", "#d55e00")  # told apart by colour-blind eyes too
NUM_EXAMPLES = 10
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|!"} | {"\n": " "})


def agreement_sheets(agreement: Agreement, raters: Sequence[Rater], num_differing: Sequence[int]) -> list[Sheet]:
    """The tables: all raters together, each one, every two of them, their confusions, and groups of responses."""
    overall = agreement.overall
    rows: list[tuple[Cell, ...]] = []
    for name in ALPHAS:
        of_marks = [overall[f"{how}/{name}"] for how in ("fleiss", "agreement")] if name in CATEGORICAL else [None] * 2
        alpha = overall[f"alpha/{name}"]
        rows.append((name, str(alpha), *map(_words, of_marks), reading(alpha)))
    counts = agreement.counts
    title = f"{counts['num_raters']:g} raters, {counts['num_responses']:g} responses to {counts['num_cases']:g} cases"
    columns: tuple[str, ...] = ("all raters", "Krippendorff's alpha", "Fleiss' kappa", "raw agreement", "")
    sheets = [Sheet("agreement", title, columns, tuple(rows), NOTE)]

    rows = []
    for rater, differing in zip(raters, num_differing, strict=True):
        found = agreement.of_raters[rater.name]
        means = (_words(found[f"mean/{part}"]) for part in PARTS)
        unscored = sum(None in marks.values() for marks in rater.marks.values())
        responses = f"{len(rater.marks)} ({unscored})"
        rows.append((rater.name, responses, *means, _words(found["leniency/score"]), differing))
    columns = ("rater", "responses (unscored)", *PARTS, "score above the others'", "stored scores that differ")
    note = "Scores are computed from the marks; what a file states beside them is compared, never used."
    sheets.append(Sheet("raters", "Each rater", columns, tuple(rows), note))

    names = (
        "alpha/score",
        "alpha/outcome",
        "cohen/outcome",
        "agreement/outcome",
        "pearson/score",
        "spearman/score",
        "bias/score",
    )
    pairs = [
        (f"{first}, {second}", *(_words(found[name]) for name in names))
        for (first, second), found in agreement.pairs.items()
    ]
    columns = ("", *(name.replace("/", " of ") for name in names))
    note = "bias: what the second gives more than the first. Outcome of an issue: " + ", ".join(OUTCOMES) + "."
    sheets.append(Sheet("pairs", "Every two raters", columns, tuple(pairs), note))
    if len(agreement.confusions) == 1:
        (((first, second), table),) = agreement.confusions.items()
        sheets.append(_confusion_sheet(f"{first} (rows) and {second} (columns): issues", table))
    groups = [
        (group.replace("/", " ", 1), *(_words(found[f"alpha/{name}"]) for name in ALPHAS))
        for group, found in agreement.groups.items()
    ]
    if groups:
        columns = ("", *(name.replace("_", " ") for name in ALPHAS))
        sheets.append(Sheet("groups", "Alpha by difficulty and generator", columns, tuple(groups), Sheet.INTERVALS))
    return sheets


def judge_sheets(check: JudgeCheck) -> list[Sheet]:
    """The judge beside the experts, its confusion with what they agree on, and its soft verdicts' thresholds."""
    rows = [
        (name, *(_words(check.estimates[f"{who}/alpha/{name}"]) for who in ("judge", "experts", "gap")))
        for name in ALPHAS
    ]
    columns: tuple[str, ...] = ("mean alpha of two", "judge and expert", "expert and expert", "difference")
    sheets = [Sheet("judge", "The judge against the experts", columns, tuple(rows), NOTE)]
    sheets.append(_confusion_sheet("Experts where they agree (rows) and the judge (columns): issues", check.confusion))
    soft = [
        (name, found.threshold, found.kappa, found.kappa_at_half, found.brier)
        for name, found in check.calibrations.items()
    ]
    if soft:
        columns = ("soft verdict", "best threshold", "kappa, cross-validated", "kappa at 0.5", "Brier")
        sheets.append(Sheet("soft", "Verdicts given as probabilities", columns, tuple(soft)))
    return sheets


def schemes_sheet(schemes: Mapping[str, Estimates], num_responses: int) -> Sheet:
    """LEGIT's rubrics beside Likert grades: how far the same judges agree in each."""
    rows = tuple((name, *map(str, found.values())) for name, found in schemes.items())
    title = f"Agreement of judges on the same {num_responses} responses, by scheme"
    return Sheet("schemes", title, ("of the score", "LEGIT", "Likert", "difference"), rows, Sheet.INTERVALS)


def matrix_csv(agreement: Agreement, names: Sequence[str]) -> str:
    """Alpha of the score of every two raters as a square for a spreadsheet; a reason where it is not defined."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["alpha/score", *map(_harmless, names)])
    for first in names:
        cells = [agreement.pairs.get((first, second)) or agreement.pairs.get((second, first)) for second in names]
        alphas = [1.0 if found is None else found["alpha/score"].value for found in cells]
        whys = ["" if found is None else f"undefined: {found['alpha/score'].undefined}" for found in cells]
        writer.writerow(
            [_harmless(first), *(w if a is None else round(a, 4) for a, w in zip(alphas, whys, strict=True))]
        )
    return text.getvalue()


def card_text(settings: Mapping[str, Any], date: str, said: Sequence[str], check: JudgeCheck) -> str:
    """The Markdown of a judge card."""
    lines = [f"# Judge card: {_markdown(str(settings.get('judge_model') or settings['judge']))}", ""]
    basis = f"{check.num_responses} responses to {check.num_cases} cases, marked by {check.num_experts} expert(s)"
    lines += [f"Checked on {basis}, {date}.", "", "## Verdict", ""]
    lines += [f"- {_markdown(sentence)}" for sentence in said]
    lines += ["", "## Settings", "", "| setting | value |", "|---|---|"]
    lines += [f"| {name} | {_markdown(str(value))} |" for name, value in settings.items()]
    for sheet in judge_sheets(check):
        lines += [
            "",
            f"## {sheet.title}",
            "",
            "| " + " | ".join(sheet.columns) + " |",
            "|---" * len(sheet.columns) + "|",
        ]
        lines += ["| " + " | ".join(_markdown(_cell(cell)) for cell in row) + " |" for row in sheet.rows]
    lines += ["", f"## Where it errs: {len(check.mismatches)} issues, the first {NUM_EXAMPLES}", ""]
    for miss in check.mismatches[:NUM_EXAMPLES]:
        where = f"{miss.generator}, {miss.doc_id}, issue {miss.issue_id or 'order'}"
        lines.append(_markdown(f"- {where} ({miss.summary}): experts {miss.experts}, judge {miss.judge}"))
    return "\n".join(lines) + "\n"


def draw_matrix(agreement: Agreement, names: Sequence[str], path: Path) -> None:
    """The matrix of alphas of the score as a heat map; written as PNG."""
    figure, axes = _axes(1.6 + 0.9 * len(names), 1.4 + 0.8 * len(names))
    values = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(values, 1)
    for (first, second), found in agreement.pairs.items():
        alpha = found["alpha/score"].value
        places = names.index(first), names.index(second)
        values[places] = values[places[::-1]] = np.nan if alpha is None else alpha
    axes.imshow(values, vmin=0, vmax=1, cmap="cividis")
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        label = "undefined" if np.isnan(value) else f"{value:.2f}"
        axes.text(column, row, label, ha="center", va="center", color="black" if value > 0.6 else "white")
    axes.set_facecolor("grey")
    labels = [name[-24:].replace("$", "") for name in names]  # "$" would begin a formula
    axes.set_xticks(range(len(names)), labels, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), labels)
    _save(figure, "Krippendorff's alpha of the score", path)


def draw_schemes(schemes: Mapping[str, Estimates], path: Path) -> None:
    """Agreement under LEGIT and under Likert with intervals, side by side; written as PNG."""
    figure, axes = _axes(6, 4)
    for shift, (scheme, colour) in enumerate(zip(("legit", "likert"), COLOURS, strict=True)):
        for place, found in enumerate(schemes.values()):
            _bar(axes, place + 0.36 * (shift - 0.5), found[scheme], colour, scheme if place == 0 else None)
    axes.set_xticks(range(len(schemes)), list(schemes))
    axes.legend(frameon=False)
    axes.grid(axis="y", alpha=0.3)
    _save(figure, "Agreement of judges on the score", path)


def draw_reliability(check: JudgeCheck, path: Path) -> None:
    """The reliability curves of soft verdicts: share of yes among experts by the judge's probability; as PNG."""
    figure, axes = _axes(5, 5)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
    for (name, found), colour in zip(check.calibrations.items(), COLOURS, strict=False):
        probabilities, shares, nums = zip(*found.curve, strict=True)
        axes.plot(probabilities, shares, color=colour, label=f"{name} (best threshold {found.threshold:.2f})")
        axes.scatter(probabilities, shares, s=[8 + 120 * num / max(nums) for num in nums], color=colour, alpha=0.6)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="the judge's probability", ylabel="share of yes among the experts")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    _save(figure, "Reliability of soft verdicts", path)


def _confusion_sheet(title: str, table: "np.ndarray[Any, np.dtype[np.int64]]") -> Sheet:
    rows: list[tuple[Cell, ...]] = [(name, *row) for name, row in zip(OUTCOMES, table.tolist(), strict=True)]
    return Sheet("confusion", title, ("", *OUTCOMES), tuple(rows))


def _words(found: Estimate | None) -> str | None:
    return None if found is None else str(found)


def _cell(cell: Cell) -> str:
    return "–" if cell is None else f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def _harmless(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return "'" + name if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name


def _markdown(text: str) -> str:
    return text.translate(_MARKDOWN)


def _axes(width: float, height: float) -> "tuple[Figure, Axes]":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _bar(axes: "Axes", place: float, found: Estimate, colour: str, label: str | None) -> None:
    if found.value is None:
        axes.text(place, 0, "undefined", rotation=90, ha="center", va="bottom", color=colour)
        return
    axes.bar(place, found.value, width=0.34, color=colour, alpha=0.8, label=label)
    if found.low is not None and found.high is not None:
        axes.vlines(place, found.low, found.high, color="black", linewidth=1.2)


def _save(figure: "Figure", title: str, path: Path) -> None:
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
