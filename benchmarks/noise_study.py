"""How good must a judge be to train against? Mini runs whose simulated judge errs at known rates, scored exactly."""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.mini_runs import World, run_once
from benchmarks.simulated_noise import Noise, SimulatedNoisyJudge
from data.cases import Case
from data.jsonl import read_jsonl, write_json
from data.loading import load_cases
from eval.reliability import interval_alpha, pearson
from rewards.mini_judge import MiniJudge
from rewards.score import CORRECTNESS_POINTS, COVERAGE_POINTS, ORDER_POINTS, score_case

Families = Mapping[str, Sequence[tuple[str, Noise]]]


def even(rate: float, **how: Any) -> Noise:
    """As many false yes as false no."""
    return Noise(false_positive=rate, false_negative=rate, **how)


FAMILIES: Families = {
    "hard verdicts": [(f"{rate:.0%}", even(rate)) for rate in (0.0, 0.1, 0.2, 0.3, 0.4)],
    "majority of 3, errors independent": [
        (f"votes {rate:.0%}", even(rate, votes=3, repeats="call")) for rate in (0.2, 0.4)
    ],
    "soft verdicts": [(f"soft {rate:.0%}", even(rate, soft=True)) for rate in (0.2, 0.4)],
    "the same issues misjudged always": [(f"by name {rate:.0%}", even(rate, repeats="name")) for rate in (0.2, 0.4)],
    "lenient: 40 % of no is yes": [("lenient", Noise(false_positive=0.4))],
    "strict: 40 % of yes is no": [("strict", Noise(false_negative=0.4))],
}
PARTS = ("score", "order", "coverage", "correctness")
POINTS = np.array([ORDER_POINTS, COVERAGE_POINTS, CORRECTNESS_POINTS])
RUN = {"max_steps": 40, "eval_steps": 20, "eval_judge": "mini"}


def agreement(noise: Noise, answers: Sequence[tuple[Case, str]]) -> tuple[float, float]:
    """Krippendorff's alpha (interval) and correlation of the noisy judge's scores of ten with the exact judge's."""

    async def totals(judge: MiniJudge) -> list[float]:
        scores = [score_case(case, await judge.judge_case(case, answer)) for case, answer in answers]
        return [score.total for score in scores if score is not None]

    both = np.array([asyncio.run(totals(judge)) for judge in (MiniJudge(), SimulatedNoisyJudge(noise))])
    once = np.ones((1, len(answers)))
    return float(interval_alpha(both, once)[0]), float(pearson(both, once)[0])


def case_totals(line: Mapping[str, Any], place: int) -> dict[str, float]:
    """Case id -> exact score of ten at an evaluation of a run: 0 the first, -1 the last."""
    return {id: float(POINTS @ parts) for id, parts in line["evaluations"][place]["scores"].items()}


