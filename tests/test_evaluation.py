"""Evaluation while training: its figures, its ranks, and that the best checkpoint is the one its judge likes best."""

import json
import math

import pytest

from rewards.judge_config import JudgeConfig, eval_judge_settings
from rewards.score import Score
from tests.fake_llm_server import FakeLLM, verdict
from tests.training_runs import Workshop
from train.evaluation import EvaluationConfig, share, summarize

TWO_RANKS = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")


def test_means_are_over_what_was_scored():
    figures = summarize([Score(1, 0.5, 0.5, 0, 5, 5), None, Score(0, 1, 0, 0, 3, 3), None])
    assert figures == {
        "eval_score": (5 + 1 + 1.5 + 2) / 2,
        "eval_order": 0.5,
        "eval_coverage": 0.75,
        "eval_correctness": 0.25,
        "eval_unscored_frac": 0.5,
    }


def test_a_dead_judge_leaves_the_same_names_and_no_grade():
    figures = summarize([None, None])
    assert list(figures) == list(summarize([Score(1, 1, 1, 0, 5, 5)]))
    assert math.isnan(figures["eval_score"])
    assert figures["eval_unscored_frac"] == 1


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 8])
def test_every_case_has_a_rank_and_every_rank_as_many_cases(num_ranks):
    shares = [share(range(5), rank, num_ranks) for rank in range(num_ranks)]
    assert {case for one in shares for case in one} == set(range(5))
    assert len({len(one) for one in shares}) == 1


def test_the_judge_of_evaluations_is_the_training_judge_where_it_is_not_told_apart():
    training = {"judge_base_url": "http://one/v1", "judge_model": "small", "judge_votes": 3, "learning_rate": 1.0}
    other = eval_judge_settings(training | {"eval_judge_model": "large", "eval_judge_prices": None})
    assert JudgeConfig(**other) == JudgeConfig(judge_base_url="http://one/v1", judge_model="large", judge_votes=3)
    assert JudgeConfig(**eval_judge_settings(training)).judge_model == "small"


@pytest.mark.parametrize("wrong", [{"eval_num_cases": 0}, {"eval_sampling": "warm"}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EvaluationConfig(**wrong)


@pytest.mark.slow
def test_two_ranks_keep_the_checkpoint_that_the_judge_of_evaluations_likes_best(tmp_path):
    workshop = Workshop.build(tmp_path)
    path = tmp_path / "run" / "eval_in_training.jsonl"

    def only_the_second(request):
        """All is right at the second evaluation, and nothing at the others."""
        is_second = path.exists() and path.read_text(encoding="utf-8").count("\n") == 1
        return verdict(is_second, is_second)

    with FakeLLM(only_the_second) as server:
        judge = ("--eval_judge", "endpoint", "--eval_judge_base_url", server.base_url, "--eval_judge_model", "fair")
        evaluate = ("--eval_cases", "eval.jsonl", "--eval_strategy", "steps", "--eval_steps", "1")
        options = ("--eval_num_cases", "3", "--eval_judge_repeat_frac", "0", "--judge_preflight", "false")
        save = ("--max_steps", "4", "--save_steps", "1", "--save_total_limit", "1")
        run = ("run", *judge, *evaluate, *options, *save)
        with workshop.start(*run, launcher=TWO_RANKS, ACCELERATE_USE_CPU="true", OMP_NUM_THREADS="1") as process:
            _, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scores = [row["eval_score"] for row in rows]  # 10 at the second, but for what the policy answers with nothing
    assert [(row["eval_step"], row["eval_score"] > 0, row["judge"]) for row in rows] == [
        (step, step == 2, "fair") for step in (1, 2, 3, 4)
    ]
    assert all(len(row["scores"]) == 3 for row in rows)
    assert {path.name for path in (tmp_path / "run").glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    state = json.loads((tmp_path / "run/checkpoint-4/trainer_state.json").read_text())
    assert (state["best_global_step"], state["best_metric"]) == (2, scores[1])
    assert state["best_model_checkpoint"].endswith("run/checkpoint-2")
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["eval_score"] for row in metrics if "eval_score" in row] == scores
    assert not any("eval_score" in row and "reward" in row for row in metrics)
    told = [row["eval_exploitation/num_credited"] for row in metrics if "eval_score" in row]
    assert len(told) == 4  # by the mini judge, which rewards this run
