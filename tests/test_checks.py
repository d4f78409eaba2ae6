"""Combinations of settings that cannot work."""

import math

import pytest

from tests.whole_checkpoint import write_checkpoint
from train.checks import find_conflicts
from train.config import OWN
from train.keys import known_options
from train.options import UNKNOWN

OPTIONS = known_options(OWN)
SOUND = {
    **{name: None if option.default is UNKNOWN else option.default for name, option in OPTIONS.items()},
    "cases": "cases.jsonl",
    "model_name_or_path": "some/model",
    "output_dir": "no/such/folder",
    "use_vllm": True,
    "vllm_max_model_length": 2048,
}


def conflicts(num_processes=1, **changes):
    return find_conflicts({**SOUND, **changes}, OPTIONS, num_processes)


def test_a_sound_configuration_has_no_conflicts():
    assert conflicts() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cases": ""}, "cases must be set"),
        ({"model_name_or_path": None}, "model_name_or_path must be set"),
        ({"output_dir": None}, "output_dir must be set"),
        ({"learning_rate": -1.0}, "learning_rate must be a number of at least 0, got -1.0"),
        ({"learning_rate": math.nan}, "learning_rate must be a number"),
        ({"beta": math.inf}, "beta must be a number"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, got -1"),
        ({"max_steps": 0}, "max_steps must be 1 or more, or -1"),
        ({"max_steps": -2}, "max_steps must be 1 or more, or -1"),
        ({"num_train_epochs": 0.0}, "num_train_epochs must be above 0"),
        ({"save_strategy": "steps", "save_steps": 0}, "save_steps must be above 0, got 0; save_strategy: no"),
        ({"logging_strategy": "steps", "logging_steps": 0}, "logging_steps must be above 0"),
        ({"eval_strategy": "steps", "eval_steps": -5}, "eval_steps must be above 0"),
        ({"temperature": math.inf}, "temperature must be a number above 0, got inf"),
        ({"output_dir": __file__}, "output_dir must be a folder, and"),
        ({"output_dir": f"{__file__}/run"}, "output_dir must be a folder, and"),
        ({"num_generations": 1}, "num_generations must be 2 or more"),
        ({"num_generations": 3}, "num_generations must divide the 8 completions"),
        ({"num_generations": 3}, "possible are 2, 4, 8"),
        ({"per_device_train_batch_size": 0}, "per_device_train_batch_size must be 1 or more"),
        ({"generation_batch_size": 8, "steps_per_generation": 2}, "say the same thing"),
        ({"generation_batch_size": 12, "num_generations": 4}, "must be a multiple of 8"),
        ({"top_p": 0.9}, "top_p must be 1.0"),
        ({"top_k": 50}, "top_k must be 0"),
        ({"min_p": 0.1}, "min_p must be null or 0"),
        ({"temperature": 0.0}, "temperature must be a number above 0"),
        ({"generation_kwargs": {"top_p": 0.9}}, "top_p has a key of its own"),
        ({"generation_kwargs": {"max_tokens": 9}}, "set max_completion_length instead"),
        ({"generation_kwargs": {"seed": 1}}, "all completions of a group alike"),
        ({"generation_kwargs": {"stop": ["\n"]}}, "stop is not supported"),
        ({"judge_deadline_s": 1800.0}, "judge_deadline_s (1800) must be below ddp_timeout (1800)"),
        ({"reward_weights": [1.0, 2.0]}, "three numbers, those of order, coverage and correctness"),
        ({"reward_weights": [5.0, -2.0, 3.0], "reward": "decoupled"}, "three numbers"),
        ({"reward_weights": [5.0, 5.0, 5.0]}, "only decoupled takes others"),
        ({"remove_unused_columns": True}, "remove_unused_columns must be false"),
        ({"lora_r": 8}, "lora_r is set and use_peft is not"),
        ({"load_in_4bit": True}, "load_in_4bit is set and use_peft is not"),
        ({"eval_strategy": "steps"}, "eval_strategy needs eval_cases"),
        ({"resume_from_checkpoint": "nowhere"}, "nowhere is no whole checkpoint"),
        ({"num_iterations": 4, "save_steps": 6}, "save_steps must be a multiple of 4"),
        ({"enable_jit_checkpoint": True}, "enable_jit_checkpoint must be false"),
        ({"vllm_max_model_length": 512, "max_completion_length": 512}, "vllm_max_model_length (512) must hold"),
        ({"vllm_tensor_parallel_size": 2}, "vllm_tensor_parallel_size (2) must divide the number of processes (1)"),
    ],
)
def test_an_impossible_combination_is_told(changes, message):
    assert any(message in problem for problem in conflicts(**changes)), conflicts(**changes)


def test_a_dry_run_finds_it_too():
    assert len(conflicts(dry_run=True, learning_rate=-1.0, max_steps=0, seed=-1, output_dir=__file__)) == 4


def test_more_processes_make_a_larger_batch():
    assert conflicts(num_processes=3, num_generations=12) == []
    assert conflicts(num_processes=1, num_generations=12) != []


def test_lora_keys_are_welcome_with_use_peft():
    assert conflicts(lora_r=8, lora_dropout=0.0, use_peft=True) == []


def test_checkpoints_of_another_run_are_not_written_over(tmp_path):
    (tmp_path / "checkpoint-20").mkdir()
    assert conflicts(output_dir=str(tmp_path)) == []  # no whole one
    (tmp_path / "checkpoint-20").rmdir()
    checkpoint = write_checkpoint(tmp_path, 20)
    (problem,) = conflicts(output_dir=str(tmp_path))
    assert "checkpoint-20" in problem
    assert "--resume_from_checkpoint latest" in problem
    for resume in ("latest", str(checkpoint)):
        assert conflicts(output_dir=str(tmp_path), resume_from_checkpoint=resume) == []
    assert conflicts(output_dir=str(tmp_path), dry_run=True) == []


def test_a_damaged_checkpoint_is_no_place_to_go_on_from(tmp_path):
    (write_checkpoint(tmp_path, 20) / "optimizer.pt").write_bytes(b"")
    (problem,) = conflicts(output_dir=str(tmp_path), resume_from_checkpoint="latest")
    assert problem.startswith(
        f"resume_from_checkpoint: {tmp_path}/checkpoint-20 is no whole checkpoint: optimizer.pt is"
    )
