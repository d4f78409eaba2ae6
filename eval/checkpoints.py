"""Base and checkpoints of a run, solved by one engine, graded, and shown side by side."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from data.cases import Case
from data.jsonl import Appender, write_json
from data.loading import load_cases
from eval.curves import draw_curves
from eval.engine import Engine, Prompts, lora_rank, weights_id
from eval.flags import JUDGE_HELP, add_config_options, config_from, judge_options, positive
from eval.judging import DeadJudgeError, grade_file
from eval.metrics import PARTS, Scores, paired_difference
from eval.progress import progress_bar
from eval.results import INPUT_ERRORS, Grade, InputError, Key, Response, pin_settings, read_responses, set_aside
from eval.runs import Checkpoint, Run, find_checkpoints, read_run
from eval.solve import Question, ask_about, ask_policy, unanswered
from eval.summary import Figures, interval_cell, new_table, print_tables, scores_by_case, summarize_grades
from rewards.gates import GateConfig
from rewards.judge import JudgeConfig

TEMPERATURES = {"greedy": 0.0, "t1": 1.0}
LABELS = {"greedy": "greedy", "t1": "sampled at temperature 1"}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One checkpoint asked in one way: its folder, and all questions that it has to answer."""

    checkpoint: Checkpoint
    sampling: str
    directory: Path
    questions: tuple[Question, ...]

    @property
    def responses_path(self) -> Path:
        """Where its responses are, or will be."""
        return self.directory / "responses.jsonl"


def plan(
    run: Run,
    checkpoints: Sequence[Checkpoint],
    cases: Sequence[Case],
    samplings: Sequence[str],
    num_samples: int,
    out: Path,
) -> list[Evaluation]:
    """Every checkpoint in every way of sampling; greedy decoding has one sample, whatever `num_samples` says."""
    questions = {
        sampling: tuple(ask_about(cases, num_samples if TEMPERATURES[sampling] else 1, run.prompt_style))
        for sampling in samplings
    }
    return [
        Evaluation(checkpoint, sampling, out / checkpoint.name / sampling, questions[sampling])
        for checkpoint in checkpoints
        for sampling in samplings
    ]


def solve_missing(run: Run, evaluations: Sequence[Evaluation], tensor_parallel_size: int) -> None:
    """Fill every responses file: one engine, if any is needed, goes through the checkpoints that lack responses."""
    todo: list[tuple[Evaluation, list[Question]]] = []
    for evaluation in evaluations:
        _pin(evaluation, run)
        if questions := unanswered(evaluation.questions, evaluation.responses_path):
            todo.append((evaluation, questions))
    if not todo:
        return

    policies = [evaluation.checkpoint.policy for evaluation, _ in todo]
    prompts = Prompts(policies[-1], run.chat_template_kwargs)
    longest = max(len(prompts.encode(question.messages)) for _, questions in todo for question in questions)
    engine = Engine(
        policies[0],
        max_model_len=longest + run.max_completion_length,
        max_lora_rank=max((lora_rank(policy.adapter) for policy in policies if policy.adapter), default=0),
        dtype=run.dtype,
        tensor_parallel_size=tensor_parallel_size,
    )
    with progress_bar("responses", sum(len(questions) for _, questions in todo)) as advance:
        for evaluation, questions in todo:
            engine.load(evaluation.checkpoint.policy)
            with Appender(evaluation.responses_path) as file:

                def keep(response: Response, file: Appender = file) -> None:
                    file.append(response.to_record())
                    advance()

                ask_policy(
                    engine,
                    prompts,
                    questions,
                    evaluation.checkpoint.name,
                    keep,
                    temperature=TEMPERATURES[evaluation.sampling],
                    max_tokens=run.max_completion_length,
                )


def grade_all(
    evaluations: Sequence[Evaluation], cases: Mapping[str, Case], judge: JudgeConfig, gates: GateConfig
) -> list[dict[Key, Grade]]:
    """The grades of every evaluation, in order; only those that are missing are asked for."""
    graded = []
    for evaluation in evaluations:
        asked = {(question.case_id, question.sample) for question in evaluation.questions}
        file = read_responses(evaluation.responses_path)
        file = replace(file, responses=tuple(response for response in file.responses if response.key in asked))
        title = f"grades of {evaluation.checkpoint.name}, {evaluation.sampling}"
        graded.append(grade_file(cases, file, evaluation.directory, judge, gates, title))
    return graded


def compare_with_base(evaluations: Sequence[Evaluation], graded: Sequence[dict[Key, Grade]]) -> dict[str, float | None]:
    """For each way of sampling, how much higher the last checkpoint is than the base, on the same cases."""
    scores: dict[str, list[Scores]] = {}
    for evaluation, grades in zip(evaluations, graded, strict=True):
        scores.setdefault(evaluation.sampling, []).append(scores_by_case(grades))
    return {
        f"{sampling}/{name}": value
        for sampling, each in scores.items()
        for name, value in paired_difference(each[0], each[-1]).items()
    }


def checkpoints_table(sampling: str, rows: Mapping[str, Figures], difference: Figures) -> Table:
    """The checkpoints one below the other, and what the last one has over the base."""
    shows_extra = any("extra_issues/mean" in figures for figures in rows.values())
    table = new_table(LABELS[sampling])
    if shows_extra:
        table.caption = f"{table.caption}; extra: issues per response that the court did not treat"
    for heading in ("", *PARTS, "unscored", *(["extra"] if shows_extra else [])):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=not heading, min_width=len(heading))
    for name, figures in rows.items():
        cells = [interval_cell(figures, f"mean/{part}") for part in PARTS]
        unscored = figures["unscored_frac"]
        cells.append("-" if unscored is None else f"{unscored:.1%}")
        if shows_extra:
            cells.append(f"{figures.get('extra_issues/mean') or 0:.2f}")
        table.add_row(name, *cells)
    table.add_section()
    table.add_row("gain over base", *(interval_cell(difference, f"{sampling}/diff/{part}") for part in PARTS))
    return table


