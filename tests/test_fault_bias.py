"""20 % random faults of every kind: ours change no reward, the rules of others do."""

import pytest

from benchmarks.fault_bias import FAULTS, biases, judge_all, judge_script, make_cases, ours, true_verdicts
from rewards.judge import JudgeConfig
from rewards.score import Judgment

RETRIES = JudgeConfig(judge="mini").judge_max_retries


@pytest.fixture(scope="module")
def world():
    items = make_cases(150)
    truth = true_verdicts(items)
    return items, truth, [{i.id: Judgment(*truth[i.conclusion]) for i in case.issues} for case, _ in items]


@pytest.mark.slow
def test_faults_cost_no_response_anything(world):
    items, truth, faultless = world
    judgments, failed_frac = judge_all(judge_script(truth, 0.2), items, RETRIES, 8.0)
    assert failed_frac > 0.15
    for (case, _), given, real in zip(items, judgments, faultless, strict=True):
        assert ours(case, given) in (None, ours(case, real))
    mean, slope, unscored = biases(items, faultless, judgments)["ours: unscored"]
    assert abs(mean) < 0.01
    assert slope == 0
    assert unscored < 0.01


def test_what_is_lost_costs_good_responses_more_by_the_rules_of_others(world):
    items, _, faultless = world
    lost = [
        {id: j if (n + k) % 10 else None for k, (id, j) in enumerate(one.items())} for n, one in enumerate(faultless)
    ]
    found = biases(items, faultless, lost)
    assert found["ours: unscored"][1] == 0
    for rule in ("counted as uncovered", "-5 for the response"):
        assert found[rule][0] < -0.1, rule
        assert found[rule][1] < -0.1, rule
    assert found["left out of the denominator"][0] != 0


def test_every_kind_of_fault_is_there():
    assert len(FAULTS) >= 14
