"""What a built case must stand: every reason why it does not, and where its judgment tells what it says. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from data.cases import ROOT_ID, Case, CaseError, Issue
from data.citations import find_laws
from data.grounding import MIN_STATEMENT_SUPPORT, MIN_SUPPORT, Source, Span, bare, sentences
from data.judgment_text import Judgment
from data.language import purposes_heading
from data.records import from_record
from data.stages import Draft

MAX_LIKENESS = 70.0  # of a told sentence to a conclusion, in 0..100; in the hand-made cases the greatest is 55
EXAMPLE_CHARS = 14  # a run of so many characters that a case shares with a prompt and not with its judgment
MAX_STRAY_FRAC = 0.5  # of a tree's edges that leave the judgment's main section; as many in one hand-made case

MIN_CHARS = 4  # of what an issue says, without blanks: "변제 여부" is a summary
MIN_STATEMENT_FRAC = 0.4  # of the length of the facts that a statement tells; in the hand-made cases the least is 0.72
MIN_TOLD_FRAC = 0.3  # of the innermost sections in which the court decides; in the hand-made cases the least is 0.58

_COURT_WORDS = re.compile(
    r"(?:청구|주장|항변|재항변|소)[은는이가]?(?:모두|각)?(?:이유(?:있|없)|부적법)|받아들이지(?:않는다|아니한다)"
    r"|받아들일수없|인정하기에부족|주문과같이|봄이(?:타당|상당)하다|라고판단된다"
)
_ALLEGATION = re.compile(r"주장|다투|다툰|항변|통지|통보|이유로|라고")
_COSTS = re.compile(r"소송(?:총)?비용|가집행")
_CLAIMERS = re.compile(r"\s*(?:,|·|및|와|과)\s*(?=원고|피고|신청인|피신청인|채권자|채무자|참가인|독립|보조|선정)")
_ALIAS = re.compile(r"\((?:이하|다음부터)\s*(?:순번에 따라\s*)?['\"‘“]([^'\"’”]{1,30})['\"’”]")
_NO_FINDING = re.compile(r"소\s?결|결론|사실|경위|주장|법령")  # main sections in which nothing is decided

Spans = list[dict[str, Any]]


def check_case(draft: Draft, record: Mapping[str, Any], examples: str = "") -> tuple[list[str], Spans]:
    """Every reason to reject the record, each beginning with the name of its check, and the spans that support it.

    Args:
        examples: the text of the prompts; none of it may have got into the case.
    """
    try:
        case = from_record(record)
    except CaseError as error:
        return [f"schema: {reason if id is None else f'issue {id!r}: {reason}'}" for id, reason in error.problems], []
    judgment = draft.judgment
    source = Source(judgment.text)
    reasons, spans = _grounding(draft, case, source)
    if case.answer != judgment.order:
        reasons.append("order: the answer is not the judgment's order to the character")
    reasons += _leakage(draft, case)
    reasons += _example_text(record, examples, source)
    reasons += _laws(case, judgment, source)
    reasons += _parties(case, judgment)
    reasons += _sections(case, judgment, spans)
    reasons += _completeness(draft, case, spans)
    return reasons, spans


def _grounding(draft: Draft, case: Case, source: Source) -> tuple[list[str], Spans]:
    """Facts, statement, claims, analysis and conclusions that the judgment does not tell; the spans of the others."""
    told: list[tuple[str, str, float, list[str]]] = [  # where, kind, threshold, texts
        ("", "fact", MIN_SUPPORT, list(draft.facts)),
        ("", "statement", MIN_STATEMENT_SUPPORT, sentences(draft.statement)),
    ]
    for issue in case.sub_issues:
        told += [
            (issue.id, "claim", MIN_SUPPORT, [claim.content for claim in issue.claims]),
            (issue.id, "analysis", MIN_SUPPORT, list(issue.analysis)),
            (issue.id, "conclusion", MIN_SUPPORT, [issue.conclusion]),
        ]
    reasons, spans = [], []
    for issue_id, kind, threshold, texts in told:
        for place, text in enumerate(texts):
            score, found = source.support(text)
            where = f"{kind} {place + 1} of issue {issue_id!r}" if issue_id else f"{kind} {place + 1}"
            if score < threshold:
                reasons.append(f"grounding: {where} has support {score:.0f}, needs {threshold:.0f}: {text[:80]}")
            if strange := source.unknown_numbers(text):
                reasons.append(f"grounding: {where} has numbers that the judgment has not: {', '.join(strange)}")
            spans.append({"issue": issue_id, "kind": kind, "place": place, "score": round(score, 1), "at": _at(found)})
    return reasons, spans


def _at(spans: Sequence[Span]) -> list[list[int]]:
    return [[span.start, span.end] for span in spans]


def _leakage(draft: Draft, case: Case) -> Iterator[str]:
    """Sentences of the facts that give a conclusion or the order away; what a party asserts gives nothing away."""
    from rapidfuzz import fuzz

    told = sentences(draft.statement)
    for sentence in told:
        if words := _COURT_WORDS.search(bare(sentence)):
            yield f"leakage: the facts speak as the court does ({words[0]!r}): {sentence[:80]}"
    compared = [(sentence, bare(sentence)) for sentence in told if not _ALLEGATION.search(sentence)]
    verdicts = [(issue.id, bare(part)) for issue in case.sub_issues for part in sentences(issue.conclusion)]
    verdicts += [(ROOT_ID, bare(item)) for item in case.answer.split("\n") if not _COSTS.search(item)]
    for issue_id, verdict in verdicts:
        for sentence, told_bare in compared:
            if likeness := fuzz.ratio(verdict, told_bare, score_cutoff=MAX_LIKENESS):
                whose = f"the conclusion of issue {issue_id!r}" if issue_id else "the order"
                yield f"leakage: the facts give away {whose} (likeness {likeness:.0f}): {sentence[:80]}"


def _example_text(record: Mapping[str, Any], examples: str, source: Source) -> Iterator[str]:
    """Runs of a prompt's text in the case, unless the judgment has them too."""
    known = _runs(examples)
    texts = [record["question"].split(purposes_heading(record["language"]))[0]]
    for issue in record["issues"]:
        texts += [
            issue["summary"],
            issue["conclusion"],
            *issue["relevant_law"],
            *issue["analysis"],
            *(claim["content"] for claim in issue["claim"]),
        ]
    for text in map(bare, texts):
        if run := next((run for run in _bare_runs(text) if run in known and run not in source.bare), None):
            yield f"leakage: text of a prompt: {run}"


