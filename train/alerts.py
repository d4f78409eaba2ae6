"""The rules of `alerts` at work in a run: they warn, or stop it, and write down why."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from data.jsonl import Appender, read_jsonl
from train.alert_rules import Alert, AlertConfig, AlertStop, Rules
from train.progress import METRICS_NAME
from train.stopping import Stopping

ALERTS_NAME = "alerts.jsonl"


class Alerts(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Tells what comes true on stderr, in output_dir/alerts.jsonl and to W&B; the main process decides, for all.

    A resumed run remembers what was logged up to its checkpoint.
    """

    def __init__(self, config: AlertConfig, output_dir: Path, stopping: Stopping) -> None:
        self._rules = Rules(config.rules())
        self._is_own = self._is_unchecked = bool(config.alerts)
        self._output_dir = output_dir
        self._stopping = stopping

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        path = self._output_dir / METRICS_NAME
        if state.is_world_process_zero and state.global_step and path.is_file():
            rows = [row for _, row in read_jsonl(path) if row["step"] <= state.global_step]
            later_counts = {(row["step"], "loss" in row): row for row in rows}
            for row in later_counts.values():
                self._rules.see(row["step"], row)

    def on_log(self, args: Any, state: Any, _control: Any, logs: Mapping[str, Any], **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        if self._is_unchecked and "loss" in logs:
            self._is_unchecked = False
            for problem in self._rules.unknown(logs):
                print(problem, file=sys.stderr)
        for alert in self._rules.see(state.global_step, logs):
            self._tell(alert, to_wandb="wandb" in args.report_to)
            if alert.rule.stops:
                self._stopping.ask(AlertStop(alert.why))

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        if state.is_world_process_zero and self._is_own and (unseen := self._rules.unseen()):
            print(f"alerts: nothing was logged of {', '.join(unseen)}", file=sys.stderr)

    def _tell(self, alert: Alert, *, to_wandb: bool) -> None:
        action = "stop" if alert.rule.stops else "warn"
        print(f"alert ({action}) at step {alert.step}: {alert.why}", file=sys.stderr)
        row = {"step": alert.step, "action": action, "metric": alert.rule.metric, "value": alert.value}
        with Appender(self._output_dir / ALERTS_NAME) as file:
            file.append({**row, "threshold": alert.threshold, "why": alert.why})
        if to_wandb:
            import wandb

            if wandb.run is not None:
                wandb.run.alert(title=f"{alert.rule.metric}: {action}", text=f"step {alert.step}: {alert.why}")
