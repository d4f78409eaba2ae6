"""How far raters agree: the statistics. Each takes marks and weights as `eval.estimates` describes them; pure."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from eval.estimates import TINY, Statistic, Values, marked_twice


def interval_alpha(values: Values, weights: Values) -> Values:
    """Krippendorff's alpha with squared differences (Krippendorff 2004, section 11.3).

    Over the n values of units that two or more raters marked: 1 - (n - 1) * D / E, where D sums over units of m values
    half their squared differences / (m - 1), and E is half the squared differences of all n values.

    >>> interval_alpha(np.array([[1.0, 2, 3], [1, 2, 4]]), np.ones((1, 3))).round(4)
    array([0.878])
    """
    marked = marked_twice(values)
    centred = np.where(marked, values - (values[marked].mean() if marked.any() else 0), 0)
    m = marked.sum(axis=0)
    sums, squares = centred.sum(axis=0), (centred**2).sum(axis=0)
    within = np.where(m > 0, (m * squares - sums**2) / np.maximum(m - 1, 1), 0)
    n, total, square, observed = (weights @ np.stack([m, sums, squares, within], axis=1)).T
    return 1 - _ratio((n - 1) * observed, n * square - total**2)


def nominal_alpha(values: Values, weights: Values) -> Values:
    """Krippendorff's alpha where any two different marks differ alike."""
    observed = _coincidences(values, weights)
    return _alpha(observed, 1 - np.eye(observed.shape[1]))


def ordinal_alpha(values: Values, weights: Values) -> Values:
    """Krippendorff's alpha for ranked marks: two differ by how many of all marks lie between them, ends by half."""
    observed = _coincidences(values, weights)
    totals = observed.sum(axis=2)
    middles = totals.cumsum(axis=1) - totals / 2
    return _alpha(observed, (middles[:, :, None] - middles[:, None, :]) ** 2)


def cohen_kappa(values: Values, weights: Values) -> Values:
    """Cohen's kappa of two raters: (p_o - p_e) / (1 - p_e), expected agreement from each rater's own marks."""
    first, second = _one_hot(values, marked_twice(values))
    table = np.einsum("ru,uc,uk->rck", weights, first, second, optimize=True)
    n = table.sum(axis=(1, 2))
    observed = _ratio(np.einsum("rcc->r", table), n)
    expected = _ratio(np.einsum("rc,rc->r", table.sum(axis=2), table.sum(axis=1)), n**2)
    return _ratio(observed - expected, 1 - expected)


def fleiss_kappa(values: Values, weights: Values) -> Values:
    """Fleiss' kappa over the units that every rater marked (Fleiss 1971)."""
    num_raters = len(values)
    complete = ~np.isnan(values).any(axis=0)
    counts = _one_hot(values, np.broadcast_to(complete, values.shape)).sum(axis=0)
    n = weights @ complete.astype(np.float64)
    same = ((counts**2).sum(axis=1) - num_raters * complete) / max(num_raters * (num_raters - 1), 1)
    observed = _ratio(weights @ same, n)
    expected = (_ratio(weights @ counts, (n * num_raters)[:, None]) ** 2).sum(axis=1)
    return _ratio(observed - expected, 1 - expected)


def raw_agreement(values: Values, weights: Values) -> Values:
    """Share of equal marks among all pairs of marks on one unit."""
    counts = _one_hot(values, marked_twice(values)).sum(axis=0)
    m = counts.sum(axis=1)
    return _ratio(weights @ (counts * (counts - 1)).sum(axis=1), weights @ (m * (m - 1)))


def pearson(values: Values, weights: Values) -> Values:
    """Pearson's correlation of two raters."""
    both = marked_twice(values).all(axis=0)
    first, second = values[:, both]
    return _correlation(first[None], second[None], weights[:, both])


def spearman(values: Values, weights: Values) -> Values:
    """Spearman's correlation of two raters: Pearson's of their ranks, ties at their middle."""
    both = marked_twice(values).all(axis=0)
    weights = weights[:, both]
    first, second = (_ranks(row, weights) for row in values[:, both])
    return _correlation(first, second, weights)


