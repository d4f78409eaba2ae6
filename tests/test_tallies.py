"""Ratios of sums with intervals over resampled cases."""

import numpy as np
import pytest

from data.bootstrap import bootstrap_means, interval
from eval.tallies import Estimate, Tally, estimate
from rewards.score import Score


def test_the_estimate_is_the_ratio_of_the_sums_and_not_the_mean_of_ratios():
    tally = Tally[str]()
    tally.add("covered", "a", 1)
    for value in (0, 0, 0):
        tally.add("covered", "b", value)
    assert tally.estimates()["covered"].centre == 0.25  # 1 of 4 issues; the cases' own shares are 1 and 0
    assert tally.count("covered") == 4


def test_cases_are_resampled_and_not_issues():
    # Two cases of 50 issues each, one all right and one all wrong: a draw gives 0, 1/2 or 1, never anything between.
    tally = Tally[str]()
    for i in range(50):
        tally.add("right", "a", 1)
        tally.add("right", "b", 0)
        tally.add("right of b", "b", i % 2)
    estimates = tally.estimates()
    assert estimates["right"] == Estimate(0.5, 0, 1)
    assert estimates["right of b"] == Estimate(0.5, 0.5, 0.5)  # one case alone does not vary


def test_the_interval_is_that_of_the_means_when_every_case_counts_once():
    values = np.random.default_rng(0).uniform(size=(80, 1))
    tally = Tally[int]()
    for row, value in enumerate(values[:, 0].tolist()):
        tally.add(0, str(row), value)
    low, high = interval(bootstrap_means(values))
    found = tally.estimates()[0]
    assert found.centre == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((low[0], high[0]), abs=0.01)


def test_a_key_of_few_cases_is_not_pulled_to_zero_by_draws_without_them():
    tally = Tally[str]()
    for number in range(50):
        tally.add("all", str(number), 1)
    tally.add("one", "0", 1)
    assert tally.estimates()["one"] == Estimate(1, 1, 1)


def test_what_counts_nothing_has_no_estimate():
    tally = Tally[str]()
    tally.add("none", "a", 0, count=0)
    assert tally.estimates() == {}
    assert tally.count("never came") == 0


def test_samples_of_a_case_are_averaged_before_cases_are():
    right, wrong = Score(1, 1, 1, 0, 2, 2), Score(0, 0, 0, 0, 2, 2)
    tally = Tally[str]()
    tally.add_scores(
        {part: part for part in ("score", "order", "coverage", "correctness")},
        {"a": [right, right, None], "b": [wrong]},
    )
    assert tally.estimates()["score"].centre == 5
    assert tally.count("score") == 2


def test_a_figure_without_value_has_no_estimate():
    assert estimate({"mean/score": None, "mean/score/low": None, "mean/score/high": None}, "mean/score") is None
