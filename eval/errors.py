"""Decomposition and deduction errors, how they spread up the issue tree, and where wrong orders begin."""

import argparse
import sys
from collections.abc import Sequence

from data.command import output_file, run_command
from eval.flags import add_set_options, write_also
from eval.graded import read_inputs
from eval.heat_map import PICTURES, draw_heat_maps
from eval.outcomes import analyse_errors
from eval.sheets import error_figures, origin_sheet, outcome_sheet, parent_sheet
from eval.tables import print_sheets


def show_errors(args: argparse.Namespace) -> None:
    """Print the tables, and write what the options ask for."""
    inputs = read_inputs(args.sets, args.cases, args.split, args.sampling)
    analyses = {graded.name: analyse_errors(graded.grades, inputs.cases) for graded in inputs.sets}
    sheets = [outcome_sheet(list(analyses), list(analyses.values()))]
    last = inputs.sets[-1].name
    for sheet in (parent_sheet("last", analyses[last]), origin_sheet("last", analyses[last])):
        sheets.append(sheet.titled(f"{sheet.title}: {last}"))
    print_sheets(sheets)
    figures = {
        f"{set_name}/{name}": value
        for set_name, errors in analyses.items()
        for name, value in error_figures(errors).items()
    }
    write_also(args, figures, sheets)
    if args.picture:
        args.picture.parent.mkdir(parents=True, exist_ok=True)
        draw_heat_maps(analyses, args.picture)
        print(f"heat map: {args.picture}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Tell apart issues that were not covered (decomposition errors) and issues that were covered and "
        "wrongly decided (deduction errors), how often an issue is right given those below it, and where wrong orders "
        "begin. The tables about the tree are of the last set; --json has them for all.",
        epilog="example: python eval/errors.py outputs/demo/run --picture outputs/demo/heat_map.png",
    )
    add_set_options(parser)
    parser.add_argument(
        "--picture", type=output_file(*PICTURES), help=f"draw the heat map here: a {' or '.join(PICTURES)} file"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when shown, 2 for wrong input."""
    return run_command(_parser(), show_errors, argv)


if __name__ == "__main__":
    sys.exit(main())