def mean(values: Values, weights: Values) -> Values:
    """The mean of all marks."""
    present = ~np.isnan(values)
    return _ratio(weights @ np.where(present, values, 0).sum(axis=0), weights @ present.sum(axis=0))


def lead(values: Values, weights: Values) -> Values:
    """How much more the first rater gives than the others do on average on the same units: its leniency."""
    others = ~np.isnan(values[1:])
    both = ~np.isnan(values[0]) & others.any(axis=0)
    of_others = np.where(others, values[1:], 0).sum(axis=0) / np.maximum(others.sum(axis=0), 1)
    return _ratio(weights @ np.where(both, values[0] - of_others, 0), weights @ both.astype(np.float64))


def mean_over_pairs(statistic: Statistic, pairs: Sequence[tuple[int, int]]) -> Statistic:
    """The statistic that averages another over pairs of rows; not defined where it is not for one of them."""

    def averaged(values: Values, weights: Values) -> Values:
        found: Values = np.mean([statistic(values[list(pair)], weights) for pair in pairs], axis=0)
        return found

    return averaged


def difference(first: Statistic, second: Statistic) -> Statistic:
    """The statistic that subtracts one from another on the same draws."""
    return lambda values, weights: first(values, weights) - second(values, weights)


def rows(statistic: Statistic, start: int, stop: int) -> Statistic:
    """The statistic of some of the raters."""
    return lambda values, weights: statistic(values[start:stop], weights)


def all_pairs(num_raters: int) -> list[tuple[int, int]]:
    """Every two rows, the earlier first."""
    return list(combinations(range(num_raters), 2))


def _alpha(observed: Values, distances: Values) -> Values:
    totals = observed.sum(axis=2)
    n = totals.sum(axis=1)
    expected = totals[:, :, None] * totals[:, None, :]  # a pair of equal marks has no distance, so none is taken off
    return 1 - _ratio((n - 1) * (observed * distances).sum(axis=(1, 2)), (expected * distances).sum(axis=(1, 2)))


def _coincidences(values: Values, weights: Values) -> Values:
    """Draws x categories x categories: how often two marks fall together, each unit's pairs divided by m - 1."""
    counts = _one_hot(values, marked_twice(values)).sum(axis=0)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    pairs /= np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    observed: Values = np.einsum("ru,uck->rck", weights, pairs, optimize=True)
    return observed


def _one_hot(values: Values, where: NDArray[np.bool_]) -> Values:
    """Raters x units x categories, all zero where a mark is not to count; categories in ascending order."""
    categories = np.unique(values[~np.isnan(values)])
    hot: Values = ((values[:, :, None] == categories) & where[:, :, None]).astype(np.float64)
    return hot


def _ranks(row: Values, weights: Values) -> Values:
    """Draws x units: each unit's rank in the draw, but for a constant."""
    order = np.argsort(row, kind="stable")
    _, first, place = np.unique(row[order], return_index=True, return_inverse=True)
    drawn = np.add.reduceat(weights[:, order], first, axis=1) if len(first) else weights
    ranks = np.empty_like(weights)
    ranks[:, order] = (drawn.cumsum(axis=1) - drawn / 2)[:, place]
    return ranks


def _correlation(first: Values, second: Values, weights: Values) -> Values:
    n = weights.sum(axis=1, keepdims=True)
    x, y = (marks - _ratio((weights * marks).sum(axis=1, keepdims=True), n) for marks in (first, second))
    variances = (weights * x**2).sum(axis=1) * (weights * y**2).sum(axis=1)
    enough = (weights > 0).sum(axis=1) >= 3  # two points always lie on a line
    return np.where(enough, _ratio((weights * x * y).sum(axis=1), np.sqrt(variances)), np.nan)


def _ratio(above: Values, below: Values) -> Values:
    """The quotient, NaN where nothing stands below."""
    below = np.broadcast_to(below, above.shape)
    quotient: Values = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > TINY)
    return quotient
