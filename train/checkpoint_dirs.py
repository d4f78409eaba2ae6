"""Checkpoints on disk: which of them are whole, and how one becomes so at a stroke."""

import json
import os
import re
import shutil
from pathlib import Path

from data.weights import damage_of, damage_of_weights

STATE_NAME = "trainer_state.json"
UNFINISHED_NAME = ".unfinished"  # where checkpoints are until every byte of them is written


def is_whole(directory: Path) -> bool:
    """Whether a folder is a checkpoint that was written to its end."""
    return (directory / STATE_NAME).is_file()


def damage_of_checkpoint(directory: Path, *, with_optimizer: bool = True) -> str | None:
    """What keeps training from going on from a folder: the first file that is missing or damaged; None if none is.

    Where weights and optimiser are in pieces (DeepSpeed, FSDP), only the pieces that are there are looked at.
    """
    if found := damage_of(directory / STATE_NAME):
        return found
    state = json.loads((directory / STATE_NAME).read_text(encoding="utf-8"))
    if not isinstance(state, dict) or type(state.get("global_step")) is not int:
        return f"{STATE_NAME} is damaged: it has no global_step"
    pieces = ("global_step*", "pytorch_model_fsdp*", "optimizer_*")
    if not any(path for pattern in pieces for path in directory.glob(pattern)):
        if found := damage_of_weights(directory):
            return found
        for name in ("optimizer.pt", "scheduler.pt") if with_optimizer else ():
            if not (directory / name).is_file():
                return damage_of(directory / name)
    return next(filter(None, map(damage_of, sorted(path for path in directory.rglob("*") if path.is_file()))), None)


def checkpoint_folders(output_dir: Path) -> list[Path]:
    """The checkpoints of a run by step, whole or not, the latest last; none where the folder does not exist."""
    steps = {
        int(match[1]): path
        for path in (output_dir.iterdir() if output_dir.is_dir() else ())
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name)) and path.is_dir()
    }
    return [steps[step] for step in sorted(steps)]


def find_checkpoints(output_dir: Path) -> list[Path]:
    """Those of them that were written to their end."""
    return [path for path in checkpoint_folders(output_dir) if is_whole(path)]


def checkpoint_to_resume(output_dir: Path, resume_from_checkpoint: str | None) -> Path | None:
    """Where to go on from: the folder that is named, or for "latest" the run's last one; None to begin anew."""
    if resume_from_checkpoint != "latest":
        return Path(resume_from_checkpoint) if resume_from_checkpoint else None
    return next(reversed(checkpoint_folders(output_dir)), None)


def why_not_resume(output_dir: Path, resume_from_checkpoint: str, *, with_optimizer: bool) -> str | None:
    """Why training cannot go on from there, and from where it can; None if it can, or if there is nothing yet."""
    path = checkpoint_to_resume(output_dir, resume_from_checkpoint)
    if path is None or not (damage := damage_of_checkpoint(path, with_optimizer=with_optimizer)):
        return None
    if path.is_dir() and checkpoint_folders(path):
        return f"{path} is a run's folder, not a checkpoint: name one of its checkpoints, or latest"
    folder = path.parent if path.is_dir() else output_dir
    others = (other for other in reversed(checkpoint_folders(folder)) if other != path)
    whole = next((o for o in others if not damage_of_checkpoint(o, with_optimizer=with_optimizer)), None)
    advice = f"to go on from the last whole one: --resume_from_checkpoint {whole}"
    if whole is None:
        advice = f"no other in {folder} is whole: restore the file, or choose another output_dir to begin anew"
    return f"{path} is no whole checkpoint: {damage}; {advice}"


def publish(written: Path, named: Path) -> None:
    """Give a finished folder its name, in place of one that had it; every byte is on the disk by then."""
    for path in (*written.rglob("*"), written):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    if named.exists():
        replaced = written.with_name(f"{named.name}.replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        named.rename(replaced)
    written.rename(named)
    shutil.rmtree(written.parent)
