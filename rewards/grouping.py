"""Several issues of one response in one call of the judge: what is asked, and what the reply means. Pure."""

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from data.cases import Issue
from data.endpoint import Reply
from data.language import DEFAULT_LANGUAGE, fill, read_text
from data.shapes import ANY_LENGTH, Shape, json_format, read_shaped
from rewards.rubric import judge_words, judgment_of, render, response_format, verdict_shape
from rewards.score import Judgment


def render_group(
    issues: Sequence[Issue],
    answer: str,
    *,
    rationales: bool = True,
    secret: str = "",
    language: str = DEFAULT_LANGUAGE,
) -> list[dict[str, str]]:
    """The judge's messages on some issues of a response: of one issue `rubric.render`'s, of more their like.

    Rules and response are those of the prompt for one issue, word for word, so that a server has them in its cache
    when a group is split.
    """
    alone = [render(issue, answer, rationales=rationales, secret=secret, language=language) for issue in issues]
    if len(issues) == 1:
        return alone[0]
    *before, first = alone[0]
    issue_heading, question_heading = headings(language)
    head = first["content"][: first["content"].rindex(issue_heading)]
    told = (messages[-1]["content"].rpartition(issue_heading)[2] for messages in alone)
    blocks = [f"## {n}\n{text[: text.rindex(question_heading)].strip()}" for n, text in enumerate(told, start=1)]
    reply_form = "{" + ", ".join(f'"{key}": …' for key in verdict_shape(rationales)) + "}"
    fields = {
        "num_issues": str(len(issues)),
        "issues": "\n\n".join(blocks),
        "reply_form": "{" + ", ".join(f'"{n}": {reply_form}' for n in range(1, len(issues) + 1)) + "}",
    }
    return [*before, {**first, "content": head + fill(_template(language), fields)}]


def headings(language: str = DEFAULT_LANGUAGE) -> tuple[str, str]:
    """Where the prompt for one issue is cut: all before the first is alike for all issues of a response, and all from
    the second on for all responses."""
    words = judge_words(language)
    return f"# {words.issue_heading}\n", f"\n\n# {words.question_heading}"


def group_format(num_issues: int, rationales: bool) -> dict[str, Any]:
    """The structured output to ask for: of one issue its verdict, of more an object of verdicts by number.

    Every number is a required key: where the server enforces the schema, no verdict can be missing, double or foreign.
    """
    if num_issues == 1:
        return response_format(rationales)
    return json_format("judgments", _by_number(num_issues, verdict_shape(rationales)))


def parse_group(reply: Reply, num_issues: int, *, rationales: bool = True) -> list[Judgment]:
    """The verdicts that the reply holds, in the order of the issues; each of them, once, and no other.

    Raises:
        Unusable: as `data.shapes.read_shaped` does, of the whole reply if anything about it is wrong.
    """
    alone = verdict_shape(rationales, ANY_LENGTH)
    if num_issues == 1:
        return [judgment_of(read_shaped(reply, alone))]
    verdicts = read_shaped(reply, _by_number(num_issues, alone))
    return [judgment_of(verdicts[str(n)]) for n in range(1, num_issues + 1)]


def _by_number(num_issues: int, verdict: Shape) -> dict[str, Shape]:
    return {str(n): verdict for n in range(1, num_issues + 1)}


@cache
def group_prompt_version(language: str = DEFAULT_LANGUAGE) -> str:
    """Hash of the text that a prompt for several issues has of its own."""
    return hashlib.sha256(_template(language).encode()).hexdigest()[:12]


def _template(language: str) -> str:
    return read_text("judge_issues", language)
