"""Whether a judge can be trusted with a run: asked once, before anything is trained or graded."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

from data.cases import Claim, Issue
from data.endpoint import Endpoint, EndpointError
from data.language import DEFAULT_LANGUAGE, read_text
from rewards.judge import Judge
from rewards.mini_judge import MiniJudge
from rewards.score import Judgment

MIN_RIGHT = 18


class UnfitJudge(Exception):  # noqa: N818  (a state of the judge)
    """The judge must not be used as it is; says what to change."""


@dataclass(frozen=True, slots=True)
class EasyQuestion:
    """An issue and an answer to it, with the verdict that no careful reader would doubt."""

    issue: Issue
    answer: str
    contains_issue: bool
    correct_conclusion: bool

    def is_right(self, judgment: Judgment) -> bool:
        """Whether that is the verdict; a probability from one half on counts as yes."""
        given = (judgment.contains_issue >= 0.5, judgment.correct_conclusion >= 0.5)
        return given == (self.contains_issue, self.correct_conclusion)


def easy_questions(language: str = DEFAULT_LANGUAGE) -> list[EasyQuestion]:
    """20 of them: 7 answers with the court's conclusion, 7 with its opposite, 6 that are about something else."""
    told = json.loads(read_text("preflight.json", language))
    issues = [
        Issue("1", one["summary"], tuple(Claim(*claim) for claim in one["claims"]), one["conclusion"]) for one in told
    ]
    questions = []
    for place, (issue, one) in enumerate(zip(issues, told, strict=True)):
        questions.append(EasyQuestion(issue, one["right"], True, True))
        questions.append(EasyQuestion(issue, one["wrong"], True, False))
        if place + 1 < len(told):
            questions.append(EasyQuestion(issue, told[place + 1]["right"], False, False))
    return questions


async def preflight(
    judge: Judge | MiniJudge, longest: tuple[Issue, str] | None = None, language: str = DEFAULT_LANGUAGE
) -> str:
    """A line on each server of the judge: it knows the model, keeps to the schema and judges easy questions rightly.

    Args:
        longest: an issue and a response as long as any will be, which must fit into the judge's context.
        language: in which it is asked.

    Raises:
        UnfitJudge: one of them does not.
    """
    if not isinstance(judge, Judge):
        return "mini judge: exact, needs no endpoint"
    # Past the store, and with figures of its own: what fails here is no failure of the run's.
    return "\n".join([await _check(Judge(judge.config, server), longest, language) for server in judge.endpoint.each()])


async def find_servers(judge: Judge | MiniJudge) -> None:
    """Look whether each server of the judge is there and serves its model; nothing is judged, and nothing paid.

    Raises:
        UnfitJudge: one of them does not.
    """
    for server in judge.endpoint.each() if isinstance(judge, Judge) else ():
        async with server:
            try:
                await _find_model(server)
            except EndpointError as error:
                raise UnfitJudge(f"{error}\n{_advice(error)}") from None


async def _find_model(server: Endpoint) -> None:
    models = await server.models()
    if models and not any(known == server.model or known.endswith(f"/{server.model}") for known in models):
        name = f"judge {server.model} at {server.shown_url}"
        raise UnfitJudge(f"{name}: it serves {', '.join(models[:9])}. Set judge_model to one of these.")


async def _check(judge: Judge, longest: tuple[Issue, str] | None, language: str) -> str:
    questions = easy_questions(language)
    ask = partial(judge.ask, language=language)
    async with judge.endpoint as server:
        name = f"judge {server.model} at {server.shown_url}"
        try:
            await _find_model(server)
            given = [await ask([questions[0].issue], questions[0].answer)]  # one, for what would fail them all
            given += await asyncio.gather(*(ask([one.issue], one.answer) for one in questions[1:]))
            if judge.config.group_size(len(questions)) > 1:
                answered = [one for one in questions if one.correct_conclusion]
                await ask([one.issue for one in answered], "\n\n".join(one.answer for one in answered))
        except EndpointError as error:
            raise UnfitJudge(f"{error}\n{_advice(error)}") from None
        for kind in sorted(server.stats.failures.keys() & UNREADABLE):
            num, said = server.stats.failures[kind], server.stats.messages[kind]
            raise UnfitJudge(f"{num} replies to easy questions could not be read: {said}\n{_ADVICE[kind]}")
        wrong = [one for one, (judgment,) in zip(questions, given, strict=True) if not one.is_right(judgment)]
        if len(questions) - len(wrong) < MIN_RIGHT:
            raise UnfitJudge(
                f"{name}: it judges only {len(questions) - len(wrong)} of {len(questions)} easy questions rightly, and "
                f"{MIN_RIGHT} are the least; wrong, for one, on {wrong[0].issue.summary!r}: {wrong[0].answer[:80]!r}. "
                "Take a larger judge, or try judge_rationales the other way round."
            )
        latency_s, fits = median(server.stats.latencies_s), ""
        if longest is not None:
            try:
                await ask([longest[0]], longest[1])
            except EndpointError as error:
                advice = _TOO_LONG if error.kind == "http_4xx" else _advice(error)
                raise UnfitJudge(f"with the longest response: {error}\n{advice}") from None
            fits = f"; a response of {len(longest[1]):,} characters fits"
    return (
        f"{name}: {len(questions) - len(wrong)} of {len(questions)} easy questions right, {latency_s:.1f} s each{fits}"
    )


def _advice(error: EndpointError) -> str:
    return _ADVICE.get(error.status or error.kind) or _ADVICE.get(error.kind) or _ADVICE["unusable"]


_TOO_LONG = (
    "Serve the judge with a longer context (vLLM: --max-model-len, llama.cpp: --ctx-size divided by its slots), or "
    "lower max_completion_length."
)
_ADVICE: Mapping[int | str, str] = {
    "connection": "Is the server running, and does judge_base_url name its host, port and /v1?",
    "timeout": "Raise judge_timeout_s, or lower judge_max_concurrency to what the server can answer at once.",
    "circuit_open": "The server has failed again and again: see its log.",
    401: "Put the key into the environment variable that judge_api_key_env names.",
    403: "The key (environment variable judge_api_key_env) may not use judge_model at this endpoint.",
    404: "Check judge_model (a server lists its models under /v1/models) and that judge_base_url ends in /v1.",
    "http_4xx": "The endpoint refuses our request, see its words; it must take a response_format of type json_schema, "
    "and logprobs for judge_verdict: soft.",
    "http_429": "The endpoint limits our rate or the account is used up: lower judge_max_concurrency, or pay.",
    "http_5xx": "The server fails at answering: see its log.",
    "malformed": "Something answers, but no OpenAI-compatible server: check judge_base_url.",
    "length": "Raise judge_max_tokens, or set judge_rationales: false; a judge that thinks first needs thousands.",
    "whitespace": "The judge writes only white space: in vLLM use structured outputs with the guidance backend and "
    "disable_any_whitespace.",
    "filtered": "The endpoint's content filter withholds replies: use another judge.",
    "logprobs": "The endpoint gives no logprobs: set judge_verdict: hard.",
    "unusable": "The judge does not keep to the JSON schema: the server must enforce response_format json_schema.",
}
UNREADABLE = {"length", "whitespace", "filtered", "logprobs", "unusable"}
