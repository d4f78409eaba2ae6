"""Training runs on the mini world for studies: the real recipe, one process each, evaluated as they train, run once."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.demo_seeds import python
from data.jsonl import Appender, read_jsonl
from eval.estimates import Estimate
from train.evaluation import EVALUATIONS_NAME

METRICS_NAME = "metrics.jsonl"
ROOT = Path(__file__).parents[1]
PARTS = ("order", "coverage", "correctness")
RECIPE: Mapping[str, Any] = {
    "per_device_train_batch_size": 64,  # 8 prompts x 8 completions, one update each
    "max_steps": 60,
    "eval_strategy": "steps",
    "eval_on_start": True,
    "eval_steps": 15,
    "eval_num_cases": 200,
    "eval_sampling": "t1",
    "save_strategy": "no",
}
KEPT = ("score/", "signal/", "coverage_floor/", "completions/", "mini/", "gate/", "entropy", "kl", "reward")


@dataclass(frozen=True, kw_only=True)
class World:
    """Cases and the base policy that was taught them, in a folder of their own."""

    folder: Path
    undecidable_frac: float = 0.25
    order_first: bool = False

    def build(self) -> None:
        """Make what is missing; a minute and a half where there is nothing."""
        how = ["--undecidable-frac", self.undecidable_frac, *(["--order-first"] if self.order_first else [])]
        if not (self.folder / "test.jsonl").is_file():
            python(ROOT / "data/mini.py", "--out", self.folder, "--train", 4000, "--test", 200, *how)
        python(ROOT / "train/warm_start.py", "--out", self.folder / "base", *how)

    @property
    def overrides(self) -> dict[str, Any]:
        """What a run in this world has instead of the demo's."""
        return {
            "cases": self.folder / "train.jsonl",
            "eval_cases": self.folder / "test.jsonl",
            "model_name_or_path": self.folder / "base",
        }


def run_once(
    results: Path,
    key: Mapping[str, Any],
    world: World,
    overrides: Mapping[str, Any],
    program: Sequence[str] = ("train/grpo.py",),
) -> dict[str, Any]:
    """The line of `results` for this key: as it is there, or else trained now and added when all of it is done.

    A line is the key with `evaluations`, the held-out evaluations by step, and `training`, what was logged at each
    step. A run that is killed leaves no line and is begun again. Its folder is beside the file: its name is the key's
    values. Other keys of configs/mini.yaml are as in `RECIPE`, or as `overrides` say, `seed` among them. `program` is
    what trains, in words for this interpreter.
    """
    if results.exists():
        for _, line in read_jsonl(results):
            if all(line.get(name) == value for name, value in key.items()):
                return line
    directory = results.parent / "-".join(str(value) for value in key.values())
    shutil.rmtree(directory, ignore_errors=True)  # of a run that was killed
    train(directory, {**RECIPE, **world.overrides, **overrides}, program)
    line = {**key, "evaluations": evaluations(directory), "training": training(directory)}
    with Appender(results) as file:
        file.append(line)
    return line


def train(directory: Path, overrides: Mapping[str, Any], program: Sequence[str]) -> None:
    """One run of the program; what it says goes into its folder.

    Raises:
        RuntimeError: it failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    words = [word for name, value in overrides.items() for word in (f"--{name}", _word(value))]
    command = [sys.executable, *program, "configs/mini.yaml", *words, "--output_dir", str(directory.absolute())]
    with (directory / "log.txt").open("w", encoding="utf-8") as log:
        if subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
            raise RuntimeError(f"the run failed: {directory / 'log.txt'}")


def evaluations(directory: Path) -> list[dict[str, Any]]:
    """By step: `step`, `scores` (case id -> order, coverage, correctness) and the mean of each as a key of its own."""
    found = []
    for _, row in read_jsonl(directory / EVALUATIONS_NAME):
        scores = {id: [score[part] for part in PARTS] for id, score in row["scores"].items()}
        means = {part: row[f"eval_{part}"] for part in ("score", *PARTS)}
        found.append({"step": int(row["eval_step"]), **means, "scores": scores})
    return found


def training(directory: Path) -> list[dict[str, Any]]:
    """What was logged at each step of what a study asks about."""
    rows = [row for _, row in read_jsonl(directory / METRICS_NAME) if "loss" in row]
    return [{name: value for name, value in row.items() if name == "step" or name.startswith(KEPT)} for row in rows]


def estimate(values: NDArray[np.float64]) -> Estimate:
    """The mean of seeds x cases with a 95 % interval for other seeds and other cases.

    The variances of the seeds' means and of the cases' means add up, which counts the rest twice and so errs on the
    safe side; Student's t with the seeds' degrees of freedom. With one seed there is no interval.
    """
    num_seeds, num_cases = values.shape
    if num_seeds == 1:
        return Estimate(float(values.mean()), undefined="one seed")
    from scipy.stats import t

    variance = values.mean(axis=1).var(ddof=1) / num_seeds + values.mean(axis=0).var(ddof=1) / num_cases
    half = float(t.ppf(0.975, num_seeds - 1) * np.sqrt(variance))
    return Estimate(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half)


def _word(value: Any) -> str:
    return str(value) if isinstance(value, str | Path) else json.dumps(value)
