"""The front door of training: one flat YAML and `--key value` after it, checked to the last key before torch loads."""

import argparse
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from data.contexts import RetrievalConfig
from rewards.gates import GateConfig
from rewards.judge_card import verdict_settings
from rewards.judge_config import EVAL_PREFIX, JudgeConfig, eval_judge_settings
from rewards.schemes import SCHEMES, RewardConfig
from train.alert_rules import AlertConfig
from train.checks import changed_from, find_conflicts
from train.curriculum import CurriculumConfig
from train.evaluation import EvaluationConfig
from train.keys import known_options, nested_problems
from train.layout import ClusterConfig
from train.options import UNKNOWN, Option, suggest
from train.parity import ParityConfig
from train.rollout import RolloutConfig
from train.unread import idled
from train.yaml_file import ConfigError, flat_yaml, read_flat_yaml, read_value


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which cases are trained and evaluated on, and how they are put to the policy."""

    cases: str = field(default="", metadata={"help": "Cases to train on: a file, a folder or a hub id."})
    split: str | None = field(default=None, metadata={"help": "Split of a hub id or of a folder of splits."})
    eval_cases: str | None = field(
        default=None, metadata={"help": "Held-out cases: for eval_strategy, and for eval/checkpoints.py afterwards."}
    )
    eval_split: str | None = field(default=None, metadata={"help": "The split of eval_cases."})
    on_invalid: Literal["error", "skip"] = field(
        default="error", metadata={"help": "What an invalid record does: stop the run, or be left out and listed."}
    )
    prompt_style: Literal["court", "bare"] = field(
        default="court", metadata={"help": "court: instructions and question; bare: the question alone (mini world)."}
    )
    retriever_dropout: float = field(
        default=0.0, metadata={"help": "Share of the training cases that get no law, so that the policy needs none."}
    )

    def __post_init__(self) -> None:
        if not 0 <= self.retriever_dropout <= 1:
            raise ValueError(f"retriever_dropout must lie in [0, 1], got {self.retriever_dropout}")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What this call is for."""

    dry_run: bool = field(
        default=False, metadata={"help": "Check everything that can be checked without training, and print the plan."}
    )


OWN = (
    RunConfig, DataConfig, RetrievalConfig, RewardConfig, GateConfig, JudgeConfig, RolloutConfig, EvaluationConfig,
    ParityConfig, CurriculumConfig, AlertConfig, ClusterConfig,
)  # fmt: skip

# One answer a case, whatever the batch; the best checkpoint is that of the best score there, if there is one at all.
_EVALUATING = {"num_generations_eval": 1, "metric_for_best_model": "eval_score"}


@dataclass(frozen=True, slots=True)
class Settings:
    """A checked configuration: `given` as the user wrote it, `values` with the defaults of every other key.

    `training` and `model` are the parts that TRL reads, still as plain values; `trl_configs` makes its objects.
    """

    given: Mapping[str, Any]
    values: Mapping[str, Any]
    dry_run: bool
    data: DataConfig
    retrieval: RetrievalConfig
    reward: RewardConfig
    gates: GateConfig
    judge: JudgeConfig
    eval_judge: JudgeConfig
    evaluation: EvaluationConfig
    rollout: RolloutConfig
    parity: ParityConfig
    curriculum: CurriculumConfig
    alerts: AlertConfig
    cluster: ClusterConfig
    training: Mapping[str, Any]
    model: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of any key."""
        return self.values[name]

    def to_yaml(self) -> str:
        """A flat YAML that gives this same configuration: what was given, and below it the defaults."""
        of_this_call = ("dry_run", "resume_from_checkpoint")
        given = {name: value for name, value in self.given.items() if name not in of_this_call}
        rest = {
            name: value
            for name, value in sorted(self.values.items())
            if name not in self.given and name not in of_this_call and value is not None
        }
        return flat_yaml(given) + "\n# Defaults\n" + flat_yaml(rest)

    def trl_configs(self) -> tuple[Any, Any]:
        """TRL's GRPOConfig and ModelConfig; loads torch.

        Raises:
            ConfigError: what TRL and transformers themselves object to.
        """
        from trl import GRPOConfig, ModelConfig

        model_kwargs = {
            "revision": self["model_revision"],
            "dtype": self["dtype"],
            "attn_implementation": self["attn_implementation"],
            **(self["model_init_kwargs"] or {}),
        }
        try:
            training = GRPOConfig(**{**_EVALUATING, **self.training, "model_init_kwargs": model_kwargs})
            return training, ModelConfig(**self.model)
        except (ValueError, TypeError, ImportError) as error:
            raise ConfigError([str(error)]) from error


def num_launched(_: Mapping[str, Any]) -> int:
    """Processes of this run, as accelerate launch has it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def read_settings(
    arguments: Sequence[str], num_processes: Callable[[Mapping[str, Any]], int] = num_launched
) -> Settings:
    """The checked configuration that the command line asks for.

    Args:
        num_processes: how many of them will train, told from the value of every key.

    Raises:
        ConfigError: every problem that was found, each with its line or option.
        SystemExit: after --help.
    """
    path, overrides = _split(arguments)
    options = known_options(OWN)
    raw, lines = read_flat_yaml(path)
    where = {name: f"{path}, line {line}" for name, line in lines.items()}
    problems: list[str] = []
    for name, text in overrides.items():
        raw[name], where[name] = text, f"--{name}"
        if name in options and (text in (None, "null") or options[name].types - {"null"} != {"str"}):
            try:
                raw[name] = read_value("true" if text is None else text)
            except ValueError as error:
                problems.append(f"--{name}: {error}")

    given: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in options:
            problems.append(f"{where[name]}: unknown key {name}{suggest(name, options)}")
            continue
        try:
            given[name] = _accepted(options[name], value)
        except ValueError as error:
            problems.append(f"{where[name]}: {name} {error}")
    problems += [f"{where[name]}: {problem}" for name in given for problem in nested_problems(name, given[name])]
    if problems:
        raise ConfigError(problems)
    idle = idled(_all(given, options), changed_from(_all(given, options), options), overrides.keys())
    return _settings({name: given[name] for name in given if name not in idle}, options, where, num_processes)


