"""The files of an evaluation: responses.jsonl and grades.jsonl."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.cases import Case
from data.command import InputError
from data.jsonl import JsonlError, read_jsonl
from eval.verdicts import check_again, complete_verdicts, of_case, shown, told_parts, verdicts_of
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
    def num_given(self) -> int:
        """Issues with a verdict."""
        return len(self.judgments) - self.num_missing

    @property
    def is_unjudged(self) -> bool:
        """Whether the judge gave no verdict at all."""
        return self.num_given == 0

    def to_record(self) -> dict[str, Any]:
        """The line of grades.jsonl."""
        score = self.score
        parts = {
            "order": score and score.order,
            "coverage": score and score.coverage,
            "correctness": score and score.correctness,
            "correct_without_coverage": score and score.correct_without_coverage,
            "num_issues": len(self.judgments),
            "num_judged": self.num_given,
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
            verdicts[response.key] = verdicts_of(path, line, record)
            evaluators[str(record.get("judge") or record.get("evaluator_model") or "unknown")] = None
    return ResponseFile(path, tuple(responses.values()), tuple(duplicates), verdicts, tuple(evaluators))


def read_some_responses(path: str | Path) -> ResponseFile:
    """As `read_responses`, of a file that must have a response.

    Raises:
        InputError: it has none.
    """
    file = read_responses(path)
    if not file.responses:
        raise InputError(f"{path} holds no response; eval/solve.py writes them, or has yet to")
    return file


def read_grades(path: str | Path, cases: Mapping[str, Case], quorum: float = 1.0) -> dict[Key, Grade]:
    """The last grade of each response in a grades file of ours; scores are computed anew from the verdicts.

    Grades of cases that are not among `cases` are left out; none where there is no file.

    Raises:
        JsonlError: a line that is no grade, or grades a response again to no purpose; names line, case and key.
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
            reason = f"no grade of ours: it lacks {', '.join(sorted(missing_keys))}"
            raise JsonlError(path, line, of_case(record, reason))
        if not isinstance(record["judge"], str):
            raise JsonlError(path, line, of_case(record, f'"judge" must be a text, got {shown(record["judge"])}'))
        case = cases[response.case_id]
        judgments = complete_verdicts(case, verdicts_of(path, line, record))
        score = score_case(case, judgments, quorum)
        grade = Grade(response, record["judge"], judgments, score, *told_parts(path, line, record))
        if before := grades.get(response.key):
            check_again(path, line, record, before.num_given, grade.num_given)
        grades[response.key] = grade
    return grades


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
        JsonlError: it is none; names line, case and key.
    """
    text = (str, type(None))
    expected: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
        ("doc_id", str, "the id of a case"),
        ("response", text, "a text"),
        ("sample", int, "a number"),
        *((name, text, "a text or null") for name in ("model", "finish_reason", "reasoning", "prompt_id")),
    )
    values = {"sample": 0, **dict.fromkeys(("model", "finish_reason", "reasoning", "prompt_id")), **record}
    for name, kind, description in expected:
        if name not in values:
            raise JsonlError(path, line, of_case(record, f'no response: it lacks "{name}", {description}'))
        if not isinstance(values[name], kind) or isinstance(values[name], bool):
            raise JsonlError(path, line, of_case(record, f'"{name}" must be {description}, got {shown(values[name])}'))
    return Response(
        case_id=values["doc_id"],
        text=values["response"] or "",
        model=values["model"] or path.stem,
        finish_reason=values["finish_reason"],
        sample=values["sample"],
        reasoning=values["reasoning"],
        prompt_id=values["prompt_id"],
    )


def _verdict_record(judgment: Judgment) -> dict[str, Any]:
    verdict = asdict(judgment)
    return {name: verdict[name] for name in ("rationales", "contains_issue", "correct_conclusion")}
