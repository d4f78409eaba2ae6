"""How far raters agree, judges and experts alike; and what a judge is worth beside experts."""

import argparse
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from data.command import (
    InputError,
    add_case_options,
    check_distinct,
    number,
    output_file,
    output_folder,
    positive,
    run_command,
    whole,
)
from data.jsonl import write_json, write_text
from data.loading import load_cases
from eval.agreement_figures import Measure, compare_raters, compare_schemes
from eval.agreement_report import (
    agreement_sheets,
    draw_matrix,
    draw_schemes,
    judge_sheets,
    matrix_csv,
    schemes_sheet,
)
from eval.annotated import grade_annotated, keep_check
from eval.estimates import NUM_RESAMPLES, estimate
from eval.flags import RECORDED, add_judge_options, judge_if_any
from eval.graded import named
from eval.judge_check import check_judge, verdict
from eval.likert import common_scores, read_likert_rater
from eval.raters import (
    Rater,
    cases_of_marks,
    check_common,
    differing_scores,
    fit_to_cases,
    read_rater,
    scores_of,
)
from eval.tables import print_sheets
from rewards.judge import JudgeConfig
from rewards.judge_card import CARDS_FOLDER

SHOWN_SCORES = 5


def agree(args: argparse.Namespace) -> None:
    """Compare the raters, check the judge if one is named, and write all that was found."""
    measure: Measure = partial(estimate, num_resamples=args.resamples, seed=args.seed)
    config = _judge_config(args)
    aliases = dict(args.alias)
    for given in (args.raters, args.likert or (), args.responses or ()):
        check_distinct([named(spec)[1] for spec in map(str, given)])
    loaded = load_cases(args.cases, args.split, args.on_invalid)[: args.limit] if args.cases else []
    raters = [read_rater(spec, aliases) for spec in args.raters]
    cost: Mapping[str, float] = {}
    notes: list[str] = []
    if args.judged_by is not None:
        cases_by_id = {case.id: case for case in loaded}
        judge, cost, notes = grade_annotated(raters, cases_by_id, args.responses, args.out, config, aliases)
        raters.append(judge)
    cases = {unicodedata.normalize("NFC", case.id): case for case in loaded} or cases_of_marks(raters)
    raters, left_out = fit_to_cases(_check_names(raters), cases)
    check_common(raters)
    names = [rater.name for rater in raters]

    differing = {rater.name: differing_scores(rater, scores_of(rater, cases)) for rater in raters}
    agreement = compare_raters(raters, cases, args.threshold, measure)
    figures = agreement.figures()
    figures |= {f"rater/{name}/num_stored_scores_differing": len(found) for name, found in differing.items()}
    sheets = agreement_sheets(agreement, raters, [len(found) for found in differing.values()])
    write_text(args.out / "matrix.csv", matrix_csv(agreement, names))
    draw_matrix(agreement, names, args.out / "matrix.png")
    write_json(args.out / "differing_scores.json", differing)

    if args.likert:
        grades = [read_likert_rater(spec, aliases) for spec in args.likert]
        legit, likert = common_scores(raters, grades, cases)
        schemes = compare_schemes(legit, likert, measure)
        sheets.append(schemes_sheet(schemes, len(legit.cases)))
        draw_schemes(schemes, args.out / "schemes.png")
        for name, by_scheme in schemes.items():
            for scheme, found in by_scheme.items():
                figures |= found.figures(f"schemes/{scheme}/{name}")

    said: tuple[str, ...] = ()
    if args.judged_by is not None:
        check = check_judge(raters[-1], raters[:-1], cases, cost, args.threshold, measure)
        said = verdict(check)
        sheets += judge_sheets(check)
        figures |= check.figures()
        languages = {cases[item.doc_id].language for item in raters[-1].marks}
        card = keep_check(check, said, config, languages, names[:-1], args.out, args.cards)
        said += (f"Judge card: {card}",) if card else ()

    for path in (args.out / "agreement.json", *([args.json] if args.json else [])):
        write_json(path, figures)
    print_sheets(sheets)
    print(*said, f"All files: {args.out}", sep="\n")
    for note in (*notes, *left_out, *_told(differing)):
        print(note, file=sys.stderr)


