"""The simulated noisy judge errs as often as it is told, and the study's figures on hand-worked runs."""

import asyncio
from statistics import fmean

import numpy as np
import pytest

from benchmarks.noise_study import agreement, gain_interval
from benchmarks.simulated_noise import Noise, SimulatedNoisyJudge
from data.mini import generate, gold_answer
from data.records import from_record
from rewards.mini_judge import MiniJudge

CASES = [from_record(record) for record in generate(0, "test", 150)]
RIGHT = [(case, gold_answer(case.answer, case.extra["mini"])) for case in CASES]
WRONG = [(case, "원고의 청구는 이유 없다.") for case in CASES]


def share_of_yes(noise, items):
    """Of all fields that the judge decides, the root's left out: how many it calls true."""
    judge = SimulatedNoisyJudge(noise)
    said = [asyncio.run(judge.judge_case(*item)) for item in items]
    issues = [judgment for judgments in said for id, judgment in judgments.items() if id]
    return fmean(value for judgment in issues for value in (judgment.contains_issue, judgment.correct_conclusion))


@pytest.mark.parametrize("how", [{}, {"repeats": "call"}, {"repeats": "name"}], ids=["text", "call", "name"])
def test_errors_are_as_frequent_as_told(how):
    noise = Noise(false_positive=0.1, false_negative=0.3, **how)
    tolerance = 0.15 if how == {"repeats": "name"} else 0.03  # there are 46 names
    assert share_of_yes(noise, WRONG) == pytest.approx(0.1, abs=tolerance)
    assert share_of_yes(noise, RIGHT) == pytest.approx(0.7, abs=tolerance)


def test_without_noise_it_is_the_exact_judge():
    for item in RIGHT[:20] + WRONG[:20]:
        noisy, exact = (asyncio.run(judge.judge_case(*item)) for judge in (SimulatedNoisyJudge(Noise()), MiniJudge()))
        assert {id: (j.contains_issue, j.correct_conclusion) for id, j in noisy.items()} == {
            id: (j.contains_issue, j.correct_conclusion) for id, j in exact.items()
        }


def test_votes_help_against_independent_errors_alone():
    """Of three independent errors at 0.3 each, two or more come together in 3 * .09 * .7 + .027 = .216 of all."""
    noise = {"false_positive": 0.3, "false_negative": 0.3, "votes": 3}
    assert share_of_yes(Noise(repeats="call", **noise), WRONG) == pytest.approx(0.216, abs=0.03)
    assert share_of_yes(Noise(repeats="text", **noise), WRONG) == pytest.approx(0.3, abs=0.03)


def test_an_error_comes_again_with_what_it_hangs_on():
    item = RIGHT[0]
    by_text, by_call = (SimulatedNoisyJudge(Noise(false_negative=0.5, repeats=how)) for how in ("text", "call"))
    assert len({str(asyncio.run(by_text.judge_case(*item))) for _ in range(5)}) == 1
    assert len({str(asyncio.run(by_call.judge_case(*item))) for _ in range(5)}) > 1


def test_soft_verdicts_are_probabilities_that_mean_what_they_say():
    judge = SimulatedNoisyJudge(Noise(false_positive=0.2, false_negative=0.2, soft=True))
    said, truth = [], []
    for items, is_true in ((RIGHT, 1.0), (WRONG, 0.0)):
        for item in items:
            judgments = asyncio.run(judge.judge_case(*item))
            said += [judgment.contains_issue for id, judgment in judgments.items() if id]
            truth += [is_true] * (len(judgments) - 1)
    said, truth = np.array(said), np.array(truth)
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (said >= low) & (said < low + 0.25)
        assert truth[inside].mean() == pytest.approx(said[inside].mean(), abs=0.08)


def test_agreement_falls_with_noise():
    answers = [item for pair in zip(RIGHT, WRONG, strict=True) for item in pair]
    perfect, some, much = (agreement(Noise(false_positive=r, false_negative=r), answers) for r in (0.0, 0.2, 0.4))
    assert perfect == pytest.approx((1, 1))
    assert perfect > some > much


def test_the_gain_is_last_less_first_over_seeds_and_cases():
    def line(*gains):
        scores = {f"case {n}": [0.0, 0.0, 0.0] for n in range(len(gains))}
        last = {f"case {n}": [gain, gain, gain] for n, gain in enumerate(gains)}  # of ten: 5 + 2 + 3
        return {"evaluations": [{"scores": scores}, {"scores": last}]}

    assert gain_interval([line(0.1, 0.1), line(0.1, 0.1)]) == pytest.approx((1, 1, 1))
    gain, low, high = gain_interval([line(0.0, 0.2), line(0.2, 0.4)])
    assert gain == pytest.approx(2)
    assert 0 <= low < gain < high <= 4
