"""Means of cases drawn anew, and the interval that they lie in; pure."""

import numpy as np
from numpy.typing import NDArray

NUM_RESAMPLES = 10_000
CONFIDENCE = 0.95
_MAX_DRAWS = 1_000_000  # case indices drawn at once: 8 MB of them, whatever the number of cases


def bootstrap_means(
    values: NDArray[np.float64], num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Column means of `num_resamples` draws of as many rows, with replacement: an array (num_resamples, columns)."""
    num_cases = len(values)
    if num_cases == 0:
        raise ValueError("nothing to resample: no case was scored")
    rng = np.random.default_rng(seed)
    means = np.empty((num_resamples, values.shape[1]))
    step = max(1, _MAX_DRAWS // num_cases)
    for start in range(0, num_resamples, step):
        drawn = rng.integers(num_cases, size=(min(step, num_resamples - start), num_cases))
        means[start : start + len(drawn)] = values[drawn].mean(axis=1)
    return means


def interval(means: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[NDArray[np.float64], ...]:
    """Percentile interval of resampled means: (low, high), one entry per column."""
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return low, high
