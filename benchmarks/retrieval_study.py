"""Does law at hand add to what reinforcement learning brings? Base, +RAG, +RL, +RAG+RL on held-out mini cases.

An issue of each case hangs on a number that only an ordinance of the case's town has (data/mini_statutes.py). The base
has been taught to read law that stands before a question; training and test have other towns, each seed other numbers.
A killed study goes on with the same command.

example: OMP_NUM_THREADS=1 python -m benchmarks.retrieval_study --seeds 0 1 2
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.demo_seeds import python
from benchmarks.mini_runs import PARTS, ROOT, World, estimate, run_once
from data.command import positive
from data.jsonl import write_json

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "without law": {"retriever": "none", "retriever_index": None},
    "with law": {"retriever": "bm25", "retriever_k": 1, "retriever_max_tokens": 300},
}
CELLS = {"base": ("without law", 0), "+RAG": ("with law", 0), "+RL": ("without law", -1), "+RAG+RL": ("with law", -1)}
EFFECTS = {  # each a sum of cells
    "RAG, before RL": {"+RAG": 1, "base": -1},
    "RAG, after RL": {"+RAG+RL": 1, "+RL": -1},
    "RL, without law": {"+RL": 1, "base": -1},
    "RL, with law": {"+RAG+RL": 1, "+RAG": -1},
    "more than the sum": {"+RAG+RL": 1, "+RL": -1, "+RAG": -1, "base": 1},
}
NUM_CLEAN_STEPS = 5400  # after the demo's 1350 a model does not read the law yet
WEIGHTS = np.array([5.0, 2.0, 3.0])  # of order, coverage and correctness in the score


@dataclass(frozen=True, kw_only=True)
class LawWorld(World):
    """A world under a law book of its own seed, with the book's index."""

    seed: int

    def build(self) -> None:
        """Make what is missing; six minutes where there is nothing."""
        law = self.folder / "law"
        if not (law / "bm25").is_dir():
            cases = ("--train", 4000, "--test", 200, "--statutes", self.seed)
            python(ROOT / "data/mini.py", "--out", self.folder, "--seed", self.seed, *cases)
            python(ROOT / "data/retrieve.py", "index", "--laws", self.folder / "laws.jsonl", "--out", law)
        teach = ("--statutes", "--num-clean-steps", NUM_CLEAN_STEPS)
        python(ROOT / "train/warm_start.py", "--out", self.folder / "base", "--seed", self.seed, *teach)

    @property
    def overrides(self) -> dict[str, Any]:
        """What a run in this world has instead of the demo's."""
        return {**super().overrides, "retriever_index": self.folder / "law", "vllm_max_model_length": 512}


def main() -> None:
    """Run what is missing, then print the table and write results.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=positive, default=60, help="of each training")
    parser.add_argument("--out", type=Path, default=Path("outputs/retrieval_study"))
    args = parser.parse_args()
    lines = []
    for seed in args.seeds:
        world = LawWorld(folder=args.out / f"world-{seed}", seed=seed)
        world.build()
        lines.append({name: run(args.out, name, world, args.steps) for name in SETTINGS})
    values = cells(lines)
    told = {name: estimates(values[name]) for name in CELLS}
    told |= {
        name: estimates(sum((sign * values[cell] for cell, sign in signs.items()), np.zeros(())))
        for name, signs in EFFECTS.items()
    }
    write_json(
        args.out / "results.json", {name: {part: str(one) for part, one in row.items()} for name, row in told.items()}
    )
    table = Table(
        "", "score", *PARTS, title=f"{len(args.seeds)} seeds x 200 cases, T=1, {args.steps} steps, mean [95%]"
    )
    for name, row in told.items():
        table.add_row(name, *map(str, row.values()), end_section=name == "+RAG+RL")
    Console(width=120).print(table)


def run(out: Path, name: str, world: LawWorld, num_steps: int) -> dict[str, Any]:
    """A training with or without law, evaluated as it begins and as it ends."""
    key = {"setting": name.replace(" ", "-"), "steps": num_steps, "seed": world.seed}
    length = {"seed": world.seed, "max_steps": num_steps, "eval_steps": num_steps}
    return run_once(out / "runs.jsonl", key, world, {**SETTINGS[name], **length})


def cells(lines: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, np.ndarray]:
    """Cell of the table -> seeds x cases x (score, order, coverage, correctness)."""
    found = {}
    for cell, (setting, place) in CELLS.items():
        scores = [sorted(line[setting]["evaluations"][place]["scores"].items()) for line in lines]
        parts = np.array([[score for _, score in of_seed] for of_seed in scores], dtype=float)
        found[cell] = np.concatenate([(parts @ WEIGHTS)[..., None], parts], axis=2)
    return found


def estimates(values: np.ndarray) -> dict[str, Any]:
    """Score and parts with intervals over seeds and cases."""
    return {part: estimate(values[..., place]) for place, part in enumerate(("score", *PARTS))}


if __name__ == "__main__":
    main()
