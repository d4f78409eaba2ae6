"""Real training runs of a tiny policy on the mini world, as a user starts them, for the tests that need them."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from data.jsonl import read_jsonl
from data.mini import generate
from tests.tiny_policy import write_policy

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Workshop:
    """A folder with a policy and cases, in which runs are made."""

    folder: Path

    @classmethod
    def build(cls, folder: Path) -> "Workshop":
        """16 cases to train on, so that an epoch has 4 generations of smoke.yaml, and 4 to evaluate on."""
        write_policy(folder / "base")
        for name, split, num_cases in (("train", "train", 16), ("eval", "test", 4)):
            records = generate(0, split, num_cases)
            lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
            (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        return cls(folder)

    def command(self, name: str, *overrides: str) -> list[str]:
        """The command line of the run `name`: smoke.yaml on this folder's policy and cases."""
        run = {"cases": "train.jsonl", "model_name_or_path": "base", "output_dir": name}
        paths = [text for key, file in run.items() for text in (f"--{key}", str(self.folder / file))]
        return [str(ROOT / "train/grpo.py"), str(ROOT / "configs/smoke.yaml"), *paths, *overrides]

    def start(
        self, name: str, *overrides: str, launcher: tuple[str, ...] = (), **environ: str
    ) -> subprocess.Popen[str]:
        """The run under way."""
        offline = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
        return subprocess.Popen(
            [sys.executable, *launcher, *self.command(name, *overrides)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, **offline, **environ},
        )

    def run(self, name: str, *overrides: str, launcher: tuple[str, ...] = ()) -> "Finished":
        """The run at its end."""
        with self.start(name, *overrides, launcher=launcher) as process:
            out, err = process.communicate(timeout=300)
        return Finished(self.folder / name, process.returncode, out, err)


@dataclass(frozen=True)
class Finished:
    """What a run has left."""

    directory: Path
    returncode: int
    out: str
    err: str

    def metrics(self) -> dict[int, dict[str, float]]:
        """Step -> what was logged at it, the last time."""
        return {row["step"]: row for row in self._rows("metrics.jsonl") if "loss" in row}

    def parity(self) -> list[tuple[int, float]]:
        """(step, greatest gap) of each proof of parity."""
        return [(row["step"], row["max"]) for row in self._rows("parity.jsonl")]

    def _rows(self, name: str) -> list[dict[str, float]]:
        return [row for _, row in read_jsonl(self.directory / name)]