def gain_interval(lines: Sequence[Mapping[str, Any]], num_resamples: int = 10_000) -> tuple[float, float, float]:
    """Last less first evaluation in points, with its 95 % interval: seeds and cases are both drawn with replacement."""
    ids = sorted(case_totals(lines[0], 0))
    pairs = [(case_totals(line, 0), case_totals(line, -1)) for line in lines]
    gains = np.array([[last[id] - first[id] for id in ids] for first, last in pairs])
    rng = np.random.default_rng(0)
    seeds = rng.integers(len(gains), size=(num_resamples, len(gains)))
    cases = rng.integers(len(ids), size=(num_resamples, len(ids)))
    drawn = [gains[one][:, other].mean() for one, other in zip(seeds, cases, strict=True)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(gains.mean()), float(low), float(high)


def figures_of(noise: Noise, lines: Sequence[Mapping[str, Any]], answers: Sequence[tuple[Case, str]]) -> dict[str, Any]:
    """What a setting comes to over its seeds; `score/seeds` has each seed's last held-out score."""
    agreements = [agreement(replace(noise, seed=line["seed"]), answers) for line in lines]
    gain, low, high = gain_interval(lines)
    last = [line["evaluations"][-1] for line in lines]
    return {
        **asdict(noise),
        "num_seeds": len(lines),
        "alpha": fmean(alpha for alpha, _ in agreements),
        "correlation": fmean(correlation for _, correlation in agreements),
        "base/score": fmean(line["evaluations"][0]["score"] for line in lines),
        **{part: fmean(one[part] for one in last) for part in PARTS},
        "score/seeds": [one["score"] for one in last],
        "gain": gain,
        "gain/low": low,
        "gain/high": high,
        "seen_by_judge": fmean(fmean(row["score/total"] for row in line["training"][-5:]) for line in lines),
    }


def draw(figures: Mapping[str, Mapping[str, Any]], families: Families, path: Path) -> None:
    """The held-out score over alpha, and over correlation; a point each seed, a line through the means of a family."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
    for axes, name in zip(figure.subplots(1, 2, sharey=True), ("alpha", "correlation"), strict=True):
        for (family, settings), colour in zip(families.items(), colours, strict=True):
            shown = sorted((one for setting, _ in settings if (one := figures.get(setting))), key=lambda one: one[name])
            label: str | None = family
            for one in shown:
                axes.scatter([one[name]] * one["num_seeds"], one["score/seeds"], s=14, color=colour, alpha=0.5)
            if shown:
                axes.plot([o[name] for o in shown], [o["score"] for o in shown], "o-", color=colour, label=label)
        axes.axhline(fmean(one["base/score"] for one in figures.values()), color="grey", linestyle="--", label="base")
        axes.set_xlabel({"alpha": "Krippendorff's alpha of judge and truth", "correlation": "correlation"}[name])
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("held-out score of 10, exact, temperature 1")
    figure.axes[1].legend(frameon=False, fontsize=8, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def show(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """A row for each setting."""
    table = Table("judge", "seeds", "alpha", "corr.", "score", "order", "coverage", "correctn.", "gain", "judge saw")
    for setting, one in figures.items():
        gain = f"{one['gain']:+.2f} [{one['gain/low']:.2f},{one['gain/high']:.2f}]"
        numbers = (one[name] for name in ("alpha", "correlation", *PARTS))
        seen = f"{one['seen_by_judge']:.2f}"
        table.add_row(setting, str(one["num_seeds"]), *(f"{number:.2f}" for number in numbers), gain, seen)
    Console(width=130).print(table)


def main() -> None:
    """Train what is missing, then tell what stands: a killed study goes on with the same command."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python -m benchmarks.noise_study --seeds 0 1 2 --picture noise.png"
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="none: only tell what stands")
    parser.add_argument(
        "--demo", type=Path, default=Path("outputs/demo"), help="the finished demo: cases, base, answers"
    )
    parser.add_argument("--out", type=Path, default=Path("outputs/noise_study"))
    parser.add_argument("--picture", type=Path, help="default: judge_noise.png in the folder")
    args = parser.parse_args()
    results = args.out / "results.jsonl"
    settings = {name: noise for family in FAMILIES.values() for name, noise in family}
    for seed in args.seeds:
        for setting, noise in settings.items():
            words = ("-m", "benchmarks.simulated_noise", json.dumps(asdict(replace(noise, seed=seed))))
            run_once(results, {"setting": setting, "seed": seed}, World(folder=args.demo), {**RUN, "seed": seed}, words)

    cases = {case.id: case for case in load_cases(args.demo / "test.jsonl")}
    rows = read_jsonl(args.demo / "run/eval/base/t1/responses.jsonl")
    answers = [(cases[row["doc_id"]], row["response"]) for _, row in rows]
    lines: dict[str, list[Any]] = {}
    for _, line in read_jsonl(results):
        lines.setdefault(line["setting"], []).append(line)
    figures = {name: figures_of(noise, lines[name], answers) for name, noise in settings.items() if name in lines}
    show(figures)
    draw(figures, FAMILIES, args.picture or args.out / "judge_noise.png")
    write_json(args.out / "figures.json", figures)


if __name__ == "__main__":
    main()
