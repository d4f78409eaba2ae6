"""A job of many GPUs planned before a queue is waited for: its roles, its memory, its batches, what its servers run."""

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from data.command import output_file
from data.environment import ON_CPU, QUIET
from data.jsonl import JsonlError, read_jsonl, write_json
from train.config import Settings, read_settings
from train.layout import ClusterConfig, Layout, Place, PlanError, lay_out
from train.measure import measure, table
from train.memory import fit
from train.plan import StepPlan, describe_generation, plan_step
from train.yaml_file import ConfigError

SERVER = ("python", "-m", "vllm.entrypoints.openai.api_server")
# A free string under another backend, or whitespace without end, is what broke one verdict in three.
JUDGE_SCHEMA = ("--structured-outputs-config", '{"backend": "guidance", "disable_any_whitespace": true}')


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What a job does with its nodes, and the figures that say why it fits."""

    cluster: ClusterConfig
    layout: Layout
    step: StepPlan
    figures: Mapping[str, float]


def plan_job(settings: Settings, nodes: int, gpus_per_node: int) -> JobPlan:
    """The plan for so many nodes; without GPUs, of one slot for each server and one trainer.

    Raises:
        PlanError: with every reason why it cannot work, each with what would.
    """
    cluster, values = settings.cluster, settings.values
    if settings["use_cpu"] and not gpus_per_node:
        gpus_per_node = cluster.judge_gpus + cluster.policy_gpus + 1
    layout = lay_out(cluster, nodes, gpus_per_node)
    problems = _contradictions(values, cluster, layout)
    figures, too_large = ({}, []) if settings["use_cpu"] else fit(values, cluster, layout.num_trainers)
    if problems or too_large:
        raise PlanError("\n".join(problems + too_large))
    return JobPlan(cluster, layout, plan_step(values, layout.num_trainers), figures)


def _contradictions(values: Mapping[str, Any], cluster: ClusterConfig, layout: Layout) -> list[str]:
    problems = []
    if cluster.policy_gpus and values["vllm_mode"] != "server":
        problems.append(
            f"policy_gpus: {cluster.policy_gpus} needs vllm_mode: server; colocated vLLM is in the trainers"
        )
    if cluster.policy_gpus % values["vllm_tensor_parallel_size"]:
        problems.append(f"policy_gpus must be a multiple of vllm_tensor_parallel_size, got {cluster.policy_gpus}")
    if cluster.judge_gpus and values["judge"] != "endpoint":
        problems.append(f"judge_gpus: {cluster.judge_gpus} needs judge: endpoint; the exact judge takes no GPU")
    if cluster.launch in ("zero2", "zero3") and values["bf16"] and values["use_peft"] and values["dtype"] == "float32":
        problems.append(
            f"launch: {cluster.launch} undoes dtype: float32, for DeepSpeed casts the base to bfloat16, in which "
            "merging adapters drifts: launch: ddp or fsdp2, or dtype: bfloat16 to accept it"
        )
    if cluster.launch == "single" and layout.num_trainers > 1:
        enough = cluster.judge_gpus + cluster.policy_gpus + 1
        problems.append(
            f"launch: single is one process, and {layout.num_trainers} GPUs are to train: one node with "
            f"--gpus-per-node {enough} has no more than it takes, or launch: ddp for all of them"
        )
    return problems


def judge_command(settings: Settings) -> list[str]:
    """What serves one copy of the judge; host and port are the job's to add."""
    return [
        *SERVER, "--model", settings["judge_model"], "--max-model-len", str(settings.cluster.judge_max_model_len),
        "--tensor-parallel-size", str(settings.cluster.judge_tensor_parallel_size),
        *JUDGE_SCHEMA,
    ]  # fmt: skip


