"""What a training run left in its folder: its settings, its base and its checkpoints."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from data.command import InputError
from data.contexts import RetrievalConfig
from data.prompts import PromptStyle
from data.weights import ADAPTER_CONFIG, damage_of_weights
from eval.engine import Policy
from rewards.gates import GateConfig
from rewards.judge_config import JudgeConfig, eval_judge_settings

BASE = "base"
FINAL = "final"


@dataclass(frozen=True, slots=True)
class Run:
    """A run as evaluation sees it: the settings that evaluation shares with it.

    `judge`, `eval_judge`, `gates` and `retrieval` hold the fields of JudgeConfig, GateConfig and RetrievalConfig that
    the run was configured with.
    `lora_rank` is that of its adapters, 0 if it trains all weights.
    """

    directory: Path
    base: str
    eval_cases: str | None
    eval_split: str | None
    dtype: str | None
    prompt_style: PromptStyle
    max_completion_length: int
    judge: Mapping[str, Any]
    eval_judge: Mapping[str, Any]
    gates: Mapping[str, Any]
    chat_template_kwargs: Mapping[str, Any]
    lora_rank: int = 0
    retrieval: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A policy of a run: `name` is base, checkpoint-N or final; `step` the updates it has seen, None if unknown."""

    name: str
    step: int | None
    policy: Policy


def read_run(directory: str | Path) -> Run:
    """The run that a folder belongs to, from the config.yaml that training wrote into it.

    Raises:
        InputError: no such file, or it lacks what evaluation needs.
    """
    path = Path(directory) / "config.yaml"
    if not path.is_file():
        raise InputError(f"{directory} is no run: {path} is missing (training writes it when it starts)")
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{path} is no YAML: {error}") from error
    needed = ("model_name_or_path", "prompt_style", "max_completion_length")
    if not isinstance(config, dict) or not config.keys() >= set(needed):
        raise InputError(f"{path} is no run's config: it must have {', '.join(needed)}")
    return Run(
        directory=Path(directory),
        base=config["model_name_or_path"],
        eval_cases=config.get("eval_cases"),
        eval_split=config.get("eval_split"),
        dtype=config.get("dtype"),
        prompt_style=config["prompt_style"],
        max_completion_length=config["max_completion_length"],
        judge={f.name: config[f.name] for f in fields(JudgeConfig) if config.get(f.name) is not None},
        eval_judge=eval_judge_settings(config),
        gates={f.name: config[f.name] for f in fields(GateConfig) if f.name in config},
        retrieval={f.name: config[f.name] for f in fields(RetrievalConfig) if f.name in config},
        chat_template_kwargs=config.get("chat_template_kwargs") or {},
        lora_rank=config.get("lora_r", 0) if config.get("use_peft") else 0,
    )


def find_checkpoints(run: Run) -> tuple[list[Checkpoint], list[str]]:
    """The run's base and its whole checkpoints by step, and the names of those that are not whole.

    A checkpoint is whole when all of its weights are, and its trainer state, which is written after them. A run that
    kept no checkpoint has its final model instead.
    """
    checkpoints = [Checkpoint(BASE, 0, Policy(run.base))]
    partial = []
    steps = {path: re.fullmatch(r"checkpoint-(\d+)", path.name) for path in run.directory.iterdir() if path.is_dir()}
    for path, match in sorted(steps.items(), key=lambda item: int(item[1][1]) if item[1] else 0):
        if match is None:
            continue
        if has_whole_weights(path) and (path / "trainer_state.json").is_file():
            checkpoints.append(Checkpoint(path.name, int(match[1]), _policy(run, path)))
        else:
            partial.append(path.name)
    if len(checkpoints) == 1 and not partial and has_whole_weights(run.directory):
        checkpoints.append(Checkpoint(FINAL, None, _policy(run, run.directory)))
    return checkpoints, partial


def is_over(run: Run) -> bool:
    """Whether training has come to its end: its final model is there, and is newer than what it wrote at its start.

    An older one is of an earlier training that has been gone on with.
    """
    if not has_whole_weights(run.directory):
        return False
    newest = max(path.stat().st_mtime for path in run.directory.glob("*.safetensors"))
    return newest >= (run.directory / "config.yaml").stat().st_mtime


def has_whole_weights(directory: Path) -> bool:
    """Whether a folder holds a model or an adapter of which no weight is missing or cut off."""
    return damage_of_weights(directory) is None


def _policy(run: Run, directory: Path) -> Policy:
    if (directory / ADAPTER_CONFIG).is_file():
        return Policy(run.base, directory)
    return Policy(str(directory))
