"""The verdicts in files of grades: in ours each whole or null, in other evaluators' as far as they are whole; pure."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.cases import Case
from data.jsonl import JsonlError
from rewards.score import Judgment


def verdicts_of(path: Path, line: int, record: Mapping[str, Any]) -> dict[str, Judgment | None]:
    """The verdicts of a record by issue id, None where one is missing.

    In a grade of ours, which tells "parts", a verdict is null or whole. Elsewhere whatever is no whole verdict is a
    missing one: evaluators' files keep their failures in several shapes.

    Raises:
        JsonlError: naming line, case, issue and key.
    """
    evaluation = record["evaluation_result"]
    if not isinstance(evaluation, dict):
        reason = f'"evaluation_result" must be an object with one verdict per issue id, got {shown(evaluation)}'
        raise JsonlError(path, line, of_case(record, reason))
    if "parts" in record:
        for issue_id, verdict in evaluation.items():
            if verdict is not None and (wrong := _flaw(verdict)):
                raise JsonlError(path, line, of_case(record, f"issue {issue_id!r}: {wrong}"))
    return {issue_id: _verdict(verdict) for issue_id, verdict in evaluation.items()}


def complete_verdicts(case: Case, verdicts: Mapping[str, Judgment | None]) -> dict[str, Judgment | None]:
    """One entry for each issue of the case and no other: None where a file holds no verdict on it."""
    return {issue.id: verdicts.get(issue.id) for issue in case.issues}


def any_verdict(verdicts: Mapping[str, Judgment | None]) -> bool:
    """Whether there is one at all."""
    return any(verdict is not None for verdict in verdicts.values())


def told_parts(path: Path, line: int, record: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """`gate` and `num_extra_issues` of a grade; its other parts follow from the verdicts.

    Raises:
        JsonlError: naming line, case and key.
    """
    parts = record["parts"]
    gate, num_extra_issues = (parts.get("gate"), parts.get("num_extra_issues")) if isinstance(parts, dict) else (0, 0)
    is_count = type(num_extra_issues) is int and num_extra_issues >= 0  # no bool, which isinstance would let in
    if not isinstance(parts, dict):
        reason = f'"parts" must be an object, got {shown(parts)}'
    elif not isinstance(gate, str | None):
        reason = f'"parts.gate" must be a text or null, got {shown(gate)}'
    elif num_extra_issues is not None and not is_count:
        reason = f'"parts.num_extra_issues" must be a number from 0 or null, got {shown(num_extra_issues)}'
    else:
        return gate, num_extra_issues
    raise JsonlError(path, line, of_case(record, reason))


def check_again(path: Path, line: int, record: Mapping[str, Any], num_before: int, num_now: int) -> None:
    """That a grade of a response that has one already holds more verdicts: a failed one was asked for again.

    Raises:
        JsonlError: it holds no more, so that the line stands there twice, or for another response.
    """
    if num_now <= num_before:
        sample = f'"sample" {record.get("sample", 0)} is graded a second time, with no more verdicts than before'
        raise JsonlError(path, line, of_case(record, f"{sample}: keep one of its lines"))


def of_case(record: Mapping[str, Any], reason: str) -> str:
    """The reason with the record's case before it."""
    return f"case {record['doc_id']!r}: {reason}" if isinstance(record.get("doc_id"), str) else reason


def shown(value: Any) -> str:
    """A value as the file has it, cut short."""
    return json.dumps(value, ensure_ascii=False)[:40]


def _flaw(verdict: Any) -> str | None:
    """What keeps a verdict from being a whole one of ours."""
    if not isinstance(verdict, dict):
        return f"the verdict must be an object or null, got {shown(verdict)}"
    for name in ("contains_issue", "correct_conclusion"):
        value = verdict.get(name)
        if not (isinstance(value, int | float) and 0 <= value <= 1):
            return f'"{name}" must be true, false or a number in [0, 1], got {shown(value)}'
    if not isinstance(rationales := verdict.get("rationales"), str | None):
        return f'"rationales" must be a text or null, got {shown(rationales)}'
    return None


def _verdict(verdict: Any) -> Judgment | None:
    try:
        return Judgment(verdict["contains_issue"], verdict["correct_conclusion"], str(verdict.get("rationales") or ""))
    except (TypeError, KeyError, ValueError):
        return None
