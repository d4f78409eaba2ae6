"""The official expert files: one JSON object, generator -> doc_id -> marks."""

import json
from pathlib import Path
from typing import Any

from data.command import InputError
from eval.results import Response
from rewards.score import Judgment


def read_expert_file(path: Path) -> list[tuple[Response, dict[str, Judgment | None], Any]] | None:
    """The marks of an official expert file, None where the file is of another kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError:  # several objects: JSON Lines, whose reader names what may be wrong with them
        return None
    if not isinstance(content, dict) or "doc_id" in content:
        return None
    found: list[tuple[Response, dict[str, Judgment | None], Any]] = []
    for generator, by_case in content.items():
        for doc_id, entry in _object(by_case, path, generator).items():
            place = f"{generator}, {doc_id}"
            entry = _object(entry, path, place)
            marks = _object(entry.get("evaluation_result"), path, f"{place}, evaluation_result")
            judged = {id: _mark(mark, path, f"{place}, issue {id!r}") for id, mark in marks.items()}
            found.append((Response(doc_id, "", generator), judged, entry.get("score")))
    return found


def _mark(mark: Any, path: Path, place: str) -> Judgment | None:
    """An expert's mark, None where it is blank; of an issue that is not there, a blank conclusion is a no."""
    if mark is None:
        return None
    contained, correct = (_object(mark, path, place).get(name) for name in ("contains_issue", "correct_conclusion"))
    if contained is None or (correct is None and contained):
        return None
    try:
        return Judgment(contained, correct or 0)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: {place}: a mark must be 0, 1 or null: {error}") from error


def _object(value: Any, path: Path, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: {place}: must be an object, as in an official expert file, got {str(value)[:40]!r}")
    return value
