"""Recall, NDCG and reciprocal rank, worked out by hand."""

import math

import pytest

from data.ranking import Ranked, figures, ndcg_at, recall_at, reciprocal_rank


@pytest.mark.parametrize(
    ("ids", "relevant", "recall", "ndcg", "rr"),
    [
        pytest.param("abxyz", "ab", 1.0, 1.0, 1.0, id="all of them at the top"),
        pytest.param("xyz", "ab", 0.0, 0.0, 0.0, id="none"),
        # Gain 1 / log2 3 of the second place, over 1 / log2 2 + 1 / log2 3: the relevant b counts though not found.
        pytest.param("xa", "ab", 0.5, (1 / math.log2(3)) / (1 + 1 / math.log2(3)), 0.5, id="what was not found counts"),
        # Places 1 and 3 of the first three: (1 + 1/2) / (1 + 1 / log2 3 + 1/2).
        pytest.param("axb", "abc", 2 / 3, 1.5 / (1.5 + 1 / math.log2(3)), 1.0, id="two of three"),
        pytest.param("xyza", "a", 0.0, 0.0, 0.25, id="beyond the third place only the reciprocal rank sees it"),
        # Five relevant ones, three places: the best ranking has three of them there.
        pytest.param("abc", "abcde", 0.6, 1.0, 1.0, id="more relevant ones than places"),
    ],
)
def test_rankings(ids, relevant, recall, ndcg, rr):
    ranked = Ranked(list(ids), set(relevant))
    assert recall_at(ranked, 3) == pytest.approx(recall)
    assert ndcg_at(ranked, 3) == pytest.approx(ndcg)
    assert reciprocal_rank(ranked) == pytest.approx(rr)


def test_figures_have_intervals_and_difficulties_and_tell_what_they_left_out():
    rankings = {
        "1": Ranked(["a"], {"a"}, "hard"),
        "2": Ranked(["x", "a"], {"a"}, "easy"),
        "3": Ranked(["x"], {"a"}, "easy"),
        "4": Ranked(["x"], set(), "easy"),
    }
    told = figures(rankings, 2)
    assert (told["num_cases"], told["num_without_relevant"]) == (3, 1)
    assert told["mrr"] == pytest.approx(0.5)
    assert told["mrr/low"] < told["mrr"] < told["mrr/high"]
    assert told["recall@2"] == pytest.approx(2 / 3)
    assert told["difficulty/easy/mrr"] == pytest.approx(0.25)
    assert told["difficulty/hard/num_cases"] == 1
    assert [key for key in told if key.endswith("/num_cases")] == [
        "difficulty/easy/num_cases",
        "difficulty/hard/num_cases",
    ]


def test_where_nothing_could_be_found_there_are_no_means():
    assert figures({"1": Ranked(["a"], set())}, 10) == {"num_cases": 0, "num_without_relevant": 1}
