"""Base, +RAG, +RL, +RAG+RL on the same cases: what each brings alone and on top of the other, and both together."""

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from data.bootstrap import bootstrap_means, interval
from data.command import InputError, run_command
from eval.comparison import check_comparable
from eval.flags import add_set_options, write_also
from eval.graded import GradedSet, read_inputs
from eval.metrics import PARTS, case_means
from eval.summary import scores_by_case, summarize_grades
from eval.tables import Change, Sheet, print_sheets
from eval.tallies import Estimate, estimate, flat

CELLS = ("base", "rag", "rl", "rag_rl")
EFFECTS: Mapping[str, tuple[int, int, int, int]] = {  # signs of the four sets, in the order of CELLS
    "RAG, before RL": (-1, 1, 0, 0),
    "RAG, after RL": (0, 0, -1, 1),
    "RL, without RAG": (-1, 0, 1, 0),
    "RL, with RAG": (0, -1, 0, 1),
    "both": (-1, 0, 0, 1),
    "more than the sum": (1, -1, -1, 1),
}


def effects(sets: Sequence[GradedSet]) -> tuple[dict[str, dict[str, Estimate]], int]:
    """Effect -> part -> its mean with interval, paired by case, and the number of cases scored in all four sets."""
    means = [case_means(scores_by_case(graded.grades)) for graded in sets]
    shared = [id for id in means[0].case_ids if all(id in one.case_ids for one in means[1:])]
    if not shared:
        raise InputError("no case is scored in all four sets")
    rows = [dict(zip(one.case_ids, one.values, strict=True)) for one in means]
    values = np.array([[of_set[id] for id in shared] for of_set in rows])
    return {name: _estimates(np.tensordot(signs, values, 1)) for name, signs in EFFECTS.items()}, len(shared)


def _estimates(differences: NDArray[np.float64]) -> dict[str, Estimate]:
    low, high = interval(bootstrap_means(differences))
    centre = differences.mean(axis=0)
    return {part: Estimate(*map(float, (centre[i], low[i], high[i]))) for i, part in enumerate(PARTS)}


def four_way(args: argparse.Namespace) -> None:
    """Print the two tables, and write what the options ask for."""
    if len(args.sets) != 4:
        raise InputError(f"four sets are needed: base, +RAG, +RL, +RAG+RL, in this order; got {len(args.sets)}")
    inputs = read_inputs(args.sets, args.cases, args.split, args.sampling, last_only=True)
    check_comparable(inputs.sets)
    told, num_cases = effects(inputs.sets)
    means = [summarize_grades(graded.grades, inputs.cases) for graded in inputs.sets]
    figures: dict[str, float | None] = {}
    for cell, of_set in zip(CELLS, means, strict=True):
        figures |= {f"{cell}/{name}": value for name, value in of_set.items()}
    for name, parts in told.items():
        key = name.replace(", ", "_").replace(" ", "_").lower()
        for part, one in parts.items():
            figures |= flat(f"{key}/{part}", one)
    sheets = [
        Sheet("four-way", f"Four ways, {num_cases} cases", ("", *PARTS), tuple(
            (graded.name, *(estimate(of_set, f"mean/{part}") for part in PARTS))
            for graded, of_set in zip(inputs.sets, means, strict=True)), Sheet.INTERVALS),
        Sheet("effects", "What each brings", ("", *PARTS), tuple(
            (name, *map(Change, parts.values())) for name, parts in told.items()),
            f"{Sheet.INTERVALS} Paired by case. More than the sum: above 0 they help each other, below they overlap."),
    ]  # fmt: skip
    print_sheets(sheets)
    write_also(args, figures, sheets)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Four graded sets on the same cases, in this order: the base, with law retrieved, after "
        "reinforcement learning, with both. Tells their means, what retrieval and training bring each without and with "
        "the other, and whether together they bring more than the sum, all paired by case, with intervals.",
        epilog="example: python eval/four_way.py base=outputs/base +RAG=outputs/rag +RL=outputs/rl "
        "+RAG+RL=outputs/rag_rl --cases outputs/dataset/test.jsonl",
    )
    add_set_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when told, 2 for wrong input."""
    return run_command(_parser(), four_way, argv)


if __name__ == "__main__":
    sys.exit(main())
