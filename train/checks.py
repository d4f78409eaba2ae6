"""Combinations of settings that cannot work, each found before anything heavy loads."""

import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rewards.schemes import SCHEMES
from train.checkpoint_dirs import find_checkpoints, why_not_resume
from train.evaluation import BEST_BY
from train.options import UNKNOWN, Option
from train.plan import plan_step
from train.unread import find_unread

_SET_BY_TRL = {"n": "num_generations", "max_tokens": "max_completion_length"}
_SAMPLING_KEYS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
_LOWEST = {
    "learning_rate": 0,
    "weight_decay": 0,
    "max_grad_norm": 0,
    "warmup_steps": 0,
    "beta": 0,
    "epsilon": 0,
    "save_total_limit": 1,
}
_TRACKERS = ("wandb", "trackio")


def find_conflicts(values: Mapping[str, Any], options: Mapping[str, Option], num_processes: int) -> list[str]:
    """What is impossible about a configuration, each with what would be right; `values` has every key."""
    changed = changed_from(values, options)
    rules: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _required(values),
        lambda: _numbers(values),
        lambda: _batch(values, num_processes),
        lambda: _sampling(values),
        lambda: _reward(values),
        lambda: (one.problem for one in find_unread(values, changed)),
        lambda: _evaluation(values),
        lambda: _checkpoints(values, num_processes),
        lambda: _engine(values, num_processes),
    )
    return [problem for rule in rules for problem in rule()]


def changed_from(values: Mapping[str, Any], options: Mapping[str, Option]) -> set[str]:
    """The keys whose values are not their defaults."""
    known = {name: option.default for name, option in options.items() if option.default is not UNKNOWN}
    return {name for name, default in known.items() if values[name] != default}


def _required(values: Mapping[str, Any]) -> Iterator[str]:
    for name, what in (
        ("cases", "a file, a folder or a hub id of cases"),
        ("model_name_or_path", "a model directory or a hub id"),
        ("output_dir", "a folder for checkpoints and logs"),
    ):
        if not values[name]:
            yield f"{name} must be set: {what}"


def _numbers(values: Mapping[str, Any]) -> Iterator[str]:
    """Numbers that transformers and TRL would trip over when the model is loaded, or take without a word."""
    for name, low in _LOWEST.items():
        if values[name] is not None and not low <= values[name] < math.inf:
            yield f"{name} must be a number of at least {low}, got {values[name]}"
    for name in ("seed", "data_seed"):
        if values[name] is not None and not 0 <= values[name] < 2**32:
            yield f"{name} must be a whole number from 0 to {2**32 - 1}, got {values[name]}"
    if values["max_steps"] == 0 or values["max_steps"] < -1:
        yield f"max_steps must be 1 or more, or -1: then num_train_epochs says how long; got {values['max_steps']}"
    if not 0 < values["num_train_epochs"] < math.inf:
        yield f"num_train_epochs must be above 0, got {values['num_train_epochs']}"
    for what in ("logging", "save", "eval"):
        steps = values[f"{what}_steps"]
        if values[f"{what}_strategy"] == "steps" and steps is not None and not 0 < steps < math.inf:
            yield f"{what}_steps must be above 0, got {steps}; {what}_strategy: no switches it off"


def _batch(values: Mapping[str, Any], num_processes: int) -> Iterator[str]:
    if values["generation_batch_size"] and values["steps_per_generation"]:
        yield "generation_batch_size and steps_per_generation say the same thing: set one of them"
        return
    sizes = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_iterations", "max_completion_length")
    for name in sizes:
        if values[name] is None or values[name] < 1:
            yield f"{name} must be 1 or more, got {values[name]}"
            return
    if values["num_generations"] is None or values["num_generations"] < 2:
        yield f"num_generations must be 2 or more: a group of one has no baseline; got {values['num_generations']}"
        return
    plan = plan_step(values, num_processes)
    if plan.prompts.denominator != 1:
        legal = [str(n) for n in range(2, plan.completions + 1) if plan.completions % n == 0]
        yield (
            f"num_generations must divide the {plan.completions} completions of a generation "
            f"(generation_batch_size, or per_device_train_batch_size x {num_processes} processes x "
            f"{values['steps_per_generation'] or values['gradient_accumulation_steps']} passes), "
            f"got {plan.num_generations}; possible are {', '.join(legal)}"
        )
    per_pass = values["per_device_train_batch_size"] * num_processes
    if plan.completions % per_pass:
        yield f"generation_batch_size must be a multiple of {per_pass}, what one pass takes; got {plan.completions}"


