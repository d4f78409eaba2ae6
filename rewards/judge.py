"""The judge: a verdict on every issue of a response, or None where none could be had.

The only module of rewards/ that talks to a network, through `data.endpoint`. What a verdict is worth is decided
elsewhere (`rewards.score`).
"""

import asyncio
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from data.cases import Case, Issue
from data.endpoint import Endpoint, EndpointError, EndpointStats, Reply, Unusable
from data.language import DEFAULT_LANGUAGE
from data.store import Store
from rewards.grouping import group_format, group_prompt_version, parse_group, render_group
from rewards.judge_config import JudgeConfig
from rewards.rubric import prompt_version, render, response_format
from rewards.score import Judgment
from rewards.voting import NUM_LOGPROBS, disagree, is_drawn, soften, vote

if TYPE_CHECKING:
    from rewards.early import EarlyJudge
    from rewards.mini_judge import MiniJudge

K = TypeVar("K")
V = TypeVar("V")

__all__ = ["Judge", "JudgeConfig", "judge_batch", "load_judge"]

GRACE_S = 0.5  # in which a judge that keeps the deadline hands over the verdicts that it has
SPLIT_KINDS = ("unusable", "length", "whitespace", "filtered", "logprobs", "timeout")  # fewer issues may do better


class Judge:
    """A language model that judges the issues of a response, one or several per request, within the endpoint's limit.

    All requests of a response begin with the same long prefix (see `rewards.rubric.render`) and go to the same server.
    Verdicts go through the store where there is one: a question that was answered before, by whichever process, is
    not asked again.

    Args:
        secret: of this run, so that no policy can foretell the marks around its response; verdicts are stored
            without it.
    """

    def __init__(
        self, config: JudgeConfig, endpoint: Endpoint, store: Store | None = None, *, secret: str = ""
    ) -> None:
        self.config = config
        self.endpoint = endpoint
        self.store = store
        self._secret = secret
        self._is_soft = config.judge_verdict == "soft"

    @property
    def stats(self) -> EndpointStats:
        """Calls, failures by kind, tokens and latencies since they were last taken."""
        return self.endpoint.stats

    async def judge_case(self, case: Case, answer: str, *, until: float = math.inf) -> dict[str, Judgment | None]:
        """The verdict on each issue of the case, by issue id; None where the judge failed or the time ran out.

        Args:
            until: the time.monotonic() at which it ends, whatever is there by then.
        """
        found: dict[tuple[str, int], Judgment] = {}
        tasks: dict[tuple[int, int], asyncio.Task[None]] = {}
        size = self.config.group_size(len(case.issues))
        judge = partial(self._judge, answer=answer, language=case.language, found=found, until=until)
        for start in range(0, len(case.issues), size):
            group = case.issues[start : start + size]
            for sample in range(self._num_samples(answer)):
                first = tasks.get((0, 0)) if self.config.judge_warm_prefix else None
                tasks[start, sample] = asyncio.create_task(judge(group, sample=sample, first=first))
        await _finished(tasks, until)
        return {issue.id: self._verdict(issue, found) for issue in case.issues}

    async def ask(
        self,
        issues: Sequence[Issue],
        answer: str,
        *,
        language: str = DEFAULT_LANGUAGE,
        sample: int = 0,
        until: float = math.inf,
    ) -> list[Judgment]:
        """Fresh verdicts on some issues of a response, of one call past the store.

        A sample beyond the votes, which is there to measure the noise, has other marks around the response: word for
        word the same question gets the same answer at temperature 0, however little there is behind it.

        Raises:
            EndpointError: there are none to be had.
        """
        is_second = False

        def verdicts(reply: Reply) -> list[Judgment]:
            nonlocal is_second
            try:
                judgments = parse_group(reply, len(issues), rationales=self.config.judge_rationales)
                return soften(judgments, reply) if self._is_soft else judgments
            except Unusable as error:
                error.is_final |= is_second and len(issues) > 1  # a group that fails twice is better split
                is_second = True
                raise

        secret = self._secret if sample < self.config.judge_votes else f"{self._secret}/{sample}"
        messages = render_group(
            issues, answer, rationales=self.config.judge_rationales, secret=secret, language=language
        )
        sampling = self._sampling | {
            "max_tokens": self.config.judge_max_tokens * len(issues),
            "response_format": group_format(len(issues), self.config.judge_rationales),
        }
        return await self.endpoint.ask(messages, verdicts, affinity=answer, until=until, **sampling)

    @property
    def _sampling(self) -> dict[str, Any]:
        logprobs = {"logprobs": True, "top_logprobs": NUM_LOGPROBS} if self._is_soft else {}
        return {"temperature": self.config.judge_temperature, **logprobs}

    def _num_samples(self, answer: str) -> int:
        """How often a response's calls are made: once for each vote; now and then once more, to see whether they come
        out alike. All of one response or none, for the other marks make the server read it once more."""
        if self.config.judge_votes > 1:
            return self.config.judge_votes
        return 1 + is_drawn(answer, self.config.judge_repeat_frac)

    async def _judge(
        self,
        issues: Sequence[Issue],
        *,
        answer: str,
        language: str,
        sample: int,
        found: dict[tuple[str, int], Judgment],
        first: asyncio.Task[None] | None = None,
        until: float,
    ) -> None:
        """Puts into `found` one sample's verdicts on the issues, as far as they are to be had."""
        if first is not None:
            await asyncio.wait([first])
        keys = {}
        if self.store is not None:
            keys = {issue.id: self._key(issue, answer, sample, language) for issue in issues}
        for id, key in keys.items():
            if self.store is not None and (stored := self.store.get(key)) is not None:
                self.stats.reused += 1
                found[id, sample] = Judgment(**stored)
        missing = [issue for issue in issues if (issue.id, sample) not in found]
        if not missing:
            return
        try:
            judgments = await self.ask(missing, answer, language=language, sample=sample, until=until)
        except EndpointError as error:  # counted by the endpoint; a missing verdict is no grade
            if len(missing) > 1 and error.kind in SPLIT_KINDS:
                half = len(missing) // 2
                again = partial(self._judge, answer=answer, language=language, sample=sample, found=found, until=until)
                await asyncio.gather(again(missing[:half]), again(missing[half:]))
            return
        for issue, judgment in zip(missing, judgments, strict=True):
            found[issue.id, sample] = judgment
            if self.store is not None:
                self.store.put(keys[issue.id], asdict(judgment))

    def _verdict(self, issue: Issue, found: Mapping[tuple[str, int], Judgment]) -> Judgment | None:
        """The verdict that the votes on the issue come to; counts where they differ."""
        votes = [found.get((issue.id, sample)) for sample in range(self.config.judge_votes)]
        samples = [judgment for (id, _), judgment in found.items() if id == issue.id]
        if len(samples) > 1:
            self.stats.repeated += 1
            self.stats.disagreed += disagree(samples)
        return vote(votes, soft=self._is_soft)

    def _key(self, issue: Issue, answer: str, sample: int, language: str) -> str:
        """What the verdict is kept under: the question and what its answer depends on, without the run's secret."""
        per_call = self.config.judge_issues_per_call
        grouped = {"issues_per_call": per_call, "group_prompt": group_prompt_version(language)} if per_call != 1 else {}
        return Store.key(
            model=self.endpoint.model,
            response_format=response_format(self.config.judge_rationales),
            prompt_version=prompt_version(language),
            messages=render(issue, answer, rationales=self.config.judge_rationales, language=language),
            sample=sample,
            **self._sampling,
            **grouped,
        )


