"""Proof that the policy which writes is the policy which learns: logprobs of vLLM against the trainer's.

A weight sync that is lost, half done or aimed at the wrong tensors shows nowhere else: the run goes on, and learns
from what some other policy has written.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.jsonl import Appender

if TYPE_CHECKING:
    from trl import GRPOTrainer

FILE_NAME = "parity.jsonl"


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    """How far vLLM and the trainer may disagree before the run stops."""

    parity_tolerance: float | None = field(
        default=None,
        metadata={
            "help": "Legal gap between the logprobs of vLLM and of the trainer; null takes that of the precision: "
            "float32 1e-4 for the greatest gap, float16 0.02 and bfloat16 0.05 for the mean; .inf never stops."
        },
    )

    def __post_init__(self) -> None:
        if self.parity_tolerance is not None and not self.parity_tolerance > 0:
            raise ValueError(f"parity_tolerance must be above 0 or null, got {self.parity_tolerance}")


class ParityError(Exception):
    """vLLM and the trainer hold different weights, or compute differently with them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What is tolerated: in float32 of the worst token; in half precision, where any one token may be off, of all."""

    statistic: str
    tolerance: float


LIMITS = {"float32": Limit("max", 1e-4), "float16": Limit("mean", 0.02), "bfloat16": Limit("mean", 0.05)}


@dataclass(frozen=True, slots=True)
class Gap:
    """How far two lists of logprobs lie apart."""

    max: float
    mean: float

    def exceeds(self, limit: Limit) -> bool:
        """Whether it is more than tolerated; a gap that is no number is."""
        value = self.max if limit.statistic == "max" else self.mean
        return not value <= limit.tolerance


def gap_between(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Gap:
    """The gap over all tokens of all sequences.

    >>> gap_between([[-1.0, -2.0]], [[-1.5, -2.0]])
    Gap(max=0.5, mean=0.25)
    """
    differences = [abs(a - b) for xs, ys in zip(ours, theirs, strict=True) for a, b in zip(xs, ys, strict=True)]
    if any(map(math.isnan, differences)):
        return Gap(math.nan, math.nan)
    return Gap(max(differences), sum(differences) / len(differences))


def parity_gap(trainer: "GRPOTrainer", sequences: Sequence[Sequence[int]]) -> Gap | None:
    """Sync the weights as training does, score the same token sequences on both sides, and compare.

    Every rank must call it, for gathering sharded weights takes them all. In server mode only the main process sees
    vLLM's side; the others get None.
    """
    generation = trainer.vllm_generation
    generation.sync_weights()
    trained = _trainer_logprobs(trainer, sequences)
    if generation.mode == "server":
        if not trainer.accelerator.is_main_process:
            return None
        reply = generation.vllm_client.get_sequence_logprobs(
            [list(ids) for ids in sequences], prompt_lengths=[1] * len(sequences), top_logprobs=1
        )
        return gap_between(trained, [[token[0] for token in tokens] for tokens in reply["actual_logprobs"]])
    return gap_between(trained, _engine_logprobs(generation, sequences))


def _engine_logprobs(generation: Any, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
    """What the vLLM engine in this process gives each token after the first."""
    from vllm import SamplingParams

    if generation.enable_sleep_mode:
        generation.llm.wake_up(tags=["kv_cache"])
    outputs = generation.llm.generate(
        [{"prompt_token_ids": list(ids)} for ids in sequences],
        SamplingParams(max_tokens=1, prompt_logprobs=0),
        use_tqdm=False,
    )
    if generation.enable_sleep_mode:
        generation.llm.sleep(level=2)
        generation._llm_weights_sleeping = True
    return [
        [position[id].logprob for id, position in zip(ids[1:], output.prompt_logprobs[1:], strict=True)]
        for ids, output in zip(sequences, outputs, strict=True)
    ]


def _trainer_logprobs(trainer: "GRPOTrainer", sequences: Sequence[Sequence[int]]) -> list[list[float]]:
    """What the model under training gives each token after the first, without dropout."""
    import torch

    was_training = trainer.model.training
    trainer.model.eval()
    logprobs = []
    with torch.no_grad(), trainer.accelerator.autocast():
        for ids in sequences:
            tokens = torch.tensor([list(ids)], device=trainer.accelerator.device)
            logits = trainer.model(input_ids=tokens).logits[0, :-1].float()
            own = logits.log_softmax(dim=-1).gather(-1, tokens[0, 1:, None])
            logprobs.append(own[:, 0].tolist())
    trainer.model.train(was_training)
    return logprobs


def run_dtype(trainer: "GRPOTrainer") -> str:
    """The coarsest precision that either side computes in: float32, float16 or bfloat16."""
    import torch

    generation = trainer.vllm_generation
    mixed = {"bf16": [torch.bfloat16], "fp16": [torch.float16]}
    dtypes = [trainer.model.dtype, *mixed.get(trainer.accelerator.mixed_precision, [])]
    if generation.mode == "colocate":
        dtypes.append(generation.llm.llm_engine.model_config.dtype)
    elif trainer.accelerator.is_main_process:
        served = generation.vllm_client.get_server_info()["model_config"]["dtype"]
        dtypes.append(getattr(torch, served.removeprefix("torch.")))
    return str(max(dtypes, key=lambda dtype: torch.finfo(dtype).eps)).removeprefix("torch.")


def check_parity(
    trainer: "GRPOTrainer", sequences: Sequence[Sequence[int]], config: ParityConfig, moment: str
) -> Gap | None:
    """The gap on these sequences, which is also written to output_dir/parity.jsonl; None where another rank has it.

    Raises:
        ParityError: it is more than tolerated.
    """
    gap, dtype = parity_gap(trainer, sequences), run_dtype(trainer)
    if gap is None:
        return None
    limit = limit_of(dtype, config)
    if trainer.accelerator.is_main_process:
        step = trainer.state.global_step
        with Appender(Path(trainer.args.output_dir) / FILE_NAME) as file:
            file.append({"step": step, "moment": moment, "dtype": dtype, "max": gap.max, "mean": gap.mean})
        print(
            f"parity at step {step}: vLLM and the trainer differ by {gap.max:.1e} at most, {gap.mean:.1e} in the mean, "
            f"over {sum(map(len, sequences))} tokens ({dtype}; the {limit.statistic} may be {limit.tolerance:g})"
        )
    if gap.exceeds(limit):
        raise ParityError(broken(gap.max if limit.statistic == "max" else gap.mean, limit, dtype, moment))
    return gap


def limit_of(dtype: str, config: ParityConfig) -> Limit:
    """What is tolerated in this precision, unless the configuration says otherwise."""
    limit = LIMITS[dtype]
    return limit if config.parity_tolerance is None else Limit(limit.statistic, config.parity_tolerance)


def broken(value: float, limit: Limit, dtype: str, moment: str) -> str:
    """What to tell when the gap is too large."""
    return (
        f"vLLM and the trainer disagree {moment}: the {limit.statistic} gap of their logprobs is {value:.2g}, and "
        f"{limit.tolerance:g} is the limit ({dtype}). What vLLM writes is not what the trainer would learn from. Usual "
        "causes: the weight sync is lost (try vllm_enable_sleep_mode: false), the server holds another model or "
        "precision, adapters are merged in half precision (dtype: float32). parity_tolerance sets the limit."
    )
