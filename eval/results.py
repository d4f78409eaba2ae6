"""The files of an evaluation: responses.jsonl and grades.jsonl."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.cases import Case
from data.jsonl import JsonlError, read_jsonl
from rewards.score import Judgment, Score, score_case

Key = tuple[str, int]
"""What a response answers: its case id and the number of the sample."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a model wrote on a case: the record of responses.jsonl.

    `reasoning` is the chain of thought that an endpoint reported apart from the response. `prompt_id` stands for the
    prompt that was answered; None where the file does not tell, as in the official ones.
    """

    case_id: str
    text: str
    model: str
    finish_reason: str | None = None
    sample: int = 0
    reasoning: str | None = None
    prompt_id: str | None = None

    @property
    def key(self) -> Key:
        """What this response answers."""
        return self.case_id, self.sample

    def to_record(self) -> dict[str, Any]:
        """The line of responses.jsonl."""
        record = {
            "doc_id": self.case_id,
            "model": self.model,
            "response": self.text,
            "finish_reason": self.finish_reason,
            "sample": self.sample,
            "prompt_id": self.prompt_id,
        }
        return record if self.reasoning is None else record | {"reasoning": self.reasoning}


@dataclass(frozen=True, slots=True)
class ResponseFile:
    """The responses of a file in its order, the first of each key; later ones of a key stand in `duplicates`.

    `verdicts` are those that an evaluator's file holds beside the responses.
    """

    path: Path
    responses: tuple[Response, ...]
    duplicates: tuple[tuple[int, Key], ...]
    verdicts: Mapping[Key, Mapping[str, Judgment | None]]
    evaluators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grade:
    """A judged response: the record of grades.jsonl, a superset of the official evaluator files.

    `judgments` has every issue of the case, None where the judge failed; `score` follows from them. `gate` is
    why training would have turned the response away, None if it would not; `num_extra_issues` counts issues named that
    the court did not treat, None where that cannot be told.
    """

    response: Response
    judge: str
    judgments: Mapping[str, Judgment | None]
    score: Score | None
    gate: str | None = None
    num_extra_issues: int | None = None

    @property
    def num_missing(self) -> int:
        """Issues without a verdict."""
        return sum(judgment is None for judgment in self.judgments.values())

    @property
    def is_unjudged(self) -> bool:
        """Whether the judge gave no verdict at all."""
        return self.num_missing == len(self.judgments)

    def to_record(self) -> dict[str, Any]:
        """The line of grades.jsonl."""
        score = self.score
        parts = {
            "order": score and score.order,
            "coverage": score and score.coverage,
            "correctness": score and score.correctness,
            "correct_without_coverage": score and score.correct_without_coverage,
            "num_issues": len(self.judgments),
            "num_judged": len(self.judgments) - self.num_missing,
            "gate": self.gate,
            "num_extra_issues": self.num_extra_issues,
        }
        return self.response.to_record() | {
            "judge": self.judge,
            "evaluation_result": {
                issue_id: None if judgment is None else _verdict_record(judgment)
                for issue_id, judgment in self.judgments.items()
            },
            "score": score and score.total,
            "parts": parts,
        }


def read_responses(path: str | Path) -> ResponseFile:
    """The responses of our own file, of an official response file ({doc_id, response}) or of an evaluator's file.

    Where a record names no model, the file's name stands for it; without a sample number it is sample 0.

    Raises:
        JsonlError: a line that is no response, by number.
    """
    path = Path(path)
    responses: dict[Key, Response] = {}
    duplicates: list[tuple[int, Key]] = []
    verdicts: dict[Key, Mapping[str, Judgment | None]] = {}
    evaluators: dict[str, None] = {}
    for line, record in read_jsonl(path):
        response = response_of(path, line, record)
        if response.key in responses:
            duplicates.append((line, response.key))
            continue
        responses[response.key] = response
        if "evaluation_result" in record:
            verdicts[response.key] = verdicts_of(path, line, record["evaluation_result"])
            evaluators[str(record.get("judge") or record.get("evaluator_model") or "unknown")] = None
    return ResponseFile(path, tuple(responses.values()), tuple(duplicates), verdicts, tuple(evaluators))


def read_grades(path: str | Path, cases: Mapping[str, Case], quorum: float = 1.0) -> dict[Key, Grade]:
    """The last grade of each response in a grades file of ours; scores are computed anew from the verdicts.

    Grades of cases that are not among `cases` are left out.

    Raises:
        JsonlError: a line that is no grade, by number.
    """
    path = Path(path)
    grades: dict[Key, Grade] = {}
    if not path.exists():
        return grades
    for line, record in read_jsonl(path):
        response = response_of(path, line, record)
        if response.case_id not in cases:
            continue
        missing_keys = {"judge", "evaluation_result", "parts"} - record.keys()
        if missing_keys:
            raise JsonlError(path, line, f"no grade of ours: it lacks {', '.join(sorted(missing_keys))}")
        case = cases[response.case_id]
        judgments = complete_verdicts(case, verdicts_of(path, line, record["evaluation_result"]))
        gate, num_extra_issues = _told_parts(path, line, record["parts"])
        grades[response.key] = Grade(
            response,
            str(record["judge"]),
            judgments,
            score_case(case, judgments, quorum),
            gate,
            num_extra_issues,
        )
    return grades


def complete_verdicts(case: Case, verdicts: Mapping[str, Judgment | None]) -> dict[str, Judgment | None]:
    """One entry for each issue of the case and no other: None where a file holds no verdict on it."""
    return {issue.id: verdicts.get(issue.id) for issue in case.issues}


def prompt_id(messages: list[dict[str, str]]) -> str:
    """Short digest of a prompt: equal only for equal messages.

    >>> prompt_id([{"role": "user", "content": "a"}]) == prompt_id([{"role": "user", "content": "b"}])
    False
    """
    canonical = json.dumps(messages, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def response_of(path: Path, line: int, record: Mapping[str, Any]) -> Response:
    """The response that a record of ours, an official one or an evaluator's holds.

    Raises:
        JsonlError: it is none; names the line.
    """
    expected: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
        ("doc_id", str, "the id of a case"),
        ("response", (str, type(None)), "a text"),
        ("sample", int, "a number"),
        ("finish_reason", (str, type(None)), "a text or null"),
    )
    defaults = {"sample": 0, "finish_reason": None}
    values = defaults | dict(record)
    for name, kind, description in expected:
        if name not in values:
            raise JsonlError(path, line, f'no response: it lacks "{name}", {description}')
        if not isinstance(values[name], kind) or isinstance(values[name], bool):
            raise JsonlError(path, line, f'"{name}" must be {description}, got {str(values[name])[:40]!r}')
    return Response(
        case_id=values["doc_id"],
        text=values["response"] or "",
        model=str(values.get("model") or path.stem),
        finish_reason=values["finish_reason"],
        sample=values["sample"],
        reasoning=values.get("reasoning"),
        prompt_id=values.get("prompt_id"),
    )


def verdicts_of(path: Path, line: int, evaluation: Any) -> dict[str, Judgment | None]:
    """Whatever is no complete verdict is a missing one: evaluators' files keep their failures in several shapes."""
    if not isinstance(evaluation, dict):
        raise JsonlError(path, line, '"evaluation_result" must be an object with one verdict per issue id')
    return {issue_id: _verdict(verdict) for issue_id, verdict in evaluation.items()}


