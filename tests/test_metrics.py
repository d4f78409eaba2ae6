"""Means, intervals and differences of graded sets, on numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.bootstrap import bootstrap_means, interval
from eval.metrics import PARTS, case_means, paired_difference, summarize
from rewards.score import Score


def score(order: float, coverage: float, correctness: float) -> Score:
    return Score(order, coverage, correctness, correct_without_coverage=0, num_issues=3, num_judged=3)


BEST, WORST = score(1, 1, 1), score(0, 0, 0)  # 10 points and 0
MIDDLE = score(1, 0.5, 0)  # 6 points


def test_means_are_those_of_the_cases():
    figures = summarize({"a": [BEST], "b": [MIDDLE], "c": [WORST]})
    assert figures["mean/score"] == pytest.approx((10 + 6 + 0) / 3)
    assert figures["mean/order"] == pytest.approx(2 / 3)
    assert figures["mean/coverage"] == pytest.approx(0.5)
    assert figures["mean/correctness"] == pytest.approx(1 / 3)
    assert (figures["num_cases"], figures["num_responses"], figures["unscored_frac"]) == (3, 3, 0)


def test_samples_are_averaged_within_their_case_first():
    figures = summarize({"a": [BEST, BEST, BEST], "b": [WORST]})
    assert figures["mean/score"] == 5  # and not (10 + 10 + 10 + 0) / 4
    assert figures["num_responses"] == 4


def test_unscored_is_neither_zero_nor_forgotten():
    figures = summarize({"a": [BEST, None], "b": [None], "c": [MIDDLE, MIDDLE]})
    assert figures["mean/score"] == 8
    assert figures["num_cases"] == 2
    assert figures["num_unscored_cases"] == 1
    assert figures["unscored_frac"] == pytest.approx(2 / 5)


@pytest.mark.parametrize("scores", [{}, {"a": [None]}, {"a": []}], ids=["no case", "all unscored", "no response"])
def test_without_any_score_the_means_are_none(scores):
    figures = summarize(scores)
    assert figures["mean/score"] is figures["mean/score/low"] is figures["mean/order/high"] is None
    assert figures["num_cases"] == 0


def test_the_interval_is_the_percentile_interval_of_two_cases():
    # Of two cases with 0 and 10, a resample is (0, 0), (0, 10), (10, 0) or (10, 10): means 0, 5, 10 at 1/4, 1/2, 1/4.
    values = np.array([[0.0], [10.0]])
    means = bootstrap_means(values, num_resamples=20_000)
    shares = [np.mean(means == mean) for mean in (0, 5, 10)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.02)
    low, high = interval(means)
    assert (low[0], high[0]) == (0, 10)
    low, high = interval(means, confidence=0.4)  # from the 30th to the 70th percentile
    assert (low[0], high[0]) == (5, 5)


def test_the_interval_has_the_width_of_the_normal_one():
    rng = np.random.default_rng(1)
    values = rng.normal(5, 2, size=(400, 1))
    low, high = interval(bootstrap_means(values))
    standard_error = values.std() / np.sqrt(400)
    assert (high[0] - low[0]) / 2 == pytest.approx(1.96 * standard_error, rel=0.05)


def test_equal_cases_have_an_interval_of_no_width():
    figures = summarize({str(i): [MIDDLE] for i in range(5)})
    assert figures["mean/score/low"] == figures["mean/score"] == figures["mean/score/high"] == 6


def test_the_same_seed_gives_the_same_interval():
    scores = {str(i): [BEST if i % 3 else WORST] for i in range(30)}
    assert summarize(scores) == summarize(scores)
    assert summarize(scores)["mean/score/low"] != summarize(scores, seed=7)["mean/coverage/low"]


def test_the_macro_average_weighs_difficulties_alike():
    scores = {"a": [BEST], "b": [BEST], "c": [BEST], "d": [WORST]}
    figures = summarize(scores, {"a": "easy", "b": "easy", "c": "easy", "d": "hard"})
    assert figures["mean/score"] == 7.5
    assert figures["macro/score"] == 5
    assert figures["macro/score/low"] == figures["macro/score/high"] == 5  # within each difficulty all are alike
    assert figures["difficulty/easy/mean/score"] == 10
    assert figures["difficulty/hard/num_cases"] == 1


def test_equally_large_difficulties_are_not_resampled_in_step():
    scores = {f"{level}{i}": [BEST if i % 2 else WORST] for level in ("easy", "hard") for i in range(50)}
    figures = summarize(scores, {case_id: case_id[:4] for case_id in scores})
    one = figures["difficulty/easy/mean/score/high"] - figures["difficulty/easy/mean/score/low"]
    both = figures["macro/score/high"] - figures["macro/score/low"]
    assert both == pytest.approx(one / np.sqrt(2), rel=0.1)


def test_a_single_difficulty_is_not_repeated():
    figures = summarize({"a": [BEST]}, {"a": "easy"})
    assert not any(name.startswith(("difficulty/", "macro/")) for name in figures)


def test_the_paired_difference_is_that_of_the_same_cases():
    first = {"a": [WORST], "b": [MIDDLE], "only first": [BEST], "lost": [BEST]}
    second = {"b": [BEST], "a": [MIDDLE, BEST], "only second": [WORST], "lost": [None]}
    figures = paired_difference(first, second)
    assert figures["diff/score"] == pytest.approx(((6 + 10) / 2 - 0 + 10 - 6) / 2)  # 8 on a, 4 on b
    assert figures["diff/order"] == 0.5
    assert (figures["num_pairs"], figures["num_unpaired"]) == (2, 3)
    assert (figures["diff/score/low"], figures["diff/score/high"]) == (4, 8)


def test_pairing_removes_what_cases_have_in_common():
    # Scores differ widely between cases, but the second set is better on each by exactly 2 * 0.1.
    rng = np.random.default_rng(0)
    levels = rng.uniform(0, 0.9, size=100)
    first = {str(i): [score(0, level, 0)] for i, level in enumerate(levels)}
    second = {str(i): [score(0, level + 0.1, 0)] for i, level in enumerate(levels)}
    figures = paired_difference(first, second)
    assert figures["diff/score/low"] == pytest.approx(0.2)
    assert figures["diff/score/high"] == pytest.approx(0.2)


def test_no_pair_no_difference():
    figures = paired_difference({"a": [BEST]}, {"b": [BEST]})
    assert figures["diff/score"] is None
    assert (figures["num_pairs"], figures["num_unpaired"]) == (0, 2)


unit = st.floats(0, 1)
sets_of_scores = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.lists(st.none() | st.builds(score, unit, unit, unit), max_size=3),
    max_size=6,
)


@given(sets_of_scores)
def test_means_lie_within_their_interval_and_the_interval_within_the_scores(scores):
    figures = summarize(scores, num_resamples=500)
    rows = case_means(scores)
    for column, part in enumerate(PARTS):
        if len(rows.case_ids) < 1:
            assert figures[f"mean/{part}"] is None
            continue
        low, high = figures[f"mean/{part}/low"], figures[f"mean/{part}/high"]
        assert rows.values[:, column].min() - 1e-9 <= low <= high <= rows.values[:, column].max() + 1e-9


@given(sets_of_scores)
def test_the_difference_of_a_set_to_itself_is_zero(scores):
    figures = paired_difference(scores, scores, num_resamples=200)
    assert figures["num_unpaired"] == 0
    if figures["num_pairs"]:
        assert [figures[f"diff/{part}/{end}"] for part in PARTS for end in ("low", "high")] == [0] * 8
