"""Annotation sheets for experts: written, and read back into grades."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from data.command import (
    InputError,
    add_case_options,
    check_distinct,
    number,
    output_folder,
    positive,
    run_command,
)
from data.jsonl import read_jsonl, write_json, write_jsonl
from data.loading import load_cases
from data.store import Store
from eval.annotation import KEY_NAME, Key, assign, choose, marks_of, merge, read_key
from eval.results import Grade, read_grades, read_some_responses
from eval.workbook import read_workbook, write_workbook
from rewards.answer import final_answer, is_empty
from rewards.score import score_case

GUIDE_TEXT = Path(__file__).with_name("annotation_guide.ko.txt")


def export(args: argparse.Namespace) -> None:
    """Write a workbook per rater, and the key that says what stands behind their sheets."""
    check_distinct(args.responses)
    cases = {case.id: case for case in load_cases(args.cases, args.split, args.on_invalid)[: args.limit]}
    responses = [response for path in args.responses for response in read_some_responses(path).responses]
    pairs = [(cases[r.case_id], r) for r in responses if r.case_id in cases and not is_empty(final_answer(r.text))]
    if len(pairs) < len(responses):
        print(f"{len(responses) - len(pairs)} responses left out: empty, or to unknown cases", file=sys.stderr)
    if not pairs:
        raise InputError("None of the responses answers one of the cases")
    chosen = choose(pairs, args.num_responses or len(pairs), args.seed)
    names = [f"R{number:03d}" for number in range(1, len(chosen) + 1)]
    raters = tuple(f"rater-{number}" for number in range(1, args.raters + 1))
    export_id = Store.key(responses=[response.to_record() for _, response in chosen], raters=raters, seed=args.seed)[
        :12
    ]
    key = Key(
        export_id,
        raters,
        {name: response for name, (_, response) in zip(names, chosen, strict=True)},
        {name: tuple(issue.id for issue in case.issues) for name, (case, _) in zip(names, chosen, strict=True)},
    )
    workbooks = [args.out / f"{rater}.xlsx" for rater in raters]
    if there := [str(path) for path in (*workbooks, args.out / KEY_NAME) if path.exists()]:
        raise InputError(f"{', '.join(there)} exist and may be filled in; export to another folder (--out)")
    guide = GUIDE_TEXT.read_text(encoding="utf-8")
    write_json(args.out / KEY_NAME, key.to_record())
    for path, rater, share in zip(workbooks, raters, assign(chosen, args.raters, args.overlap, args.seed), strict=True):
        sheets = [(names[n], chosen[n][0], final_answer(chosen[n][1].text)) for n in share]
        write_workbook(path, rater, export_id, guide, sheets)
        print(f"{path}: {len(share)} responses, {sum(len(case.issues) for _, case, _ in sheets)} issues")
    print(f"{args.out / KEY_NAME}: what the sheets hide; keep it from the raters")


def import_marks(args: argparse.Namespace) -> int:
    """Merge what the workbooks say into the raters' grades; returns how many cells are not well filled in."""
    problems: list[str] = []
    for path in args.sheets:
        key = read_key(args.key or path.with_name(KEY_NAME))
        returned = read_workbook(path)
        marks, found = marks_of(returned, key)
        out = (args.out or path.parent) / returned.rater
        for generator in sorted({key.responses[sheet].model for sheet in marks}):
            sheets = [sheet for sheet in marks if key.responses[sheet].model == generator]
            file = out / re.sub(r"[^\w.-]+", "-", generator) / "grades.jsonl"
            cases = {key.responses[sheet].case_id: key.case(sheet) for sheet in sheets}
            grades = read_grades(file, cases)
            lines = read_jsonl(file) if file.exists() else ()
            others = [record for _, record in lines if record["doc_id"] not in cases]
            for sheet in sheets:
                response, case = key.responses[sheet], cases[key.responses[sheet].case_id]
                before = grades[response.key].judgments if response.key in grades else {}
                merged, contradicting = merge(before, marks[sheet], replace=args.replace)
                kept = "replaced" if args.replace else "the earlier one is kept (--replace takes the later)"
                found += [f"{sheet}, issue {id!r}: contradicts an earlier import; {kept}" for id in contradicting]
                grades[response.key] = Grade(response, returned.rater, merged, score_case(case, merged))
            write_jsonl(file, [*others, *(grade.to_record() for grade in grades.values())])
        num_marks = sum(mark is not None for by_issue in marks.values() for mark in by_issue.values())
        num_issues = sum(len(by_issue) for by_issue in marks.values())
        print(f"{path}: {num_marks} of {num_issues} issues marked; in {out}")
        problems += [f"{path.name}: {problem}" for problem in found]
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return len(problems)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Have experts mark responses in spreadsheets. export writes one workbook per rater, which hides "
        "who wrote the responses, and a key; import reads workbooks back, as far as they are filled in, and says which "
        "cells are not. eval/agreement.py takes what import writes, and workbooks too.",
        epilog="example: python eval/annotate.py export --cases data/samples/easy.jsonl --responses responses.jsonl "
        "--raters 2 --out annotation; then: python eval/annotate.py import annotation/rater-1.xlsx",
    )
    commands = parser.add_subparsers(required=True)
    exporting = commands.add_parser("export", help="write the workbooks")
    add_case_options(exporting)
    exporting.add_argument("--responses", required=True, nargs="+", type=Path, help="response files, one per generator")
    exporting.add_argument("--raters", type=positive, default=2, help="how many raters (default: 2)")
    exporting.add_argument(
        "--overlap", type=number(0, 1), default=1.0, help="share that all raters mark (default: 1.0)"
    )
    exporting.add_argument("--num-responses", type=positive, help="how many responses in all (default: all of them)")
    exporting.add_argument("--seed", type=int, default=42, help="of the choice and its order (default: 42)")
    exporting.add_argument("--out", required=True, type=output_folder, help="folder for the workbooks and the key")
    exporting.set_defaults(run=export)
    importing = commands.add_parser("import", help="read filled-in workbooks")
    importing.add_argument(
        "sheets", nargs="+", type=Path, metavar="WORKBOOK", help="rater-N.xlsx, filled in or in part"
    )
    importing.add_argument("--key", type=Path, help=f"{KEY_NAME} of the export (default: beside the workbook)")
    importing.add_argument(
        "--out", type=output_folder, help="folder for the grades, one per rater (default: beside the workbook)"
    )
    importing.add_argument("--replace", action="store_true", help="where two imports contradict, take the later")
    importing.set_defaults(run=import_marks)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when done, 1 when cells of a workbook are unanswered or impossible, 2 for wrong input."""
    return run_command(_parser(), lambda args: args.run(args), argv)


if __name__ == "__main__":
    sys.exit(main())
