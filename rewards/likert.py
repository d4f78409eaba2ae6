"""The Likert baseline: one grade from 0 to 10 for a whole response, read against the judgment's order and reasons.

What LEGIT's issue trees are to be compared with (arXiv 2512.01020, section 4); never a reward. It asks the same
endpoint with the same patience, and keeps grades in the same store.
"""

import hashlib
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from data.cases import Case
from data.endpoint import Endpoint, EndpointError, EndpointStats, Reply
from data.language import DEFAULT_LANGUAGE, fill, read_text
from data.shapes import ANY_LENGTH, Shape, json_format, read_shaped
from data.store import Store
from data.visible import visible
from rewards.judge import JudgeConfig
from rewards.rubric import RATIONALES_CHARS, fence, judge_words

TOP = 10


@dataclass(frozen=True, slots=True)
class Likert:
    """A judge's grade of a response: an integer from 0 to TOP, with its reason. A grade it failed to give is None."""

    score: int
    rationales: str = ""


class LikertJudge:
    """A language model that grades one response per request; never called for the mini world, which has no prose."""

    def __init__(self, config: JudgeConfig, endpoint: Endpoint, store: Store | None = None) -> None:
        self.endpoint = endpoint
        self._store = store
        self._rationales = config.judge_rationales
        self._sampling: dict[str, Any] = {
            "temperature": config.judge_temperature,
            "max_tokens": config.judge_max_tokens,
            "response_format": json_format("grade", grade_shape(config.judge_rationales)),
        }

    @property
    def stats(self) -> EndpointStats:
        """Calls, failures by kind, tokens and latencies since they were last taken."""
        return self.endpoint.stats

    async def judge_case(self, case: Case, answer: str) -> Likert | None:
        """The grade of the response, from the store if it has been given before; None where the judge failed."""
        messages = render(case, answer, rationales=self._rationales)
        key = Store.key(model=self.endpoint.model, messages=messages, sample=0, **self._sampling)
        if self._store is not None and (stored := self._store.get(key)) is not None:
            self.stats.reused += 1
            return Likert(**stored)
        try:
            likert = await self.endpoint.ask(messages, self._parse, **self._sampling)
        except EndpointError:
            return None  # counted by the endpoint; a missing grade is no 0
        if self._store is not None:
            self._store.put(key, asdict(likert))
        return likert

    def _parse(self, reply: Reply) -> Likert:
        return parse(reply, rationales=self._rationales)


def render(case: Case, answer: str, *, rationales: bool = True) -> list[dict[str, str]]:
    """The judge's messages on a response: rules, the order, the reasons issue by issue, and the fenced response."""
    words = judge_words(case.language)
    reasons = []
    for issue in case.sub_issues:
        told = issue.summary or "; ".join(claim.content for claim in issue.claims)
        reasons.append(f"{'  ' * (issue.depth - 1)}{issue.id}. {told}")
        steps = (*issue.analysis, fill(words.conclusion, {"conclusion": issue.conclusion}))
        reasons += (f"{'  ' * issue.depth}- {text}" for text in steps)
    reason = f'"rationales": "{words.grade_reason}", ' if rationales else ""
    fields = {
        "order": visible(case.answer),
        "reasons": visible("\n".join(reasons)),
        "reply_form": "{" + reason + f'"score": {words.grade}' + "}",
    }
    fenced = fence(answer, language=case.language)
    return [{"role": "user", "content": fill(_template(case.language), fields | fenced)}]


def grade_shape(rationales: bool, max_chars: int = RATIONALES_CHARS) -> dict[str, Shape]:
    """What a grade looks like: the reason, if one is wanted, before the score."""
    reason: dict[str, Shape] = {"rationales": max_chars} if rationales else {}
    return reason | {"score": range(TOP + 1)}


def parse(reply: Reply, *, rationales: bool = True) -> Likert:
    """The grade that the reply holds: an integer from 0 to 10 and nothing else.

    Raises:
        Unusable: as `data.shapes.read_shaped` does.
    """
    found = read_shaped(reply, grade_shape(rationales, ANY_LENGTH))
    return Likert(found["score"], visible(found.get("rationales", "")))


@cache
def prompt_version(language: str = DEFAULT_LANGUAGE) -> str:
    """Hash of the prompt's text: grades given under another one are other grades."""
    return hashlib.sha256(_template(language).encode()).hexdigest()[:12]


def _template(language: str) -> str:
    return read_text("judge_likert", language)
