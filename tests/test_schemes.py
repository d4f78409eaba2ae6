"""Reward schemes on hand-worked numbers, and what holds whatever the numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.schemes import SCHEMES, CoverageFloor, RewardConfig, advantage_parts, mean_coverage, signal

NAN = (math.nan,) * 3
GATED = (-0.5,) * 3
RAW = {"aggregation": "sum_then_normalize", "scale_rewards": "none"}
APART = {"aggregation": "normalize_then_sum", "scale_rewards": "group"}
parts = st.floats(0, 1).map(lambda x: round(x, 2))
rows = st.one_of(st.tuples(parts, parts, parts), st.just(NAN), st.just(GATED))


def reward(kind, row):
    return float(np.dot(SCHEMES[kind].weights, row))


@pytest.mark.parametrize(
    ("kind", "scored", "gated"), [("legit", 6.75, -5), ("order_only", 10, -5), ("decoupled", 6.75, -5)]
)
def test_what_a_completion_is_worth(kind, scored, gated):
    assert reward(kind, (1, 0.5, 0.25)) == scored
    assert reward(kind, GATED) == gated


def test_only_decoupled_compares_the_parts_apart():
    assert {kind for kind, scheme in SCHEMES.items() if scheme.aggregation == "normalize_then_sum"} == {"decoupled"}


def test_the_parts_of_an_advantage_by_hand():
    """Two completions: order 1 and 0, coverage 0 and 1. Rewards 5 and 2, half their difference is 1.5."""
    columns = np.array([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)])
    assert advantage_parts(columns, (5, 2, 3), 2, **RAW).tolist() == [[[2.5, -1, 0], [-2.5, 1, 0]]]
    # Apart, each has a deviation of sqrt(1/2): 0.5 / 0.7071 = 0.7071, times its weight.
    assert advantage_parts(columns, (5, 2, 3), 2, **APART)[0, 0] == pytest.approx([3.5355, -1.4142, 0], abs=1e-3)
    scaled = advantage_parts(columns, (5, 2, 3), 2, "sum_then_normalize", "group")  # 1.5 / (1.5 * sqrt 2)
    assert scaled.sum(axis=-1)[0] == pytest.approx([0.7071, -0.7071], abs=1e-3)


def test_a_gated_completion_is_the_worst_in_every_part():
    columns = np.array([(1.0, 0.5, 0.5), (0.0, 0.0, 0.0), GATED, NAN])
    for how in (RAW, APART):
        advantages = advantage_parts(columns, (5, 2, 3), 4, **how)[0]
        assert (advantages[2] < advantages[1]).all()
        assert (advantages[3] == 0).all()


def test_the_signal_by_hand():
    """Advantages 1.5 and -1.5; order has 2.5 of each 1.5, coverage works against it."""
    parts = advantage_parts(np.array([(1.0, 0, 0), (0, 1, 0), (0.5, 0.5, 0), (0.5, 0.5, 0)]), (5, 2, 3), 2, **RAW)
    assert signal(parts) == {
        "signal/order_frac": pytest.approx(5 / 3),
        "signal/coverage_frac": pytest.approx(-2 / 3),
        "signal/correctness_frac": 0,
        "signal/zero_variance_frac": 0.5,
    }


def test_with_order_only_the_order_drives_all():
    columns = np.array([(1.0, 0.2, 0.1), (0.0, 0.9, 0.9), (0.0, 0.5, 0.0), (1.0, 0.5, 0.0)])
    assert signal(advantage_parts(columns, (10, 0, 0), 4, **RAW))["signal/order_frac"] == 1


@pytest.mark.parametrize("columns", [[(0.5, 0.5, 0.5)] * 4, [NAN] * 4, [(0.7, 0.1, 0.1), NAN, NAN, NAN]])
@pytest.mark.parametrize("how", [RAW, APART, {**RAW, "scale_rewards": "group"}])
def test_where_nothing_differs_nothing_is_learned(columns, how):
    found = signal(advantage_parts(np.array(columns), (5, 2, 3), 4, **how))
    assert found.pop("signal/zero_variance_frac") == 1
    assert len(found) == 3
    assert all(map(math.isnan, found.values()))


@given(st.lists(rows, min_size=12, max_size=12), st.sampled_from([RAW, APART, {**RAW, "scale_rewards": "group"}]))
def test_advantages_are_the_sum_of_their_parts_and_of_nothing_in_a_group(columns, how):
    found = advantage_parts(np.array(columns), (5, 2, 3), 4, **how)
    assert found.sum(axis=(1, 2)) == pytest.approx(np.zeros(3), abs=1e-6)
    shares = signal(found)
    if shares.pop("signal/zero_variance_frac") < 1:
        assert sum(shares.values()) == pytest.approx(1)


def test_mean_coverage_leaves_out_what_was_gated_or_not_scored():
    assert mean_coverage(np.array([(1.0, 0.5, 0.5), GATED, NAN, (0.0, 0.0, 0.0)])) == 0.25
    assert math.isnan(mean_coverage(np.array([GATED, NAN])))


def test_the_weight_rises_below_the_floor_and_falls_above_it():
    """Floor .4, running mean .3, .28 and .424: the weight is .5, 1.1, .98."""
    floor = CoverageFloor(0.4, rate=5.0, max_weight=20.0)
    weights = []
    for coverage in (0.3, 0.2, 1.0):
        floor.update(coverage)
        weights.append(floor.weight)
    assert weights == pytest.approx([0.5, 1.1, 0.98])


def test_a_batch_without_coverage_changes_nothing():
    floor = CoverageFloor(None, rate=5.0, max_weight=20.0)
    floor.update(math.nan)
    assert floor.state() == {"floor": None, "mean": None, "weight": 0.0}


@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1), st.integers(0, 30))
def test_the_weight_is_bounded_and_goes_on_exactly(floor, coverages, where):
    def run(state, coverages):
        one = CoverageFloor(floor, rate=5.0, max_weight=3.0)
        if state:
            one.restore(state)
        for coverage in coverages:
            one.update(coverage)
            assert 0 <= one.weight <= 3
        return one.state()

    assert run(run(None, coverages[:where]), coverages[where:]) == run(None, coverages)


def test_only_the_scheme_with_a_floor_has_one():
    assert RewardConfig().new_floor() is None
    assert RewardConfig(reward="coverage_floor", coverage_floor=0.3).new_floor() == CoverageFloor(0.3, 5.0, 20.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gate_penalty", -math.inf), ("coverage_floor_rate", math.inf), ("coverage_floor_max_weight", math.inf)],
)
def test_weights_are_finite(name, value):
    with pytest.raises(ValueError, match=name):
        RewardConfig(**{name: value})
