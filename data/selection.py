"""Which judgments become cases: those whose outcome follows from facts and law (LEGIT, arXiv 2512.01020, section 3)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from data.command import InputError
from data.judgment_text import Judgment
from data.page_text import fold

RULES_PATH = Path(__file__).with_suffix(".yaml")
_QUOTE_CHARS = 60


class RulesError(InputError):
    """The file of rules cannot be used; says which key is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Term:
    """Words that speak for the court's discretion, and why."""

    pattern: re.Pattern[str]
    reason: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of selection.yaml; `case_kinds` maps the letters of a case number to civil or administrative."""

    case_kinds: Mapping[str, str]
    min_chars: int
    max_chars: int
    drop_case_names: tuple[Term, ...]
    drop_terms: tuple[Term, ...]
    borderline_terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a judgment is selected. "borderline" is for a model, or else a lawyer, to decide.

    `reasons` say why it is not simply kept, each with the words of the judgment that speak for it.
    """

    status: Literal["keep", "drop", "borderline"]
    kind: str
    reasons: tuple[str, ...] = ()


def load_rules(path: str | Path = RULES_PATH) -> Rules:
    """The rules in a file.

    Raises:
        RulesError: with the key that is wrong.
    """
    try:
        told = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        kinds = {letters: kind for kind, all_letters in told["case_kinds"].items() for letters in all_letters}
        terms = {key: _terms(told[key], key) for key in ("drop_case_names", "drop_terms", "borderline_terms")}
        return Rules(kinds, told["reasons_chars"]["min"], told["reasons_chars"]["max"], **terms)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, re.error) as error:
        what = f"lacks the key {error}" if isinstance(error, KeyError) else f"cannot be read: {error}"
        raise RulesError(f"{path}: {what}; {RULES_PATH.name} of this repository shows the form") from error


def select(judgment: Judgment, rules: Rules) -> Verdict:
    """Whether the judgment's outcome follows from facts and law, as far as its words tell."""
    letters = re.sub(r"\d", "", judgment.case_numbers[0]) if judgment.case_numbers else ""
    kind = rules.case_kinds.get(letters, "")
    num_chars = len(judgment.reasons.strip())
    missing = {
        "법원과 사건번호를 알 수 없다": not judgment.doc_id,
        f"민사나 행정의 판결이 아니다: {letters}": bool(letters) and not kind,
        "주문이 없다": not judgment.order,
        "이유가 없다": not num_chars,
        "청구취지가 없다": not judgment.purposes,
        "당사자를 알 수 없다": not judgment.parties,
        f"이유가 너무 짧다: {num_chars}자": 0 < num_chars < rules.min_chars,
        f"이유가 너무 길다: {num_chars}자": num_chars > rules.max_chars,
    }
    reasons = [reason for reason, holds in missing.items() if holds]
    reasons += _found(rules.drop_case_names, judgment.case_name)
    reasons += _found(rules.drop_terms, judgment.order + judgment.reasons)
    if reasons:
        return Verdict("drop", kind, tuple(reasons))
    borderline = _found(rules.borderline_terms, judgment.order + judgment.reasons)
    return Verdict("borderline" if borderline else "keep", kind, tuple(borderline))


def _found(terms: Sequence[Term], text: str) -> list[str]:
    bare = re.sub(r"\s", "", fold(text))
    matches = ((term.reason, term.pattern.search(bare)) for term in terms)
    return [f"{reason}: '{match[0][:_QUOTE_CHARS]}'" for reason, match in matches if match]


def _terms(values: Sequence[Mapping[str, Any]], key: str) -> tuple[Term, ...]:
    for value in values:
        if set(value) != {"pattern", "reason"}:
            raise RulesError(f"{key}: each entry needs a pattern and a reason, one has {value}")
    return tuple(Term(re.compile(re.sub(r"\s", "", value["pattern"])), value["reason"]) for value in values)
