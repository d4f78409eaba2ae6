"""The official record and the Case: each turned into the other."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from data.cases import ROOT_ID, Case, CaseError, Claim, Issue
from data.language import languages

# Stands where a value was unusable, so that the tree around it is still checked; never leaves this module.
_UNUSABLE = "(unusable)"
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
_OWN_KEYS = ("doc_id", "question", "answer", "issues", "difficulty", "has_tree")


class _Reader:
    """Takes values out of a record and keeps every reason why one cannot be used."""

    def __init__(self) -> None:
        self.problems: list[tuple[str | None, str]] = []

    def take(self, holder: Mapping[str, Any], key: str, kind: type, issue_id: str | None, path: str = "") -> Any:
        """The value of a key that must be there and of the kind, else None."""
        if key not in holder:
            self.problems.append((issue_id, f"key '{path}{key}' is missing; found: {', '.join(holder) or 'none'}"))
            return None
        return self.check(holder[key], kind, issue_id, path + key)

    def check(self, value: Any, kind: type, issue_id: str | None, path: str) -> Any:
        if not isinstance(value, kind):
            is_what = "null" if value is None else _KINDS.get(type(value), f"of type {type(value).__name__}")
            self.problems.append((issue_id, f"key '{path}' must be {_KINDS[kind]}, but is {is_what}"))
            return None
        if isinstance(value, str) and not is_unicode(value):
            self.problems.append((issue_id, f"key '{path}' holds half a surrogate pair, which no UTF-8 text can"))
            return None
        return value

    def text(self, holder: Mapping[str, Any], key: str, issue_id: str | None, path: str = "") -> str:
        value = holder.get(key)
        if isinstance(value, str) and is_unicode(value):
            return value
        self.take(holder, key, str, issue_id, path)  # says what is wrong
        return _UNUSABLE

    def texts(self, holder: Mapping[str, Any], key: str, issue_id: str | None) -> tuple[str, ...]:
        """A list of strings; a key that is absent or null is an empty one."""
        if holder.get(key) is None:
            return ()
        values = self.check(holder[key], list, issue_id, key) or ()
        for i, value in enumerate(values):
            if not (isinstance(value, str) and is_unicode(value)):
                self.check(value, str, issue_id, f"{key}[{i}]")
        return tuple(values)

    def issue(self, value: Any, place: int) -> Issue | None:
        """The issue, None if it has no id that could place it in the tree."""
        if not isinstance(value, dict):
            self.check(value, dict, None, f"issues[{place}]")
            return None
        told = value.get("id")
        if not isinstance(told, str):
            self.text(value, "id", None, f"issues[{place}].")
        # A number is surely meant as this id: its children shall not be reported as orphans on top.
        is_placed = isinstance(told, str | int | float)
        id = str(told) if is_placed else f"issues[{place}]"
        claims = self.take(value, "claim", list, id) or ()
        issue = Issue(
            id=id,
            summary=self.text(value, "summary", id),
            claims=tuple(self.claim(claim, id, i) for i, claim in enumerate(claims)),
            conclusion=self.text(value, "conclusion", id),
            relevant_law=self.texts(value, "relevant_law", id),
            analysis=self.texts(value, "analysis", id),
        )
        return issue if is_placed else None

    def claim(self, value: Any, issue_id: str, place: int) -> Claim:
        path = f"claim[{place}]"
        if self.check(value, dict, issue_id, path) is None:
            return Claim(_UNUSABLE, _UNUSABLE)
        path += "."
        return Claim(self.text(value, "claimer", issue_id, path), self.text(value, "content", issue_id, path))


def from_record(record: Mapping[str, Any]) -> Case:
    """The case that an official record tells.

    Needed are doc_id, question, answer and issues, in each issue id, summary, claim and conclusion; `relevant_law`,
    `analysis` and `difficulty` may be absent or null. Every other key of the record goes into `extra`; of those,
    "language" must name a language pack or be null. `answer` must be the root's conclusion, as far as `same_order`
    looks.

    Raises:
        CaseError: with every problem of the record.
    """
    reader = _Reader()
    doc_id = reader.text(record, "doc_id", None)
    if not doc_id.strip():
        reader.problems.append((None, "key 'doc_id' is empty"))
    question = reader.text(record, "question", None)
    answer = reader.take(record, "answer", str, None)
    values = reader.take(record, "issues", list, None)
    issues = tuple(i for i in map(reader.issue, values or (), range(len(values or ()))) if i is not None)
    root = next((issue for issue in issues if issue.id == ROOT_ID), None)
    if answer is not None and root and root.conclusion != _UNUSABLE and not same_order(answer, root.conclusion):
        ordered, answered = _where_they_part(root.conclusion, answer)
        reason = f"the conclusion is not the record's answer: it has {ordered!r} where the answer has {answered!r}"
        reader.problems.append((ROOT_ID, reason))
    difficulty = record.get("difficulty")
    if difficulty is not None:
        reader.check(difficulty, str, None, "difficulty")
    has_tree = reader.check(record.get("has_tree", True), bool, None, "has_tree")
    if (language := record.get("language")) is not None and language not in languages():
        reader.problems.append((None, f"key 'language' must be one of {', '.join(languages())}, but is {language!r}"))

    problems = reader.problems
    try:
        case = Case(
            id=doc_id,
            question=question,
            issues=issues,
            difficulty=difficulty,
            has_tree=has_tree,
            extra={key: value for key, value in record.items() if key not in _OWN_KEYS},
        )
    except CaseError as error:
        if values is not None:  # without issues, that there is no root says nothing new
            problems += error.problems
    if problems:
        raise CaseError(doc_id, problems)
    return case


def to_record(case: Case) -> dict[str, Any]:
    """The official record of a case, of which `from_record` makes the same case again."""
    record: dict[str, Any] = {
        "doc_id": case.id,
        "question": case.question,
        "answer": case.answer,
        "issues": [
            {
                "id": issue.id,
                "summary": issue.summary,
                "claim": [{"claimer": claim.claimer, "content": claim.content} for claim in issue.claims],
                "relevant_law": list(issue.relevant_law),
                "analysis": list(issue.analysis),
                "conclusion": issue.conclusion,
            }
            for issue in case.issues
        ],
    }
    if case.difficulty is not None:
        record["difficulty"] = case.difficulty
    if not case.has_tree:
        record["has_tree"] = False
    return record | dict(case.extra)


def same_order(one: str, other: str) -> bool:
    """Whether two orders say the same: what was retyped is overlooked, what was ordered is not.

    Overlooked are white space, the composition of letters (NFKC), commas, quotation marks, middle dots, and a full
    stop unless it stands between digits.

    >>> same_order("1. 피고는 원고에게 1,000원을 지급하라.", "1.피고는 원고에게 1000원을  지급하라")
    True
    >>> same_order("연 1.5%의 비율", "연 15%의 비율")
    False
    """
    return one == other or _bare(one) == _bare(other)


def _bare(text: str) -> str:
    text = re.sub(r"[\s,'\"‘’“”`·ㆍ‧・]+", "", unicodedata.normalize("NFKC", text))
    return re.sub(r"(?<!\d)\.|\.(?!\d)", "", text)


def _where_they_part(one: str, other: str) -> tuple[str, str]:
    shared = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    start = max(0, (min(len(one), len(other)) if shared is None else shared) - 10)
    return one[start : start + 40], other[start : start + 40]


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold the text: it has no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
