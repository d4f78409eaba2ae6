"""What runs logged to Weights & Biases, read back from its server or from the folders of offline runs."""

import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.command import InputError
from eval.metrics import PARTS
from eval.tables import Cell, Change, Sheet
from eval.tallies import Estimate

PREFIX = "wandb:"
STEP = "eval/step"
EVALUATION = "evaluation"  # the key of the run's config that says which cases were judged how
TRAINING_STEP = "train/global_step"
TRAINING = {part: f"train/score/{'total' if part == 'score' else part}" for part in PARTS}
MAX_ROWS = 12
_FORMS = (
    f"{PREFIX} takes a run's output_dir, its wandb/ or an offline-run-* folder in that, or entity/project/run_id of a "
    "run on W&B's server"
)
_RUN_PATH = re.compile(r"[^/\s.~][^/\s]*/[^/\s]+/(runs/)?[^/\s]+")
_FILE_HEADER = b":W&B"
_BLOCK = 32 * 1024


Curve = Mapping[int, Estimate]
"""A part over the steps of a run; the ends of its interval are nan where none was logged."""


@dataclass(frozen=True, slots=True)
class History:
    """A run's logged rows in their order (of a step's values the last counts), and how it was evaluated."""

    name: str
    rows: tuple[Mapping[str, Any], ...]
    evaluation: Mapping[str, Any] | None

    def samplings(self) -> set[str]:
        """Ways of sampling with logged evaluations: `eval/<sampling>/score`."""
        names = {name for row in self.rows for name in row}
        return {name.split("/")[1] for name in names if name.startswith("eval/") and name.endswith("/score")}

    def evaluated(self, sampling: str) -> dict[str, Curve]:
        """The parts of the evaluated checkpoints."""
        return {part: self._curve(f"eval/{sampling}/{part}", STEP) for part in PARTS}

    def trained(self) -> dict[str, Curve]:
        """The parts of the completions that the run was trained on, by the training judge."""
        return {part: self._curve(name, TRAINING_STEP) for part, name in TRAINING.items()}

    def _curve(self, name: str, step: str) -> Curve:
        points = {}
        for row in self.rows:
            if isinstance(row.get(name), int | float) and row.get(step) is not None:
                bounds = (row.get(f"{name}/{end}", math.nan) for end in ("low", "high"))
                points[int(row[step])] = Estimate(row[name], *bounds)
        return points


def read_history(spec: str) -> History:
    """The history of entity/project/run_id, or of the offline run whose folder, or whose folder's folder, is named.

    Training writes OUTPUT_DIR/wandb/offline-run-*; a resumed run has several of these, which are read as one.

    Raises:
        InputError: no such run.
    """
    if not spec.strip():
        raise InputError(f"{PREFIX} names no run; write {PREFIX}PATH or {PREFIX}ENTITY/PROJECT/ID (an unset variable?)")
    directory = Path(spec)
    if directory.is_dir():
        files = sorted(
            file
            for pattern in ("", "offline-run-*/", "wandb/offline-run-*/")
            for file in directory.glob(f"{pattern}run-*.wandb")
        )
        if not files:
            raise InputError(f"{spec}: no offline run of W&B there (looked for offline-run-*/run-*.wandb)")
        if len({file.name for file in files}) > 1:
            raise InputError(f"{spec} holds several runs, name one: {', '.join(str(file.parent) for file in files)}")
        return _offline_history(files)
    if not _RUN_PATH.fullmatch(spec):
        raise InputError(f"{spec}: no such folder; {_FORMS}")
    import wandb

    try:
        run = wandb.Api().run(spec)
        return History(run.name, tuple(run.scan_history()), run.config.get(EVALUATION))
    except (wandb.errors.Error, ValueError) as error:
        raise InputError(f"{spec}: no such folder, nor a run that W&B gives ({error}); {_FORMS}") from error


def compare_histories(first: History, second: History) -> dict[str, float]:
    """Flat figures `<sampling>/step/<N>/diff/<part>`, with `/low` and `/high` where both runs logged intervals.

    Raises:
        InputError: the runs share no step, or were evaluated on other cases or by other judges.
    """
    figures = {}
    for sampling, step, changes in _steps(first, second):
        for part, change in changes.items():
            name = f"{sampling}/step/{step}/diff/{part}"
            figures[name] = change.centre
            if math.isfinite(change.low):
                figures |= {f"{name}/low": change.low, f"{name}/high": change.high}
    return figures


