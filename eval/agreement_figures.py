"""Everything that is said about how far raters agree, as estimates by flat name; pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from data.cases import Case
from eval.estimates import Estimate, Panel, Statistic, estimate
from eval.metrics import PARTS
from eval.raters import MARKS, OUTCOMES, Item, Rater, panels, scores_of
from eval.reliability import (
    all_pairs,
    cohen_kappa,
    difference,
    fleiss_kappa,
    interval_alpha,
    lead,
    mean,
    mean_over_pairs,
    nominal_alpha,
    ordinal_alpha,
    pearson,
    raw_agreement,
    rows,
    spearman,
)

ALPHAS: Mapping[str, Statistic] = {
    **dict.fromkeys(PARTS, interval_alpha),  # of the order, yes or no, the same number as the nominal one
    "contains_issue": nominal_alpha,
    "correct_conclusion": nominal_alpha,
    "outcome": ordinal_alpha,
}
CATEGORICAL = ("order", *MARKS)

Estimates = dict[str, Estimate]
Measure = Callable[[Panel, Statistic], Estimate]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far raters agree: all of them, every two, and all within each difficulty and each generator.

    `pairs` also has `bias/...`: how much more the second of the two gives; `confusions` counts its outcomes (columns)
    against the first's (rows). `of_raters` has each one's means and its `leniency/...` over the others.
    """

    overall: Estimates
    pairs: Mapping[tuple[str, str], Estimates]
    confusions: Mapping[tuple[str, str], NDArray[np.int64]]
    groups: Mapping[str, Estimates]
    of_raters: Mapping[str, Estimates]
    counts: Mapping[str, float | None]

    def figures(self) -> dict[str, float | str | None]:
        """Flat: `alpha/score`, `pair/A|B/alpha/score`, `difficulty/easy/alpha/score`, `rater/A/mean/score` and more."""
        named = {"": self.overall}
        named |= {f"pair/{first}|{second}/": found for (first, second), found in self.pairs.items()}
        named |= {f"{group}/": found for group, found in self.groups.items()}
        named |= {f"rater/{name}/": found for name, found in self.of_raters.items()}
        flat: dict[str, float | str | None] = dict(self.counts)
        for prefix, estimates in named.items():
            for name, found in estimates.items():
                flat |= found.figures(prefix + name)
        for (first, second), table in self.confusions.items():
            for row, column in np.ndindex(table.shape):
                name = f"pair/{first}|{second}/confusion/{OUTCOMES[row]}/{OUTCOMES[column]}"
                flat[name] = int(table[row, column])
        return flat


def compare_raters(
    raters: Sequence[Rater], cases: Mapping[str, Case], threshold: float, measure: Measure = estimate
) -> Agreement:
    """The agreement of two or more raters; `measure` estimates a statistic of a panel with its interval."""
    items = sorted({item for rater in raters for item in rater.marks})
    names = [rater.name for rater in raters]
    everything = panels(raters, cases, items, threshold)
    pairs, confusions, of_raters = {}, {}, {}
    for first, second in combinations(names, 2):
        both = {name: panel.only(first, second) for name, panel in everything.items()}
        found = alphas(both, measure) | _categorical(both, threshold, "cohen", cohen_kappa, measure)
        found |= {f"{how.__name__}/score": measure(both["score"], how) for how in (pearson, spearman)}
        found |= {f"bias/{part}": measure(both[part].only(second, first), lead) for part in PARTS}
        pairs[first, second] = found
        confusions[first, second] = confusion(both["outcome"])
    for name in names:
        order = (name, *(other for other in names if other != name))
        of_raters[name] = {f"mean/{part}": measure(everything[part].only(name), mean) for part in PARTS}
        of_raters[name] |= {f"leniency/{part}": measure(everything[part].only(*order), lead) for part in PARTS}
    overall = alphas(everything, measure) | _categorical(everything, threshold, "fleiss", fleiss_kappa, measure)
    groups = {
        group: alphas(panels(raters, cases, members, threshold), measure)
        for group, members in _groups(items, cases).items()
    }
    return Agreement(overall, pairs, confusions, groups, of_raters, _counts(raters, cases, items))


def alphas(of: Mapping[str, Panel], measure: Measure = estimate) -> Estimates:
    """Krippendorff's alpha of the score, its parts and the marks on issues."""
    return {f"alpha/{name}": measure(of[name], statistic) for name, statistic in ALPHAS.items()}


def compare_schemes(legit: Panel, likert: Panel, measure: Measure = estimate) -> dict[str, Estimates]:
    """How far raters agree in LEGIT scores and in Likert grades of the same responses, and the difference.

    Args:
        legit: two or more raters' scores; `likert`: two or more raters' grades of the same units in the same order.
    """
    both = Panel((*legit.raters, *likert.raters), legit.cases, np.concatenate([legit.values, likert.values]))
    num_legit, num_all = len(legit.raters), len(both.raters)
    found: dict[str, Estimates] = {}
    for name, statistic in {"alpha": interval_alpha, "pearson": pearson, "spearman": spearman}.items():
        of_legit, of_likert = (
            rows(statistic if name == "alpha" else mean_over_pairs(statistic, all_pairs(stop - start)), start, stop)
            for start, stop in ((0, num_legit), (num_legit, num_all))
        )
        found[name] = {
            "legit": measure(both, of_legit),
            "likert": measure(both, of_likert),
            "difference": measure(both, difference(of_legit, of_likert)),
        }
    return found


def confusion(outcomes: Panel) -> NDArray[np.int64]:
    """How often the first of two raters gave one outcome (row) and the second another (column)."""
    first, second = outcomes.values[:, ~np.isnan(outcomes.values).any(axis=0)].astype(int)
    table = np.zeros((len(OUTCOMES), len(OUTCOMES)), dtype=np.int64)
    np.add.at(table, (first, second), 1)
    return table


def _categorical(
    of: Mapping[str, Panel], threshold: float, kappa_name: str, kappa: Statistic, measure: Measure
) -> Estimates:
    order = of["order"]  # a probability where verdicts are soft
    decided = np.where(np.isnan(order.values), np.nan, order.values >= threshold)
    marks = {**of, "order": Panel(order.raters, order.cases, decided)}
    found = {f"{kappa_name}/{name}": measure(marks[name], kappa) for name in CATEGORICAL}
    return found | {f"agreement/{name}": measure(marks[name], raw_agreement) for name in CATEGORICAL}


def _groups(items: Iterable[Item], cases: Mapping[str, Case]) -> dict[str, list[Item]]:
    """The responses of each difficulty and of each generator, where there are several."""
    groups: dict[str, dict[str, list[Item]]] = {"difficulty": {}, "generator": {}}
    for item in items:
        groups["generator"].setdefault(item.generator, []).append(item)
        if (difficulty := cases[item.doc_id].difficulty) is not None:
            groups["difficulty"].setdefault(difficulty, []).append(item)
    return {
        f"{respect}/{name}": members
        for respect, by_name in groups.items()
        if len(by_name) > 1
        for name, members in sorted(by_name.items())
    }


def _counts(raters: Sequence[Rater], cases: Mapping[str, Case], items: Sequence[Item]) -> dict[str, float | None]:
    common = [item for item in items if sum(item in rater.marks for rater in raters) > 1]
    scores = [score for rater in raters for score in scores_of(rater, cases).values()]
    return {
        "num_raters": len(raters),
        "num_cases": len({item.doc_id for item in common}),
        "num_responses": len(common),
        "unscored_frac": sum(score is None for score in scores) / len(scores) if scores else None,
    }
