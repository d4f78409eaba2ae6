"""One static HTML page of graded sets: figures, errors, and every case with its issue tree, to send to a colleague."""

import argparse
import base64
import gzip
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from data.command import output_file, output_folder, run_command
from data.jsonl import write_text
from eval.comparison import check_comparable, part_sheet
from eval.curves import draw_curves
from eval.flags import add_set_options, write_also
from eval.graded import Inputs, read_inputs
from eval.heat_map import TICKS, draw_heat_maps
from eval.metrics import PARTS
from eval.outcomes import NUM_BINS
from eval.phases import MEANING, METRICS_NAME, PHASES, draw_phases, joined, read_spans, shares
from eval.report_data import Analysis, analyse, most_changed, page_data
from eval.sheets import (
    error_figures,
    headline_sheet,
    origin_sheet,
    outcome_sheet,
    parent_sheet,
    slice_figures,
    slice_sheets,
)
from eval.tables import Change, Sheet, text
from eval.tallies import Estimate

PAGE = Path(__file__).with_name("report")
SCRIPTS = ("report.js", "charts.js", "cases.js", "start.js")
MAX_MEGABYTES = 15


def report(args: argparse.Namespace) -> None:
    """Write the page, and beside it what the options ask for."""
    inputs = read_inputs(args.sets, args.cases, args.split, args.sampling)
    check_comparable(inputs.sets, on_common_cases=True)
    run = _run_of(inputs)
    analysis = analyse(inputs, read_spans(run / METRICS_NAME) if run else ())
    folder, name = _home(inputs)
    out = args.out or folder / "report.html"
    write_text(out, render_page(analysis, args.title or name))
    megabytes = out.stat().st_size / 1e6
    print(f"report: {out} ({len(inputs.cases)} cases, {len(inputs.sets)} sets, {megabytes:.1f} MB)")
    if megabytes > MAX_MEGABYTES:
        print(f"over {MAX_MEGABYTES} MB it opens slowly; fewer sets or cases make it smaller", file=sys.stderr)
    write_also(args, flat_figures(analysis), paper_sheets(analysis))
    if args.pictures:
        draw_pictures(analysis, args.pictures)


def render_page(analysis: Analysis, title: str) -> str:
    """The whole page as one text that needs nothing else; whatever a model or a judge wrote stands in packed data."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["text"] = text
    environment.tests["estimate"] = lambda cell: isinstance(cell, Estimate)
    environment.tests["change"] = lambda cell: isinstance(cell, Change)
    sets = analysis.sets
    last = analysis.comparisons[-1] if analysis.comparisons else None
    data = json.dumps(page_data(analysis), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return environment.get_template("template.html").render(
        title=title,
        inputs=analysis.inputs,
        sets=sets,
        parts=PARTS,
        means=analysis.means,
        changes={part: last.change(part) for part in PARTS} if last else {},
        num_pairs=last.figures["num_pairs"] if last else 0,
        headline=headline_sheet(sets, analysis.means, analysis.comparisons),
        outcomes=outcome_sheet([graded.name for graded in sets], analysis.errors),
        slices=[slice_sheets(slices, f"set{place}") for place, slices in enumerate(analysis.slices)],
        errors=[
            (parent_sheet(f"set{place}", errors), origin_sheet(f"set{place}", errors), errors.heat_map)
            for place, errors in enumerate(analysis.errors)
        ],
        bins=range(NUM_BINS),
        ticks=TICKS,
        axis=column_axis,
        changed=most_changed(last) if last else ((), ()),
        all_time=joined(analysis.spans) if analysis.spans else None,
        time_shares=shares(analysis.spans) if analysis.spans else {},
        phases=PHASES,
        meaning=MEANING,
        css=Markup((PAGE / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        script=Markup("\n".join((PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS)),  # noqa: S704
        data=packed(data),
        vega=_vega(),
    )


@cache
def _vega() -> str:
    """The library that draws the charts, packed; in a function, so that its one-letter names stay its own."""
    from vl_convert import javascript_bundle

    return packed("(() => {" + javascript_bundle("window.vegaEmbed = vegaEmbed;") + "})();")


def packed(content: str) -> str:
    """Gzip in base64: smaller, and no `</script>` in it, whatever the content says."""
    raw = content.encode("utf-8", "replace")  # half a surrogate pair, as cut-off emojis leave it, becomes "?"
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode("ascii")


def column_axis(sheet: Sheet, column: int) -> tuple[float, float]:
    """The range that a column's intervals span, to draw them in; with 0 in it if they are differences."""
    cells = [row[column] for row in sheet.rows]
    values = [cell for cell in cells if isinstance(cell, Estimate)]
    changes = [cell.estimate for cell in cells if isinstance(cell, Change)]
    ends = [end for value in (*values, *changes) for end in (value.low, value.high)] + [0.0] * bool(changes)
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def paper_sheets(analysis: Analysis) -> list[Sheet]:
    """The tables for a paper: all sets, the last against the first, and of the last its slices and errors."""
    sets, last = analysis.sets, analysis.sets[-1].name
    sheets = [headline_sheet(sets, analysis.means, analysis.comparisons)]
    if analysis.comparisons:
        sheets.append(part_sheet(sets[0], sets[-1], analysis.comparisons[-1], (analysis.means[0], analysis.means[-1])))
    sheets.append(outcome_sheet([graded.name for graded in sets], analysis.errors))
    of_last = slice_sheets(analysis.slices[-1], "last")
    of_last += [parent_sheet("last", analysis.errors[-1]), origin_sheet("last", analysis.errors[-1])]
    return sheets + [sheet.titled(f"{sheet.title}: {last}") for sheet in of_last]


