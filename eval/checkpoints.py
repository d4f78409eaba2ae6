"""Base and checkpoints of a run, solved by one engine, graded, and shown side by side."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from data.cases import Case
from data.command import InputError, option, output_file, output_folder, positive, run_command, seconds
from data.contexts import RetrievalConfig, contexts_for, heeded
from data.jsonl import write_json, write_text
from data.loading import load_cases
from eval.comparison import check_comparable
from eval.curves import draw_curves
from eval.evaluations import TEMPERATURES, Grading, Solver, plan
from eval.flags import add_config_options, add_judge_options, config_from, judge_config
from eval.graded import read_inputs
from eval.judging import judge_settings
from eval.metrics import PARTS, Figures, paired_difference
from eval.phases import METRICS_NAME, read_spans
from eval.pins import by_language
from eval.report import render_page
from eval.report_data import analyse
from eval.runs import FINAL, Run, find_checkpoints, is_over, read_run
from eval.summary import scores_by_case
from eval.tables import Cell, Sheet, print_sheets, share
from eval.tallies import estimate
from eval.tracking import Evaluated, log_checkpoints
from rewards.gates import GateConfig
from rewards.judge_card import verdict_settings

LABELS = {"greedy": "greedy", "t1": "sampled at temperature 1"}
POLL_S = 5.0


def compare_with_base(evaluated: Sequence[Evaluated]) -> dict[str, float | None]:
    """For each way of sampling, how much higher the last checkpoint is than the base, on the same cases."""
    by_sampling: dict[str, list[Evaluated]] = {}
    for one in evaluated:
        by_sampling.setdefault(one.sampling, []).append(one)
    return {
        f"{sampling}/{name}": value
        for sampling, each in by_sampling.items()
        for name, value in paired_difference(scores_by_case(each[0].grades), scores_by_case(each[-1].grades)).items()
    }


def checkpoints_sheet(sampling: str, rows: Mapping[str, Figures], difference: Figures) -> Sheet:
    """The checkpoints one below the other, and what the last one has over the base."""
    captions = {
        "extra_issues/mean": "extra: issues per response that the court did not treat",
        "exploitation": "exploited: verdicts credited by the training judge that this one rejects",
    }
    shown = [name for name in captions if any(name in figures for figures in rows.values())]
    note = " ".join([Sheet.INTERVALS, *(f"{captions[name]}." for name in shown)])
    columns = ("", *PARTS, "unscored", *(captions[name].partition(":")[0] for name in shown))
    cells: list[tuple[Cell, ...]] = []
    for name, figures in rows.items():
        more = (
            share(figures.get(figure)) if figure == "exploitation" else f"{figures.get(figure) or 0:.2f}"
            for figure in shown
        )
        parts = (estimate(figures, f"mean/{part}") for part in PARTS)
        cells.append((name, *parts, share(figures["unscored_frac"]), *more))
    cells.append(("gain over base", *(estimate(difference, f"{sampling}/diff/{part}") for part in PARTS)))
    return Sheet("checkpoints", LABELS[sampling], columns, tuple(cells), note)


def evaluate(args: argparse.Namespace) -> None:
    """Solve, grade and show the run; with --watch, again for each checkpoint that appears until training is over."""
    run = _started(args.run_dir, args.watch) if args.watch else read_run(args.run_dir)
    out = args.out or run.directory / "eval"
    source, split = (args.cases, args.split) if args.cases else (run.eval_cases, run.eval_split)
    if source is None:
        raise InputError(f"{args.run_dir} was configured without eval_cases: say which with --cases")
    cases = load_cases(source, split)[: args.limit]
    retrieval = heeded(run.retrieval, getattr(args, "retriever", None))
    laws = contexts_for(cases, config_from(RetrievalConfig, retrieval, args), held_out=True)
    grading = _grading(run, {case.id: case for case in cases}, out, args)
    solver = Solver(run, args.tensor_parallel_size)

    evaluated: list[Evaluated] = []
    goes_on = True
    while goes_on:
        goes_on = bool(args.watch) and not is_over(run)  # asked first: what is there at the end is then found below
        checkpoints, partial = find_checkpoints(run)
        known = {one.name for one in evaluated}
        if goes_on:
            known.add(FINAL)  # a final model that is there already is an older training's
        new = [checkpoint for checkpoint in checkpoints if checkpoint.name not in known]
        evaluations = plan(run, new, cases, args.sampling, args.samples, out, laws)
        solver.solve_missing(evaluations)
        evaluated += [grading.grade(evaluation) for evaluation in evaluations]
        if new:
            show(evaluated, out, args.json, f"LEGIT score and its parts on {len(cases)} held-out cases")
        goes_on = goes_on and _waited(args.watch)
    if partial:
        print(f"left out, not whole (being written, or sharded): {', '.join(partial)}", file=sys.stderr)

    if not (args.out or args.cases or args.limit):  # what a run reports is about all of its held-out cases
        judge = by_language(lambda language: judge_settings(grading.judge, language), {case.language for case in cases})
        logged = log_checkpoints(run.directory, evaluated, grading.cases, judge)
        if logged:
            print(f"logged to the run's tracker: {', '.join(logged)}")
    if not args.no_report:
        inputs = read_inputs([str(out)], source, split, args.sampling[0])
        check_comparable(inputs.sets, on_common_cases=True)
        analysis = analyse(inputs, read_spans(run.directory / METRICS_NAME))
        write_text(out / "report.html", render_page(analysis, run.directory.absolute().name))
        print(f"report: {out / 'report.html'}")


def show(evaluated: Sequence[Evaluated], out: Path, also: Path | None, title: str) -> None:
    """Write the figures and curves of all that is evaluated, and print them as a table for each way of sampling."""
    rows: dict[str, dict[str, Figures]] = {}
    for one in evaluated:
        rows.setdefault(one.sampling, {})[one.name] = one.figures
        write_json(out / one.name / one.sampling / "summary.json", one.figures)
    difference = compare_with_base(evaluated)
    summary = {f"{one.key}/{name}": value for one in evaluated for name, value in one.figures.items()} | difference
    for path in (out / "summary.json", *([also] if also else [])):
        write_json(path, summary)
    steps = {one.name: one.step for one in evaluated if one.step is not None}
    curves = {
        LABELS[sampling]: [(steps[name], figures) for name, figures in by_name.items() if name in steps]
        for sampling, by_name in rows.items()
    }
    draw_curves(curves, title, out / "curves.png")
    print_sheets(checkpoints_sheet(sampling, by_name, difference) for sampling, by_name in rows.items())
    for what, name in (("curves", "curves.png"), ("figures", "summary.json"), ("responses and grades", "*/*/*.jsonl")):
        print(f"{what}: {out / name}")


def _grading(run: Run, cases: Mapping[str, Case], out: Path, args: argparse.Namespace) -> Grading:
    """The judge of the command line, else the run's eval judge; beside it the training judge where that is another."""
    judge = judge_config(args, out, run.eval_judge)
    training_judge = judge_config(argparse.Namespace(judged_by=None), out, run.judge) if run.judge else None
    if training_judge and verdict_settings(training_judge) == verdict_settings(judge):
        training_judge = None
    return Grading(cases, judge, training_judge, config_from(GateConfig, run.gates, args))


