"""Verdicts given as probabilities: the threshold that best matches the experts, and whether they mean what they say."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.reliability import cohen_kappa

NUM_FOLDS = 5
NUM_BINS = 10
MAX_CANDIDATES = 99
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge's probabilities against the experts' yes and no.

    `threshold` matches them best on all marks; `kappa` is Cohen's on cases that its own threshold was not chosen on,
    `kappa_at_half` that of 0.5; None where not defined. `brier` is the mean squared error, `curve` the reliability
    curve: (mean probability, share of yes, number of marks) of each tenth of the scale that has any.
    """

    threshold: float
    kappa: float | None
    kappa_at_half: float | None
    brier: float
    curve: tuple[tuple[float, float, int], ...]

    def figures(self, name: str) -> dict[str, float | str | None]:
        """Flat figures under `name`."""
        flat: dict[str, float | str | None] = {
            f"{name}/threshold": self.threshold,
            f"{name}/kappa_cross_validated": self.kappa,
            f"{name}/kappa_at_half": self.kappa_at_half,
            f"{name}/brier": self.brier,
        }
        for place, (probability, share, num) in enumerate(self.curve):
            flat |= {f"{name}/curve/{place}/probability": probability, f"{name}/curve/{place}/yes_frac": share}
            flat[f"{name}/curve/{place}/num"] = num
        return flat


def calibrate(probabilities: Values, experts: Values, cases: Sequence[str], seed: int = 0) -> Calibration | None:
    """The calibration on the marks that both gave; None where there are none.

    Cross-validated over cases in five folds, never over marks: those of one case are no strangers to each other.

    Args:
        probabilities: the judge's, NaN where missing.
        experts: 0 or 1, NaN where the experts gave none or do not agree.
        cases: the case of each mark.
    """
    both = ~np.isnan(probabilities) & ~np.isnan(experts)
    if not both.any():
        return None
    probabilities, experts = probabilities[both], experts[both]
    names, case_of = np.unique(np.array(cases)[both], return_inverse=True)
    fold_of = np.random.default_rng(seed).permutation(len(names))[case_of] % NUM_FOLDS
    held_out = np.full(len(experts), np.nan)
    for fold in range(min(NUM_FOLDS, len(names))):
        out = fold_of == fold
        if not out.all():
            held_out[out] = probabilities[out] >= best_threshold(probabilities[~out], experts[~out])
    bins = np.minimum((probabilities * NUM_BINS).astype(int), NUM_BINS - 1)
    curve = [
        (float(probabilities[bins == place].mean()), float(experts[bins == place].mean()), int((bins == place).sum()))
        for place in np.unique(bins)
    ]
    return Calibration(
        best_threshold(probabilities, experts),
        _kappa(experts, held_out),
        _kappa(experts, (probabilities >= 0.5).astype(np.float64)),
        float(((probabilities - experts) ** 2).mean()),
        tuple(curve),
    )


def best_threshold(probabilities: Values, experts: Values) -> float:
    """The threshold with the greatest kappa, the nearest to 0.5 of several, 0.5 where none has a kappa.

    >>> best_threshold(np.array([0.1, 0.6, 0.7, 0.9]), np.array([0.0, 0, 1, 1])).__round__(2)
    0.65
    """
    values = np.unique(probabilities)
    between = (values[1:] + values[:-1]) / 2
    step = max(1, len(between) // MAX_CANDIDATES)
    candidates = sorted([0.5, *between[::step].tolist()], key=lambda threshold: abs(threshold - 0.5))
    kappas = [_kappa(experts, (probabilities >= threshold).astype(np.float64)) for threshold in candidates]
    best = max(range(len(candidates)), key=lambda place: -np.inf if (found := kappas[place]) is None else found)
    return float(candidates[best])


def _kappa(experts: Values, verdicts: Values) -> float | None:
    found = float(cohen_kappa(np.stack([experts, verdicts]), np.ones((1, len(experts))))[0])
    return None if np.isnan(found) else found
