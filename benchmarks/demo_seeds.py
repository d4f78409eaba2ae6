"""Does the demo learn, whatever the seed? The whole of it per seed, and the gain of the last checkpoint over the base.

example: python -m benchmarks.demo_seeds --seeds 0 1 2
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

LAUNCH = ["accelerate.commands.launch", "--config_file", "configs/accelerate/single.yaml", "train/grpo.py"]


def main() -> None:
    """Run what is missing of each seed's demo, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("outputs/demo_seeds"), help="a folder per seed goes here")
    args = parser.parse_args()

    table = Table("seed", "sampling", "part", "base", "last", "gain", "95 % of the gain", "seconds")
    for seed in args.seeds:
        seconds = run_demo(seed, args.out / str(seed))
        figures = json.loads((args.out / str(seed) / "run/eval/summary.json").read_text(encoding="utf-8"))
        for row in gains(figures):
            table.add_row(str(seed), *row, f"{seconds:.0f}")
    Console().print(table)


def run_demo(seed: int, folder: Path) -> float:
    """Everything `make demo` does, in a folder of its own; the seconds that it took."""
    began = time.monotonic()
    cases = {"--cases": folder / "train.jsonl", "--eval_cases": folder / "test.jsonl"}
    places = cases | {"--model_name_or_path": folder / "base", "--output_dir": folder / "run"}
    python("data/mini.py", "--out", folder, "--seed", seed, "--train", 4000, "--test", 200)
    python("train/warm_start.py", "--out", folder / "base", "--seed", seed)
    options = [word for name, path in places.items() for word in (name, path)]
    python("-m", *LAUNCH, "configs/mini.yaml", *options, "--seed", seed)
    python("eval/checkpoints.py", folder / "run")
    return time.monotonic() - began


def gains(figures: dict[str, float]) -> list[tuple[str, ...]]:
    """A row for each way of sampling and part: base, last checkpoint, gain, its interval."""
    rows = []
    for sampling in ("greedy", "t1"):
        for part in ("score", "order", "coverage", "correctness"):
            key = f"{sampling}/diff/{part}"
            base = figures[f"{sampling}/base/mean/{part}"]
            gain, low, high = (figures[key + end] for end in ("", "/low", "/high"))
            rows.append((sampling, part, *(f"{x:.2f}" for x in (base, base + gain, gain)), f"{low:.2f} to {high:.2f}"))
    return rows


def python(*words: object) -> None:
    """Run this interpreter in the repository, and stop if the command fails."""
    subprocess.run([sys.executable, *map(str, words)], check=True)


if __name__ == "__main__":
    main()