@lru_cache(maxsize=8)  # the prompts are those of one language, mostly
def _runs(examples: str) -> frozenset[str]:
    return frozenset(_bare_runs(bare(examples)))


def _bare_runs(text: str) -> Iterator[str]:
    return (text[i : i + EXAMPLE_CHARS] for i in range(len(text) - EXAMPLE_CHARS + 1))


def _laws(case: Case, judgment: Judgment, source: Source) -> Iterator[str]:
    """Laws whose article or case number the judgment does not have; names are not compared, for courts shorten them."""
    known = {law.key.split()[-1] for law in find_laws(judgment.text)}
    for issue in case.sub_issues:
        for law in find_laws("\n".join(issue.relevant_law)):
            number = law.key.split()[-1]
            if number not in known and not re.search(rf"(?<!\d){re.escape(number)}(?!\d|의\d)", source.bare):
                yield f"law: issue {issue.id!r} cites {law.citation}, which the judgment does not"


def _parties(case: Case, judgment: Judgment) -> Iterator[str]:
    """Claimers that are no party: no role of the header ("피고들"), no name of one, nothing the text calls one."""
    roles = {form for party in judgment.parties for form in (party.role, party.role.partition("(")[0])}
    names = {bare(party.name) for party in judgment.parties}
    for match in _ALIAS.finditer(judgment.text):  # 피고 주식회사 A(이하 '피고 회사'라 한다)
        before = bare(judgment.text[max(0, match.start() - 60) : match.start()])
        if match[1].startswith(tuple(roles)) or before.endswith(tuple(names)):
            names.add(bare(match[1]))
    numbers = {str(number + 1) for number in range(len(judgment.parties))}
    real = names | {bare(role) + tail for role in roles for tail in ("", "들", "측", *names, *numbers)}
    for issue in case.issues:
        for claim in issue.claims:
            strange = [one for one in _CLAIMERS.split(claim.claimer) if bare(one) not in real]
            if strange:
                yield f"parties: a claim of issue {issue.id!r} names no party of this case: {', '.join(strange)}"


def _sections(case: Case, judgment: Judgment, spans: Spans) -> Iterator[str]:
    """Trees that run against the sections: children in another main section than their parent, or further out."""
    tops = [section for section in judgment.sections if section.depth == 1]
    places: dict[str, Counter[int]] = {}
    for span in spans:
        if span["kind"] in ("analysis", "conclusion"):
            tally = places.setdefault(span["issue"], Counter())
            for start, end in span["at"]:
                top = next((i for i, s in enumerate(tops) if s.start <= start < s.end), None)
                if top is not None and not _NO_FINDING.search(tops[top].title):
                    tally[top] += end - start
    homes = {id: tally.most_common(1)[0][0] for id, tally in places.items() if tally}
    edges = [(issue, case.parent(issue)) for issue in case.sub_issues if issue.depth > 1]
    known = [(homes[i.id], homes[p.id]) for i, p in edges if isinstance(p, Issue) and {i.id, p.id} <= homes.keys()]
    num_stray = sum(child != parent for child, parent in known)
    if num_stray > MAX_STRAY_FRAC * len(known):
        yield f"sections: {num_stray} of {len(known)} sub-issues stand in another main section than what they hang on"


def _completeness(draft: Draft, case: Case, spans: Spans) -> Iterator[str]:
    """What says next to nothing, a statement without most of the facts, a tree without most of what is decided."""
    for issue in case.sub_issues:
        for text in (issue.summary, *(claim.content for claim in issue.claims), *issue.analysis, issue.conclusion):
            if len(bare(text)) < MIN_CHARS:
                yield f"completeness: a text of issue {issue.id!r} says next to nothing: {text!r}"
    told, facts = len(draft.statement), sum(map(len, draft.facts))
    if told < MIN_STATEMENT_FRAC * facts:
        yield f"completeness: the statement has {told} characters for facts of {facts}"
    sections = draft.judgment.sections
    without = [(s.start, s.end) for s in sections if _NO_FINDING.search(s.title)]
    starts = [start for span in spans if span["kind"] in ("analysis", "conclusion") for start, _ in span["at"]]
    deciding = [
        section
        for section, after in zip_longest(sections, sections[1:])
        if (after is None or after.depth <= section.depth)  # nothing below it
        and not any(start <= section.start < end for start, end in without)
    ]
    untold = [s for s in deciding if not any(s.start <= start < s.end for start in starts)]
    if len(untold) > (1 - MIN_TOLD_FRAC) * len(deciding):
        names = ", ".join(f"{section.number} {section.title}".strip() for section in untold[:3])
        yield f"completeness: no issue tells of {len(untold)} of the {len(deciding)} sections that decide: {names}, …"
