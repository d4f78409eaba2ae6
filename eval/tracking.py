"""Evaluated checkpoints in Weights & Biases or trackio: in the training's own run, on a step axis of their own."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from data.cases import Case
from data.jsonl import write_json
from eval.metrics import PARTS, Figures
from eval.outcomes import issue_outcomes
from eval.results import Grade, Key
from eval.wandb_history import EVALUATION, STEP

LOGGED_NAME = "logged.json"
VERDICT_COLUMNS = ("doc_id", "sample", "difficulty", "issue", "depth", "outcome", "covered", "correct", "rationale")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A checkpoint as it was graded: `step` None where the training step is not known."""

    sampling: str
    name: str
    step: int | None
    figures: Figures
    grades: Mapping[Key, Grade]

    @property
    def key(self) -> str:
        """Names it within its run."""
        return f"{self.sampling}/{self.name}"

    @property
    def digest(self) -> str:
        """Another one for other figures."""
        return hashlib.sha256(json.dumps(dict(self.figures), sort_keys=True).encode()).hexdigest()[:16]


def log_checkpoints(
    run_dir: str | Path, evaluated: Sequence[Evaluated], cases: Mapping[str, Case], judge: Mapping[str, Any]
) -> list[str]:
    """Log what the run's tracker has not seen yet, and return the keys of that.

    Which trackers: `report_to` of the run's config.yaml. Figures go to `eval/<sampling>/...`, the means as
    `eval/<sampling>/score` with `/low` and `/high`, against `eval/step`; verdicts to a table for each checkpoint,
    so that none is written over. RUN_DIR/eval/logged.json remembers what was sent; other figures are sent again.
    """
    run_dir = Path(run_dir)
    config = yaml.safe_load((run_dir / "config.yaml").read_text(encoding="utf-8"))
    trackers = config.get("report_to") or []
    trackers = [trackers] if isinstance(trackers, str) else trackers
    path = run_dir / "eval" / LOGGED_NAME
    logged = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    new = [checkpoint for checkpoint in evaluated if logged.get(checkpoint.key) != checkpoint.digest]
    project = config.get("project") or os.environ.get("WANDB_PROJECT") or "legit-rl"
    if not new or not {"wandb", "trackio"} & set(trackers):
        return []
    if "wandb" in trackers:
        about = {"cases": case_set_id(cases), "num_cases": len(cases), "judge": dict(judge)}
        _log_to_wandb(run_dir, project, config.get("run_name") or run_dir.name, new, evaluated, cases, about)
    if "trackio" in trackers:
        _log_to_trackio(run_dir, project, config.get("run_name"), new)
    write_json(path, logged | {checkpoint.key: checkpoint.digest for checkpoint in new})
    return [checkpoint.key for checkpoint in new]


def case_set_id(case_ids: Iterable[str]) -> str:
    """Short digest of a set of cases, whatever their order."""
    return hashlib.sha256("\n".join(sorted(case_ids)).encode()).hexdigest()[:12]


def tracked_figures(checkpoint: Evaluated) -> dict[str, float]:
    """The figures as a tracker names them; those that are None are left out, for it would plot them as 0."""
    named = {f"eval/{checkpoint.sampling}/{name.removeprefix('mean/')}": v for name, v in checkpoint.figures.items()}
    figures = {name: value for name, value in named.items() if value is not None}
    return figures if checkpoint.step is None else figures | {STEP: checkpoint.step}


def verdict_rows(grades: Mapping[Key, Grade], cases: Mapping[str, Case]) -> list[tuple[Any, ...]]:
    """One row of VERDICT_COLUMNS for each issue of each response."""
    rows: list[tuple[Any, ...]] = []
    for (case_id, sample), grade in grades.items():
        outcomes = issue_outcomes(grade.judgments)
        for issue in cases[case_id].issues:
            judgment = grade.judgments[issue.id]
            verdict = (
                (None, None, "")
                if judgment is None
                else (float(judgment.contains_issue), float(judgment.correct_conclusion), judgment.rationales)
            )
            about = case_id, sample, cases[case_id].difficulty, issue.id, issue.depth, outcomes[issue.id].value
            rows.append((*about, *verdict))
    return rows


def _log_to_wandb(
    run_dir: Path,
    project: str,
    name: str,
    new: Sequence[Evaluated],
    evaluated: Sequence[Evaluated],
    cases: Mapping[str, Case],
    about: Mapping[str, Any],
) -> None:
    import wandb

    id_path = run_dir / "wandb_run_id"  # training keeps its run's id there
    run_id = id_path.read_text(encoding="utf-8").strip() if id_path.is_file() else None
    within_training = wandb.run is not None
    # Without a key W&B would stop; what it keeps offline, `wandb sync` sends later.
    mode: Literal["offline"] | None = None
    if "WANDB_MODE" not in os.environ and not wandb.login(prompt=False):
        mode = "offline"
    run = wandb.run or wandb.init(project=project, name=name, id=run_id, resume="allow", dir=run_dir, mode=mode)
    run.config.update({EVALUATION: about}, allow_val_change=True)
    run.define_metric(STEP)
    run.define_metric("eval/*", step_metric=STEP)
    for checkpoint in new:
        rows = verdict_rows(checkpoint.grades, cases)
        wandb.Table.MAX_ROWS = max(wandb.Table.MAX_ROWS, len(rows))  # what is over it would be cut off
        table = wandb.Table(columns=list(VERDICT_COLUMNS), data=rows)
        run.log(tracked_figures(checkpoint) | {f"eval/verdicts/{checkpoint.key}": table})
    for sampling in {checkpoint.sampling for checkpoint in new}:
        points = [[e.name, *(e.figures[f"mean/{part}"] for part in PARTS)] for e in evaluated if e.sampling == sampling]
        table = wandb.Table(columns=["checkpoint", *PARTS], data=points)
        plot = wandb.plot.scatter(table, "coverage", "correctness", title=f"correctness against coverage, {sampling}")
        run.log({f"eval/{sampling}/coverage_and_correctness": plot})
    if not within_training:
        run.finish()


def _log_to_trackio(run_dir: Path, project: str, name: str | None, new: Sequence[Evaluated]) -> None:
    import trackio

    id_path = run_dir / "wandb_run_id"
    run_id = id_path.read_text(encoding="utf-8").strip() if id_path.is_file() else "eval"
    name = name or f"{run_dir.name}-{run_id}"  # as training names it
    trackio.init(project=project, name=name, resume="allow", auto_log_cpu=False, auto_log_gpu=False)
    for checkpoint in new:
        trackio.log(tracked_figures(checkpoint), step=checkpoint.step)
    trackio.finish()  # type: ignore[no-untyped-call]