def _told_parts(path: Path, line: int, parts: Any) -> tuple[str | None, int | None]:
    """`gate` and `num_extra_issues` of a grade; its other parts follow from the verdicts."""
    if not isinstance(parts, dict):
        raise JsonlError(path, line, f'"parts" must be an object, got {json.dumps(parts)[:40]}')
    gate, num_extra_issues = parts.get("gate"), parts.get("num_extra_issues")
    if not isinstance(gate, str | None):
        raise JsonlError(path, line, f'"parts.gate" must be a text or null, got {json.dumps(gate)[:40]}')
    is_count = type(num_extra_issues) is int and num_extra_issues >= 0  # no bool, which isinstance would let in
    if num_extra_issues is not None and not is_count:
        told = json.dumps(num_extra_issues)[:40]
        raise JsonlError(path, line, f'"parts.num_extra_issues" must be a number from 0 or null, got {told}')
    return gate, num_extra_issues


def _verdict(verdict: Any) -> Judgment | None:
    try:
        return Judgment(verdict["contains_issue"], verdict["correct_conclusion"], str(verdict.get("rationales") or ""))
    except (TypeError, KeyError, ValueError):
        return None


def _verdict_record(judgment: Judgment) -> dict[str, Any]:
    verdict = asdict(judgment)
    return {name: verdict[name] for name in ("rationales", "contains_issue", "correct_conclusion")}
