"""Two graded sets on the same cases: differences, whether chance explains them, and the cases that turned; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.command import InputError
from eval.graded import META_NAME, GradedSet
from eval.metrics import PARTS, Figures, case_means, paired_difference
from eval.pins import differing
from eval.summary import scores_by_case
from eval.tables import Cell, Change, Sheet, share
from eval.tallies import estimate

_SAME = 1e-9  # differences of less come from adding in another order
SHOWN_IDS = 3


@dataclass(frozen=True, slots=True)
class SignTest:
    """Cases on which the second set is better, worse, the same; `p` of so uneven a split if both were equally good."""

    better: int
    worse: int
    tied: int
    p: float


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case's mean score and mean order in the first set and in the second."""

    case_id: str
    scores: tuple[float, float]
    orders: tuple[float, float]

    @property
    def change(self) -> float:
        """Points won, below 0 where they are lost."""
        return self.scores[1] - self.scores[0]

    @property
    def flip(self) -> int:
        """1 where the order became right (in half of the samples or more), -1 where it ceased to be, else 0."""
        return (self.orders[1] >= 0.5) - (self.orders[0] >= 0.5)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the second set differs from the first: `changes` holds every case that both have a score for.

    `figures` are those of `eval.metrics.paired_difference`, and `sign/<part>/p`, `/better`, `/worse`, `/tied`.
    """

    figures: Figures
    signs: dict[str, SignTest]
    changes: tuple[CaseChange, ...]

    def change(self, part: str) -> Change | None:
        """The mean difference of a part, None where no case is scored in both sets."""
        difference = estimate(self.figures, f"diff/{part}")
        return None if difference is None else Change(difference)


def check_comparable(sets: Sequence[GradedSet], on_common_cases: bool = False) -> None:
    """That the sets answer the same cases, drawn and judged alike: otherwise a difference is not one of the models.

    How responses were drawn is compared as far as it is known.

    Raises:
        InputError: naming what differs, and what to do.
    """
    first = sets[0]
    drawn = next((graded for graded in sets if graded.sampling), first)  # the first of which that is known
    for other in sets[1:]:
        if first.has_meta != other.has_meta:
            untold, told = (other, first) if first.has_meta else (first, other)
            raise InputError(
                f"{untold.path}: {META_NAME} is missing beside it, so nothing says whether {untold.name} was judged "
                f"like {told.name}. Copy it from the folder that the grades come from, or grade anew (eval/grade.py "
                "writes both)."
            )
        if differing := _differing(first.judge, other.judge):
            raise InputError(
                f"{first.name} and {other.name} were not judged alike: {differing}. Judges differ in "
                "leniency, often by more than models do. Grade both with one judge (eval/grade.py --rejudge all); how "
                "far two judges agree on the same responses, eval/agreement.py tells."
            )
        if drawn.sampling and other.sampling and (differing := _differing(drawn.sampling, other.sampling)):
            raise InputError(
                f"{drawn.name} and {other.name} were not sampled alike: {differing}. A model answers otherwise when "
                "it decodes greedily than when it draws, often by more than models differ. Solve and grade both in one "
                "way (eval/solve.py --temperature, --request), or choose it of a run's (--sampling)."
            )
        if not first.case_ids & other.case_ids:
            raise InputError(f"{first.name} and {other.name} have no case in common")
        if first.case_ids != other.case_ids and not on_common_cases:
            raise InputError(
                f"{first.name} and {other.name} answer different cases: {_only_in(first, other)}; "
                f"{_only_in(other, first)}. Solve and grade what is missing, or compare with --common on the cases "
                "that all answer."
            )


def compare_sets(first: GradedSet, second: GradedSet) -> Comparison:
    """The second set against the first, paired by case; several samples of a case are averaged before."""
    scores = scores_by_case(first.grades), scores_by_case(second.grades)
    before, after = (dict(zip(rows.case_ids, rows.values.tolist(), strict=True)) for rows in map(case_means, scores))
    shared = [case_id for case_id in before if case_id in after]
    signs = {
        part: sign_test([after[case_id][column] - before[case_id][column] for case_id in shared])
        for column, part in enumerate(PARTS)
    }
    figures = paired_difference(*scores)
    for part, sign in signs.items():
        figures |= {f"sign/{part}/{name}": getattr(sign, name) for name in ("better", "worse", "tied", "p")}
    total, order = PARTS.index("score"), PARTS.index("order")
    changes = (
        CaseChange(id, (before[id][total], after[id][total]), (before[id][order], after[id][order])) for id in shared
    )
    return Comparison(figures, signs, tuple(changes))


def sign_test(differences: Sequence[float]) -> SignTest:
    """The exact two-sided sign test; ties say nothing either way and stay out of it.

    >>> sign_test([1, 1, 1, 1, 1, -1, 0]).p  # 2 * (1 + 6) / 2**6
    0.21875
    """
    better = sum(difference > _SAME for difference in differences)
    worse = sum(difference < -_SAME for difference in differences)
    num = better + worse
    term, tail = 1, 0
    for k in range(min(better, worse) + 1):
        tail += term
        term = term * (num - k) // (k + 1)
    return SignTest(better, worse, len(differences) - num, min(1.0, 2 * tail / 2**num))


def part_sheet(first: GradedSet, second: GradedSet, comparison: Comparison, means: Sequence[Figures]) -> Sheet:
    """Every part of two sets side by side, with difference and sign test."""
    rows = [
        (
            part,
            *(estimate(figures, f"mean/{part}") for figures in means),
            comparison.change(part),
            comparison.signs[part].better,
            comparison.signs[part].worse,
            comparison.signs[part].tied,
            p_value(comparison.signs[part].p),
        )
        for part in PARTS
    ]
    unscored = ("unscored", *(share(figures["unscored_frac"]) for figures in means), None, None, None, None, None)
    return Sheet(
        "comparison",
        f"{second.name} against {first.name}, {comparison.figures['num_pairs']} cases",
        ("", first.name, second.name, "difference", "better", "worse", "tied", "p"),
        (*rows, unscored),
        f"{Sheet.INTERVALS} Difference: paired by case. p: two-sided sign test over cases.",
    )


def sets_sheet(sets: Sequence[GradedSet], comparisons: Sequence[Comparison], means: Sequence[Figures]) -> Sheet:
    """Any number of sets: each one's parts, and below it the difference to the first set with its sign test."""
    rows: list[tuple[Cell, ...]] = []
    for graded, figures, comparison in zip(sets, means, (None, *comparisons), strict=True):
        counts = (int(figures["num_cases"] or 0), share(figures["unscored_frac"]))
        rows.append((graded.name, *(estimate(figures, f"mean/{part}") for part in PARTS), *counts))
        if comparison is not None:
            cells = (comparison.change(part) for part in PARTS)
            rows.append((f"  against {sets[0].name}", *cells, comparison.figures["num_pairs"], None))
            rows.append(("  p", *(p_value(comparison.signs[part].p) for part in PARTS), None, None))
    return Sheet(
        "sets",
        f"{len(sets)} sets, each against {sets[0].name}",
        ("", *PARTS, "cases", "unscored"),
        tuple(rows),
        f"{Sheet.INTERVALS} Differences: paired by case. p: two-sided sign test over cases.",
    )


def p_value(p: float) -> str:
    """A probability as papers print it."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} ({first.get(name)!r} and {second.get(name)!r})" for name in sorted(differing(first, second))
    )


def _only_in(one: GradedSet, other: GradedSet) -> str:
    ids = sorted(one.case_ids - other.case_ids)
    shown = f" ({', '.join(ids[:SHOWN_IDS])}{', …' if len(ids) > SHOWN_IDS else ''})" if ids else ""
    return f"{len(ids)} only in {one.name}{shown}"
