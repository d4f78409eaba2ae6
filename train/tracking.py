"""One tracked run for one output_dir, however often training is interrupted and resumed."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.jsonl import write_text
from train.environment import has_wandb_key

if TYPE_CHECKING:
    from trl import GRPOConfig

RUN_ID_NAME = "wandb_run_id"


def run_id(output_dir: Path) -> str:
    """The id of the run that this folder belongs to: kept in it, made up at the first call."""
    path = output_dir / RUN_ID_NAME
    if not path.is_file():
        write_text(path, secrets.token_hex(4) + "\n")
    return path.read_text(encoding="utf-8").strip()


def start_tracking(training: "GRPOConfig", project: str | None, config: Mapping[str, Any]) -> None:
    """Make what `report_to` names log into this folder's run, a new one or the one to go on with.

    W&B without a key writes to disk, and `wandb sync` sends it later; WANDB_MODE and WANDB_PROJECT count as they
    always do. trackio knows a run by its name.
    """
    output_dir = Path(training.output_dir)
    project = project or os.environ.get("WANDB_PROJECT") or "legit-rl"
    if "trackio" in training.report_to:
        training.project = project
        training.run_name = training.run_name or f"{output_dir.name}-{run_id(output_dir)}"
    if "wandb" in training.report_to:
        import wandb

        mode = os.environ.get("WANDB_MODE") or ("online" if has_wandb_key() else "offline")
        wandb.init(
            project=project,
            name=training.run_name or output_dir.name,
            id=run_id(output_dir),
            resume="allow",
            mode=mode,  # type: ignore[arg-type]
            dir=output_dir,
            config=dict(config),
        )
        wandb.log = _until_lost(wandb.log)


def finish_tracking(status: int) -> None:
    """Close the W&B run, if this process has one, before it ends with that status."""
    if wandb := sys.modules.get("wandb"):
        _until_lost(wandb.finish)(exit_code=status)


def _until_lost(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call; when W&B's own process is gone, a message and nothing more.

    Slurm sends SIGTERM to every process of a step, and that one dies of it while we have a checkpoint to write.
    """
    from wandb.errors import Error

    @wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except (OSError, Error) as error:
            print(f"W&B is lost ({error}); what it misses is in metrics.jsonl", file=sys.stderr)
            return None

    return called
