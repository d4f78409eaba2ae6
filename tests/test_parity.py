"""When vLLM and the trainer count as one policy."""

import math

import pytest

from train.parity import Gap, ParityConfig, gap_between, limit_of


def test_the_gap_is_over_all_tokens_of_all_sequences():
    assert gap_between([[-1.0, -2.0], [-3.0]], [[-1.0, -2.5], [-2.0]]) == Gap(max=1.0, mean=0.5)


def test_sequences_of_unlike_length_are_a_mistake():
    with pytest.raises(ValueError, match="shorter"):
        gap_between([[-1.0, -2.0]], [[-1.0]])


@pytest.mark.parametrize(
    ("dtype", "gap", "is_broken"),
    [
        ("float32", Gap(9e-5, 1e-6), False),
        ("float32", Gap(2e-4, 1e-6), True),
        ("bfloat16", Gap(0.9, 0.03), False),
        ("bfloat16", Gap(0.9, 0.06), True),
        ("float16", Gap(0.9, 0.03), True),
        ("bfloat16", Gap(math.nan, math.nan), True),
    ],
)
def test_float32_is_judged_by_its_worst_token_and_half_precision_by_the_mean(dtype, gap, is_broken):
    assert gap.exceeds(limit_of(dtype, ParityConfig())) is is_broken


def test_the_limit_can_be_set():
    assert not Gap(0.5, 0.1).exceeds(limit_of("float32", ParityConfig(parity_tolerance=1.0)))
    assert not Gap(99, 99).exceeds(limit_of("bfloat16", ParityConfig(parity_tolerance=math.inf)))


def test_no_number_is_no_parity():
    assert math.isnan(gap_between([[-1.0, math.nan]], [[-1.0, -1.0]]).max)
