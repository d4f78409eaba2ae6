"""Rates with intervals: sums over many things of a case, divided, and resampled by case; pure."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from data.bootstrap import CONFIDENCE, NUM_RESAMPLES
from eval.metrics import PARTS, Figures, Scores, case_means

K = TypeVar("K", bound=Hashable)
_MAX_DRAWS = 1_000_000  # case indices drawn at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a rate with its interval; as text "6.55 [6.10,6.98]"."""

    centre: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.centre:.2f} [{self.low:.2f},{self.high:.2f}]"  # no blank within: terminals break cells there


def estimate(figures: Figures, name: str) -> Estimate | None:
    """The figure of that name with its `/low` and `/high`; None where nothing was scored."""
    centre, low, high = figures[name], figures[f"{name}/low"], figures[f"{name}/high"]
    return None if centre is None or low is None or high is None else Estimate(centre, low, high)


def flat(name: str, value: Estimate | None) -> dict[str, float | None]:
    """An estimate as three figures, which `estimate` finds again."""
    centre, low, high = (None, None, None) if value is None else (value.centre, value.low, value.high)
    return {name: centre, f"{name}/low": low, f"{name}/high": high}


class Tally(Generic[K]):
    """Collects, under each key and apart for each case, a sum of values and what they count.

    The estimate of a key is its sum over all cases divided by its count over all cases. The issues of one case
    stand or fall together, so the interval resamples whole cases, never issues.

    >>> tally = Tally[str]()
    >>> for case_id, covered in (("a", 1), ("a", 0), ("b", 1), ("b", 1)):
    ...     tally.add("coverage", case_id, covered)
    >>> tally.estimates()["coverage"]  # 3 of 4; a case has 1/2 or 2/2
    Estimate(centre=0.75, low=0.5, high=1.0)
    """

    def __init__(self) -> None:
        self._entries: dict[K, dict[str, tuple[float, float]]] = {}

    def add(self, key: K, case_id: str, value: float, count: float = 1) -> None:
        """Put a value under a key; `count` is how many things it sums up."""
        of_case = self._entries.setdefault(key, {})
        value_before, count_before = of_case.get(case_id, (0, 0))
        of_case[case_id] = value_before + value, count_before + count

    def add_scores(self, keys: Mapping[str, K], scores: Scores) -> None:
        """Put each case's mean of every part under the part's key, so that a case counts once whatever its samples."""
        rows = case_means(scores)
        for column, part in enumerate(PARTS):
            for case_id, value in zip(rows.case_ids, rows.values[:, column].tolist(), strict=True):
                self.add(keys[part], case_id, value)

    def count(self, key: K) -> float:
        """How many things stand behind a key; 0 for a key that never came."""
        return sum(count for _, count in self._entries.get(key, {}).values())

    def estimates(self, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> dict[K, Estimate]:
        """The estimate of every key that counts something."""
        keys = [key for key in self._entries if self.count(key)]
        if not keys:
            return {}
        case_ids = dict.fromkeys(case_id for key in keys for case_id in self._entries[key])
        row_of = {case_id: row for row, case_id in enumerate(case_ids)}
        table = np.zeros((2, len(row_of), len(keys)))
        for column, key in enumerate(keys):
            for case_id, entry in self._entries[key].items():
                table[:, row_of[case_id], column] = entry
        both = table.transpose(1, 0, 2).reshape(len(row_of), -1)
        sums = [draw @ both for draw in _draws(len(row_of), num_resamples, seed)]
        values, counts = np.split(np.concatenate(sums), 2, axis=1)
        with np.errstate(invalid="ignore"):  # a key of few cases is absent from some draws: 0/0, left out as nan
            ratios = values / counts
        tail = 100 * (1 - CONFIDENCE) / 2
        lows, highs = np.nanpercentile(ratios, [tail, 100 - tail], axis=0)
        centres = table[0].sum(axis=0) / table[1].sum(axis=0)
        return {
            key: Estimate(float(centre), float(low), float(high))
            for key, centre, low, high in zip(keys, centres, lows, highs, strict=True)
        }


def _draws(num_cases: int, num_resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each case is drawn: arrays with a row per resample and a column per case, a few at a time."""
    rng = np.random.default_rng(seed)
    step = max(1, _MAX_DRAWS // num_cases)
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        drawn = rng.integers(num_cases, size=(size, num_cases)) + num_cases * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * num_cases)
        yield counts.reshape(size, num_cases).astype(np.float64)
