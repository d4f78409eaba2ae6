"""What a step makes and costs, worked by hand."""

from dataclasses import replace

import pytest

from data.cases import Case, Issue
from rewards.judge_config import JudgeConfig
from train.plan import describe, plan_step

VALUES = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 8,
    "generation_batch_size": None,
    "steps_per_generation": None,
    "num_generations": 8,
    "num_iterations": 1,
    "max_completion_length": 100,
    "max_steps": -1,
    "num_train_epochs": 2.0,
}
JUDGE = JudgeConfig(judge_base_url="http://localhost:1/v1", judge_model="m")


def case(id, num_issues):
    return Case(id, "질문", tuple(Issue(str(n) if n else "", "쟁점", (), "결론") for n in range(num_issues)))


def test_a_generation_is_one_update_by_default():
    plan = plan_step(VALUES, num_processes=2)
    assert (plan.completions, plan.completions_per_update, plan.prompts, plan.updates) == (64, 64, 8, 1)


def test_more_passes_and_iterations_make_more_updates_of_a_generation():
    plan = plan_step({**VALUES, "steps_per_generation": 16, "num_iterations": 3}, num_processes=1)
    assert (plan.completions, plan.completions_per_update, plan.updates) == (64, 32, 6)


def test_a_generation_smaller_than_an_update_is_half_an_update():
    plan = plan_step({**VALUES, "generation_batch_size": 16}, num_processes=1)
    assert (plan.completions, plan.updates) == (16, 0.5)


def test_the_run_in_sentences():
    # 20 cases of 4 and 6 issues: 5 in the mean. 2 epochs of 2 generations of 8 prompts (4 cases are left over).
    cases = [case(f"c{n}", 4 if n % 2 else 6) for n in range(20)]
    text = "\n".join(describe(plan_step(VALUES, 2), VALUES, JUDGE, cases))
    assert "8 prompts x 8 = 64 completions, at most 6,400 tokens; 1 optimiser steps of 64 completions" in text
    assert "5.0 issues a case" in text
    assert "320 calls a generation" in text
    assert "4 optimiser steps, 4 generations, 256 completions, 1,280 judge calls; each case is seen 1.60 times" in text


@pytest.mark.parametrize(
    ("size", "votes", "calls"),
    [("all", 1, 64), ("all", 3, 192), (4, 1, 96), (1, 3, 960)],  # cases of 4 and 6 issues: 1 and 2 calls at 4 a call
)
def test_grouped_issues_and_votes_change_the_bill(size, votes, calls):
    cases = [case(f"c{n}", 4 if n % 2 else 6) for n in range(20)]
    judge = replace(JUDGE, judge_issues_per_call=size, judge_votes=votes)
    assert f": {calls:,} calls a generation" in "\n".join(describe(plan_step(VALUES, 2), VALUES, judge, cases))


def test_the_exact_judge_costs_no_calls():
    text = "\n".join(
        describe(plan_step(VALUES, 1), {**VALUES, "max_steps": 10}, JudgeConfig(judge="mini"), [case("c", 3)] * 9)
    )
    assert "judge: exact, no calls" in text
    assert "10 optimiser steps, 10 generations" in text
    assert "judge calls" not in text
