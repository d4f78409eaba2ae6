"""Rows of the official verl training set: made of cases, and turned back into case records.

A row tells a case only as the judge prompts of its issues (`extra_info.rubrics`, the root's first). Each prompt has
the place `{response}` for the text to be judged and, behind it, the issue: a block under the word ISSUE with
`summary:`, `claims:` and `conclusion:`. Ids are not told, so the tree is lost.
"""

import hashlib
import re
from typing import Any

from data.cases import ROOT_ID, Case
from data.language import read_text

RESPONSE = "{response}"
_HEADING = re.compile(
    r"^[^\w\n]*ISSUE[^\w\n]*$", re.MULTILINE | re.IGNORECASE
)  # <ISSUE>, [ISSUE], "## ISSUE:", alone on its line
_END = re.compile(r"^[^\w\n]*/[ \t]*ISSUE[^\w\n]*$", re.MULTILINE | re.IGNORECASE)  # </ISSUE>
_FIELDS = ("summary", "claims", "conclusion")
_PARTY = r"(?:원고|피고|신청인|피신청인|채권자|채무자|참가인|선정자|선정당사자|항소인|피항소인|검사|당사자)"
_ROLE = r"(?:원고|피고|독립당사자|보조|승계|반소|본소|공동|선정|주위적|예비적){0,3}\s?"
_NAME = r"(?:들|측)?(?:\s?\([^()\n:]{1,30}\))?(?:[A-Z]{1,2}|(?:\s(?!주장|항변|청구|사이|및\s)[^\s:：.,()]{1,8}){1,2})?"
_ONE = rf"{_ROLE}{_PARTY}{_NAME}"
_CLAIMER = re.compile(
    rf"\s*(?:[-*•]|\d+[.)])?\s*(?P<claimer>{_ONE}(?:\s?(?:,|·|ㆍ|/|및|와|과)\s?{_ONE}){{0,9}})\s*[:：]\s*"
)
_FIRST_CLAIMER = re.compile(r"\s*(?:[-*•]|\d+[.)])?\s*(?P<claimer>[^:：.,\n]{1,25}?)\s*[:：]\s+")


def verl_record(row: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str | None, str]]]:
    """The case record that a row tells, with `has_tree` false, and what of the row could not be read.

    The first rubric is the root, the others become the issues "1" ... "N" in their order. The question is the text
    of the last user message of the row's `prompt`. The id is the row's `doc_id`, or `extra_info`'s, or else made of
    what the row says, so that a row keeps its id wherever it stands. The row's other keys stay; the rubrics, whose
    content is in the issues, do not.
    """
    info = row["extra_info"]
    question, problems = _question(row)
    told_ids = [holder["doc_id"] for holder in (row, info) if holder.get("doc_id") is not None]
    told_id = {"doc_id": told_ids[0]} if told_ids else {}
    if "rubrics" not in info:
        return told_id, [*problems, (None, f"key 'extra_info.rubrics' is missing; extra_info has {sorted(info)}")]
    rubrics = info["rubrics"]
    if not isinstance(rubrics, list) or not all(isinstance(rubric, str) for rubric in rubrics):
        return told_id, [*problems, (None, "key 'extra_info.rubrics' must be a list of strings")]

    issues = []
    for number, rubric in enumerate(rubrics):
        id = str(number) if number else ROOT_ID
        fields, missing = _fields(rubric)
        if missing:
            problems.append((id, f"rubric {number + 1} of {len(rubrics)} {missing}"))
        else:
            issues.append({"id": id, **fields})
    record: dict[str, Any] = {key: value for key, value in row.items() if key not in ("prompt", "extra_info")}
    record |= {"question": question, "issues": issues, "has_tree": False}
    record |= told_id or {"doc_id": _id_of(question, rubrics)}
    record["answer"] = issues[0]["conclusion"] if issues and issues[0]["id"] == ROOT_ID else ""
    if rest := {key: value for key, value in info.items() if key not in ("rubrics", "doc_id")}:
        record["extra_info"] = rest
    return record, problems


