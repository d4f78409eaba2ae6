"""Settings that nothing would read are refused, each with what would make something read it."""

import pytest

from rewards.judge_config import EVAL_PREFIX
from train.checks import find_conflicts
from train.config import OWN
from train.keys import known_options
from train.options import UNKNOWN
from train.unread import find_unread, idled

OPTIONS = known_options(OWN)
DEFAULTS = {name: None if option.default is UNKNOWN else option.default for name, option in OPTIONS.items()}
MINI = {"judge": "mini"}


def unread(**changes):
    changed = {name for name, value in changes.items() if value != DEFAULTS[name]}
    return [one.problem for one in find_unread(DEFAULTS | changes, changed)]


def test_the_defaults_are_no_settings():
    assert unread() == unread(**MINI) == unread(judge="endpoint", reward="order_only", use_vllm=False) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lora_alpha": 64}, "lora_alpha is set and use_peft is not: set use_peft: true to train an adapter"),
        ({"bnb_4bit_quant_type": "fp4"}, "bnb_4bit_quant_type is set and load_in_4bit is not"),
        ({"reward": "order_only", "coverage_floor": 0.5}, "coverage_floor is set and reward is order_only"),
        ({"coverage_floor_rate": 9.0}, "reward is legit, which has no floor: set reward: coverage_floor"),
        ({"coverage_floor_max_weight": 9.0}, "coverage_floor_max_weight is set and reward is legit"),
        ({"curriculum_rest": 7}, "curriculum_rest is set and curriculum is off: set curriculum: skip or easy_first"),
        ({"curriculum_grades": "g.jsonl"}, "curriculum_grades is set and curriculum is off"),
        ({"eval_steps": 20}, "eval_steps is set and eval_strategy is no: set eval_strategy: steps"),
        ({"eval_strategy": "epoch", "eval_steps": 20}, "eval_steps is set and eval_strategy is epoch"),
        ({"eval_num_cases": 9}, "eval_num_cases is set and eval_strategy is no"),
        ({"eval_sampling": "t1"}, "eval_sampling is set and eval_strategy is no"),
        ({"eval_on_start": True}, "eval_on_start is set and eval_strategy is no"),
        ({"load_best_model_at_end": True}, "load_best_model_at_end is set and eval_strategy is no"),
        ({"eval_split": "valid"}, "eval_split is set and eval_cases is not"),
        ({"retriever_dropout": 0.3}, "retriever_dropout is set and retriever is none"),
        ({"use_vllm": False, "parity_tolerance": 0.1}, "parity_tolerance is set and use_vllm is not"),
        ({"use_vllm": True, "vllm_server_base_url": "http://a"}, "vllm_server_base_url is set and no vLLM server"),
        ({"judge": "mini", "judge_votes": 3}, "judge_votes is set and judge is mini, which is exact"),
        ({"judge": "mini", "judge_base_url": "http://a/v1"}, "judge_base_url is set and judge is mini"),
        ({"judge_votes": 3, "judge_repeat_frac": 0.5}, "judge_repeat_frac is set and judge_votes has every call"),
        ({"judge": "mini", "eval_judge_votes": 3}, "eval_judge_votes is set and eval_judge is mini"),
        ({"eval_judge": "mini", "eval_judge_model": "m"}, "eval_judge_model is set and eval_judge is mini"),
        ({"eval_judge_votes": 3, "eval_judge_repeat_frac": 0.5}, "eval_judge_repeat_frac is set and eval_judge_votes"),
    ],
)  # fmt: skip
def test_a_setting_that_nothing_reads_is_told(changes, told):
    (problem,) = unread(**changes)
    assert told in problem
    assert problem.endswith(f", or drop {problem.partition(' ')[0]}")
    values = DEFAULTS | changes
    assert problem in find_conflicts(values, OPTIONS, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"use_peft": True, "lora_alpha": 64},
        {"reward": "coverage_floor", "coverage_floor": 0.5, "coverage_floor_rate": 9.0},
        {"curriculum": "skip", "curriculum_rest": 7},
        {"eval_strategy": "steps", "eval_cases": "e.jsonl", "eval_steps": 20, "eval_num_cases": 9, "eval_split": "a"},
        {"eval_strategy": "epoch", "eval_sampling": "t1", "load_best_model_at_end": True},
        {"eval_cases": "e.jsonl", "eval_split": "valid"},  # for eval/checkpoints.py
        {"retriever": "gold", "retriever_dropout": 0.3},
        {"use_vllm": True, "parity_tolerance": 0.1},
        {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": "http://a"},
        {"judge": "mini", "judge_deadline_s": 9.0, "judge_preflight": False, "judge_quorum": 0.5},
        {"judge": "mini", "judge_votes": 3, "eval_judge": "endpoint", "eval_judge_base_url": "u"},  # it inherits them
        {"judge_votes": 3, "judge_repeat_frac": 0.5, "eval_judge_votes": 1},
        {"eval_judge_model": "m", "eval_judge_votes": 3},  # for eval/checkpoints.py
        {"eval_judge": "mini", "judge_votes": 3},
    ],
)
def test_what_is_read_passes(changes):
    assert unread(**changes) == []


def test_every_key_of_a_judge_over_a_network_is_told_of_the_exact_one():
    names = [name for name, option in OPTIONS.items() if option.owner == "JudgeConfig" and name.startswith(EVAL_PREFIX)]
    told = {
        problem.partition(" ")[0] for name in names for problem in unread(**MINI, **{name: OPTIONS[name].default or 1})
    }
    kept = {"judge", "judge_preflight", "judge_deadline_s", "judge_quorum"}
    assert told == set(names) - {EVAL_PREFIX + name for name in kept}


@pytest.mark.parametrize(
    ("overridden", "changes", "dropped"),
    [
        ({"reward"}, {"coverage_floor": 0.4, "reward": "legit"}, {"coverage_floor"}),
        ({"reward", "coverage_floor"}, {"coverage_floor": 0.4, "reward": "legit"}, set()),  # refused, as in a YAML
        ({"seed"}, {"coverage_floor": 0.4, "reward": "legit"}, set()),
        (
            {"retriever"},
            {"retriever": "none", "retriever_index": "law", "retriever_k": 3, "retriever_dropout": 0.3},
            {"retriever_index", "retriever_k", "retriever_dropout"},
        ),
        ({"retriever"}, {"retriever": "bm25", "retriever_model": "m", "retriever_k": 3}, {"retriever_model"}),
        ({"judge"}, {**MINI, "judge_model": "m", "judge_votes": 3}, {"judge_model", "judge_votes"}),
        ({"reward"}, {"reward": "legit", "reward_weights": [1.0, 1.0, 1.0]}, {"reward_weights"}),
        ({"use_vllm"}, {"use_vllm": False, "parity_tolerance": 0.2, "seed": 7}, {"parity_tolerance"}),
    ],
)
def test_a_switch_on_the_command_line_drops_what_it_makes_idle_in_the_yaml(overridden, changes, dropped):
    changed = {name for name, value in changes.items() if value != DEFAULTS[name]}
    assert idled(DEFAULTS | changes, changed, overridden) == dropped
