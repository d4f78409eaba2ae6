"""How far cheaper or softer verdicts agree with one call an issue: `python -m benchmarks.judge_agreement`."""

import argparse
import asyncio
import sys
import time
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from data.cases import Case
from data.command import positive, whole
from data.endpoint import EndpointStats
from data.jsonl import read_jsonl, write_json
from data.loading import load_cases
from eval.reliability import cohen_kappa
from rewards.answer import final_answer
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.score import Judgment

FIELDS = ("contains_issue", "correct_conclusion")
WAYS: tuple[tuple[str, str, dict[str, Any]], ...] = (  # name, secret of the marks around the response, settings
    ("one issue a call", "a", {}),
    ("soft", "a", {"judge_verdict": "soft"}),
    ("all issues in a call", "a", {"judge_issues_per_call": "all"}),
    ("one issue a call, other marks", "b", {}),
)
Verdicts = dict[tuple[int, str], Judgment | None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Has real responses judged by a real judge: each issue in a call of its own, soft verdicts, all "
        "issues of a response in one call, and the first way again with other marks around the response, which says "
        "how far verdicts move by themselves. Prints Cohen's kappa with the first way for both fields (soft verdicts "
        "cut at 0.5), and beside it what each way costs. The ways take turns response by response, so that a server "
        "keeps the prefix; the first way therefore pays for that of all but the last.",
        epilog="example: python -m benchmarks.judge_agreement cases.jsonl responses.jsonl --judge "
        "http://localhost:8001/v1 --model Qwen/Qwen2.5-32B-Instruct",
    )
    parser.add_argument("cases", help="Cases: a file, a folder or a hub id.")
    parser.add_argument("responses", type=Path, help="responses.jsonl: doc_id and response.")
    parser.add_argument("--judge", metavar="URL", required=True, help="The judge, up to and with /v1.")
    parser.add_argument("--model", required=True, help="The model's name there.")
    parser.add_argument("--num", type=positive, default=50, help="Responses to judge, the first of the file (50).")
    parser.add_argument("--max-chars", type=whole(0), default=0, help="Only responses that are no longer; 0: all (0).")
    parser.add_argument("--rationales", action="store_true", help="Have the judge give its reason first.")
    parser.add_argument("--timeout-s", type=float, default=600, help="For one call (600).")
    parser.add_argument("--json", type=Path, help="Write the figures here too.")
    args = parser.parse_args()
    cases = {case.id: case for case in load_cases(args.cases)}
    answered = [(cases[row["doc_id"]], final_answer(row["response"])) for _, row in read_jsonl(args.responses)]
    items = [item for item in answered if not args.max_chars or len(item[1]) <= args.max_chars][: args.num]
    config = JudgeConfig(
        judge_base_url=args.judge,
        judge_model=args.model,
        judge_rationales=args.rationales,
        judge_repeat_frac=0.0,
        judge_timeout_s=args.timeout_s,
    )
    found, spent, seconds = asyncio.run(judge_all(config, items))
    figures = report(found, spent, seconds)
    if args.json:
        write_json(args.json, figures)


async def judge_all(
    config: JudgeConfig, items: list[tuple[Case, str]]
) -> tuple[list[Verdicts], list[EndpointStats], list[float]]:
    """The verdicts of each way by response and issue, what it asked of the endpoint, and its seconds."""
    judges = []
    for _, secret, keys in WAYS:
        way = replace(config, **keys)
        if isinstance(judge := load_judge(way), Judge):  # it is: there is a URL
            judges.append(Judge(way, judge.endpoint, secret=secret))
    found: list[Verdicts] = [{} for _ in judges]
    seconds = [0.0] * len(judges)
    for number, (case, answer) in enumerate(items):
        for way, judge in enumerate(judges):
            started = time.perf_counter()
            verdicts = await judge.judge_case(case, answer)
            seconds[way] += time.perf_counter() - started
            found[way] |= {(number, id): judgment for id, judgment in verdicts.items()}
        print(f"{number + 1} of {len(items)} responses, {sum(seconds):.0f} s", file=sys.stderr)
    for judge in judges:
        await judge.endpoint.close()
    return found, [judge.stats for judge in judges], seconds


def report(found: list[Verdicts], spent: list[EndpointStats], seconds: list[float]) -> dict[str, float]:
    """Prints the table; the same as flat figures, without a kappa that is not defined."""
    figures: dict[str, float] = {}
    table = Table(title=f"agreement with {WAYS[0][0]}, {len(found[0])} verdicts")
    for column in ("way", "missing", "contained", "correct", "calls", "tokens in", "out", "seconds"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for (name, *_), verdicts, stats, took_s in zip(WAYS, found, spent, seconds, strict=True):
        kappas = [kappa(found[0], verdicts, field) for field in FIELDS]
        missing = sum(verdict is None for verdict in verdicts.values())
        table.add_row(
            name, str(missing), *("–" if isnan(value) else f"{value:.2f}" for value in kappas),
            f"{stats.calls:,}", f"{stats.tokens_in:,}", f"{stats.tokens_out:,}", f"{took_s:.0f}",
        )  # fmt: skip
        figures |= {
            f"{name}/kappa/{field}": value for field, value in zip(FIELDS, kappas, strict=True) if not isnan(value)
        }
        figures |= {f"{name}/missing": missing, f"{name}/calls": stats.calls, f"{name}/seconds": took_s}
        figures |= {f"{name}/tokens_in": stats.tokens_in, f"{name}/tokens_out": stats.tokens_out}
    Console().print(table)
    return figures


def kappa(first: Verdicts, other: Verdicts, field: str) -> float:
    """Cohen's kappa over what both ways have judged; NaN where one of them always says the same.

    >>> yes, no = Judgment(True, True), Judgment(False, False)
    >>> kappa({(0, ""): yes, (0, "1"): no}, {(0, ""): yes, (0, "1"): no}, "contains_issue")
    1.0
    """
    both = [(a, b) for key, a in first.items() if a is not None and (b := other[key]) is not None]
    values = np.array([[getattr(pair[way], field) > 0.5 for pair in both] for way in (0, 1)], dtype=float)
    return float(cohen_kappa(values, np.ones((1, len(both))))[0])


if __name__ == "__main__":
    main()
