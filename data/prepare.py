"""From cases to a data set: splits without a case on both sides, statistics, a card, JSON Lines and Parquet."""

import argparse
import importlib
import json
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from data.cases import LEVELS, Case, difficulty
from data.command import InputError, check_distinct, number, output_file, output_folder, run_command, whole
from data.jsonl import write_json, write_jsonl, write_text
from data.loading import load_cases, to_record
from data.near_duplicates import near_duplicates, signature
from data.verl import verl_row

Splits = dict[str, list[Case]]


class PrepareError(InputError):
    """The data set cannot be made as it was asked for."""


def families(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases in groups that must stay together: nearly the same question, or a case number in common, as the two
    instances of one dispute have."""
    parents = list(range(len(cases)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for one, other in near_duplicates([signature(case.question) for case in cases]):
        parents[root(other)] = root(one)
    first_with: dict[str, int] = {}
    for place, case in enumerate(cases):
        for name in {case.id, *case.extra.get("case_numbers", ())}:
            parents[root(place)] = root(first_with.setdefault(name, place))
    groups: dict[int, list[Case]] = {}
    for place, case in enumerate(cases):
        groups.setdefault(root(place), []).append(case)
    return list(groups.values())


def split_cases(cases: Sequence[Case], test_sizes: Mapping[str, int], valid_frac: float, seed: int) -> Splits:
    """The cases as train, valid and test; a family is in one of them, and the test set has so many of each difficulty.

    Raises:
        PrepareError: there are not so many.
    """
    groups = families(sorted(cases, key=lambda case: case.id))  # the order of the source must not matter
    random.Random(seed).shuffle(groups)
    splits: Splits = {"train": [], "valid": [], "test": []}
    room = Counter(test_sizes)
    num_valid = round(valid_frac * (len(cases) - sum(test_sizes.values())))
    for group in groups:
        wanted = Counter(difficulty(len(case.issues)) for case in group)
        if wanted <= room:
            room -= wanted
            splits["test"] += group
        elif len(splits["valid"]) + len(group) <= num_valid:
            splits["valid"] += group
        else:
            splits["train"] += group
    if missing := +room:
        there = Counter(difficulty(len(case.issues)) for case in cases)
        raise PrepareError(
            f"the test set lacks {dict(missing)}: of {len(cases)} cases {dict(there)} are there, in families that must "
            "stay together; ask for fewer with --test-sizes EASY MEDIUM HARD"
        )
    return splits


def describe(cases: Sequence[Case], count_tokens: Any = None) -> dict[str, float]:
    """Figures of some cases: how many, of which difficulty, and mean and maximum of what they consist of."""
    if not cases:
        return {"num_cases": 0}
    parts = {
        "issues": [len(case.issues) for case in cases],
        "depth": [max(issue.depth for issue in case.issues) for case in cases],
        "claims": [sum(len(issue.claims) for issue in case.sub_issues) for case in cases],
        "laws": [sum(len(issue.relevant_law) for issue in case.issues) for case in cases],
        "question_chars": [len(case.question) for case in cases],
        "answer_chars": [len(case.answer) for case in cases],
    }
    if count_tokens is not None:
        parts["question_tokens"] = [count_tokens(case.question) for case in cases]
    figures: dict[str, float] = {"num_cases": len(cases)}
    figures |= {f"num_{name}": sum(difficulty(len(case.issues)) == name for case in cases) for name in LEVELS}
    for name, values in parts.items():
        figures |= {f"{name}/mean": round(statistics.fmean(values), 2), f"{name}/max": max(values)}
    return figures


def card(
    figures: Mapping[str, Mapping[str, float]], sources: Sequence[str], seed: int, languages: Collection[str]
) -> str:
    """The data set's card: what the hub shows, and where its loaders look for the splits."""
    codes = "".join(f"- {code}\n" for code in sorted(languages))
    splits = [split for split, told in figures.items() if told["num_cases"]]
    rows = [f"| {name} | " + " | ".join(f"{figures[s][name]:,}" for s in splits) + " |" for name in figures[splits[0]]]
    files = "".join(f"  - split: {split}\n    path: {split}.parquet\n" for split in splits)
    return (
        f"---\nlanguage:\n{codes}tags:\n- legal\nconfigs:\n- config_name: default\n  data_files:\n"
        f"{files}---\n\n# Cases as issue trees\n\n"
        "Court cases in the form of LEGIT (arXiv 2512.01020): facts and purposes of claim as the question, the court's "
        "order as the answer, and the tree of the issues that the court decided.\n\n"
        f"Made of {', '.join(Path(source).name for source in sources)} by `data/prepare.py --seed {seed}`. Cases with "
        "nearly the same question, and the instances of one dispute, are in one split. Where the trees were extracted "
        "by a language model and checked by rules only: what the court decided is told in its judgment alone.\n\n"
        f"| | {' | '.join(splits)} |\n|---|{'---:|' * len(splits)}\n" + "\n".join(rows) + "\n"
    )


def write_split(out: Path, split: str, cases: Sequence[Case], *, verl: bool) -> None:
    """SPLIT.jsonl, which keeps all of every record, and SPLIT.parquet, where unofficial keys are JSON in "extra"."""
    records = [to_record(case) for case in cases]
    write_jsonl(out / f"{split}.jsonl", records)
    issue = {"id": "", "summary": "", "claim": [{"claimer": "", "content": ""}], "conclusion": ""}
    like: dict[str, Any] = {"doc_id": "", "question": "", "answer": "", "difficulty": "", "has_tree": True}
    like |= {"issues": [issue | {"relevant_law": [""], "analysis": [""]}], "case_numbers": [""], "language": ""}
    rows = [{key: record.get(key) for key in like} for record in records]
    for row, record in zip(rows, records, strict=True):
        rest = {key: value for key, value in record.items() if key not in like}
        row["extra"] = json.dumps(rest, ensure_ascii=False) if rest else None
    _write_parquet(out / f"{split}.parquet", rows, like | {"extra": ""})
    if verl:
        verl_rows = [verl_row(case) for case in cases]
        _write_parquet(out / "verl" / f"{split}.parquet", verl_rows, verl_rows[0] | {"difficulty": "", "language": ""})


def _write_parquet(path: Path, rows: Sequence[dict[str, Any]], like: Mapping[str, Any]) -> None:
    """Writes rows of the types that an example has: what is empty in all rows of a split must keep its type."""
    pa: Any = importlib.import_module("pyarrow")
    pq: Any = importlib.import_module("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.Table.from_pylist([like]).schema), beside)
    beside.replace(path)


def _draw(path: Path, splits: Splits) -> None:
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3), layout="constrained")
    shown: dict[str, Callable[[Case], int]] = {
        "issues a case": lambda case: len(case.issues),
        "depth of the tree": lambda case: max(issue.depth for issue in case.issues),
        "characters of the question": lambda case: len(case.question),
    }
    for axis, (title, value) in zip(axes, shown.items(), strict=True):
        axis.hist([[value(case) for case in cases] for cases in splits.values()], 20, stacked=True, label=list(splits))
        axis.set_title(title)
    axes[0].legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def prepare(args: argparse.Namespace) -> None:
    """Load, split, describe, write, and push where that was asked for."""
    check_distinct(args.cases)
    cases = [case for source in args.cases for case in load_cases(source, args.split, args.on_invalid)]
    sizes = dict(zip(LEVELS, args.test_sizes, strict=True))
    splits = split_cases(cases, sizes, args.valid_frac, args.seed)
    count_tokens = None
    if args.tokenizer:
        tokenizer = importlib.import_module("transformers").AutoTokenizer.from_pretrained(args.tokenizer)
        count_tokens = lambda text: len(tokenizer.encode(text))  # noqa: E731
    figures = {split: describe(part, count_tokens) for split, part in splits.items()}
    table = Table("", *figures, title=str(args.out))
    for name in max(figures.values(), key=len):
        table.add_row(name, *(f"{told[name]:,}" if name in told else "" for told in figures.values()))
    Console().print(table)

    for split, part in splits.items():
        if part:
            write_split(args.out, split, part, verl=args.verl)
    write_text(args.out / "README.md", card(figures, args.cases, args.seed, {case.language for case in cases}))
    flat = {f"{split}/{name}": value for split, told in figures.items() for name, value in told.items()}
    for path in filter(None, (args.out / "statistics.json", args.json)):
        write_json(path, flat)
    _draw(args.out / "statistics.png", {split: part for split, part in splits.items() if part})
    if args.push_to_hub:
        _push(args.out, args.push_to_hub)


