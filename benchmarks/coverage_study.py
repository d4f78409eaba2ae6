"""Which reward keeps coverage? Schemes x seeds from one warm start on the mini world, judged exactly on held-out cases.

example: python -m benchmarks.coverage_study --seeds 8
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.mini_runs import PARTS, World, estimate, run_once
from data.command import positive
from data.jsonl import Appender, read_jsonl, write_json, write_text
from data.loading import load_cases
from data.prompts import build_prompt
from eval.curves import draw_curves
from eval.estimates import Estimate
from rewards.mini_judge import MiniJudge
from rewards.schemes import SCHEMES, RewardKind
from rewards.score import score_case

WEIGHTS = np.array(SCHEMES["legit"].weights)
# Without vLLM, whose start takes longer than so small a policy's completions do; the trainer itself writes them. A base
# answer has 20 tokens in the mean, one that treats every issue 35.
RECIPE: Mapping[str, Any] = {"max_steps": 50, "eval_steps": 10, "use_vllm": False, "max_completion_length": 24}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What differs in the world and in the recipe, and what trains."""

    world: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    program: Sequence[str] = ("train/grpo.py",)


PRICED = ("-m", "benchmarks.priced_extras", "0.25")
SETTINGS: Mapping[str, Setting] = {
    "tight": Setting(),
    "budget20": Setting(recipe={"max_completion_length": 20}),
    "budget22": Setting(recipe={"max_completion_length": 22}),
    "budget28": Setting(recipe={"max_completion_length": 28}),
    "budget32": Setting(recipe={"max_completion_length": 32}),
    "kl": Setting(recipe={"beta": 0.05}),
    "long": Setting(recipe={"max_steps": 200, "eval_steps": 50}),
    "no_gate": Setting(recipe={"gate_truncated": False}),
    "order_first": Setting(world={"order_first": True}),
    "undecidable": Setting(world={"undecidable_frac": 0.5}),
    "priced": Setting(recipe={"eval_judge": "mini"}, program=PRICED),
    "priced32": Setting(recipe={"eval_judge": "mini", "max_completion_length": 32}, program=PRICED),
}
SHOWN = ("score", *PARTS)

Line = Mapping[str, Any]


