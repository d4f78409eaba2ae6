"""Decomposition and deduction errors, how they spread up the issue tree, and where wrong orders begin."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from data.jsonl import write_json, write_text
from eval.graded import INPUT_HELP, read_inputs
from eval.heat_map import draw_heat_maps
from eval.outcomes import analyse_errors
from eval.results import INPUT_ERRORS
from eval.sheets import error_figures, origin_sheet, outcome_sheet, parent_sheet
from eval.summary import print_tables
from eval.tables import to_latex, to_rich


def show_errors(args: argparse.Namespace) -> None:
    """Print the tables, and write what the options ask for."""
    inputs = read_inputs(args.sets, args.cases, args.split, args.sampling)
    analyses = {graded.name: analyse_errors(graded.grades, inputs.cases) for graded in inputs.sets}
    sheets = [outcome_sheet(list(analyses), list(analyses.values()))]
    last = inputs.sets[-1].name
    for sheet in (parent_sheet("last", analyses[last]), origin_sheet("last", analyses[last])):
        sheets.append(sheet.titled(f"{sheet.title}: {last}"))
    print_tables(map(to_rich, sheets))
    if args.json:
        figures = {
            f"{set_name}/{name}": value
            for set_name, errors in analyses.items()
            for name, value in error_figures(errors).items()
        }
        write_json(args.json, figures)
    if args.latex:
        write_text(args.latex, to_latex(sheets))
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
    parser.add_argument("sets", nargs="+", metavar="SET", help=INPUT_HELP)
    parser.add_argument("--cases", help="case file or hub id (default: the run's eval_cases)")
    parser.add_argument("--split", help="the split of a hub data set")
    parser.add_argument("--sampling", help="which of a run's ways of sampling (default: greedy)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--latex", type=Path, help="write the tables here, for a paper")
    parser.add_argument("--picture", type=Path, help="draw the heat map here: a .png, .svg or .pdf file")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when shown, 2 for wrong input."""
    args = _parser().parse_args(argv)
    try:
        show_errors(args)
    except INPUT_ERRORS as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