def policy_command(settings: Settings) -> list[str]:
    """What serves the policy so that it can be trained: weights come by NCCL, or by file where there is no GPU.

    Without a GPU a completion's logprobs are those of its own tokens alone, to the last bit: nothing else is in its
    batch, and no part of its prompt comes from a cache. So a resumed run is the uninterrupted one.
    """
    size = settings["vllm_tensor_parallel_size"]
    length = settings["vllm_max_model_length"]
    alone = ("--max-num-seqs", "1", "--no-enable-prefix-caching") if settings["use_cpu"] else ()
    return [
        *SERVER, "--model", settings["model_name_or_path"], "--logprobs-mode", "processed_logprobs",
        "--max-logprobs", "-1", *(("--max-model-len", str(length)) if length else ()),
        "--tensor-parallel-size", str(size), "--data-parallel-size", str(settings.cluster.policy_gpus // size), *alone,
        "--weight-transfer-config", json.dumps({"backend": "file" if settings["use_cpu"] else "nccl"}),
    ]  # fmt: skip


def to_shell(plan: JobPlan, settings: Settings) -> str:
    """The plan as assignments that bash reads with eval: lists as arrays, one entry a server or a node.

    >>> _gpus(Place(node=1, gpus=(6, 7)))
    '6,7'
    """
    layout, of_judge, of_policy = plan.layout, judge_command(settings), policy_command(settings)
    arrays: dict[str, Sequence[Any]] = {
        "TRAINER_NODES": [place.node for place in layout.trainers],
        "JUDGE_NODES": [place.node for place in layout.judges],
        "JUDGE_GPUS": [_gpus(place) for place in layout.judges],
        "JUDGE_COMMAND": of_judge if layout.judges else [],
        "POLICY_NODES": [place.node for place in layout.policies],
        "POLICY_GPUS": [_gpus(place) for place in layout.policies],
        "POLICY_COMMAND": of_policy if layout.policies else [],
    }
    values = {
        "OUTPUT_DIR": settings["output_dir"],
        "TRAINER_GPUS": _gpus(layout.trainers[0]),
        "NUM_TRAINERS": layout.num_trainers,
        "LAUNCH": plan.cluster.launch,
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    lines += [f"{name}=({shlex.join(map(str, entries))})" for name, entries in arrays.items()]
    environment = QUIET | ON_CPU if settings["use_cpu"] else QUIET
    lines += [f"export {name}=${{{name}:-{shlex.quote(value)}}}" for name, value in environment.items()]
    return "\n".join(lines)


def _gpus(place: Place) -> str:
    return ",".join(map(str, place.gpus))


def describe_job(plan: JobPlan, settings: Settings) -> list[str]:
    """The plan in sentences."""
    layout, cluster, figures = plan.layout, plan.cluster, plan.figures
    where = [("judge", layout.judges), ("policy server", layout.policies), ("trainers", layout.trainers)]
    lines = [f"{role}: node {place.node}, GPUs {_gpus(place)}" for role, places in where for place in places]
    lines[-1] += f"; {layout.num_trainers} in all, launch: {cluster.launch}"
    if not layout.judges:
        lines.append(f"judge: not of this job: {settings['judge_base_url'] or 'exact, no server'}")
    lines.append(describe_generation(plan.step))
    if "trainer/learn_gib" in figures:
        told = [f"{name[8:-4]} {value:.1f}" for name, value in figures.items() if name.startswith("trainer/") and value]
        lines.append(f"a trainer's GPU of {cluster.gpu_memory_gib:.0f} GiB, estimated GiB: {', '.join(told)}")
    elif not settings["use_cpu"]:
        lines.append(f"memory: not estimated, no config.json of {settings['model_name_or_path']} is at hand")
    for role in ("policy", "judge"):
        if f"{role}/kv_tokens" in figures:
            lines.append(f"each engine of the {role}: room for {figures[f'{role}/kv_tokens']:,.0f} tokens of KV cache")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 with a plan, 2 where there is none."""
    parser = _parser()
    args, overrides = parser.parse_known_args(argv)
    if not (1 <= args.nodes <= 512 and 0 <= (args.gpus_per_node or 0) <= 16):
        parser.error(f"--nodes is 1 to 512, --gpus-per-node 0 to 16, got {args.nodes} and {args.gpus_per_node}")
    if args.measure and (args.config or args.shell or args.json):
        parser.error("--measure prints a table of RUN_DIR and its config.yaml: no YAML, --shell or --json beside it")
    if not (args.measure or args.config):
        parser.error("name the run's YAML, such as configs/qwen7b.yaml")
    config = str(args.measure / "config.yaml") if args.measure else args.config
    try:
        settings = read_settings(
            [config, *overrides, "--dry_run", "true"],
            lambda values: _num_trainers(values, args.nodes, _gpus_per_node(values, args.gpus_per_node)),
        )
        plan = plan_job(settings, args.nodes, _gpus_per_node(settings.values, args.gpus_per_node))
        if args.measure:
            rows = [row for _, row in read_jsonl(args.measure / "metrics.jsonl")]
            print(table(measure(plan.step, plan.figures, rows)))
            return 0
    except FileNotFoundError as error:
        print(f"{error.filename} is missing: nothing was measured yet", file=sys.stderr)
        return 2
    except (ConfigError, PlanError, JsonlError) as error:
        print(error, file=sys.stderr)
        return 2
    print(to_shell(plan, settings) if args.shell else "\n".join(describe_job(plan, settings)))
    if args.json:
        write_json(args.json, dict(plan.figures) | {"trainers": plan.layout.num_trainers})
    return 0


def _gpus_per_node(values: Mapping[str, Any], told: int | None) -> int:
    if told is not None:
        return told
    return 0 if values["use_cpu"] else 8


def _num_trainers(values: Mapping[str, Any], nodes: int, gpus_per_node: int) -> int:
    try:
        cluster = ClusterConfig(**{field.name: values[field.name] for field in fields(ClusterConfig)})
    except ValueError:
        return 1  # told by whoever reads the configuration
    return 1 if values["use_cpu"] and not gpus_per_node else lay_out(cluster, nodes, gpus_per_node).num_trainers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m train.plan",
        description="Divide a job's GPUs between judge, policy server and trainers as a run's YAML says, estimate what "
        "each holds, and refuse what cannot work with what would. Keys of the YAML can be overridden behind it.",
        epilog="example: python -m train.plan configs/qwen7b.yaml --nodes 2 --gpus-per-node 8 --learning_rate 5e-6",
        allow_abbrev=False,
    )
    parser.add_argument("config", nargs="?", help="the run's YAML")
    parser.add_argument("--measure", type=Path, metavar="RUN_DIR", help="hold the plan of that run against its metrics")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of the job (default: 1)")
    parser.add_argument("--gpus-per-node", type=int, help="GPUs of each (default: 8, or 0, none, with use_cpu)")
    parser.add_argument(
        "--shell", action="store_true", help="print the plan as assignments for bash (slurm/grpo.slurm)"
    )
    parser.add_argument("--json", type=output_file(), help="write the figures here too")
    return parser
