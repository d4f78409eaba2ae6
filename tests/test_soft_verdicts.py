"""Probabilities against yes and no: the threshold is the one that the world was made with."""

import numpy as np
import pytest

from eval.soft_verdicts import best_threshold, calibrate

NAN = np.nan


def world(num: int, true_threshold: float, noise: float, seed: int = 0):
    """Probabilities, what experts say of them, and the cases, five marks each."""
    rng = np.random.default_rng(seed)
    probabilities = rng.random(num)
    experts = (probabilities >= true_threshold) ^ (rng.random(num) < noise)
    return probabilities, experts.astype(float), [f"case-{n // 5}" for n in range(num)]


def test_the_threshold_that_made_the_marks_is_found():
    found = calibrate(*world(400, 0.7, 0.05))
    assert found.threshold == pytest.approx(0.7, abs=0.03)
    assert found.kappa == pytest.approx(0.88, abs=0.06)
    assert found.kappa_at_half < found.kappa - 0.2


def test_on_noise_cross_validation_promises_nothing():
    rng = np.random.default_rng(2)
    found = calibrate(rng.random(200), (rng.random(200) < 0.5).astype(float), [str(n) for n in range(200)])
    assert abs(found.kappa) < 0.15


def test_honest_probabilities_lie_on_the_diagonal():
    rng = np.random.default_rng(3)
    probabilities = rng.random(20_000)
    experts = (rng.random(20_000) < probabilities).astype(float)
    found = calibrate(probabilities, experts, [str(n) for n in range(20_000)])
    assert len(found.curve) == 10
    assert sum(num for _, _, num in found.curve) == 20_000
    assert all(abs(probability - share) < 0.04 for probability, share, _ in found.curve)
    assert found.brier == pytest.approx(1 / 6, abs=0.01)


def test_missing_marks_are_left_out():
    found = calibrate(np.array([0.1, NAN, 0.9, 0.8]), np.array([0.0, 1, 1, NAN]), ["a", "b", "c", "d"])
    assert sum(num for _, _, num in found.curve) == 2
    assert calibrate(np.array([NAN, 0.2]), np.array([1.0, NAN]), ["a", "b"]) is None


@pytest.mark.parametrize("experts", [[1.0, 1, 1], [0.0, 0, 0]])
def test_experts_who_say_one_thing_leave_kappa_undefined_and_the_threshold_at_half(experts):
    found = calibrate(np.array([0.2, 0.6, 0.9]), np.array(experts), ["a", "b", "c"])
    assert found.threshold == pytest.approx(best_threshold(np.array([0.2, 0.6, 0.9]), np.array(experts)))
    assert None not in (found.threshold, found.brier)
    assert "nan" not in str(found.figures("soft")).lower()


def test_one_case_cannot_be_cross_validated():
    assert calibrate(np.array([0.1, 0.9]), np.array([0.0, 1]), ["a", "a"]).kappa is None
