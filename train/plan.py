"""The arithmetic of a run: what one generation makes, what the judge is asked for it, and how often.

`python -m train.plan` divides a job of many GPUs by it (`train.job`).
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from data.cases import Case
from rewards.judge_config import JudgeConfig


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One generation and the optimiser steps that learn from it, all processes together.

    The policy writes `completions` at once, `num_generations` of them to each prompt; optimiser steps then take
    `completions_per_update` of them at a time, going through all of them `num_iterations` times.
    """

    num_processes: int
    completions: int
    completions_per_update: int
    num_generations: int
    num_iterations: int
    max_completion_length: int

    @property
    def prompts(self) -> Fraction:
        """Different prompts in a generation; whole if the plan is possible."""
        return Fraction(self.completions, self.num_generations)

    @property
    def updates(self) -> Fraction:
        """Optimiser steps between a generation and the next: below 1 where a step needs several generations."""
        return Fraction(self.completions * self.num_iterations, self.completions_per_update)


def plan_step(values: Mapping[str, Any], num_processes: int) -> StepPlan:
    """The plan that a configuration asks for, by TRL's rules.

    >>> values = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "generation_batch_size": None,
    ...     "steps_per_generation": None, "num_generations": 8, "num_iterations": 1, "max_completion_length": 64}
    >>> plan = plan_step(values, num_processes=2)
    >>> plan.completions, int(plan.prompts), int(plan.updates)
    (64, 8, 1)
    """
    per_pass = values["per_device_train_batch_size"] * num_processes
    passes = values["steps_per_generation"] or values["gradient_accumulation_steps"]
    return StepPlan(
        num_processes=num_processes,
        completions=values["generation_batch_size"] or per_pass * passes,
        completions_per_update=per_pass * values["gradient_accumulation_steps"],
        num_generations=values["num_generations"],
        num_iterations=values["num_iterations"],
        max_completion_length=values["max_completion_length"],
    )


def describe_generation(plan: StepPlan) -> str:
    """What one generation makes, in a sentence."""
    return (
        f"a generation: {int(plan.prompts)} prompts x {plan.num_generations} = {plan.completions:,} completions, "
        f"at most {plan.completions * plan.max_completion_length:,} tokens; "
        f"{float(plan.updates):g} optimiser steps of {plan.completions_per_update:,} completions learn from it"
    )


def describe(plan: StepPlan, values: Mapping[str, Any], judge: JudgeConfig, cases: Sequence[Case]) -> list[str]:
    """The plan in sentences, for these cases: processes, a generation, its judge calls, the whole run."""
    prompts = int(plan.prompts)
    num_issues = sum(len(case.issues) for case in cases) / len(cases)
    generations_per_epoch = len(cases) // prompts
    updates = values["max_steps"]
    if updates <= 0:
        updates = int(values["num_train_epochs"] * generations_per_epoch * plan.updates)
    generations = float(updates / plan.updates)
    num_groups = sum(-(-len(case.issues) // judge.group_size(len(case.issues))) for case in cases) / len(cases)
    num_calls = num_groups * judge.judge_votes
    calls = plan.completions * num_calls
    is_mini = judge.judge == "mini"
    return [
        f"processes: {plan.num_processes}, as accelerate launch has it",
        describe_generation(plan),
        "judge: exact, no calls"
        if is_mini
        else f"judge: {num_calls:.1f} calls a completion, {num_issues:.1f} issues a case (mean of {len(cases):,}, the "
        f"order counted): {calls:,.0f} calls a generation, fewer by what gates hold back and the store knows",
        f"the run: {updates:,} optimiser steps, {generations:,.0f} generations, {generations * plan.completions:,.0f} "
        f"completions" + ("" if is_mini else f", {generations * calls:,.0f} judge calls")
        + f"; each case is seen {generations * prompts / len(cases):.2f} times",
    ]  # fmt: skip


if __name__ == "__main__":
    from train.job import main

    sys.exit(main())