def _check_names(raters: Sequence[Rater]) -> Sequence[Rater]:
    names = [rater.name for rater in raters]
    if len(names) < 2:
        raise InputError("One rater has nobody to agree with: name another, or a judge (--judge)")
    if len(set(names)) < len(names):
        raise InputError(f"Two raters have one name ({', '.join(names)}): name them, as in rater-1=PATH")
    return raters


def _told(differing: Mapping[str, Sequence[tuple[tuple[str, str, int], float, float | None]]]) -> list[str]:
    notes = []
    for name, found in differing.items():
        shown = [
            f"{doc_id} ({generator}) {stored:g}, from the marks {'none' if score is None else f'{score:.4g}'}"
            for (generator, doc_id, _), stored, score in found[:SHOWN_SCORES]
        ]
        more = f"; {len(found) - SHOWN_SCORES} more in differing_scores.json" if len(found) > SHOWN_SCORES else ""
        if found:
            notes.append(f"{name}: {len(found)} stored scores differ from the marks': {'; '.join(shown)}{more}")
    return notes


def _judge_config(args: argparse.Namespace) -> JudgeConfig | None:
    if args.judged_by and not (args.cases and args.responses):
        raise InputError("--judge needs --cases, and --responses: the texts that the experts marked")
    return judge_if_any(args, args.out)


def _alias(text: str) -> tuple[str, str]:
    in_file, equals, name = text.rpartition("=")
    if not (in_file and equals and name):
        raise argparse.ArgumentTypeError(f"must be NAME_IN_FILE=NAME, got {text!r}")
    return in_file, name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="How far raters agree on the same responses: Krippendorff's alpha, kappas, correlations, leniency, "
        "with intervals over resampled cases. A rater is a grades file or folder, an official evaluator's or expert's "
        "file, or an annotation sheet; marks may be missing. With --judge, a judge is put to what the experts marked, "
        "compared with them, and gets a judge card.",
        epilog="example: python eval/agreement.py rater-1.json rater-2.json --cases cases.jsonl --judge "
        "http://localhost:8001/v1 --judge-model google/gemma-3-27b-it --responses gpt-4.1.jsonl gemma-3-4b-it.jsonl",
    )
    parser.add_argument("raters", nargs="+", metavar="RATER", help="file or folder of marks; NAME=PATH gives it a name")
    add_case_options(parser, required=False)
    parser.add_argument(
        "--alias", action="append", default=[], type=_alias, metavar="IN_FILE=NAME", help="a generator's other name"
    )
    parser.add_argument(
        "--likert",
        nargs="+",
        metavar="FILE",
        help="Likert grades (eval/grade.py --scheme likert) to compare LEGIT with",
    )
    parser.add_argument(
        "--threshold", type=number(0, 1), default=0.5, help="from where on a soft verdict is a yes (default: 0.5)"
    )
    parser.add_argument(
        "--resamples", type=positive, default=NUM_RESAMPLES, help=f"draws per interval (default: {NUM_RESAMPLES})"
    )
    parser.add_argument("--seed", type=whole(0), default=0, help="of the draws (default: 0)")
    parser.add_argument("--out", type=output_folder, default=Path("outputs/agreement"), help="folder for all files")
    parser.add_argument("--json", type=output_file(), help="write the figures here too")
    judging = parser.add_argument_group("a judge to check against the raters, who then count as experts")
    add_judge_options(judging, f", or {RECORDED}: the verdicts that the --responses bring")
    judging.add_argument("--responses", nargs="+", type=Path, help="the response files that the experts marked")
    judging.add_argument(
        "--cards", type=output_folder, default=CARDS_FOLDER, help=f"folder of judge cards (default: {CARDS_FOLDER})"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when done, 1 for a dead judge, 2 for wrong input, 130 when interrupted."""
    return run_command(_parser(), agree, argv, kept="Verdicts so far are in {out}")


if __name__ == "__main__":
    sys.exit(main())