def _started(run_dir: Path, poll_s: float) -> Run:
    """The run, as soon as its training has begun."""
    path = run_dir / "config.yaml"
    if not path.is_file():
        print(f"waiting for {path}, which training writes when it starts (Ctrl-C ends this)", file=sys.stderr)
    while not path.is_file():
        time.sleep(poll_s)
    return read_run(run_dir)


def _waited(poll_s: float) -> bool:
    """True after a pause, False if Ctrl-C ends it: then what has been evaluated is all."""
    try:
        time.sleep(poll_s)
    except KeyboardInterrupt:
        return False
    return True


def _samplings(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in TEMPERATURES]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(TEMPERATURES)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Evaluate the base model and every checkpoint of a training run on held-out cases: one vLLM engine "
        "answers for all of them, the run's judge of evaluations grades, and a table, curves and a report show score, "
        "order, coverage and correctness apart; where the run was trained by another judge, also what that one credits "
        "and this one rejects. Cases, prompts, length limit and judge are the run's own unless told otherwise. "
        "Only what is missing is computed. Evaluations of all held-out cases go to the run's W&B or trackio.",
        epilog="example: python eval/checkpoints.py outputs/mini --sampling greedy,t1 --limit 200",
    )
    parser.add_argument("run_dir", type=output_folder, help="the run's output_dir")
    parser.add_argument("--cases", help="case file or hub id (default: the run's eval_cases)")
    parser.add_argument("--split", help="the split of --cases, if it is a hub data set")
    parser.add_argument("--limit", type=positive, help="only the first so many cases")
    parser.add_argument(
        "--sampling", type=_samplings, default=["greedy", "t1"], help="greedy, t1 (temperature 1) or both"
    )
    parser.add_argument("--samples", type=positive, default=1, help="responses per case at temperature 1")
    parser.add_argument(
        "--out", type=output_folder, help="folder for everything that is written (default: RUN_DIR/eval)"
    )
    parser.add_argument("--json", type=output_file(), help="write the figures here too")
    parser.add_argument(
        "--watch",
        type=option(seconds),
        nargs="?",
        const=POLL_S,
        metavar="SECONDS",
        help="follow a running training: evaluate each checkpoint as it appears, until the final model is there; "
        f"looks every so many seconds ({POLL_S:g})",
    )
    parser.add_argument("--no-report", action="store_true", help="write no report.html at the end")
    parser.add_argument(
        "--tensor-parallel-size", type=positive, default=1, help="GPUs that share one copy of the model"
    )
    law = parser.add_argument_group("law before the question (default: as the run was trained)")
    add_config_options(law, RetrievalConfig)
    judging = parser.add_argument_group("the judge (default: the run's own for evaluations, eval_judge_...)")
    add_judge_options(judging)
    add_config_options(parser.add_argument_group("gates, told beside the score"), GateConfig)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when all is graded, 1 for a dead judge, 2 for wrong input, 130 when interrupted."""
    return run_command(_parser(), evaluate, argv, kept="What arrived is kept")


if __name__ == "__main__":
    sys.exit(main())
