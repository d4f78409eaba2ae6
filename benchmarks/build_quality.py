"""How good the builder's trees are beside hand-made ones: `python benchmarks/build_quality.py`."""

import argparse
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from data.build import main as build
from data.cases import Case, Issue
from data.command import run_command
from data.grounding import MIN_STATEMENT_SUPPORT, MIN_SUPPORT, bare, numbers, sentences
from data.jsonl import read_jsonl, write_json
from data.records import from_record

GOLD = Path(__file__).parents[1] / "tests" / "judgments"
MIN_LIKENESS = 55.0  # of two issues that are one, in 0..100; see `likeness`
MIN_ALIKE = 55.0  # of two conclusions that say the same
_NO = re.compile(r"않|없|못|아니|기각|각하|배척|부적법|위법하지")  # in what turns something down


@dataclass(frozen=True, slots=True)
class Quality:
    """A built case beside its gold case.

    Precision and recall are the shares of built and of gold issues that have a partner in the other tree; the distance
    is the edits (an issue taken out, put in or changed for another) of all that could be needed; conclusions are
    compared in pairs of partners; None where there is nothing to take a share of.
    """

    precision: float | None
    recall: float
    distance: float
    agreement: float | None
    grounding: float | None
    is_valid: bool


def likeness(one: Issue, other: Issue) -> float:
    """How much two issues of one case look alike, in 0..100: the mean over what is in dispute and what is concluded.

    In the hand-made trees of tests/judgments two different issues of a case are alike to 25 in the median; 5 % of the
    pairs exceed MIN_LIKENESS.
    """
    from rapidfuzz import fuzz

    disputes = (bare(issue.summary + "".join(claim.content for claim in issue.claims)) for issue in (one, other))
    return (fuzz.ratio(*disputes) + fuzz.ratio(bare(one.conclusion), bare(other.conclusion))) / 2


def partners(built: Case, gold: Case) -> list[tuple[Issue, Issue]]:
    """Pairs of a built and a gold issue that are one issue: those in which the sum of their likeness is greatest."""
    from scipy.optimize import linear_sum_assignment

    rows = [[likeness(one, other) for other in gold.sub_issues] for one in built.sub_issues]
    # What is no partner must not count in the sum, or two poor pairs would part a good one.
    kept = [[value if value >= MIN_LIKENESS else 0.0 for value in row] for row in rows]
    found = zip(*linear_sum_assignment(kept, maximize=True), strict=True)
    return [(built.sub_issues[i], gold.sub_issues[j]) for i, j in found if kept[i][j]]


def says_the_same(one: str, other: str) -> bool:
    """Whether two conclusions on one issue agree: the same numbers, yes or no alike in their last sentence, like words.

    >>> says_the_same("대여금 5,000,000원을 지급할 의무가 있다.", "5,000,000원의 대여금을 지급할 의무가 있다.")
    True
    >>> says_the_same("소멸시효는 완성되었다.", "소멸시효는 완성되지 않았다.")
    False
    """
    from rapidfuzz import fuzz

    turned_down = [bool(_NO.search(bare(sentences(text)[-1]))) if text.strip() else None for text in (one, other)]
    return (
        numbers(one) == numbers(other)
        and turned_down[0] == turned_down[1]
        and fuzz.token_sort_ratio(one, other) >= MIN_ALIKE
    )


def tree_distance(one: Case, other: Case, pairs: Collection[tuple[str, str]]) -> int:
    """Fewest edits that make one tree the other (Zhang and Shasha 1989): an issue taken out, put in or changed for one
    that is not its partner, each 1; `pairs` are the partners' ids."""
    trees = [list(_postorder(case, case.root, 0)) for case in (one, other)]
    keys = [sorted({left: place for place, (_, left) in enumerate(tree)}.values()) for tree in trees]
    (a, b), between = trees, {}
    for i in keys[0]:
        for j in keys[1]:
            first = (a[i][1], b[j][1])
            edits = {(m, first[1]): m - first[0] for m in range(first[0], i + 2)}  # of the forests before m and n
            edits |= {(first[0], n): n - first[1] for n in range(first[1], j + 2)}
            for m in range(first[0], i + 1):
                for n in range(first[1], j + 1):
                    either = min(edits[m, n + 1], edits[m + 1, n]) + 1
                    if (a[m][1], b[n][1]) == first:  # both forests are whole trees
                        changed = (a[m][0], b[n][0]) not in pairs and (a[m][0], b[n][0]) != ("", "")
                        between[m, n] = edits[m + 1, n + 1] = min(either, edits[m, n] + changed)
                    else:
                        edits[m + 1, n + 1] = min(either, edits[a[m][1], b[n][1]] + between[m, n])
    return int(between[len(a) - 1, len(b) - 1])


