"""From a judgment to a case, stage by stage (LEGIT, arXiv 2512.01020, section 3): pure but for the prompt files.

A stage is a prompt file (languages/LANGUAGE/build_NAME.txt), the shape of its reply, and a function that puts the reply
into the draft. Every prompt may use every field of `fields`; it is asked anew when the text that it becomes changes,
so a changed prompt reruns its own stage and those that its replies flow into, and no other.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from data.cases import ROOT_ID, Claim, Issue, difficulty
from data.grounding import sentences
from data.judgment_text import Judgment, Purpose
from data.language import fill, read_text
from data.legal_marks import find_citations
from data.reply import Unusable
from data.shapes import Shape

_ISSUE: Shape = {
    "id": 20,
    "summary": 200,
    "claims": [{"claimer": 60, "content": 1000}],
    "relevant_law": [800],
    "analysis": [1000],
    "conclusion": 1500,
}
_LAW_END = re.compile(r"(?<=[다음함]\.)\s+|(?<=\)\.)\s*|;\s*|\n+")
_REMNANT = re.compile(r"[\s,·()「」.]|및|와|과|참조|등")


@dataclass(frozen=True, slots=True)
class Draft:
    """What the stages have made of a judgment so far; `issues` without the root, `opinion` yes, no or unclear."""

    judgment: Judgment
    opinion: str = ""
    facts: tuple[str, ...] = ()
    statement: str = ""
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One question to a model. `asks` says whether a draft needs it; `length_frac` how long a reply is for the
    estimate of costs, relative to the judgment's reasons (measured on tests/judgments)."""

    name: str
    shape: Shape
    put: Callable[[Draft, Any], Draft]
    length_frac: float
    asks: Callable[[Draft], bool] = lambda _: True


def messages(stage: Stage, draft: Draft, language: str) -> list[dict[str, str]]:
    """The stage's question about the draft. Stages that read the judgment all begin with it, so that a server can
    keep that prefix."""
    return [{"role": "user", "content": fill(read_prompt(stage.name, language), fields(draft, language))}]


def fields(draft: Draft, language: str) -> dict[str, str]:
    """What a prompt can be filled with."""
    judgment = draft.judgment
    told = {
        "parties": "\n".join(f"- {party.role} {party.name}" for party in judgment.parties),
        "purposes": "\n".join(f"- {claim.claimer}: {claim.content}" for claim in root_claims(judgment.purposes)),
        "reasons": judgment.reasons.strip(),
        "facts": "\n".join(f"- {fact}" for fact in draft.facts),
        "statement": draft.statement,
        "issues": _listing(draft.issues),
        "leaves": _listing(compound_leaves(draft.issues)),
    }
    return told | {"judgment": fill(read_prompt("judgment", language), told)}


def read_prompt(name: str, language: str) -> str:
    """The text of a prompt file."""
    return read_text(f"build_{name}", language).strip()


def root_claims(purposes: Sequence[Purpose]) -> tuple[Claim, ...]:
    """The purposes of claim as the root's claims, one for each side, each under the heading that the court gave it."""
    told = [Claim(p.claimer, f"({p.label}) {p.text}" if p.label else p.text) for p in purposes]
    return merge_claims(told)


