"""Reward schemes: what the parts of the score weigh, and how much of what the policy learns comes from each; pure.

TRL is given three reward columns, `PARTS`, whatever the scheme, and weighs and adds them by itself. A scheme is thus
no more than three weights and an order of work: `sum_then_normalize` adds up a completion's reward and compares it
within its group, `normalize_then_sum` compares each part within the group by itself and adds up afterwards.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rewards.score import CORRECTNESS_POINTS, COVERAGE_POINTS, ORDER_POINTS

RewardKind = Literal["legit", "order_only", "decoupled", "coverage_floor"]
Aggregation = Literal["sum_then_normalize", "normalize_then_sum"]
Columns = tuple[float, float, float]
Values = NDArray[np.float64]

PARTS = ("order", "coverage", "correctness")
COVERAGE = PARTS.index("coverage")
MAX_TOTAL = ORDER_POINTS + COVERAGE_POINTS + CORRECTNESS_POINTS
_POINTS = (float(ORDER_POINTS), float(COVERAGE_POINTS), float(CORRECTNESS_POINTS))
_TRL_EPSILON = 1e-4  # what TRL adds to a deviation before it divides by it
_FLAT = 1e-6  # deviation of a group's advantages below which there is nothing in them but rounding


@dataclass(frozen=True, slots=True)
class Scheme:
    """The weights of order, coverage and correctness, and TRL's name for how they come together."""

    weights: Columns
    aggregation: Aggregation = "sum_then_normalize"


SCHEMES: Mapping[RewardKind, Scheme] = {
    "legit": Scheme(_POINTS),
    "order_only": Scheme((float(MAX_TOTAL), 0.0, 0.0)),
    "decoupled": Scheme(_POINTS, "normalize_then_sum"),
    "coverage_floor": Scheme(_POINTS),  # and what CoverageFloor adds to the second
}