async def judge_batch(
    judge: "Judge | EarlyJudge | MiniJudge", items: Sequence[tuple[Case, str]], deadline_s: float
) -> list[dict[str, Judgment | None]]:
    """The verdicts on each (case, answer), in order: issue id -> verdict, None for what the judge could not give.

    Never waits longer than the deadline: verdicts that are there by then count, the others are None. Identical pairs
    are judged once, the longest responses first. A dead judge is all None; `judge.stats` says what it died of.
    """
    longest_first = sorted(dict.fromkeys(items), key=lambda item: -len(item[1]))
    until = time.monotonic() + deadline_s  # one for all: a slot that it frees is of no use to the others
    tasks = {item: asyncio.create_task(judge.judge_case(*item, until=until)) for item in longest_first}
    verdicts = await _finished(tasks, until + GRACE_S)
    return [dict(verdicts[item] or dict.fromkeys(issue.id for issue in item[0].issues)) for item in items]


def load_judge(config: JudgeConfig) -> "Judge | MiniJudge":
    """The judge that the configuration names; no request is sent yet."""
    if config.judge == "mini":
        from rewards.mini_judge import MiniJudge

        return MiniJudge()
    endpoint = Endpoint(
        cast("str | list[str]", config.judge_base_url),  # the config has checked both
        cast(str, config.judge_model),
        api_key_env=config.judge_api_key_env,
        timeout_s=config.judge_timeout_s,
        max_retries=config.judge_max_retries,
        max_concurrency=config.judge_max_concurrency,
    )
    store = Store(config.judge_store) if config.judge_store else None
    return Judge(config, endpoint, store, secret=secrets.token_hex(16))


async def _finished(tasks: Mapping[K, asyncio.Task[V]], until: float) -> dict[K, V | None]:
    """The results of the tasks that end by then, None for the others, which are cancelled; so are all if we are."""
    if not tasks:
        return {}
    try:
        timeout = None if until == math.inf else max(0.0, until - time.monotonic())
        await asyncio.wait(tasks.values(), timeout=timeout, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        late = {task for task in tasks.values() if not task.done()}
        for task in late:
            task.cancel()
    if late:
        await asyncio.wait(late, timeout=1.0)  # lets them close their connections
    return {key: None if task in late else task.result() for key, task in tasks.items()}