def history_sheet(first: History, second: History) -> Sheet:
    """The second run minus the first at the steps that both logged, no more than a dozen of them for each sampling."""
    rows: list[tuple[Cell, ...]] = []
    steps = list(_steps(first, second))
    for sampling in dict.fromkeys(sampling for sampling, _, _ in steps):
        of_sampling = [(step, changes) for name, step, changes in steps if name == sampling]
        stride = math.ceil(len(of_sampling) / MAX_ROWS)
        for step, changes in of_sampling[::-1][::stride][::-1]:  # the last one always
            cells = (
                Change(change) if math.isfinite(change.low) else f"{change.centre:+.2f}"
                for change in (changes[part] for part in PARTS)
            )
            rows.append((f"{sampling}, step {step}", *cells))
    return Sheet(
        "runs",
        f"{second.name} minus {first.name}",
        ("", *PARTS),
        tuple(rows),
        "Intervals as if the runs had answered different cases: a history has no cases to pair, so they are too wide. "
        "Compare the runs' folders for paired ones.",
    )


def _steps(first: History, second: History) -> Iterator[tuple[str, int, dict[str, Estimate]]]:
    samplings = first.samplings() & second.samplings()
    if samplings and first.evaluation != second.evaluation:
        raise InputError(
            f"{first.name} and {second.name} were not evaluated alike: {first.evaluation} and {second.evaluation}. "
            "Evaluate both with one judge on the same cases (eval/checkpoints.py --cases --judge)."
        )
    pairs = {sampling: (first.evaluated(sampling), second.evaluated(sampling)) for sampling in sorted(samplings)}
    if not pairs:
        pairs = {"training": (first.trained(), second.trained())}
    num_steps = 0
    for sampling, (before, after) in pairs.items():
        shared = set.intersection(*(set(curves[part]) for curves in (before, after) for part in PARTS))
        num_steps += len(shared)
        for step in sorted(shared):
            yield (
                sampling,
                step,
                {part: _difference(before[part][step], after[part][step]) for part in PARTS},
            )
    if not num_steps:
        raise InputError(f"{first.name} and {second.name} logged no figures at a common step")


def _difference(first: Estimate, second: Estimate) -> Estimate:
    """Of independent means: the distances to the bounds add like standard errors, by squares."""
    centre = second.centre - first.centre
    return Estimate(
        centre,
        centre - math.hypot(second.centre - second.low, first.high - first.centre),
        centre + math.hypot(second.high - second.centre, first.centre - first.low),
    )


def _offline_history(files: list[Path]) -> History:
    name, rows, evaluation = files[0].parent.name, [], None
    for file in files:
        for record in _records(file):
            if record.HasField("run"):
                name = record.run.display_name or name
                evaluation = _items(record.run.config.update).get(EVALUATION, evaluation)
            elif record.HasField("config"):
                evaluation = _items(record.config.update).get(EVALUATION, evaluation)
            elif record.HasField("history"):
                rows.append(_items(record.history.item))
    return History(name, tuple(rows), evaluation)


def _items(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def _records(path: Path) -> Iterator[Any]:
    """The records of a .wandb file: a log of LevelDB's format (blocks of 32 KiB, records in pieces) of protobufs."""
    from wandb.proto.wandb_internal_pb2 import Record

    content = path.read_bytes()
    if not content.startswith(_FILE_HEADER):
        raise InputError(f"{path} is no file of an offline W&B run")
    place, pieces = 7, b""
    while place + 7 <= len(content):
        left = _BLOCK - place % _BLOCK
        if left < 7:  # too little for a piece's header: filled with zeros
            place += left
            continue
        length, kind = struct.unpack_from("<HB", content, place + 4)
        piece = content[place + 7 : place + 7 + length]
        place += 7 + length
        if len(piece) < length:
            return  # a run that is still being written, or was killed
        pieces += piece
        if kind in (1, 4):  # whole, or the last piece
            record = Record()
            record.ParseFromString(pieces)
            yield record
            pieces = b""
