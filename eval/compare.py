"""Two or more graded sets on the same cases, or two runs in Weights & Biases: what differs, and by how much."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from data.command import InputError, check_distinct, run_command
from eval.comparison import Comparison, check_comparable, compare_sets, part_sheet, sets_sheet
from eval.flags import add_set_options, write_also
from eval.graded import GradedSet, read_inputs
from eval.summary import summarize_grades
from eval.tables import Sheet, print_sheets
from eval.wandb_history import PREFIX, compare_histories, history_sheet, read_history


def case_link(report: str, case_id: str, set_name: str) -> str:
    """The place in a report that shows a case as a set answered it."""
    return f"{report}#case={quote(case_id, safe='')}&set={quote(set_name, safe='')}"


def compare_graded(args: argparse.Namespace) -> tuple[list[Sheet], dict[str, Any]]:
    """The tables and the figures of graded sets, every one against the first."""
    inputs = read_inputs(args.sets, args.cases, args.split, args.sampling, last_only=len(args.sets) > 1)
    if len(inputs.sets) < 2:
        raise InputError(f"{args.sets[0]} holds one graded set only; name another to compare it with")
    check_comparable(inputs.sets, args.common)
    sets = list(inputs.sets)
    if args.common:
        shared = set.intersection(*(graded.case_ids for graded in sets))
        sets = [graded.limited_to(shared) for graded in sets]
        if not shared:
            raise InputError("no case is answered in all of the sets")
    means = [summarize_grades(graded.grades, inputs.cases) for graded in sets]
    comparisons = [compare_sets(sets[0], graded) for graded in sets[1:]]
    for graded, comparison in zip(sets[1:], comparisons, strict=True):
        if not comparison.changes:
            raise InputError(f"no case is scored in both {sets[0].name} and {graded.name}: verdicts are missing in all")

    figures: dict[str, Any] = {}
    for graded, mean in zip(sets, means, strict=True):
        figures |= {f"{graded.name}/{name}": value for name, value in mean.items()}
    if len(sets) > 2:
        for graded, comparison in zip(sets[1:], comparisons, strict=True):
            figures |= {f"{graded.name}/{name}": value for name, value in comparison.figures.items()}
        return [sets_sheet(sets, comparisons, means)], figures
    (comparison,) = comparisons
    figures |= comparison.figures
    for name, flip in (("to_right", 1), ("to_wrong", -1)):
        figures[f"flipped/{name}"] = [change.case_id for change in comparison.changes if change.flip == flip]
    sheets = [part_sheet(sets[0], sets[1], comparison, means), _flips(comparison, sets[1], args.report)]
    return [sheet for sheet in sheets if sheet.rows], figures


def _flips(comparison: Comparison, second: GradedSet, report: str | None) -> Sheet:
    flipped = sorted((change for change in comparison.changes if change.flip), key=lambda change: change.change)
    return Sheet(
        "flips",
        f"Cases whose order flipped: {sum(change.flip > 0 for change in flipped)} to right, "
        f"{sum(change.flip < 0 for change in flipped)} to wrong",
        ("case" if report is None else "case, in the report", "order became", "score before", "after"),
        tuple(
            (
                change.case_id if report is None else case_link(report, change.case_id, second.name),
                "right" if change.flip > 0 else "wrong",
                round(change.scores[0], 2),
                round(change.scores[1], 2),
            )
            for change in flipped
        ),
    )


def compare_runs(specs: Sequence[str]) -> tuple[list[Sheet], dict[str, Any]]:
    """The tables and the figures of runs in W&B, from what they logged."""
    if len(specs) != 2:
        raise InputError(f"{PREFIX}RUN compares two runs at a time, got {len(specs)}")
    check_distinct(specs)
    histories = [read_history(spec) for spec in specs]
    figures = compare_histories(*histories)
    return [history_sheet(*histories)], figures


def compare(args: argparse.Namespace) -> None:
    """Print the tables, and write what the options ask for."""
    are_runs = [spec.startswith(PREFIX) for spec in args.sets]
    if any(are_runs) and not all(are_runs):
        raise InputError("graded sets and W&B runs cannot be compared with each other: a run's history has no cases")
    if all(are_runs):
        sheets, figures = compare_runs([spec.removeprefix(PREFIX) for spec in args.sets])
    else:
        sheets, figures = compare_graded(args)
    print_sheets(sheets)
    write_also(args, figures, sheets[:1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Compare graded sets case by case: means with intervals, paired differences, a sign test, and the "
        "cases whose order flipped. With more than two sets, each is compared with the first. A run alone stands for "
        "all of its checkpoints, beside others for its last one. Sets of different cases, judges or "
        "ways of sampling are refused.",
        epilog="example: python eval/compare.py base=outputs/base +RAG=outputs/rag +RL=outputs/rl --cases cases.jsonl",
    )
    also = f"; or {PREFIX}RUN: a run in Weights & Biases, as entity/project/run_id or a folder of offline-run-* folders"
    add_set_options(parser, also)
    parser.add_argument("--common", action="store_true", help="compare on the cases that all sets answer")
    parser.add_argument("--report", help="the page of eval/report.py to link flipped cases into")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when compared, 2 for wrong input."""
    return run_command(_parser(), compare, argv)


if __name__ == "__main__":
    sys.exit(main())