def main() -> None:
    """Run what is missing, then write tables, figures and curves of all that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=positive, default=8)
    parser.add_argument("--schemes", nargs="+", choices=get_args(RewardKind), default=list(SCHEMES))
    parser.add_argument("--setting", choices=SETTINGS, default="tight")
    parser.add_argument("--out", type=Path, default=Path("outputs/coverage_study"))
    args = parser.parse_args()
    if "legit" not in args.schemes:
        parser.error("--schemes must have legit, with which the others are compared")

    setting = SETTINGS[args.setting]
    recipe = {**RECIPE, **setting.recipe}
    world = World(folder=args.out / (f"world-{args.setting}" if setting.world else "world"), **setting.world)
    world.build()
    lines: dict[str, list[Line]] = {scheme: [] for scheme in args.schemes}
    for seed in range(args.seeds):
        for scheme in args.schemes:
            key = {"setting": args.setting, "scheme": scheme, "seed": seed}
            overrides = {**recipe, "seed": seed, "reward": scheme}
            lines[scheme].append(run_once(args.out / "results.jsonl", key, world, overrides, setting.program))
    models = {"base": world.folder / "base"} | {
        f"{scheme}-{seed}": args.out / f"{args.setting}-{scheme}-{seed}"
        for scheme in args.schemes
        for seed in range(args.seeds)
    }
    budget = recipe["max_completion_length"]
    greedy = greedy_scores(models, world.folder / "test.jsonl", budget, args.out / f"greedy-{args.setting}.jsonl")
    report(lines, greedy, args.out / args.setting)


def greedy_scores(models: Mapping[str, Path], cases: Path, budget: int, out: Path) -> dict[str, dict[str, list[float]]]:
    """Model -> case id -> order, coverage, correctness of its greedy answer; only what `out` lacks is asked for."""
    known = {line["model"]: line["scores"] for _, line in read_jsonl(out)} if out.exists() else {}
    if missing := [name for name in models if name not in known]:
        from eval.engine import Engine, Prompts, find_policy

        held_out, judge = load_cases(cases), MiniJudge()
        policies = {name: find_policy(str(models[name])) for name in missing}
        prompts = Prompts(policies[missing[0]])
        ids = [prompts.encode(build_prompt(case, "bare")) for case in held_out]
        engine = Engine(policies[missing[0]], max_model_len=max(map(len, ids)) + budget)
        with Appender(out) as file:
            for name, policy in policies.items():
                engine.load(policy)
                known[name] = {}
                for completion in engine.generate(ids, temperature=0.0, max_tokens=budget):
                    case = held_out[completion.index]
                    score = score_case(case, asyncio.run(judge.judge_case(case, completion.text)))
                    known[name][case.id] = [getattr(score, part) for part in PARTS]
                file.append({"model": name, "scores": known[name]})
    return known


def report(lines: Mapping[str, Sequence[Line]], greedy: Mapping[str, Mapping[str, Any]], out: Path) -> None:
    """Tables onto the terminal and as Markdown, the figures as JSON, curves as PNG."""
    steps = [evaluation["step"] for evaluation in next(iter(lines.values()))[0]["evaluations"]]
    by_step = {
        scheme: [parts_of([line["evaluations"][step]["scores"] for line in of_scheme]) for step in range(len(steps))]
        for scheme, of_scheme in lines.items()
    }
    tables = [
        ("Held-out cases, T=1, after the last step", [(scheme, means(by[-1])) for scheme, by in by_step.items()]),
        ("Change from the base policy", [(scheme, means(by[-1] - by[0])) for scheme, by in by_step.items()]),
        (
            "More than legit, after the last step",
            [(scheme, means(by[-1] - by_step["legit"][-1])) for scheme, by in by_step.items() if scheme != "legit"],
        ),
    ]
    of_base = parts_of([greedy["base"]])
    of_greedy = {scheme: parts_of([greedy[f"{scheme}-{line['seed']}"] for line in by]) for scheme, by in lines.items()}
    tables += [
        ("Greedy, after the last step", [("base", means(of_base)), *((s, means(of)) for s, of in of_greedy.items())]),
        ("Greedy: change from the base policy", [(scheme, means(of - of_base)) for scheme, of in of_greedy.items()]),
        (
            "Greedy: more than legit",
            [(scheme, means(of - of_greedy["legit"])) for scheme, of in of_greedy.items() if scheme != "legit"],
        ),
    ]
    text = "\n".join(table(title, rows) for title, rows in tables) + "\n" + training_table(lines)
    print(text)
    write_text(out / "tables.md", text)
    write_json(out / "figures.json", {title: {name: flat(row) for name, row in rows} for title, rows in tables})
    curves = {
        scheme: [(step, flat(means(values), "mean/")) for step, values in zip(steps, by, strict=True)]
        for scheme, by in by_step.items()
    }
    draw_curves(curves, f"Held-out cases at T=1, {len(lines['legit'])} seeds ({out.name})", out / "curves.png")


def parts_of(scores: Sequence[Mapping[str, Sequence[float]]]) -> NDArray[np.float64]:
    """Seeds x cases x (score, order, coverage, correctness), from what each seed has for each case id."""
    parts = np.array([[of_seed[id] for id in sorted(of_seed)] for of_seed in scores], dtype=np.float64)
    return np.concatenate([parts @ WEIGHTS[:, None], parts], axis=-1)


def means(values: NDArray[np.float64]) -> dict[str, Estimate]:
    """Each part's mean over seeds and cases, with its interval."""
    return {part: estimate(values[..., place]) for place, part in enumerate(SHOWN)}


def flat(row: Mapping[str, Estimate], prefix: str = "") -> dict[str, float | None]:
    """The estimates as flat figures; one seed has no interval, and is drawn as a line."""
    return {
        f"{prefix}{part}{end}": one.value if value is None else value
        for part, one in row.items()
        for end, value in (("", one.value), ("/low", one.low), ("/high", one.high))
    }


def table(title: str, rows: Sequence[tuple[str, Mapping[str, Estimate]]]) -> str:
    """A Markdown table of estimates."""
    head = f"| {title} | {' | '.join(SHOWN)} |\n|---|{'---|' * len(SHOWN)}\n"
    return head + "".join(f"| {name} | {' | '.join(str(row[part]) for part in SHOWN)} |\n" for name, row in rows)


def training_table(lines: Mapping[str, Sequence[Line]]) -> str:
    """What was logged in training: the first tenth of the steps, and the last, as means over steps and seeds."""
    names = {
        "completions/mean_length": "tokens",
        "gate/truncated_frac": "cut off",
        "mini/extra_issues": "extra issues",
        "signal/order_frac": "signal: order",
        "signal/coverage_frac": "coverage",
        "signal/correctness_frac": "correctness",
        "signal/zero_variance_frac": "flat groups",
        "coverage_floor/weight": "floor's weight",
    }
    text = f"| In training: first tenth, last tenth | {' | '.join(names.values())} |\n|---|{'---|' * len(names)}\n"
    for scheme, of_scheme in lines.items():
        cells = []
        for name in names:
            rows = [[row[name] for row in line["training"] if row.get(name) is not None] for line in of_scheme]
            tenth = max(1, len(rows[0]) // 10)
            ends = (slice(tenth), slice(-tenth, None))
            cells.append(", ".join(f"{fmean(v for row in rows for v in row[end]):.2f}" for end in ends if rows[0]))
        text += f"| {scheme} | {' | '.join(cell or '–' for cell in cells)} |\n"
    return text


if __name__ == "__main__":
    main()
