"""Settings that nothing would read, each with the one that would make something read it."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields
from typing import Any

from data.contexts import RetrievalConfig, heeded
from rewards.judge_config import EVAL_PREFIX, JudgeConfig, eval_judge_settings

# Of the judge's keys, what the exact one of the mini world is for as well.
_OF_EVERY_JUDGE = {"judge", "judge_preflight", "judge_deadline_s", "judge_quorum"}
_JUDGE_SWITCHES = tuple(prefix + name for prefix in ("", EVAL_PREFIX) for name in ("judge", "judge_votes"))


@dataclass(frozen=True, slots=True)
class Unread:
    """A key that is set for nothing, the keys that decide on it, and what to say of it."""

    name: str
    switches: tuple[str, ...]
    problem: str


def idled(values: Mapping[str, Any], changed: Set[str], overridden: Set[str]) -> set[str]:
    """Keys of a YAML that the command line has made idle by another switch, as `--retriever none` does: to be dropped.

    `overridden` are the keys on the command line; none of them is among the result.
    """
    names = {one.name for one in find_unread(values, changed) if overridden & set(one.switches)}
    if "retriever" in overridden:
        read = heeded({field.name: None for field in fields(RetrievalConfig)}, values["retriever"])
        names |= {field.name for field in fields(RetrievalConfig)} - read.keys()
    if "reward" in overridden and values["reward"] != "decoupled":
        names.add("reward_weights")
    return (names & changed) - overridden


def find_unread(values: Mapping[str, Any], changed: Set[str]) -> Iterator[Unread]:
    """Keys that are `changed` from their defaults for nothing; `values` has every key."""
    is_server = values["use_vllm"] and values["vllm_mode"] == "server"
    conditions: tuple[tuple[bool, tuple[str, ...], str, str, tuple[str, ...]], ...] = (
        (
            values["use_peft"],
            ("use_peft",),
            "use_peft is not",
            "set use_peft: true to train an adapter",
            ("use_rslora", "use_dora", "load_in_8bit", "load_in_4bit", *filter(_is_of_lora, values)),
        ),
        (
            values["load_in_4bit"],
            ("load_in_4bit",),
            "load_in_4bit is not",
            "set load_in_4bit: true",
            ("bnb_4bit_quant_type", "bnb_4bit_quant_storage", "use_bnb_nested_quant"),
        ),
        (
            values["reward"] == "coverage_floor",
            ("reward",),
            f"reward is {values['reward']}, which has no floor",
            "set reward: coverage_floor",
            ("coverage_floor", "coverage_floor_rate", "coverage_floor_max_weight"),
        ),
        (
            values["curriculum"] != "off",
            ("curriculum",),
            "curriculum is off",
            "set curriculum: skip or easy_first",
            ("curriculum_solved", "curriculum_failed", "curriculum_rest", "curriculum_grades"),
        ),
        (
            values["eval_strategy"] == "steps",
            ("eval_strategy",),
            f"eval_strategy is {values['eval_strategy']}",
            "set eval_strategy: steps",
            ("eval_steps",),
        ),
        (
            values["eval_strategy"] != "no",
            ("eval_strategy",),
            "eval_strategy is no",
            "set eval_strategy: steps",
            ("eval_num_cases", "eval_sampling", "eval_on_start", "metric_for_best_model", "load_best_model_at_end"),
        ),
        (bool(values["eval_cases"]), ("eval_cases",), "eval_cases is not", "set eval_cases", ("eval_split",)),
        (
            values["retriever"] != "none",
            ("retriever",),
            "retriever is none",
            "set retriever: bm25, dense, hybrid or gold",
            ("retriever_dropout",),
        ),
        (values["use_vllm"], ("use_vllm",), "use_vllm is not", "set use_vllm: true", ("parity_tolerance",)),
        (
            is_server,
            ("use_vllm", "vllm_mode"),
            "no vLLM server is asked",
            "set use_vllm: true and vllm_mode: server",
            ("vllm_server_base_url", "vllm_server_host", "vllm_server_port", "vllm_server_timeout", "vllm_group_port"),
        ),
    )
    for is_read, switches, why, remedy, names in conditions:
        for name in sorted(changed & set(names)) if not is_read else ():
            yield Unread(name, switches, f"{name} is set and {why}: {remedy}, or drop {name}")
    yield from _of_judges(values, changed)


def _is_of_lora(name: str) -> bool:
    return name.startswith("lora_")


def _of_judges(values: Mapping[str, Any], changed: Set[str]) -> Iterator[Unread]:
    """A key of the training judge counts for that of evaluations too, which eval/checkpoints.py may ask at any time."""
    own, other = _unread_by(values, ""), _unread_by(eval_judge_settings(values), EVAL_PREFIX)
    for name in (field.name for field in fields(JudgeConfig)):
        twin = EVAL_PREFIX + name
        if name in changed & own.keys() and (name in other or values[twin] is not None):
            yield Unread(name, _JUDGE_SWITCHES, f"{name} is set and {own[name]}, or drop {name}")
        if name in other and values[twin] is not None:
            yield Unread(twin, _JUDGE_SWITCHES, f"{twin} is set and {other[name]}, or drop {twin}")


def _unread_by(judge: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The keys that a judge of these settings does not read, each with why and what would make it."""
    if judge["judge"] == "mini":
        why = f"{prefix}judge is mini, which is exact and asked over no network: set {prefix}judge: endpoint"
        return {field.name: why for field in fields(JudgeConfig) if field.name not in _OF_EVERY_JUDGE}
    if judge["judge_votes"] > 1:
        return {"judge_repeat_frac": f"{prefix}judge_votes has every call repeated: set {prefix}judge_votes: 1"}
    return {}
