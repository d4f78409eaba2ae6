"""Statistics of raters' marks as estimates: with an interval from resampled cases, or the reason why there is none.

A statistic takes marks (raters x units, NaN where a rater gave none) and weights (draws x units) and returns one value
per draw, NaN where it is not defined. With weights of one it is the statistic of the data; with each unit weighted by
how often its case was drawn it is a bootstrap: one definition for both, and thousands of draws in one product.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.bootstrap import interval

Values = NDArray[np.float64]
Statistic = Callable[[Values, Values], Values]

NUM_RESAMPLES = 2_000
MIN_DEFINED_FRAC = 0.95  # an interval from fewer of the draws would be one of the lucky draws
TINY = 1e-9
_MAX_WEIGHTS = 4_000_000  # weights at once: 32 MB of them, however many the marks


@dataclass(frozen=True, slots=True)
class Panel:
    """Marks of raters on the same units: a row of `values` per rater, NaN where none; `cases` has each unit's case."""

    raters: tuple[str, ...]
    cases: tuple[str, ...]
    values: Values

    def only(self, *raters: str) -> "Panel":
        """The rows of these raters, in this order."""
        return Panel(raters, self.cases, self.values[[self.raters.index(rater) for rater in raters]])


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95 % interval; what is not defined is None, and `undefined` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    undefined: str | None = None

    def figures(self, name: str) -> dict[str, float | str | None]:
        """The flat figures `name`, `name/low`, `name/high`, and `name/undefined` where there is a reason."""
        flat: dict[str, float | str | None] = {name: self.value, f"{name}/low": self.low, f"{name}/high": self.high}
        return flat if self.undefined is None else flat | {f"{name}/undefined": self.undefined}

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined: {self.undefined}"
        value, *bounds = (
            "-" if n is None else f"{n:.2f}".replace("-0.00", "0.00") for n in (self.value, self.low, self.high)
        )
        return f"{value} [{self.undefined or ','.join(bounds)}]"


def estimate(panel: Panel, statistic: Statistic, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> Estimate:
    """The statistic of the panel with its interval: whole cases are drawn, for marks on one case hang together."""
    units = (~np.isnan(panel.values)).any(axis=0)
    values = panel.values[:, units]
    if not units.any():
        return Estimate(None, undefined="no marks")
    value = float(statistic(values, np.ones((1, values.shape[1])))[0])
    if np.isnan(value):
        return Estimate(None, undefined=_why(values))
    names, case_of_unit = np.unique(np.array(panel.cases)[units], return_inverse=True)
    if len(names) == 1:
        return Estimate(value, undefined="one case")
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=num_resamples).astype(np.float64)
    step = max(1, _MAX_WEIGHTS // len(case_of_unit))
    starts = range(0, num_resamples, step)
    resampled = np.concatenate([statistic(values, draws[start : start + step, case_of_unit]) for start in starts])
    defined = resampled[~np.isnan(resampled)]
    if len(defined) < MIN_DEFINED_FRAC * num_resamples:
        return Estimate(value, undefined=f"defined in {len(defined) / num_resamples:.0%} of resamples")
    low, high = interval(defined[:, None])
    return Estimate(value, float(low[0]), float(high[0]))


def marked_twice(values: Values) -> NDArray[np.bool_]:
    """The marks that have another beside them on their unit."""
    present = ~np.isnan(values)
    twice: NDArray[np.bool_] = present & (present.sum(axis=0) >= 2)
    return twice


def _why(values: Values) -> str:
    marked = marked_twice(values)
    num_units = int(marked.any(axis=0).sum())
    if num_units == 0:
        return "no unit was marked by two raters"
    if np.ptp(values[marked]) <= TINY:
        return "all marks are alike"
    if any(np.ptp(row[where]) <= TINY for row, where in zip(values, marked, strict=True) if where.any()):
        return "one rater's marks are all alike"
    return f"too few marks in common ({num_units})" if len(values) == 2 else "not defined for two of the raters"
