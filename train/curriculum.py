"""Which cases each generation takes: all in turn, but those that taught nothing lately rest a while.

What a generation takes depends on the seed and on rewards of earlier generations alone, up to a fixed number of
generations ago, for the loader asks ahead: so every process finds the same cases, and a resumed run goes on as if it
had not been interrupted.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Literal, get_args

from data.jsonl import JsonlError, read_jsonl
from rewards.schemes import PARTS

CURRICULUM_NAME = "curriculum.jsonl"
CurriculumKind = Literal["off", "skip", "easy_first"]
Rewards = Mapping[str, Sequence[float]]
"""Case id -> the rewards of its completions, without those of unscored ones."""


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig:
    """Which cases are trained on when."""

    curriculum: CurriculumKind = field(
        default="off",
        metadata={
            "help": "off: all cases, shuffled; skip: cases that all completions solved, or all failed, rest a while; "
            "easy_first: besides, each round goes from the cases with the highest rewards to those with the lowest."
        },
    )
    curriculum_solved: float = field(
        default=10.0, metadata={"help": "Reward from which on a completion has solved its case."}
    )
    curriculum_failed: float = field(
        default=0.0, metadata={"help": "Reward up to which a completion has failed; what a gate holds back has, too."}
    )
    curriculum_rest: int = field(
        default=100, metadata={"help": "Generations that a case rests before it is tried again."}
    )
    curriculum_grades: str | None = field(
        default=None,
        metadata={
            "help": "What is known before the first generation: grades.jsonl, by eval/grade.py, of several answers of "
            "the base policy to each case."
        },
    )

    def __post_init__(self) -> None:
        if self.curriculum not in get_args(CurriculumKind):
            raise ValueError(f"curriculum must be one of {', '.join(get_args(CurriculumKind))}, got {self.curriculum}")
        if not self.curriculum_failed < self.curriculum_solved:
            raise ValueError(
                f"curriculum_failed must be below curriculum_solved ({self.curriculum_solved:g}), "
                f"got {self.curriculum_failed:g}"
            )
        if self.curriculum_rest < 1:
            raise ValueError(f"curriculum_rest must be at least 1, got {self.curriculum_rest}")

    def is_flat(self, rewards: Sequence[float]) -> bool:
        """Whether all solved or all failed; a single reward shows neither.

        >>> [CurriculumConfig().is_flat(rewards) for rewards in ([10.0, 10.0], [-5.0, 0.0], [0.0, 10.0], [0.0])]
        [True, True, False, False]
        """
        return len(rewards) > 1 and (min(rewards) >= self.curriculum_solved or max(rewards) <= self.curriculum_failed)


class Curriculum:
    """The cases of each generation, by their places in `case_ids`; every process has one, and all are alike.

    Args:
        size: cases of a generation.
        lag: how many generations before one the last is whose rewards are known when its cases are asked for.
        known: rewards of the base policy.
    """

    def __init__(
        self, case_ids: Sequence[str], config: CurriculumConfig, *, size: int, lag: int, seed: int, known: Rewards
    ) -> None:
        self._case_ids = case_ids
        self._config = config
        self._size, self._lag, self._seed = size, lag, seed
        self._rewards: dict[int, Rewards] = {-lag: known}  # by generation
        self._generations: list[list[int]] = []
        self._wakes = dict.fromkeys(case_ids, 0)  # the generation from which on a case takes part again
        self._means: dict[str, float] = {}  # case id -> mean reward, when it was last seen
        self._round = 0
        self._left: list[int] = []  # of the round, the next one last

    def cases_of(self, generation: int) -> list[int]:
        """The places of a generation's cases, each different.

        Raises:
            KeyError: the rewards of the generation `lag` before it are not known.
        """
        while len(self._generations) <= generation:
            self._generations.append(self._next(len(self._generations)))
        return self._generations[generation]

    def learn(self, generation: int, groups: Sequence[Sequence[float]]) -> Rewards:
        """Take account of a generation's rewards, a group for each of its cases in order, NaN where unscored."""
        ids = [self._case_ids[place] for place in self.cases_of(generation)]
        rewards = {id: [r for r in group if not math.isnan(r)] for id, group in zip(ids, groups, strict=True)}
        self._rewards[generation] = rewards
        return rewards

    def remember(self, path: Path) -> None:
        """Take account of what a file holds of earlier generations; of two lines with one of them, the later counts."""
        for _, row in read_jsonl(path):
            self._rewards[row["generation"]] = row["rewards"]

    def resting_frac(self, generation: int) -> float:
        """Share of all cases that rest in a generation."""
        return fmean(wakes > generation for wakes in self._wakes.values())

    def _next(self, generation: int) -> list[int]:
        if generation == 0 or generation >= self._lag:
            for id, rewards in self._rewards[generation - self._lag].items():
                if rewards:
                    self._means[id] = fmean(rewards)
                if self._config.is_flat(rewards):
                    self._wakes[id] = generation + self._config.curriculum_rest
        chosen: dict[int, None] = {}  # in order
        last_round = self._round + 2  # the first may be half over
        while len(chosen) < self._size and (self._left or self._round < last_round):
            self._left = self._left or self._new_round()
            place = self._left.pop()
            if self._wakes[self._case_ids[place]] <= generation:
                chosen[place] = None
        others = sorted(range(len(self._case_ids)), key=lambda place: self._wakes[self._case_ids[place]])
        missing = [place for place in others if place not in chosen]
        return [*chosen, *missing[: self._size - len(chosen)]]  # where too few are awake, those that wake soonest

    def _new_round(self) -> list[int]:
        """All places, the first one last."""
        self._round += 1
        order = list(range(len(self._case_ids)))
        random.Random(f"round {self._round} of {self._seed}").shuffle(order)
        if self._config.curriculum == "easy_first":  # what was never seen counts as failed
            order.sort(key=lambda place: round(self._means.get(self._case_ids[place], self._config.curriculum_failed)))
        return order


def loader_lag(passes_per_update: int, passes_per_generation: int, num_prefetched: int = 0) -> int:
    """How many generations ahead the loader asks for cases: the `lag` of a run.

    transformers fetches the passes of a whole optimiser step before the first of them, accelerate one more, and a
    loader with workers `num_prefetched`.

    >>> loader_lag(8, 8), loader_lag(1, 1), loader_lag(8, 2)
    (2, 2, 5)
    """
    return math.ceil((passes_per_update + 1 + num_prefetched) / passes_per_generation)


def graded_rewards(path: str | Path, weights: Sequence[float]) -> dict[str, list[float]]:
    """What the graded answers of a file would be paid, by the weights of order, coverage and correctness.

    Raises:
        JsonlError: a line is no grade of eval/grade.py.
    """
    rewards: dict[str, list[float]] = {}
    for number, row in read_jsonl(path):
        try:
            of_case = rewards.setdefault(row["doc_id"], [])
            if row["score"] is not None:
                of_case.append(sum(weight * row["parts"][part] for weight, part in zip(weights, PARTS, strict=True)))
        except (KeyError, TypeError) as error:
            raise JsonlError(
                path, number, "no grade with doc_id, score and parts, as eval/grade.py writes it"
            ) from error
    return rewards