def _push(folder: Path, repo_id: str) -> None:
    hub: Any = importlib.import_module("huggingface_hub")
    try:
        api = hub.HfApi()
        api.create_repo(repo_id, repo_type="dataset", private=True, exist_ok=True)
        api.upload_folder(repo_id=repo_id, repo_type="dataset", folder_path=folder)
    except Exception as error:  # whatever the hub's client and the HTTP library below it raise
        raise PrepareError(f"{folder} is written; it could not be pushed to {repo_id}: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Split cases into train, valid and test by families of documents, a test set with so many cases of "
        "each difficulty; write them as JSON Lines and Parquet with statistics and a data set card.",
        epilog="example: python data/prepare.py outputs/cases/cases.jsonl --out outputs/dataset --test-sizes 10 10 10",
    )
    parser.add_argument("cases", nargs="+", help="case files (JSON Lines or Parquet), folders or hub ids")
    parser.add_argument("--out", required=True, type=output_folder, help="the folder to write")
    parser.add_argument("--split", help="the split of a hub data set")
    parser.add_argument(
        "--on-invalid", default="error", choices=("error", "skip"), help="what to do with invalid cases"
    )
    parser.add_argument(
        "--test-sizes",
        nargs=3,
        type=whole(0),
        default=(100, 100, 100),
        metavar=("EASY", "MEDIUM", "HARD"),
        help="of the test",
    )
    parser.add_argument("--valid-frac", type=number(0, 1), default=0.0, help="of the cases that the test set leaves")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--tokenizer", help="a model's name or folder: counts its tokens too")
    parser.add_argument("--verl", action="store_true", help="write OUT/verl with rows as verl takes them")
    parser.add_argument("--push-to-hub", metavar="OWNER/NAME", help="upload OUT there, as a private data set")
    parser.add_argument("--json", type=output_file(), metavar="PATH", help="write the figures there too")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 for wrong input."""
    return run_command(_parser(), prepare, argv)


if __name__ == "__main__":
    sys.exit(main())
