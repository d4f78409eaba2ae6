"""Where the time of a step goes, and how fast it was: generation, judge, weight sync, learning, saving."""

import math
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback
from transformers.trainer_pt_utils import get_model_param_count

if TYPE_CHECKING:
    from train.trainer import Trainer

# Dense bfloat16 FLOP/s by what the driver calls the card, from the makers' data sheets.
PEAK_FLOPS = {"H100 PCIe": 756e12, "H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}


def peak_flops(device_name: str) -> float:
    """What such a card can do in a second; NaN for one that is not listed.

    >>> peak_flops("NVIDIA H100 80GB HBM3") / 1e12, peak_flops("Some card")
    (989.0, nan)
    """
    return next((flops for name, flops in PEAK_FLOPS.items() if name in device_name), math.nan)


def figures(seconds: dict[str, float], total_s: float, written: float, learnt: float, flops: float) -> dict[str, float]:
    """Seconds by phase, which add up to the step's, and tokens a second; always the same names.

    `written` and `learnt` are tokens of all ranks; `flops` those of learning over what all cards could do in a second.

    >>> found = figures({"generate": 2.0, "judge": 1.0}, 8.0, written=100, learnt=300, flops=1.0)
    >>> found["time/learn_s"], found["throughput/written_tokens_per_s"], found["throughput/mfu"]
    (5.0, 50.0, 0.2)
    """
    spent = {phase: seconds.get(phase, 0.0) for phase in ("generate", "judge", "sync", "evaluate", "save")}
    learn_s = total_s - sum(spent.values())
    return {
        **{f"time/{phase}_s": value for phase, value in spent.items()},
        "time/learn_s": learn_s,
        "throughput/written_tokens_per_s": written / spent["generate"] if spent["generate"] else math.nan,
        "throughput/learnt_tokens_per_s": learnt / learn_s,
        "throughput/mfu": flops / learn_s,
    }


class Throughput(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Adds `figures` of each step, and the fullest that the GPU was, to what TRL logs of it.

    Times are one process's, the main one's, and what is saved or evaluated after a step counts to the next. `judge` is
    the wait that is left when all is written: what was judged meanwhile cost nothing.
    """

    def __init__(self, trainer: "Trainer") -> None:
        self._trainer = trainer
        self._seconds: dict[str, float] = {}
        self._under_way: str | None = None
        generation = trainer.vllm_generation if trainer.use_vllm else None
        for target, name, phase in (
            (generation, "generate", "generate"),
            (generation, "sync_weights", "sync"),
            (trainer, "_calculate_rewards", "judge"),
            (trainer, "evaluate", "evaluate"),
            (trainer, "_save_checkpoint", "save"),
        ):
            if target is not None:
                setattr(target, name, self._timed(phase, getattr(target, name)))
        weights = get_model_param_count(trainer.model)
        trained = get_model_param_count(trainer.model, trainable_only=True)
        self._flops_a_token = 4 * weights + 2 * trained  # forward and back, and the gradients of what is trained
        device = trainer.accelerator.device
        self._is_cuda = device.type == "cuda"
        self._peak = peak_flops(torch.cuda.get_device_name(device)) if self._is_cuda else math.nan

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._begin()

    def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        trainer = self._trainer
        metrics = trainer._metrics["train"]
        learnt = state.num_input_tokens_seen - self._tokens
        lengths = metrics.get("completions/mean_length") or [0.0]
        rows = args.per_device_train_batch_size * args.steps_per_generation * trainer.accelerator.num_processes
        flops = self._flops_a_token * learnt / (self._peak * trainer.accelerator.num_processes)
        found = figures(self._seconds, time.perf_counter() - self._began, lengths[-1] * rows, learnt, flops)
        found["memory/peak_gib"] = torch.cuda.max_memory_reserved() / 2**30 if self._is_cuda else math.nan
        for name, value in found.items():
            metrics[name].append(value)
        self._begin()

    def _begin(self) -> None:
        self._began, self._seconds = time.perf_counter(), {}
        self._tokens = self._trainer.state.num_input_tokens_seen
        if self._is_cuda:
            torch.cuda.reset_peak_memory_stats()

    def _timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._under_way:  # part of another phase, as a sync within an evaluation
                return function(*args, **kwargs)
            self._under_way, began = phase, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._under_way = None
                self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - began

        return timed