@dataclass
class CoverageFloor:
    """The multiplier of a Lagrangian: the score, under the condition that mean coverage is at least `floor`.

    What is maximised is 5 order + (2 + weight) coverage + 3 correctness. Batch by batch the weight moves by
    `rate * (floor - mean)`, between 0 and `max_weight`; `mean` is the running mean of the batches' coverage. A floor
    that is not given is the first batch's coverage, which the base policy wrote.

    >>> condition = CoverageFloor(floor=None, rate=5.0, max_weight=20.0)
    >>> for coverage in (0.5, 0.25, 1.0): condition.update(coverage)
    >>> condition.floor, condition.mean, condition.weight  # means .5, .45, .56: the weight is 0, .25, then 0 again
    (0.5, 0.56, 0.0)
    """

    floor: float | None
    rate: float
    max_weight: float
    mean: float | None = None
    weight: float = 0.0

    MEMORY = 0.8  # of the running mean: about the last five batches

    def update(self, coverage: float) -> None:
        """Take account of one batch's mean coverage, all processes together; nothing changes if it is NaN."""
        if np.isnan(coverage):
            return
        self.floor = coverage if self.floor is None else self.floor
        self.mean = coverage if self.mean is None else self.MEMORY * self.mean + (1 - self.MEMORY) * coverage
        self.weight = min(max(self.weight + self.rate * (self.floor - self.mean), 0.0), self.max_weight)

    def state(self) -> dict[str, float | None]:
        """All that changes, to be logged and saved."""
        return {"floor": self.floor, "mean": self.mean, "weight": self.weight}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.floor, self.mean, self.weight = state["floor"], state["mean"], state["weight"]


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """What the policy is paid for."""

    reward: RewardKind = field(
        default="legit",
        metadata={
            "help": "legit: the score, 0 to 10; order_only: 10 for the right final order, else 0; decoupled: order, "
            "coverage and correctness compared within the group each by itself, weighing 5, 2 and 3 or reward_weights; "
            "coverage_floor: legit, and coverage weighs more for as long as it is below a floor."
        },
    )
    gate_penalty: float = field(
        default=-5.0,
        metadata={
            "help": "Reward of a completion that a gate holds back from the judge, where 10 is the best there is: a "
            "tenth of it in each of order, coverage and correctness."
        },
    )
    coverage_floor: float | None = field(
        default=None,
        metadata={
            "help": "The floor of reward: coverage_floor, in [0, 1]; null: the coverage of the first batch, which is "
            "the base policy's."
        },
    )
    coverage_floor_rate: float = field(
        default=5.0,
        metadata={"help": "Points that coverage gains in weight, each batch, per unit that it is below the floor."},
    )
    coverage_floor_max_weight: float = field(
        default=20.0, metadata={"help": "Most points that the floor may add to coverage's own 2."}
    )

    def __post_init__(self) -> None:
        if self.reward not in get_args(RewardKind):
            raise ValueError(f"reward must be one of {', '.join(get_args(RewardKind))}, got {self.reward!r}")
        if not -math.inf < self.gate_penalty <= 0:
            raise ValueError(f"gate_penalty must be 0 or below, the worst score, got {self.gate_penalty}")
        if self.reward == "coverage_floor" and self.gate_penalty == 0:
            raise ValueError("gate_penalty must be below 0 with reward: coverage_floor, which leaves out what is gated")
        if self.coverage_floor is not None and not 0 <= self.coverage_floor <= 1:
            raise ValueError(f"coverage_floor must lie in [0, 1] or be null, got {self.coverage_floor}")
        for name in ("coverage_floor_rate", "coverage_floor_max_weight"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number above 0, got {getattr(self, name)}")

    def new_floor(self) -> CoverageFloor | None:
        """The condition on coverage as it is before the first batch; None unless the scheme has one."""
        if self.reward != "coverage_floor":
            return None
        return CoverageFloor(self.coverage_floor, self.coverage_floor_rate, self.coverage_floor_max_weight)


def mean_coverage(columns: Values) -> float:
    """Mean coverage of a batch's rows of columns, NaN if none was judged; rows below 0 were held back by a gate."""
    coverage = columns[:, COVERAGE]
    judged = coverage[coverage >= 0]
    return float(judged.mean()) if judged.size else float("nan")


def advantage_parts(
    columns: Values, weights: Sequence[float], num_generations: int, aggregation: str, scale_rewards: str
) -> Values:
    """What each part adds to each completion's advantage: an array of groups x completions x parts.

    The sum over the parts is the advantage that TRL gives, up to one factor for the whole batch unless advantages are
    scaled by group. Rows of NaN, which were not scored, have no advantage.
    """
    groups = columns.reshape(-1, num_generations, len(PARTS))
    known = ~np.isnan(groups)
    counts = known.sum(axis=1, keepdims=True)
    means = np.where(known, groups, 0).sum(axis=1, keepdims=True) / np.maximum(counts, 1)
    parts: Values = np.where(known, groups - means, 0)
    if aggregation == "normalize_then_sum":
        parts /= _deviation(parts, counts) + _TRL_EPSILON
    parts *= np.asarray(weights)
    if aggregation == "sum_then_normalize" and scale_rewards == "group":
        parts /= _deviation(parts.sum(axis=-1, keepdims=True), counts[..., :1]) + _TRL_EPSILON
    return parts


def signal(parts: Values) -> dict[str, float]:
    """Which part drives the advantages: `signal/<part>_frac`, its share of their sum of squares; 1 in all.

    A share below 0 is that of a part which the advantages work against. `signal/zero_variance_frac`: groups whose
    completions all have the same advantage, so that nothing is learned from them. The shares are NaN if all are so.
    """
    advantages = parts.sum(axis=-1, keepdims=True)
    is_flat = np.sqrt((advantages**2).mean(axis=1))[:, 0] < _FLAT
    squares = float((advantages**2).sum())
    shares = (parts * advantages).sum(axis=(0, 1)) / squares if not is_flat.all() else np.full(len(PARTS), np.nan)
    named = {f"signal/{part}_frac": float(share) for part, share in zip(PARTS, shares, strict=True)}
    return {**named, "signal/zero_variance_frac": float(is_flat.mean())}


def _deviation(centred: Values, counts: NDArray[np.intp]) -> Values:
    variance: Values = (centred**2).sum(axis=1, keepdims=True) / np.maximum(counts - 1, 1)
    return np.sqrt(variance)
