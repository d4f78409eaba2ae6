"""A graded set in figures, and the figures as a table."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from data.cases import Case
from eval.metrics import CONFIDENCE, PARTS, Scores, summarize
from eval.results import Grade, Key
from rewards.gates import GATE_REASONS
from rewards.score import Score

WIDTH = 128

Figures = Mapping[str, float | None]


def scores_by_case(grades: Mapping[Key, Grade]) -> Scores:
    """The scores of each case's samples, in the shape that `eval.metrics` resamples."""
    scores: dict[str, list[Score | None]] = {}
    for grade in grades.values():
        scores.setdefault(grade.response.case_id, []).append(grade.score)
    return scores


def summarize_grades(grades: Mapping[Key, Grade], cases: Mapping[str, Case]) -> dict[str, float | None]:
    """The means of `eval.metrics.summarize`, and what must be known beside them.

    `gate/<reason>_frac`: responses that training would have turned away; `judge/missing_frac`: verdicts that the judge
    failed to give; `judge/correct_without_coverage_frac`: as in the score. In the mini world also `extra_issues/mean`:
    issues per response that the court did not treat, and `extra_issues/frac`: their share of all issues named.
    """
    figures = summarize(scores_by_case(grades), {case.id: case.difficulty for case in cases.values()})
    if not grades:
        return figures
    gates = Counter(grade.gate for grade in grades.values())
    figures |= {f"gate/{reason}_frac": gates[reason] / len(grades) for reason in GATE_REASONS}
    num_verdicts = sum(len(grade.judgments) for grade in grades.values())
    figures["judge/missing_frac"] = sum(grade.num_missing for grade in grades.values()) / num_verdicts
    scored = [(grade, grade.score) for grade in grades.values() if grade.score is not None]
    if scored:
        figures["judge/correct_without_coverage_frac"] = fmean(score.correct_without_coverage for _, score in scored)
    extra = [(grade.num_extra_issues, score) for grade, score in scored if grade.num_extra_issues is not None]
    if extra:
        num_extra = sum(num for num, _ in extra)
        num_named = num_extra + sum(score.coverage * (score.num_issues - 1) for _, score in extra)
        figures["extra_issues/mean"] = num_extra / len(extra)
        figures["extra_issues/frac"] = num_extra / num_named if num_named else 0.0
    return figures


def summary_table(title: str, figures: Figures) -> Table:
    """Every part with its interval: over all cases, by difficulty, and the mean of the difficulties."""
    difficulties = [
        name.split("/")[1] for name in figures if name.startswith("difficulty/") and name.endswith("/num_cases")
    ]
    groups = {"all": "mean"} | {name: f"difficulty/{name}/mean" for name in difficulties}
    if "macro/score" in figures:
        groups["macro"] = "macro"
    table = new_table(title)
    table.add_column("", no_wrap=True)
    for group in groups:
        table.add_column(group, justify="right", min_width=len(group))
    for part in PARTS:
        table.add_row(part, *(interval_cell(figures, f"{prefix}/{part}") for prefix in groups.values()))
    for row, name in (("cases", "num_cases"), ("unscored", "unscored_frac")):
        counts = [figures[name], *(figures[f"difficulty/{difficulty}/{name}"] for difficulty in difficulties)]
        table.add_row(row, *("-" if n is None else f"{n:.1%}" if name.endswith("_frac") else f"{n:g}" for n in counts))
    return table


def new_table(title: str) -> Table:
    """An empty table of means, titled, that says what its cells are."""
    caption = f"means over cases [{CONFIDENCE:.0%} interval]"
    return Table(
        title=title, caption=caption, box=SIMPLE_HEAD, min_width=48, title_justify="left", caption_justify="left"
    )


def print_tables(tables: Iterable[Table]) -> None:
    """Onto stdout, wide enough to be read where it is no terminal."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for table in tables:
        console.print(table)


def interval_cell(figures: Figures, name: str) -> str:
    """A mean and its interval, "6.55 [6.10,6.98]"; a dash where nothing was scored."""
    centre, low, high = figures[name], figures[f"{name}/low"], figures[f"{name}/high"]
    if centre is None or low is None or high is None:
        return "-"
    return f"{centre:.2f} [{low:.2f},{high:.2f}]"  # no blank within: a narrow terminal breaks cells at blanks
