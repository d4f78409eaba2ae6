"""A judge of the mini world that errs on purpose, as often as it is told: simulated, for studies of what errors cost.

example: python -m benchmarks.simulated_noise '{"false_positive": 0.2, "false_negative": 0.2}' configs/mini.yaml
"""

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from statistics import NormalDist
from typing import Any, Literal, cast

from data.cases import ROOT_ID, Case
from rewards.mini_judge import MiniJudge
from rewards.score import Judgment
from rewards.voting import FIELDS, vote

Repeats = Literal["text", "call", "name"]
_NORMAL = NormalDist()
_RAREST = 1e-6  # an error rate of 0 in a model that has a number for every rate


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How a judge errs: the shares of its no and of its yes that would be wrong, and what an error hangs on.

    `repeats` is what an error comes with again: "text", the same answer and issue, as a judge at temperature 0 has it,
    so that asking again helps nothing; "call", nothing, each call errs for itself; "name", the issue's name or the
    order's words, whatever is said of them: some issues the judge has never understood.

    The judge sees each fact with normal noise and says yes above a threshold (signal detection): that fixes how sure it
    is, too. `soft` gives its probability of yes instead of a yes or no, and it is honest about it: calibrated where yes
    and no are equally frequent.
    """

    false_positive: float = 0.0
    false_negative: float = 0.0
    repeats: Repeats = "text"
    votes: int = 1
    soft: bool = False
    seed: int = 0


class SimulatedNoisyJudge(MiniJudge):
    """The exact judge with errors of a known rate in each verdict's two fields."""

    def __init__(self, noise: Noise) -> None:
        super().__init__()
        self._noise = noise
        self._calls = count()
        self._threshold = -_NORMAL.inv_cdf(max(noise.false_positive, _RAREST))
        self._distance = self._threshold - _NORMAL.inv_cdf(max(noise.false_negative, _RAREST))

    async def judge_case(self, case: Case, answer: str, *, until: float = math.inf) -> dict[str, Judgment]:
        """The exact judge's verdicts, spoilt."""
        exact = await super().judge_case(case, answer, until=until)
        names = {id: issue["name"] for id, issue in case.extra["mini"]["issues"].items()} | {ROOT_ID: case.answer}
        spoilt = {}
        for id, judgment in exact.items():
            about = names[id] if self._noise.repeats == "name" else f"{case.id} {id} {answer}"
            votes = [self._spoil(judgment, about) for _ in range(self._noise.votes)]
            spoilt[id] = cast(Judgment, vote(votes, soft=self._noise.soft))  # all were given, and their number is odd
        return spoilt

    def _spoil(self, exact: Judgment, about: str) -> Judgment:
        call = next(self._calls) if self._noise.repeats == "call" else ""
        contains, correct = (
            self._say(_normal(f"{self._noise.seed} {call} {name} {about}") + self._distance * getattr(exact, name))
            for name in FIELDS
        )
        return Judgment(contains, correct)

    def _say(self, seen: float) -> float:
        """Yes or no, or how likely yes is where normal noise lies around 0 for no, and around the distance for yes."""
        if not self._noise.soft:
            return seen > self._threshold
        odds = self._distance * (seen - self._distance / 2)
        return 1 / (1 + math.exp(-max(min(odds, 700.0), -700.0)))


def _normal(text: str) -> float:
    """A draw from the standard normal distribution that hangs on the text alone."""
    drawn = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    return _NORMAL.inv_cdf((drawn + 0.5) / 2**64)


def main() -> None:
    """A run of train/grpo.py whose training judge errs; that of evaluations stays exact."""
    if "--help" in sys.argv[1:2]:
        print(__doc__)
        return
    from train.config import read_settings
    from train.grpo import main as train

    noise: Mapping[str, Any] = json.loads(sys.argv[1])
    train(read_settings(sys.argv[2:]), SimulatedNoisyJudge(Noise(**noise)))


if __name__ == "__main__":
    main()