def compare(built: Mapping[str, Any], gold: Case, *, is_valid: bool) -> Quality:
    """The quality of a built case's record; one that is no case at all has no issue."""
    spans = [span for span in built.get("spans", ()) if span["kind"] != "fact"]
    grounded = [s["score"] >= (MIN_STATEMENT_SUPPORT if s["kind"] == "statement" else MIN_SUPPORT) for s in spans]
    try:
        case = from_record(built)
    except ValueError:
        return Quality(None, 0.0, 1.0, None, None, is_valid)
    pairs = partners(case, gold)
    edits = tree_distance(case, gold, {(one.id, other.id) for one, other in pairs})
    return Quality(
        precision=len(pairs) / len(case.sub_issues),
        recall=len(pairs) / len(gold.sub_issues),
        distance=edits / (len(case.sub_issues) + len(gold.sub_issues)),
        agreement=fmean(says_the_same(a.conclusion, b.conclusion) for a, b in pairs) if pairs else None,
        grounding=fmean(grounded) if grounded else None,
        is_valid=is_valid,
    )


def measure(folder: Path, gold: Mapping[str, Case]) -> dict[str, Quality]:
    """Of each gold case that something was built of, by its doc_id, sound or rejected."""
    found = {row["doc_id"]: (row, True) for _, row in read_jsonl(folder / "cases.jsonl")}
    for _, row in read_jsonl(folder / "rejected.jsonl"):
        if row["case"] is not None:
            found[row["case"]["doc_id"]] = (row["case"], False)
    return {id: compare(found[id][0], case, is_valid=found[id][1]) for id, case in gold.items() if id in found}


def figures_of(qualities: Mapping[str, Quality]) -> dict[str, float]:
    """Means over the cases that have the figure, and how many were built and are valid."""
    figures: dict[str, float] = {"num_built": len(qualities), "num_valid": sum(q.is_valid for q in qualities.values())}
    for name in ("precision", "recall", "distance", "agreement", "grounding"):
        told = [value for q in qualities.values() if (value := getattr(q, name)) is not None]
        figures |= {f"mean/{name}": round(fmean(told), 4)} if told else {}
    return figures


def run(args: argparse.Namespace) -> int:
    """Build, compare, print; returns how many judgments are unfinished."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(args.gold.glob("*.json"))]
    gold = {case.id: case for case in map(from_record, (record for record in records if "issues" in record))}
    status = build([str(args.gold), "--out", str(args.out), *args.options])
    if status not in (0, 1):
        raise SystemExit(status)
    qualities = measure(args.out, gold)
    table = Table(title="built trees beside hand-made ones")
    names = ("precision", "recall", "distance", "agreement", "grounding", "is_valid")
    for column in ("case", *names):
        table.add_column(column)
    for id, quality in qualities.items():
        values = (getattr(quality, name) for name in names)
        table.add_row(id, *("" if value is None else f"{value:.2f}" for value in values))
    figures = figures_of(qualities)
    table.add_row("mean", *(f"{figures[key]:.2f}" if (key := f"mean/{n}") in figures else "" for n in names))
    Console().print(table)
    if args.json is not None:
        write_json(args.json, figures)
    return status


def _postorder(case: Case, issue: Issue, place: int) -> Iterator[tuple[str, int]]:
    """The ids below the issue and its own, children first, each with the place of the first leaf below it."""
    first = place
    for child in case.children(issue):
        for one in _postorder(case, child, place):
            yield one
            place += 1
    yield issue.id, first


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: as data/build.py."""
    parser = argparse.ArgumentParser(
        description="Has a model build cases of the twelve fictional judgments, or others with hand-made cases, and "
        "holds the trees against the hand-made ones: precision and recall of issues, matched by what they say; edit "
        "distance of the trees, 0 where they are alike; agreement of matched conclusions; the share of statements that "
        "the judgment bears out. Rejected cases count too. Options that are not named here go to data/build.py.",
        epilog="example: python benchmarks/build_quality.py --out outputs/quality --base-url http://localhost:8000/v1 "
        "--model google/gemma-3-27b-it",
    )
    parser.add_argument("--out", required=True, type=Path, help="the folder to build in; a second run pays for nothing")
    parser.add_argument("--gold", default=GOLD, type=Path, help="folder of judgments (.txt) with their cases (.json)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures there too")
    known, rest = parser.parse_known_args(argv)
    parser.set_defaults(options=rest)
    named = ["--out", str(known.out), "--gold", str(known.gold), *(["--json", str(known.json)] if known.json else [])]
    return run_command(parser, run, named)


if __name__ == "__main__":
    sys.exit(main())
