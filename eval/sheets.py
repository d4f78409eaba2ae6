"""The tables and flat figures of graded sets, for errors.py and report.py; pure."""

from collections.abc import Sequence

from eval.comparison import Comparison
from eval.graded import GradedSet
from eval.metrics import PARTS, Figures
from eval.outcomes import Below, ErrorAnalysis, Outcome, Rate, Reach
from eval.slices import PER_ISSUE, Slice
from eval.tables import Cell, Share, Sheet
from eval.tallies import estimate, flat

TITLES = {
    "difficulty": "Difficulty",
    "kind": "Kind of case",
    "length": "Length of the answer, characters",
    "truncation": "Truncation",
    "depth": "Depth of the issue",
    "place": "Place of the issue in the tree",
}


def headline_sheet(sets: Sequence[GradedSet], means: Sequence[Figures], comparisons: Sequence[Comparison]) -> Sheet:
    """Each set's parts, and for all but the first how much its score differs from the first's on the same cases."""
    rows = []
    for graded, figures, comparison in zip(sets, means, (None, *comparisons), strict=True):
        parts = (estimate(figures, f"mean/{part}") for part in PARTS)
        change = None if comparison is None else comparison.change("score")
        unscored = Share(figures["unscored_frac"] or 0)
        rows.append((graded.name, *parts, change, int(figures["num_cases"] or 0), unscored))
    against = f"score against {sets[0].name}"
    return Sheet(
        "headline",
        "Score and its parts",
        ("", *PARTS, against, "cases", "unscored"),
        tuple(rows),
        f"score = 5 · order + 2 · coverage + 3 · correctness. {Sheet.INTERVALS} Differences: paired by case.",
    )


def slice_sheets(slices: Sequence[Slice], name: str) -> list[Sheet]:
    """A table for each way of cutting the set."""
    sheets = []
    for by in dict.fromkeys(cut.by for cut in slices):
        of = "issues" if by in PER_ISSUE else "cases"
        parts = ("coverage", "correctness") if by in PER_ISSUE else PARTS
        rows = [
            (cut.name, *(cut.parts[part] for part in parts), cut.num, Share(cut.unscored_frac))
            for cut in slices
            if cut.by == by
        ]
        unscored = "no verdict" if by in PER_ISSUE else "unscored"
        sheets.append(Sheet(f"{name}-by-{by}", TITLES[by], ("", *parts, of, unscored), tuple(rows), Sheet.INTERVALS))
    return sheets


def outcome_sheet(names: Sequence[str], analyses: Sequence[ErrorAnalysis]) -> Sheet:
    """What became of the issues, set by set."""
    rows = [
        (name, *(errors.outcomes[kind].estimate for kind in Outcome), int(errors.outcomes[Outcome.RIGHT].num))
        for name, errors in zip(names, analyses, strict=True)
    ]
    note = "Deduction error: covered, wrongly decided. Decomposition error: not covered. Of all issues but the root."
    return Sheet("outcomes", "What became of the issues", ("", *Outcome, "issues"), tuple(rows), note)


def parent_sheet(name: str, errors: ErrorAnalysis) -> Sheet:
    """How often an issue is right, by what is below it: directly, and at all depths."""
    rows: list[tuple[Cell, ...]] = []
    for below in Below:
        cells: list[Cell] = []
        for reach in Reach:
            rate = errors.parents[reach, below]
            cells += [rate.estimate if below is not Below.UNJUDGED else None, int(rate.num)]
        rows.append((below.value, *cells))
    columns = ("below it", "right, by its children", "issues", "right, by all below", "issues")
    note = "Issues with others below them, the root among them. Order right, or covered and rightly decided."
    return Sheet(f"{name}-parents", "How often an issue is right, given those below it", columns, tuple(rows), note)


def origin_sheet(name: str, errors: ErrorAnalysis) -> Sheet:
    """Where wrong orders begin, from the root down."""
    rows = tuple(
        ("the order alone" if depth == 0 else f"depth {depth}", kind.value, rate.estimate)
        for (depth, kind), rate in errors.origins.items()
    )
    note = (
        f"{errors.num_wrong_orders} wrong orders, {errors.num_unjudged_orders} of them with a missing verdict on the "
        "way and left out. An order that goes wrong from k places counts 1/k for each."
    )
    return Sheet(f"{name}-origins", "Where a wrong order begins", ("place", "error", "share"), rows, note)


def error_figures(errors: ErrorAnalysis) -> dict[str, float | None]:
    """Flat keys: `outcome/<kind>`, `parent/<reach>/<below>`, `origin/<depth>/<kind>`, `heat_map/<covered>/<right>`."""
    rates: dict[str, Rate] = {f"outcome/{kind}": rate for kind, rate in errors.outcomes.items()}
    rates |= {f"parent/{reach}/{below}": rate for (reach, below), rate in errors.parents.items()}
    rates |= {f"origin/{depth}/{kind}": rate for (depth, kind), rate in errors.origins.items()}
    rates |= {f"heat_map/{covered}/{right}": rate for (covered, right), rate in errors.heat_map.items()}
    figures: dict[str, float | None] = {}
    for name, rate in rates.items():
        figures |= flat(name, rate.estimate) | {f"{name}/num": rate.num}
    for name in ("num_wrong_orders", "num_unjudged_orders", "num_without_tree"):
        figures[name] = getattr(errors, name)
    return figures


def slice_figures(slices: Sequence[Slice]) -> dict[str, float | None]:
    """Flat keys: `by/<respect>/<name>/<part>`, and `/num` and `/unscored_frac` for each name."""
    figures: dict[str, float | None] = {}
    for cut in slices:
        name = f"by/{cut.by}/{cut.name}"
        for part, value in cut.parts.items():
            figures |= flat(f"{name}/{part}", value)
        figures |= {f"{name}/num": cut.num, f"{name}/unscored_frac": cut.unscored_frac}
    return figures
