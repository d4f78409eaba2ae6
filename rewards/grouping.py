"""Several issues of one response in one call of the judge: what is asked, and what the reply means. Pure."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from data.cases import Issue
from data.endpoint import Reply, Unusable
from rewards.rubric import fill, parse, read_object, render, response_format
from rewards.score import Judgment

ISSUE_HEADING = "# 판정할 쟁점\n"  # of the prompt for one issue: all before it is alike for all issues of a response
QUESTION_HEADING = "\n\n# 물음"


def render_group(
    issues: Sequence[Issue], answer: str, *, rationales: bool = True, secret: str = ""
) -> list[dict[str, str]]:
    """The judge's messages on some issues of a response: of one issue `rubric.render`'s, of more their like.

    Rules and response are those of the prompt for one issue, word for word, so that a server has them in its cache
    when a group is split.
    """
    alone = [render(issue, answer, rationales=rationales, secret=secret) for issue in issues]
    if len(issues) == 1:
        return alone[0]
    *before, first = alone[0]
    head = first["content"][: first["content"].rindex(ISSUE_HEADING)]
    told = (messages[-1]["content"].rpartition(ISSUE_HEADING)[2] for messages in alone)
    blocks = [f"## {n}\n{text[: text.rindex(QUESTION_HEADING)].strip()}" for n, text in enumerate(told, start=1)]
    one = response_format(rationales)["json_schema"]["schema"]["required"]
    reply_form = "{" + ", ".join(f'"{key}": …' for key in one) + "}"
    fields = {
        "num_issues": str(len(issues)),
        "issues": "\n\n".join(blocks),
        "reply_form": "{" + ", ".join(f'"{n}": {reply_form}' for n in range(1, len(issues) + 1)) + "}",
    }
    return [*before, {**first, "content": head + fill(_template(), fields)}]


def group_format(num_issues: int, rationales: bool) -> dict[str, Any]:
    """The structured output to ask for: of one issue its verdict, of more an object of verdicts by number.

    Every number is a required key: where the server enforces the schema, no verdict can be missing, double or foreign.
    """
    alone = response_format(rationales)
    if num_issues == 1:
        return alone
    numbers = [str(n) for n in range(1, num_issues + 1)]
    schema = {
        "type": "object",
        "properties": dict.fromkeys(numbers, alone["json_schema"]["schema"]),
        "required": numbers,
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "judgments", "schema": schema}}


def parse_group(reply: Reply, num_issues: int, *, rationales: bool = True) -> list[Judgment]:
    """The verdicts that the reply holds, in the order of the issues; each of them, once, and no other.

    Raises:
        Unusable: as `rubric.parse` does, of the whole reply if anything about it is wrong.
    """
    if num_issues == 1:
        return [parse(reply, rationales=rationales)]
    verdicts = read_object(reply, [str(n) for n in range(1, num_issues + 1)])
    return [_judgment(verdicts[str(n)], rationales) for n in range(1, num_issues + 1)]


def _judgment(verdict: Any, rationales: bool) -> Judgment:
    wanted = response_format(rationales)["json_schema"]["schema"]["required"]
    if not isinstance(verdict, dict) or set(verdict) != set(wanted):
        raise Unusable(f"the keys of each verdict must be {', '.join(wanted)}: {verdict}")
    if not all(isinstance(verdict[key], str if key == "rationales" else bool) for key in wanted):
        raise Unusable(f"verdicts must be true or false, rationales a text: {verdict}")
    return Judgment(**verdict)


@cache
def group_prompt_version() -> str:
    """Hash of the text that a prompt for several issues has of its own."""
    return hashlib.sha256(_template().encode()).hexdigest()[:12]


@cache
def _template() -> str:
    return Path(__file__).with_name("prompts").joinpath("judge_issues.ko.txt").read_text(encoding="utf-8")
