"""From raw court judgments to LEGIT cases, in stages that a model answers (arXiv 2512.01020, section 3)."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from data.blocks import Folder, Plan
from data.building import Advance, Builder, Meter, build_all, code_id, estimate
from data.command import (
    InputError,
    add_endpoint_options,
    endpoint_of,
    json_object,
    number,
    output_file,
    output_folder,
    positive,
    request_of,
    run_command,
)
from data.jsonl import write_json, write_jsonl
from data.language import DEFAULT_LANGUAGE
from data.selection import RULES_PATH, load_rules
from data.store import Store


def build(args: argparse.Namespace) -> int:
    """Build what the output folder lacks; returns how many judgments are unfinished in the end."""
    if not args.dry_run and not args.base_url:
        raise InputError("--base-url is missing: which endpoint is to be asked? (--dry-run asks none)")
    if args.budget is not None and not any(args.price):
        raise InputError("--budget needs --price IN OUT: what does the endpoint charge for a million tokens?")
    for room in filter(Path.is_dir, map(Path, args.judgments)):
        if args.out.resolve().is_relative_to(room.resolve()):
            raise InputError(f"--out {args.out} lies among the judgments of {room}: name a folder outside of it")
    if find_spec("rapidfuzz") is None:
        raise InputError('building needs further packages: pip install "legit-rl[build]"')
    rules = load_rules(args.rules)
    folder = Folder(args.out)
    with Console(stderr=True).status("reading and selecting judgments"):
        plan = Plan(args.judgments, args.text_column, rules, args.second_opinion, args.limit)
    figures: dict[str, Any] = {"read": plan.num_kept + len(plan.dropped), "dropped": len(plan.dropped)}
    reasons = Counter(reason.partition(": ")[0] for drop in plan.dropped for reason in drop["reasons"])
    figures |= {f"dropped/{reason}": count for reason, count in reasons.most_common()}
    sampling = request_of(args)

    if args.dry_run:
        questions, tokens_in, tokens_out = estimate(plan, folder, args.model, DEFAULT_LANGUAGE, sampling)
        figures |= {"questions": questions, "tokens_in": round(tokens_in), "tokens_out": round(tokens_out)}
        figures["cost"] = round((tokens_in * args.price[0] + tokens_out * args.price[1]) / 1e6, 4)
        _report("estimate; nothing was asked", figures, args.json)
        return 0

    write_jsonl(args.out / "dropped.jsonl", plan.dropped)
    endpoint = endpoint_of(args)
    meter = Meter(endpoint.stats, tuple(args.price), args.budget)
    builder = Builder(endpoint, meter, DEFAULT_LANGUAGE, sampling)
    way = Store.key(code=code_id(), model=args.model, language=DEFAULT_LANGUAGE, sampling=sampling)

    async def run(advance: Advance) -> int:
        async with endpoint:
            return await build_all(plan, folder, builder, way, args.concurrency, advance)

    with _progress(plan.num_kept, meter) as advance:
        num_elsewhere = asyncio.run(run(advance))
    figures |= folder.gather(plan)
    figures["tokens_in"], figures["tokens_out"] = meter.tokens
    figures["cost"] = round(meter.spent, 4)
    write_json(args.out / "report.json", figures)
    _report(f"{args.out}", figures, args.json)
    if meter.num_estimated:
        print(
            f"{meter.num_estimated} replies came without usage: their tokens and cost are estimated from their length.",
            file=sys.stderr,
        )
    if num_elsewhere:
        print(f"{num_elsewhere} judgments are with another worker on this folder.", file=sys.stderr)
    for source, failure in list(builder.failures.items())[:20]:
        print(f"{source}: {failure}", file=sys.stderr)
    if builder.stop_reason:
        print(f"Stopped: {builder.stop_reason}. The same command goes on from here.", file=sys.stderr)
    return int(figures["unfinished"])


def _report(title: str, figures: dict[str, Any], path: Path | None) -> None:
    table = Table("", "", title=title, show_header=False)
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)
    if path is not None:
        write_json(path, figures)


@contextmanager
def _progress(total: int, meter: Meter) -> Iterator[Advance]:
    """The bar on stderr: how far, how fast, how long still, what was spent and what that makes for the rest."""
    columns = (TextColumn("judgments"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[told]}"), console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=total, told="")
        num_paid = 0

        def advance(count: int, *, is_new: bool) -> None:
            nonlocal num_paid
            num_paid += count if is_new else 0
            progress.advance(bar, count)
            task = progress.tasks[0]
            spent = meter.spent if any(meter.prices) else float(sum(meter.tokens))
            rest = spent / num_paid * task.remaining if num_paid and task.remaining else 0.0
            unit = ".2f" if any(meter.prices) else ",.0f"
            speed = f"{60 * task.speed:.1f}/min, " if task.speed else ""
            what = "" if any(meter.prices) else " tokens"
            progress.update(bar, told=f"{speed}{spent:{unit}}{what} spent, about {rest:{unit}} to go")

        yield advance


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Turn court judgments into LEGIT cases. Judgments whose outcome the court's discretion decides are "
        "dropped; of the others a model extracts facts and issue trees, stage by stage, through any OpenAI-compatible "
        "endpoint; what does not stand the checks is rejected. OUT gets cases.jsonl, rejected.jsonl and dropped.jsonl "
        "with every reason, judgments.jsonl with the texts, report.json. Nothing is paid for twice: a run that was "
        "stopped goes on when the same command is given again, and several may work on one OUT at one time.",
        epilog="example: python data/build.py judgments/ --out outputs/cases --base-url http://localhost:8000/v1 "
        "--model google/gemma-3-27b-it --limit 20",
    )
    parser.add_argument(
        "judgments", nargs="+", help="folder, .jsonl, .parquet, .csv, .txt, .html, .pdf or .docx file, or hub id"
    )
    parser.add_argument("--out", required=True, type=output_folder, help="the folder to build in")
    parser.add_argument("--text-column", help="where the judgments are rows: the column with the text")
    parser.add_argument("--rules", default=RULES_PATH, type=Path, help="which judgments to take: a YAML file")
    parser.add_argument("--second-opinion", action="store_true", help="ask the model about borderline judgments")
    parser.add_argument("--limit", type=positive, help="only the first so many judgments that are not dropped")
    parser.add_argument(
        "--dry-run", action="store_true", help="select, estimate the cost of what is missing; ask and write nothing"
    )
    parser.add_argument("--budget", type=number(0), help="stop before this run has cost more; needs --price")
    parser.add_argument(
        *("--price", "--prices"),
        nargs=2,
        type=number(0),
        default=(0.0, 0.0),
        metavar=("IN", "OUT"),
        help="of a million tokens read and written",
    )
    parser.add_argument("--json", type=output_file(), metavar="PATH", help="write the figures there too")
    endpoint = parser.add_argument_group("the model")
    endpoint.add_argument("--model", required=True, help="its name there")
    add_endpoint_options(endpoint, "its endpoint, up to and with /v1")
    endpoint.add_argument("--temperature", type=number(0, 2), default=0.0)
    endpoint.add_argument("--max-tokens", type=positive, default=12000, help="longest reply")
    endpoint.add_argument(
        "--request",
        type=json_object,
        default={},
        metavar="JSON",
        help="more of the request body; null takes a key out",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 if no judgment is left unfinished, 1 if some are, 2 for wrong input, 130 when interrupted."""
    return run_command(_parser(), build, argv, kept="What was paid for is in {out}")


if __name__ == "__main__":
    sys.exit(main())
