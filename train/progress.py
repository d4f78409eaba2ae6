"""What a run shows while it trains, and the file that keeps all of it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import TrainerCallback

from data.jsonl import Appender

METRICS_NAME = "metrics.jsonl"
SHOWN = {
    "reward": "reward",
    "score/total": "score",
    "score/order": "order",
    "score/coverage": "coverage",
    "score/correctness": "correctness",
    "judge/unscored_frac": "unscored",
    "eval_score": "held-out: score",
    "eval_order": "order",
    "eval_coverage": "coverage",
    "eval_correctness": "correctness",
    "step_time": "s/step",
}


def metrics_line(logs: Mapping[str, Any]) -> str:
    """The few figures that tell how training goes, in one line.

    >>> metrics_line({"reward": 6.5, "score/total": 6.5, "score/order": None, "loss": 0.1})
    'reward 6.50  score 6.50'
    """
    shown = {label: logs[name] for name, label in SHOWN.items() if logs.get(name) is not None}
    return "  ".join(f"{label} {float(value):.2f}" for label, value in shown.items())


class RunProgress(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """A bar with rate and time left on stderr, a line at each log, and every metric in output_dir/metrics.jsonl.

    A resumed run goes on in the same file; of two lines with one step, the later counts.
    """

    def __init__(self, output_dir: Path) -> None:
        self._file = Appender(output_dir / METRICS_NAME)
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self._bar.start()
            self._task = self._bar.add_task("training", total=state.max_steps, completed=state.global_step)

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self._bar.update(self._task, completed=state.global_step)

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Mapping[str, Any], **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        finite = {name: value if _is_finite(value) else None for name, value in logs.items()}
        with self._file as file:
            file.append({"step": state.global_step, **finite})
        if line := metrics_line(logs):
            self._bar.console.print(f"step {state.global_step}  {line}", highlight=False, soft_wrap=True)

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self._bar.stop()


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)
