"""Responses x cases x judge -> grades.jsonl and summary.json, with a table at the end."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from data.command import InputError, add_case_options, output_file, output_folder, run_command
from data.jsonl import write_json
from data.law import known_laws
from data.loading import load_cases
from eval.citing import citation_figures, citation_sheet
from eval.flags import RECORDED, add_config_options, add_judge_options, config_from, judge_if_any
from eval.grading import PINS
from eval.judging import grade_file
from eval.likert import LikertGrade, grade_likert, likert_sheet, summarize_likert
from eval.pins import set_aside
from eval.results import Grade, Key, read_some_responses
from eval.summary import summarize_grades, summary_sheet
from eval.tables import print_sheets
from eval.verdicts import any_verdict
from rewards.answer import final_answer, is_empty
from rewards.gates import GateConfig

SHOWN_IDS = 5
GRADE_FILES = {"legit": "grades.jsonl", "likert": "likert.jsonl"}
SUMMARIES = {"legit": "summary.json", "likert": "likert_summary.json"}


def grade(args: argparse.Namespace) -> int:
    """Grade the response file, write the summary, tell what was left out; returns how many verdicts a judge owes."""
    config = judge_if_any(args, args.out)
    gates = config_from(GateConfig, {}, args)
    cases = {case.id: case for case in load_cases(args.cases, args.split, args.on_invalid)[: args.limit]}
    responses = read_some_responses(args.responses)
    if not any(response.case_id in cases for response in responses.responses):
        raise InputError(f"{args.responses}: none of its responses is to a case of {args.cases}")
    if config is None and not any(map(any_verdict, responses.verdicts.values())):
        raise InputError(f"{args.responses} holds no verdicts: it is no evaluator's file, name a judge")
    if args.rejudge == "all":
        if "judge_store" in args:
            raise InputError("--rejudge all would find the old verdicts in --judge-store: leave it out or name another")
        stem = GRADE_FILES[args.scheme].removesuffix(".jsonl")
        for name in (f"{stem}.jsonl", *(f"{stem}.{pin}.json" for pin in PINS), SUMMARIES[args.scheme], "judge_store"):
            if (args.out / name).exists():
                print(f"set aside: {set_aside(args.out / name)}", file=sys.stderr)
    grades: Mapping[Key, Grade | LikertGrade]
    if args.scheme == "likert":
        if config is None:
            raise InputError("--scheme likert needs --judge URL: an evaluator's file holds no such grades")
        grades = likert_grades = grade_likert(cases, responses, args.out, config)
        figures = summarize_likert(likert_grades)
        sheet = likert_sheet(args.responses.name, figures)
    else:
        grades = legit_grades = grade_file(cases, responses, args.out, config, gates)
        figures = summarize_grades(legit_grades, cases)
        sheet = summary_sheet(args.responses.name, figures)
        known = known_laws(gates.gate_precedents) if gates.gate_precedents else None
        figures |= citation_figures(legit_grades, cases, known)
    num_missing = sum(grade.num_missing for grade in grades.values())

    answered = {response.case_id for response in responses.responses}
    left_out = {
        "unknown_cases": [_named(response.key) for response in responses.responses if response.case_id not in cases],
        "duplicates": [f"{_named(key)}, line {line}" for line, key in responses.duplicates],
        "empty_responses": [
            _named(key) for key, grade in grades.items() if is_empty(final_answer(grade.response.text))
        ],
        "cases_without_response": [case_id for case_id in cases if case_id not in answered],
    }
    figures |= {f"num_{name}": len(ids) for name, ids in left_out.items()}
    write_json(args.out / "left_out.json", left_out)
    for path in (args.out / SUMMARIES[args.scheme], *([args.json] if args.json else [])):
        write_json(path, figures)
    for name, ids in left_out.items():
        if ids:
            more = f" and {len(ids) - SHOWN_IDS} more in left_out.json" if len(ids) > SHOWN_IDS else ""
            print(f"{len(ids)} {name.replace('_', ' ')}: {'; '.join(ids[:SHOWN_IDS])}{more}", file=sys.stderr)
    if num_missing:
        again = "" if config is None else "; the same command asks for them again"
        print(f"{num_missing} verdicts are missing{again}", file=sys.stderr)
    print_sheets([sheet, *([citation_sheet(figures)] if "citations/per_response" in figures else [])])
    print(f"grades: {args.out / GRADE_FILES[args.scheme]}\nsummary: {args.out / SUMMARIES[args.scheme]}")
    return 0 if config is None else num_missing


def _named(key: Key) -> str:
    case_id, sample = key
    return f"{case_id} (sample {sample})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Have responses judged issue by issue, and score them. Takes responses of eval/solve.py, official "
        "response files and official evaluators' files. A run that was stopped goes on where it was when the same "
        "command is given again; no verdict is paid for twice. An empty answer costs no call: it treats no issue. Exit "
        "status 1 says that verdicts are missing, which the same command asks for again.",
        epilog="example: python eval/grade.py --cases data/samples/medium.jsonl --responses outputs/q/responses.jsonl "
        "--judge http://localhost:8001/v1 --judge-model google/gemma-3-27b-it --out outputs/q",
    )
    add_case_options(parser)
    parser.add_argument("--responses", required=True, type=Path, help="responses file")
    parser.add_argument(
        "--out", required=True, type=output_folder, help="folder for grades.jsonl, summary.json and the verdicts"
    )
    parser.add_argument("--json", type=output_file(), help="write the figures here too")
    parser.add_argument(
        "--rejudge",
        choices=("failed", "all"),
        default="failed",
        help="failed: ask again for verdicts that the judge failed to give; all: set the grades aside and begin anew",
    )
    parser.add_argument(
        "--scheme",
        choices=tuple(GRADE_FILES),
        default="legit",
        help="legit: verdicts issue by issue; likert: one grade from 0 to 10, the baseline (likert.jsonl)",
    )
    judging = parser.add_argument_group("the judge")
    add_judge_options(judging, f", or {RECORDED}: the verdicts that an evaluator's file holds", required=True)
    add_config_options(parser.add_argument_group("gates, told beside the score"), GateConfig)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when graded, 1 for a dead judge, 2 for wrong input, 130 when interrupted."""
    return run_command(_parser(), grade, argv, kept="Grades so far are in {out}")


if __name__ == "__main__":
    sys.exit(main())
