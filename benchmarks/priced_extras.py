"""The exact judge with a price on issues that the court did not treat, for the coverage study.

example: python -m benchmarks.priced_extras 0.25 configs/mini.yaml
"""

import math
import sys

from data.cases import ROOT_ID, Case
from rewards.mini_judge import MiniJudge, count_extra_issues
from rewards.score import Judgment


class PricedExtrasJudge(MiniJudge):
    """Each extra issue takes `price` of the credit for right conclusions; coverage and order are as they are."""

    def __init__(self, price: float) -> None:
        super().__init__()
        self._price = price

    async def judge_case(self, case: Case, answer: str, *, until: float = math.inf) -> dict[str, Judgment]:
        """The exact judge's verdicts, the right ones worth 1 - price x extra issues, at least 0."""
        exact = await super().judge_case(case, answer, until=until)
        worth = max(1 - self._price * count_extra_issues(case, answer), 0.0)
        return {
            id: one if id == ROOT_ID else Judgment(one.contains_issue, one.correct_conclusion * worth)
            for id, one in exact.items()
        }


def main() -> None:
    """A run of train/grpo.py whose training judge has the price; that of evaluations has none."""
    if "--help" in sys.argv[1:2]:
        print(__doc__)
        return
    from train.config import read_settings
    from train.grpo import main as train

    train(read_settings(sys.argv[2:]), PricedExtrasJudge(float(sys.argv[1])))


if __name__ == "__main__":
    main()
