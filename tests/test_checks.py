"""Combinations of settings that cannot work."""

import pytest

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
        ({"num_generations": 1}, "num_generations must be 2 or more"),
        ({"num_generations": 3}, "num_generations must divide the 8 completions"),
        ({"num_generations": 3}, "possible are 2, 4, 8"),
        ({"per_device_train_batch_size": 0}, "per_device_train_batch_size must be 1 or more"),
        ({"generation_batch_size": 8, "steps_per_generation": 2}, "say the same thing"),
        ({"generation_batch_size": 12, "num_generations": 4}, "must be a multiple of 8"),
        ({"top_p": 0.9}, "top_p must be 1.0"),
        ({"top_k": 50}, "top_k must be 0"),
        ({"min_p": 0.1}, "min_p must be null or 0"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"generation_kwargs": {"top_p": 0.9}}, "top_p has a key of its own"),
        ({"generation_kwargs": {"max_tokens": 9}}, "set max_completion_length instead"),
        ({"generation_kwargs": {"seed": 1}}, "all completions of a group alike"),
        ({"generation_kwargs": {"stop": ["\n"]}}, "stop is not supported"),
        ({"judge_deadline_s": 1800.0}, "judge_deadline_s (1800) must be below ddp_timeout (1800)"),
        ({"reward_weights": [1.0, 2.0]}, "one member"),
        ({"remove_unused_columns": True}, "remove_unused_columns must be false"),
        ({"lora_r": 8}, "lora_r is set and use_peft is not"),
        ({"load_in_4bit": True}, "load_in_4bit is set and use_peft is not"),
        ({"eval_strategy": "steps"}, "eval_strategy needs eval_cases"),
        ({"resume_from_checkpoint": "nowhere"}, "nowhere is no whole checkpoint"),
        ({"num_iterations": 4, "save_steps": 6}, "save_steps must be a multiple of 4"),
        ({"vllm_max_model_length": 512, "max_completion_length": 512}, "vllm_max_model_length (512) must hold"),
        ({"vllm_tensor_parallel_size": 2}, "vllm_tensor_parallel_size (2) must divide the number of processes (1)"),
    ],
)
def test_an_impossible_combination_is_told(changes, message):
    assert any(message in problem for problem in conflicts(**changes)), conflicts(**changes)


def test_more_processes_make_a_larger_batch():
    assert conflicts(num_processes=3, num_generations=12) == []
    assert conflicts(num_processes=1, num_generations=12) != []


def test_lora_keys_are_welcome_with_use_peft():
    assert conflicts(lora_r=8, lora_dropout=0.0, use_peft=True) == []


def test_checkpoints_of_another_run_are_not_written_over(tmp_path):
    checkpoint = tmp_path / "checkpoint-20"
    checkpoint.mkdir()
    assert conflicts(output_dir=str(tmp_path)) == []  # no whole one
    (checkpoint / "trainer_state.json").write_text("{}")
    (problem,) = conflicts(output_dir=str(tmp_path))
    assert "checkpoint-20" in problem
    assert "--resume_from_checkpoint latest" in problem
    for resume in ("latest", str(checkpoint)):
        assert conflicts(output_dir=str(tmp_path), resume_from_checkpoint=resume) == []
    assert conflicts(output_dir=str(tmp_path), dry_run=True) == []