def merge_claims(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims, those of one claimer made one; what is said twice is said once."""
    by_claimer: dict[str, list[str]] = {}
    for claim in claims:
        contents = by_claimer.setdefault(claim.claimer, [])
        if claim.content not in contents:
            contents.append(claim.content)
    return tuple(Claim(claimer, " ".join(contents)) for claimer, contents in by_claimer.items())


def separate_laws(laws: Sequence[str]) -> tuple[str, ...]:
    """The laws, one statute or proposition each.

    >>> separate_laws(["민법 제213조, 제214조", "점유자는 보호된다. 대법원 1993. 5. 25. 선고 92다51280 판결"])
    ('민법 제213조', '민법 제214조', '점유자는 보호된다. 대법원 1993. 5. 25. 선고 92다51280 판결')
    """
    separated: list[str] = []
    for law in laws:
        citations = find_citations(law)
        rest = law
        for citation in citations:
            rest = rest.replace(citation.text, "", 1)
        if len(citations) > 1 and not _REMNANT.sub("", rest):  # a bare list
            separated += [c.text if c.source in c.text else f"{c.source} {c.text}" for c in citations]
        elif len(citations) > 1:
            parts: list[str] = []
            for part in filter(None, _LAW_END.split(law)):
                if parts and not (find_citations(part) and find_citations(parts[-1])):
                    parts[-1] += " " + part  # a sentence without a source belongs to the one beside it
                else:
                    parts.append(part)
            separated += parts
        elif law.strip():
            separated.append(law)
    return tuple(dict.fromkeys(separated))


def compound_leaves(issues: Sequence[Issue]) -> tuple[Issue, ...]:
    """The issues that nothing hangs on and in which one side says more than one sentence."""
    parents = {issue.parent_id for issue in issues}
    leaves = (issue for issue in issues if issue.id not in parents)
    return tuple(leaf for leaf in leaves if any(len(sentences(claim.content)) > 1 for claim in leaf.claims))


def case_record(draft: Draft, language: str) -> dict[str, Any]:
    """The official record of a finished draft; the order and the purposes of claim are the judgment's own words."""
    judgment = draft.judgment
    claims = root_claims(judgment.purposes)
    root = Issue(ROOT_ID, "", claims, judgment.order)
    return {
        "doc_id": judgment.doc_id,
        "question": fill(read_prompt("question", language), fields(draft, language)),
        "answer": judgment.order,
        "issues": [_record(issue, "claim") for issue in (root, *draft.issues)],
        "difficulty": difficulty(len(draft.issues) + 1),
        "language": language,
        "case_numbers": [*judgment.case_numbers, *judgment.lower_cases],
    }


def _record(issue: Issue, claims_key: str) -> dict[str, Any]:
    return {
        "id": issue.id,
        "summary": issue.summary,
        claims_key: [{"claimer": claim.claimer, "content": claim.content} for claim in issue.claims],
        "relevant_law": list(issue.relevant_law),
        "analysis": list(issue.analysis),
        "conclusion": issue.conclusion,
    }


def _listing(issues: Sequence[Issue]) -> str:
    return json.dumps({"issues": [_record(issue, "claims") for issue in issues]}, ensure_ascii=False, indent=1)


def _put_facts(draft: Draft, reply: Any) -> Draft:
    facts = tuple(fact.strip() for fact in reply["facts"] if fact.strip())
    if not facts:
        raise Unusable("every fact is blank")
    return replace(draft, facts=facts)


def _put_statement(draft: Draft, reply: Any) -> Draft:
    statement = reply["statement"].strip()
    if not statement:
        raise Unusable("the statement is blank")
    return replace(draft, statement=statement)


def _put_issues(draft: Draft, reply: Any) -> Draft:
    return replace(draft, issues=_sorted(map(_issue, reply["issues"])))


def _put_parts(draft: Draft, reply: Any) -> Draft:
    parts = [_issue(part) for part in reply["issues"]]
    leaves = {leaf.id for leaf in compound_leaves(draft.issues)}
    if strays := [part.id for part in parts if part.parent_id not in leaves]:
        raise Unusable(f"issues {', '.join(strays)} hang below none of {', '.join(sorted(leaves))}")
    only = {leaf for leaf in leaves if sum(part.parent_id == leaf for part in parts) == 1}  # one part splits nothing
    return replace(draft, issues=_sorted([*draft.issues, *(p for p in parts if p.parent_id not in only)]))


def _issue(told: Mapping[str, Any]) -> Issue:
    return Issue(
        id=told["id"].strip().strip("."),
        summary=told["summary"].strip(),
        claims=merge_claims([Claim(c["claimer"].strip(), c["content"].strip()) for c in told["claims"]]),
        conclusion=told["conclusion"].strip(),
        relevant_law=separate_laws(told["relevant_law"]),
        analysis=tuple(step.strip() for step in told["analysis"] if step.strip()),
    )


def _sorted(issues: Any) -> tuple[Issue, ...]:
    """The issues in the order of their ids, "2" before "10"; a root that the model wrote is left out."""
    told = [issue for issue in issues if issue.id != ROOT_ID]
    return tuple(sorted(told, key=lambda issue: [int(n) if n.isdecimal() else -1 for n in issue.id.split(".")]))


OPINION = Stage(
    "opinion", {"deterministic": ("yes", "no", "unclear")}, lambda d, r: replace(d, opinion=r["deterministic"]), 0.01
)
STAGES = (
    Stage("facts", {"facts": [600, 1]}, _put_facts, 0.5),
    Stage("statement", {"statement": 8000}, _put_statement, 0.4),
    Stage("tree", {"issues": [_ISSUE, 1]}, _put_issues, 1.0),
    Stage("refine", {"issues": [_ISSUE, 1]}, _put_issues, 1.0),
    Stage("split", {"issues": [_ISSUE]}, _put_parts, 0.1, lambda draft: bool(compound_leaves(draft.issues))),
)