def verl_row(case: Case) -> dict[str, Any]:
    """The row that tells a case to verl, of which `verl_record` makes the case again, without its tree and its laws."""
    rubrics = []
    for issue in (case.root, *case.sub_issues):
        values = {
            "summary": issue.summary,
            "claims": "\n".join(f"{claim.claimer}: {claim.content}" for claim in issue.claims),
            "conclusion": issue.conclusion,
        }
        rubric = read_text("verl_rubric", case.language).strip()
        rubrics.append(re.sub(r"\{(summary|claims|conclusion)\}", lambda match: values[match[1]], rubric))  # noqa: B023
    row = {
        "data_source": "legit",
        "prompt": [{"role": "user", "content": case.question}],
        "ability": "legal_reasoning",
        "reward_model": {"style": "rubric", "ground_truth": case.answer},
        "extra_info": {"doc_id": case.id, "rubrics": rubrics},
    }
    told = {"difficulty": case.difficulty, "language": case.extra.get("language")}
    return row | {key: value for key, value in told.items() if value is not None}


def parse_claims(text: str) -> list[dict[str, str]]:
    """The claims of an ISSUE block, one a line that begins with a party, as in "피고: 이미 갚았다.".

    A line that begins with none continues the claim above; if it is the first, its claimer is unknown: "".

    >>> parse_claims("원고: 빌려주었다.\\n현금이었다.\\n- 피고(반소원고): 갚았다.")
    [{'claimer': '원고', 'content': '빌려주었다.\\n현금이었다.'}, {'claimer': '피고(반소원고)', 'content': '갚았다.'}]
    """
    claims: list[dict[str, str]] = []
    for line in text.strip().split("\n"):
        told = _CLAIMER.match(line) or (None if claims else _FIRST_CLAIMER.match(line))
        if told:
            claims.append({"claimer": told["claimer"].strip(), "content": line[told.end() :].strip()})
        elif claims:
            claims[-1]["content"] = f"{claims[-1]['content']}\n{line.rstrip()}".strip()
        elif line.strip():
            claims.append({"claimer": "", "content": line.strip()})
    return claims


def _fields(rubric: str) -> tuple[dict[str, Any], str | None]:
    """Summary, claim and conclusion of a rubric, or what it lacks."""
    rubric = rubric.replace("\r\n", "\n")
    # The instructions before {response} may show an example with an ISSUE block of its own; behind it the first
    # heading is the issue's, since a value may well hold the word again.
    _instructions, place, behind = rubric.rpartition(RESPONSE)
    headings = list(_HEADING.finditer(behind))
    if not headings:
        return {}, f"has no ISSUE block behind {RESPONSE}" if place else "has no ISSUE block"
    block = behind[headings[0 if place else -1].end() :]
    if ends := list(_END.finditer(block)):
        block = block[: ends[-1].start()]

    values: dict[str, str] = {}
    for name, following in zip(_FIELDS, (*_FIELDS[1:], None), strict=True):
        start = _label(name).search(block)
        if not start:
            return {}, f"has no line '{name}:' in its ISSUE block, or has it out of the order {', '.join(_FIELDS)}"
        stop = _label(following).search(block, start.end()) if following else None
        values[name] = block[start.end() : stop.start() if stop else len(block)].strip()
        block = block[stop.start() if stop else len(block) :]
    conclusion = values["conclusion"].removesuffix("```").rstrip()  # of a block that was fenced as a whole
    return {
        "summary": values["summary"],
        "claim": parse_claims(values["claims"]),
        "relevant_law": [],
        "analysis": [],
        "conclusion": conclusion,
    }, None


def _label(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*[-*#>]*[ \t]*\**{name}\**[ \t]*[:：]\**", re.MULTILINE | re.IGNORECASE)


def _question(row: dict[str, Any]) -> tuple[str, list[tuple[str | None, str]]]:
    prompt = row.get("prompt")
    if isinstance(prompt, str):
        return prompt, []
    messages = prompt if isinstance(prompt, list) else []
    texts = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") == "user"]
    if texts and isinstance(texts[-1], str):
        return texts[-1], []
    return "", [(None, "key 'prompt' must be a text or a list of messages {role, content} with one of role 'user'")]


def _id_of(question: str, rubrics: list[str]) -> str:
    digest = hashlib.sha256("\0".join([question, *rubrics]).encode("utf-8", "surrogatepass"))
    return f"verl-{digest.hexdigest()[:16]}"
