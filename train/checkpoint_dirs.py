"""Checkpoints on disk: which of them are whole, and how one becomes so at a stroke."""

import os
import re
import shutil
from pathlib import Path

STATE_NAME = "trainer_state.json"
UNFINISHED_NAME = ".unfinished"  # where checkpoints are until every byte of them is written


def is_whole(directory: Path) -> bool:
    """Whether a folder is a checkpoint that training can go on from."""
    return (directory / STATE_NAME).is_file()


def find_checkpoints(output_dir: Path) -> list[Path]:
    """The whole checkpoints of a run by step, the latest last; none where the folder does not exist."""
    steps = {
        int(match[1]): path
        for path in (output_dir.iterdir() if output_dir.is_dir() else ())
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name)) and is_whole(path)
    }
    return [steps[step] for step in sorted(steps)]


def checkpoint_to_resume(output_dir: Path, resume_from_checkpoint: str | None) -> Path | None:
    """Where to go on from: the folder that is named, or for "latest" the run's last one; None to begin anew."""
    if resume_from_checkpoint != "latest":
        return Path(resume_from_checkpoint) if resume_from_checkpoint else None
    return max(find_checkpoints(output_dir), key=lambda path: int(path.name.partition("-")[2]), default=None)


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