def evaluate(args: argparse.Namespace) -> None:
    """Solve, grade and show the run."""
    run = read_run(args.run_dir)
    out = args.out or run.directory / "eval"
    source = args.cases or run.eval_cases
    if source is None:
        raise InputError(f"{args.run_dir} was configured without eval_cases: say which with --cases")
    judged_by = judge_options(args.judged_by) if args.judged_by else {}
    judge = config_from(JudgeConfig, {"judge_store": str(out / "judge_store"), **_set(run.judge), **judged_by}, args)
    gates = config_from(GateConfig, run.gates, args)
    cases = load_cases(source, args.split if args.cases else run.eval_split)[: args.limit]
    by_id = {case.id: case for case in cases}
    checkpoints, partial = find_checkpoints(run)
    if partial:
        print(f"left out, not whole (being written, or sharded): {', '.join(partial)}", file=sys.stderr)

    evaluations = plan(run, checkpoints, cases, args.sampling, args.samples, out)
    solve_missing(run, evaluations, args.tensor_parallel_size)
    graded = grade_all(evaluations, by_id, judge, gates)

    rows: dict[str, dict[str, Figures]] = {sampling: {} for sampling in args.sampling}
    for evaluation, grades in zip(evaluations, graded, strict=True):
        figures = summarize_grades(grades, by_id)
        write_json(evaluation.directory / "summary.json", figures)
        rows[evaluation.sampling][evaluation.checkpoint.name] = figures
    difference = compare_with_base(evaluations, graded)
    summary = {
        f"{sampling}/{name}/{key}": value
        for sampling, by_name in rows.items()
        for name, figures in by_name.items()
        for key, value in figures.items()
    } | difference
    for path in (out / "summary.json", *([args.json] if args.json else [])):
        write_json(path, summary)
    steps = {checkpoint.name: checkpoint.step for checkpoint in checkpoints if checkpoint.step is not None}
    curves = {
        LABELS[sampling]: [(steps[name], figures) for name, figures in by_name.items() if name in steps]
        for sampling, by_name in rows.items()
    }
    draw_curves(curves, f"LEGIT score and its parts on {len(cases)} held-out cases", out / "curves.png")

    print_tables(checkpoints_table(sampling, by_name, difference) for sampling, by_name in rows.items())
    for what, path in (("curves", "curves.png"), ("figures", "summary.json"), ("responses and grades", "*/*/*.jsonl")):
        print(f"{what}: {out / path}")


def _pin(evaluation: Evaluation, run: Run) -> None:
    """Settings of a folder; what other weights gave, from an earlier run into the same place, makes way."""
    path = evaluation.directory / "responses.meta.json"
    settings = {
        "weights": weights_id(evaluation.checkpoint.policy),
        "prompt_style": run.prompt_style,
        "temperature": TEMPERATURES[evaluation.sampling],
        "max_tokens": run.max_completion_length,
    }
    if path.is_file() and json.loads(path.read_text(encoding="utf-8"))["weights"] != settings["weights"]:
        print(
            f"{evaluation.directory} is of other weights; it is now {set_aside(evaluation.directory)}", file=sys.stderr
        )
    pin_settings(path, settings)


def _set(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _samplings(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in TEMPERATURES]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(TEMPERATURES)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Evaluate the base model and every checkpoint of a training run on held-out cases: one vLLM engine "
        "answers for all of them, the run's judge grades, and a table and curves show score, order, coverage and "
        "correctness apart. Cases, prompts, length limit and judge are the run's own unless told otherwise. "
        "Only what is missing is computed.",
        epilog="example: python eval/checkpoints.py outputs/mini --sampling greedy,t1 --limit 200",
    )
    parser.add_argument("run_dir", help="the run's output_dir")
    parser.add_argument("--cases", help="case file or hub id (default: the run's eval_cases)")
    parser.add_argument("--split", help="the split of --cases, if it is a hub data set")
    parser.add_argument("--limit", type=positive, help="only the first so many cases")
    parser.add_argument(
        "--sampling", type=_samplings, default=["greedy", "t1"], help="greedy, t1 (temperature 1) or both"
    )
    parser.add_argument("--samples", type=positive, default=1, help="responses per case at temperature 1")
    parser.add_argument("--out", type=Path, help="folder for everything that is written (default: RUN_DIR/eval)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument(
        "--tensor-parallel-size", type=positive, default=1, help="GPUs that share one copy of the model"
    )
    judging = parser.add_argument_group("the judge (default: the run's own)")
    judging.add_argument("--judge", dest="judged_by", help=JUDGE_HELP)
    add_config_options(judging, JudgeConfig, skip=("judge", "judge_base_url", "judge_deadline_s"))
    add_config_options(parser.add_argument_group("gates, told beside the score"), GateConfig)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when all is graded, 1 for a dead judge, 2 for wrong input, 130 when interrupted."""
    args = _parser().parse_args(argv)
    try:
        evaluate(args)
    except KeyboardInterrupt:
        print("\nStopped. What arrived is kept; the same command goes on from there.", file=sys.stderr)
        return 130
    except DeadJudgeError as error:
        print(f"{error}\nWhat arrived is kept; the same command goes on from there.", file=sys.stderr)
        return 1
    except INPUT_ERRORS as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
