"""A case beside its judgment on one static page: what it says, and the words of the judgment that support it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from data.cases import Case, Issue
from data.grounding import sentences
from data.language import purposes_heading

_TEMPLATE = Path(__file__).with_suffix(".html")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a case says in one place; `key` names it on the page, `support` is in 0..100, None where it has no span."""

    key: str
    kind: str
    text: str
    support: float | None


@dataclass(frozen=True, slots=True)
class Told:
    """An issue with its statements, or under the id "" the question with its sentences."""

    id: str
    title: str
    depth: int
    laws: tuple[str, ...]
    statements: tuple[Statement, ...]


def page(cases: Sequence[Case], judgments: Mapping[str, str]) -> str:
    """The page, whole in itself.

    Args:
        judgments: the text of each case's judgment by doc_id; a case without one stands alone.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown = []
    for number, case in enumerate(cases):
        spans = {f"c{number}-{s['issue']}-{s['kind']}-{s['place']}": s for s in case.extra.get("spans", ())}
        told = [*_told(case, f"c{number}", spans)]
        keys = {statement.key for one in told for statement in one.statements}
        places = {key: span["at"] for key, span in spans.items() if key in keys}
        shown.append((case, told, segments(judgments.get(case.id, ""), places)))
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(shown=shown)


def segments(text: str, places: Mapping[str, Sequence[Sequence[int]]]) -> list[tuple[str, tuple[str, ...]]]:
    """The text in pieces, each with the names of all that holds it.

    >>> segments("가나다라", {"a": [[0, 2]], "b": [[1, 3]]})
    [('가', ('a',)), ('나', ('a', 'b')), ('다', ('b',)), ('라', ())]
    """
    cuts = sorted({0, len(text), *(end for spans in places.values() for span in spans for end in span)})
    pieces = []
    for start, end in pairwise(cuts):
        names = (name for name, spans in places.items() if any(a <= start and end <= b for a, b in spans))
        pieces.append((text[start:end], tuple(names)))
    return pieces


def _told(case: Case, prefix: str, spans: Mapping[str, Any]) -> Iterator[Told]:
    def statement(issue_id: str, kind: str, place: int, text: str) -> Statement:
        key = f"{prefix}-{issue_id}-{kind}-{place}"
        return Statement(key, kind, text, spans[key]["score"] if key in spans else None)

    facts = case.question.partition(purposes_heading(case.language))[0]
    told = [sentence for sentence in sentences(facts) if not sentence.startswith("[")]
    numbered = tuple(statement("", "statement", place, text) for place, text in enumerate(told))
    yield Told("", "", 0, (), numbered)
    for issue in case.sub_issues:
        yield Told(issue.id, issue.summary, issue.depth, issue.relevant_law, tuple(_statements(issue, statement)))


def _statements(issue: Issue, statement: Any) -> Iterator[Statement]:
    for place, claim in enumerate(issue.claims):
        yield statement(issue.id, "claim", place, f"{claim.claimer}: {claim.content}")
    for place, step in enumerate(issue.analysis):
        yield statement(issue.id, "analysis", place, step)
    yield statement(issue.id, "conclusion", 0, issue.conclusion)