def flat_figures(analysis: Analysis) -> dict[str, Any]:
    """All figures of the page with the set's name before each key."""
    figures: dict[str, Any] = {}
    for place, graded in enumerate(analysis.sets):
        found: dict[str, float | None] = {**analysis.means[place]}
        found |= slice_figures(analysis.slices[place]) | error_figures(analysis.errors[place])
        if place:
            found |= analysis.comparisons[place - 1].figures
        figures |= {f"{graded.name}/{name}": value for name, value in found.items()}
    return figures


def draw_pictures(analysis: Analysis, directory: Path) -> None:
    """The curves, the heat maps and the bars of time as PNG and SVG files."""
    directory.mkdir(parents=True, exist_ok=True)
    sets = analysis.sets
    points = [
        (graded.step, means) for graded, means in zip(sets, analysis.means, strict=True) if graded.step is not None
    ]
    errors_by_name = {graded.name: errors for graded, errors in zip(sets, analysis.errors, strict=True)}
    for suffix in (".png", ".svg"):
        if len(points) > 1:
            title = f"{len(analysis.inputs.cases)} cases"
            draw_curves({"mean, 95 % interval": points}, title, directory / f"curves{suffix}")
        draw_heat_maps(errors_by_name, directory / f"heat_map{suffix}")
        if analysis.spans:
            draw_phases(analysis.spans, directory / f"phases{suffix}")
    print(f"pictures: {directory}")


def _home(inputs: Inputs) -> tuple[Path, str]:
    """Where the page goes if nobody says, and its title: with a run's evaluations, else beside the grades."""
    folder = inputs.sets[0].path.absolute().parent
    evaluations = folder.parent.parent
    return (evaluations, evaluations.parent.name) if evaluations.name == "eval" else (folder, folder.name)


def _run_of(inputs: Inputs) -> Path | None:
    """The folder of the run that all the sets are evaluations of; None where they are of several, or of none."""
    folders = {graded.path.absolute().parent.parent.parent for graded in inputs.sets}
    folder = folders.pop()
    return folder.parent if folder.name == "eval" and not folders else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Write one HTML page that needs no network: score, order, coverage and correctness with intervals, "
        "curves over the checkpoints, slices, the error taxonomy, and every case with its issue tree, the responses "
        "and the judge's rationales. Give it a run with graded checkpoints, or several graded sets.",
        epilog="example: python eval/report.py outputs/demo/run --latex outputs/demo/tables.tex",
    )
    add_set_options(parser)
    parser.add_argument(
        "--out", type=output_file(), help="the page (default: RUN_DIR/eval/report.html, or beside the grades)"
    )
    parser.add_argument("--title", help="heading of the page (default: the name of the run or folder)")
    parser.add_argument(
        "--pictures", type=output_folder, help="folder for curves, heat map and time by phase as PNG and SVG"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when written, 2 for wrong input."""
    return run_command(_parser(), report, argv)


if __name__ == "__main__":
    sys.exit(main())