def _all(given: Mapping[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    defaults = {name: None if option.default is UNKNOWN else option.default for name, option in options.items()}
    return {**defaults, **given}


def _settings(
    given: Mapping[str, Any],
    options: Mapping[str, Option],
    where: Mapping[str, str],
    num_processes: Callable[[Mapping[str, Any]], int],
) -> Settings:
    values = _all(given, options)
    problems = find_conflicts(values, options, num_processes(values))
    scheme = SCHEMES[values["reward"]]
    if given.get("multi_objective_aggregation", scheme.aggregation) != scheme.aggregation:
        problems.append(f"multi_objective_aggregation is {scheme.aggregation} with reward: {values['reward']}; drop it")
    of_scheme = {
        "reward_weights": values["reward_weights"] or list(scheme.weights),
        "multi_objective_aggregation": scheme.aggregation,
    }
    own: dict[type, Any] = {}
    for config in OWN:
        try:
            own[config] = config(**{f.name: given[f.name] for f in dataclasses.fields(config) if f.name in given})
        except ValueError as error:
            problems.append(str(error))
    if own.get(JudgeConfig):
        try:
            eval_judge = JudgeConfig(**eval_judge_settings(given))
        except ValueError as error:
            problems.append(f"{EVAL_PREFIX}{error}")
    if not problems:
        has_two_judges = verdict_settings(own[JudgeConfig]) != verdict_settings(eval_judge)
        evaluates = values["eval_strategy"] != "no"
        problems += own[AlertConfig].idle(evaluates=evaluates, has_two_judges=has_two_judges)
    if problems:
        raise ConfigError([_located(problem, where) for problem in problems])
    of_eval_judge = {name for name in options if name.startswith(EVAL_PREFIX + "judge")}
    of_model = {name for name, option in options.items() if option.owner == "ModelConfig"}
    ours = {f.name for config in OWN for f in dataclasses.fields(config)}
    return Settings(
        given=given,
        values=values | of_scheme,
        dry_run=own[RunConfig].dry_run,
        data=own[DataConfig],
        retrieval=own[RetrievalConfig],
        reward=own[RewardConfig],
        gates=own[GateConfig],
        judge=own[JudgeConfig],
        eval_judge=eval_judge,
        evaluation=own[EvaluationConfig],
        rollout=own[RolloutConfig],
        parity=own[ParityConfig],
        curriculum=own[CurriculumConfig],
        alerts=own[AlertConfig],
        cluster=own[ClusterConfig],
        training={name: value for name, value in given.items() if name not in of_model | of_eval_judge | ours}
        | of_scheme,
        model={name: value for name, value in given.items() if name in of_model},
    )


def _split(arguments: Sequence[str]) -> tuple[Path, dict[str, str | None]]:
    """The YAML's path, and option -> text for what follows it; None for an option without a value, which means true."""
    parser = argparse.ArgumentParser(
        prog="train/grpo.py",
        description="Train a policy with GRPO on the LEGIT reward, as one YAML file tells; every key in it can be "
        "overridden behind it. Keys are those listed here and those of TRL's GRPOConfig and ModelConfig; they are all "
        "checked before anything heavy loads.",
        epilog="example: accelerate launch train/grpo.py configs/qwen7b.yaml --learning_rate 5e-7 --dry_run true",
        allow_abbrev=False,
    )
    parser.add_argument("config", help="the YAML file, such as configs/qwen7b.yaml")
    for config in OWN:
        group = parser.add_argument_group(config.__name__, config.__doc__)
        for f in dataclasses.fields(config):
            default = "" if f.default is None or f.default == "" else f" Default: {f.default}."
            group.add_argument(f"--{f.name}", metavar="VALUE", help=f.metadata["help"].replace("%", "%%") + default)
    parser.add_argument_group(
        f"{EVAL_PREFIX}judge...",
        f"Every key of JudgeConfig with {EVAL_PREFIX} before it: the judge of evaluations, while training and in "
        "eval/checkpoints.py. What is not given is as the training judge has it.",
    )
    if {"-h", "--help"} & set(arguments) or not arguments or arguments[0].startswith("-"):
        parser.parse_args(["--help"] if {"-h", "--help"} & set(arguments) else arguments)
        parser.error("the YAML file comes first, then --key value")
    overrides: dict[str, str | None] = {}
    name = ""
    for argument in arguments[1:]:
        if argument.startswith("--"):
            name, has_value, value = argument[2:].partition("=")
            name = name.replace("-", "_")
            overrides[name] = value if has_value else None
        elif name and overrides[name] is None:
            overrides[name] = argument
        else:
            raise ConfigError([f"{argument!r} belongs to no key: write --key value, lists and mappings in quotes"])
    return Path(arguments[0]), overrides


def _accepted(option: Option, value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{") and "dict" in option.types:
        value = read_value(value)
    value = option.accept(value)
    if option.name == "resume_from_checkpoint" and isinstance(value, bool):
        return "latest" if value else None
    return value


def _located(problem: str, where: Mapping[str, str]) -> str:
    name = problem.partition(" ")[0].rstrip(":")
    return f"{where[name]}: {problem}" if name in where else problem
