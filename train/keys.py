"""Every legal key of a configuration, and what a mapping below one of them may hold."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewards.judge_config import EVAL_PREFIX, JudgeConfig
from train.options import Option, keywords_of, options_of, package_file, suggest
from train.yaml_file import ConfigError

_TRL = (
    ("transformers", "training_args.py", "TrainingArguments"),
    ("trl", "trainer/base_config.py", "_BaseConfig"),
    ("trl", "trainer/grpo_config.py", "GRPOConfig"),
    ("trl", "trainer/model_config.py", "ModelConfig"),
)
# What TRL looks at only when training is under way, or never: its annotations say no more than "text".
_CHOICES = {
    "vllm_mode": ("colocate", "server"),
    "vllm_model_impl": ("vllm", "transformers"),
    "loss_type": ("grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("group", "batch", "none"),
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
}


def known_options(own: Sequence[type]) -> dict[str, Option]:
    """What every key may hold: those of TRL's GRPOConfig and ModelConfig, and of our `own` dataclasses.

    Raises:
        ConfigError: TRL is not installed.
    """
    options: dict[str, Option] = {}
    vocabulary = package_file("transformers", "trainer_utils.py")
    for package, relative, class_name in _TRL:
        path = package_file(package, relative)
        if path is None:
            raise ConfigError(
                [f"{package} is not installed: make setup-cpu or make setup-gpu installs all of training"]
            )
        options |= options_of(path, class_name, vocabulary)
    for name, choices in _CHOICES.items():
        options[name] = dataclasses.replace(options[name], choices=choices)
    resume = options["resume_from_checkpoint"]
    options["resume_from_checkpoint"] = dataclasses.replace(resume, types=resume.types | {"bool"})
    for config in own:
        options |= options_of(Path(sys.modules[config.__module__].__file__ or ""), config.__name__)
    for option in [option for option in options.values() if option.owner == JudgeConfig.__name__]:
        name = EVAL_PREFIX + option.name
        options[name] = dataclasses.replace(option, name=name, types=option.types | {"null"}, default=None)
    return options


def nested_problems(name: str, value: Any) -> Iterator[str]:
    """Misspelled keys below the key `name`; a model takes whatever its own config has, so there only near misses.

    >>> list(nested_problems("model_init_kwargs", {"atn_implementation": "eager", "final_logit_softcapping": 30.0}))
    ['model_init_kwargs has no key atn_implementation: did you mean attn_implementation?']
    """
    if not isinstance(value, dict):
        return
    sources = {
        "generation_kwargs": ("vllm", "sampling_params.py", "SamplingParams"),
        "accelerator_config": ("transformers", "trainer_pt_utils.py", "AcceleratorConfig"),
    }
    known: tuple[str, ...] = ()
    if name in sources and (path := package_file(*sources[name][:2])):
        known = tuple(options_of(path, sources[name][2]))
    if name == "gradient_checkpointing_kwargs" and (path := package_file("torch", "utils/checkpoint.py")):
        known = keywords_of(path, "checkpoint")
    if name == "model_init_kwargs" and (path := package_file("transformers", "modeling_utils.py")):
        known = keywords_of(path, "from_pretrained")
    for key in value:
        if known and key not in known and (suggestion := suggest(key, known) or name != "model_init_kwargs"):
            hint = suggestion if isinstance(suggestion, str) else f"; it takes {', '.join(known)}"
            yield f"{name} has no key {key}{hint}"