def _sampling(values: Mapping[str, Any]) -> Iterator[str]:
    if values["top_p"] != 1.0:
        yield f"top_p must be 1.0, got {values['top_p']}: below 1 it biases the importance ratio that GRPO learns from"
    if values["top_k"] not in (0, -1):
        yield f"top_k must be 0 (off), got {values['top_k']}: it biases the importance ratio just as top_p does"
    if values["min_p"]:
        yield f"min_p must be null or 0 (off), got {values['min_p']}: it biases the importance ratio just as top_p does"
    if not 0 < values["temperature"] < math.inf:
        yield f"temperature must be a number above 0, got {values['temperature']}: greedy completions are all alike"
    for name in values["generation_kwargs"] or {}:
        if name in _SAMPLING_KEYS or name in _SET_BY_TRL:
            yield f"generation_kwargs: {name} has a key of its own, set {_SET_BY_TRL.get(name, name)} instead"
        if name == "seed":
            yield "generation_kwargs: seed would make all completions of a group alike; the run's key is seed"
        if name in ("stop", "stop_token_ids"):
            yield f"generation_kwargs: {name} is not supported: what does not end in the end token counts as cut off"


def _reward(values: Mapping[str, Any]) -> Iterator[str]:
    for name in ("judge_deadline_s", "eval_judge_deadline_s"):
        if values[name] is not None and values[name] >= values["ddp_timeout"]:
            yield (
                f"{name} ({values[name]:g}) must be below ddp_timeout ({values['ddp_timeout']}): "
                "ranks that wait longer than that for a slow judge are ended; lower the one or raise the other"
            )
    weights, usual = values["reward_weights"], list(SCHEMES[values["reward"]].weights)
    if weights and (len(weights) != len(usual) or min(weights) < 0 or not any(weights)):
        yield f"reward_weights must be three numbers, those of order, coverage and correctness; got {weights}"
    elif weights and weights != usual and values["reward"] != "decoupled":
        yield f"reward_weights are {usual} with reward: {values['reward']}; only decoupled takes others, got {weights}"
    if values["remove_unused_columns"]:
        yield "remove_unused_columns must be false: the reward finds its case by the column doc_id"


def _evaluation(values: Mapping[str, Any]) -> Iterator[str]:
    if values["eval_strategy"] != "no" and not values["eval_cases"]:
        yield "eval_strategy needs eval_cases: a file, a folder or a hub id of cases"
    if values["metric_for_best_model"] not in (None, *BEST_BY):
        yield (
            f"metric_for_best_model must be one of {', '.join(BEST_BY)}, what the judge of evaluations finds on "
            f"eval_cases; got {values['metric_for_best_model']}"
        )
    for tracker in _trackers(values["report_to"]):
        if tracker in _TRACKERS and importlib.util.find_spec(tracker) is None:
            yield f"report_to: {tracker} is not installed; pip install {tracker}, or report_to: none"


def _checkpoints(values: Mapping[str, Any], num_processes: int) -> Iterator[str]:
    if values["enable_jit_checkpoint"]:
        yield "enable_jit_checkpoint must be false: SIGTERM is heard anyway, in a wait for the judge too"
    resume, output_dir = values["resume_from_checkpoint"], values["output_dir"]
    if output_dir and (files := [path for path in (Path(output_dir), *Path(output_dir).parents) if path.is_file()]):
        yield f"output_dir must be a folder, and {files[0]} is a file: choose another"
    has_optimizer = not values["save_only_model"]
    if output_dir and resume and (why := why_not_resume(Path(output_dir), resume, with_optimizer=has_optimizer)):
        yield f"resume_from_checkpoint: {why}"
    if output_dir and not resume and not values["dry_run"] and (found := find_checkpoints(Path(output_dir))):
        yield (
            f"output_dir {output_dir} already has checkpoints, the last is {found[-1].name}: go on with "
            "--resume_from_checkpoint latest, or choose another output_dir"
        )
    if values["save_strategy"] == "steps" and values["save_steps"] >= 1 and not list(_batch(values, num_processes)):
        updates = plan_step(values, num_processes).updates
        if updates > 1 and values["save_steps"] % updates:
            yield (
                f"save_steps must be a multiple of {float(updates):g}, the optimiser steps that learn from one "
                f"generation, or a resumed run would leave the rest of it out; got {values['save_steps']:g}"
            )


def _engine(values: Mapping[str, Any], num_processes: int) -> Iterator[str]:
    if not values["use_vllm"]:
        return
    if importlib.util.find_spec("vllm") is None:
        yield "use_vllm: vLLM is not installed; make setup-cpu or make setup-gpu installs it, or use_vllm: false"
    longest, room = values["max_completion_length"], values["vllm_max_model_length"]
    if room and longest and longest >= room:
        yield (
            f"vllm_max_model_length ({room}) must hold the prompt and max_completion_length ({longest}): make it larger"
        )
    if values["vllm_mode"] == "colocate" and num_processes % values["vllm_tensor_parallel_size"]:
        yield (
            f"vllm_tensor_parallel_size ({values['vllm_tensor_parallel_size']}) must divide the number of processes "
            f"({num_processes})"
        )


def _trackers(report_to: str | list[str] | None) -> list[str]:
    return report_to if isinstance(report_to, list) else [report_to or "none"]
