"""The reward: gates, then the judge, then the score, in the shape that TRL asks a reward function for."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from data.cases import Case
from data.endpoint import EndpointStats
from rewards.answer import final_answer
from rewards.early import EarlyJudge
from rewards.gates import GATE_REASONS, GateConfig, GateReason, gate
from rewards.judge import Judge, JudgeConfig, judge_batch
from rewards.mini_judge import MiniJudge, count_extra_issues
from rewards.schemes import MAX_TOTAL, PARTS, Columns, RewardConfig
from rewards.score import Judgment, Score, score_case
from rewards.symptoms import symptoms

FAILURE_KINDS = (
    "timeout", "connection", "http_429", "http_5xx", "http_4xx", "malformed",
    "circuit_open", "length", "whitespace", "filtered", "logprobs", "unusable", "other",
)  # fmt: skip


class JudgeUnavailable(Exception):  # noqa: N818  (a state of the judge, not of the caller)
    """No completion of a whole batch could be scored, so that training on would learn nothing."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A completion after gates and judge.

    Either `gate_reason` says why it was held back and nothing was judged, or `judgments` has an entry for every issue
    and `score` is what they come to: None where the judge failed.
    """

    gate_reason: str | None = None
    judgments: Mapping[str, Judgment | None] = field(default_factory=dict)
    score: Score | None = None

    @property
    def unscored(self) -> bool:
        """It went to the judge, and the judge failed."""
        return self.gate_reason is None and self.score is None

    @property
    def verdicts(self) -> str:
        """The judgments as one line of JSON: issue id -> [contained, right], null where missing; {} if gated.

        >>> Graded(judgments={"": Judgment(True, True), "1": Judgment(True, False), "2": None}).verdicts
        '{"":[1,1],"1":[1,0],"2":null}'
        """
        shown = {
            id: judgment and [_short(judgment.contains_issue), _short(judgment.correct_conclusion)]
            for id, judgment in self.judgments.items()
        }
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def columns_of(graded: Graded, gate_penalty: float) -> Columns | None:
    """Order, coverage and correctness; None if unscored; if gated, what comes to the penalty with weights of 10 in all.

    >>> columns_of(Graded(score=Score(1, 0.5, 0.25, 0, 5, 5)), -5.0)
    (1, 0.5, 0.25)
    >>> columns_of(Graded(gate_reason="empty"), -5.0), columns_of(Graded(), -5.0)
    ((-0.5, -0.5, -0.5), None)
    """
    if graded.gate_reason is not None:
        return (gate_penalty / MAX_TOTAL,) * 3
    if graded.score is None:
        return None
    return graded.score.order, graded.score.coverage, graded.score.correctness


def read_completion(
    case: Case, text: str, ids: Sequence[int], gates: GateConfig, end_token_ids: frozenset[int]
) -> tuple[str, GateReason | None]:
    """The answer that a completion gives, and why a gate holds it back from the judge; None if none does."""
    answer = final_answer(text)
    finish_reason = "stop" if ids and ids[-1] in end_token_ids else "length"
    return answer, gate(answer, finish_reason, gates, case.question, case.language)


async def rubric_reward(
    completions: Sequence[Sequence[Mapping[str, str]]],
    completion_ids: Sequence[Sequence[int]],
    doc_id: Sequence[str],
    *,
    cases: Mapping[str, Case],
    judge: Judge | EarlyJudge | MiniJudge,
    reward: RewardConfig,
    gates: GateConfig,
    judging: JudgeConfig,
    end_token_ids: frozenset[int],
    log_metric: Callable[[str, float], None],
    log_extra: Callable[[str, list[Any]], None],
    **_: Any,
) -> list[Columns | None]:
    """The parts of each completion's reward, None where the judge failed.

    What TRL gives with each batch is positional or swallowed; the rest is bound once with functools.partial. Besides
    the rewards, `batch_metrics` goes to `log_metric` and each issue's verdict to the table of completions.

    Args:
        completions: conversational, one assistant message each; doc_id is the data set's column.
        cases: by id, every case that a doc_id may name.
        end_token_ids: a completion that ends in none of them was cut off.

    Raises:
        JudgeUnavailable: something went to the judge, and nothing of it could be scored.
    """
    read = [
        read_completion(cases[id], completion[-1]["content"], ids, gates, end_token_ids)
        for id, completion, ids in zip(doc_id, completions, completion_ids, strict=True)
    ]
    reasons = [reason for _, reason in read]
    items = [(cases[id], answer) for id, (answer, _) in zip(doc_id, read, strict=True)]
    judged = [item for item, reason in zip(items, reasons, strict=True) if reason is None]
    verdicts = iter(await judge_batch(judge, judged, judging.judge_deadline_s))
    graded = [
        _graded(case, next(verdicts), judging.judge_quorum) if reason is None else Graded(gate_reason=reason)
        for (case, _), reason in zip(items, reasons, strict=True)
    ]
    stats = judge.stats.take()
    if judged and not any(one.score for one in graded):
        raise JudgeUnavailable(_unavailable(len(judged), stats, judging))

    metrics = batch_metrics(graded, stats, judging.costs(stats)) | symptoms([answer for answer, _ in read])
    if isinstance(judge, MiniJudge):
        metrics["mini/extra_issues"] = [float(count_extra_issues(*item)) for item in judged]
    for name, values in metrics.items():
        for value in values or [math.nan]:
            log_metric(name, value)
    log_extra("doc_id", list(doc_id))
    log_extra("gate", [reason or "" for reason in reasons])
    log_extra("verdicts", [one.verdicts for one in graded])
    return [columns_of(one, reward.gate_penalty) for one in graded]


class RewardColumns:
    """The reward functions that TRL is given: one for each part of the score, all fed by one judge pass over a batch.

    A completion that the judge failed on is None in all of them, for only then does TRL leave it out of its group.
    """

    def __init__(self, rubric: Callable[..., Awaitable[list[Columns | None]]]) -> None:
        """`rubric` takes a batch as TRL gives it."""
        self._rubric = rubric
        self._completions: object = None
        self._rows: asyncio.Future[list[Columns | None]]

    @property
    def functions(self) -> list[Callable[..., Awaitable[list[float | None]]]]:
        """In the order of `PARTS`; TRL logs each under its name."""
        return [self.order, self.coverage, self.correctness]

    async def order(self, **batch: Any) -> list[float | None]:
        return await self._column("order", batch)

    async def coverage(self, **batch: Any) -> list[float | None]:
        return await self._column("coverage", batch)

    async def correctness(self, **batch: Any) -> list[float | None]:
        return await self._column("correctness", batch)

    async def _column(self, part: str, batch: Mapping[str, Any]) -> list[float | None]:
        """Whoever is first begins the pass: TRL gives all three functions the same completions, in one event loop."""
        if batch["completions"] is not self._completions:
            self._completions = batch["completions"]
            self._rows = asyncio.ensure_future(self._rubric(**batch))
        rows = await self._rows
        return [None if row is None else row[PARTS.index(part)] for row in rows]


def batch_metrics(
    graded: Sequence[Graded], stats: EndpointStats, costs: tuple[float | None, float | None] = (None, None)
) -> dict[str, list[float]]:
    """What a batch tells, by name: always the same names, whatever happened in it.

    A metric of completions has one value for each of those that it is about, so that TRL's mean over all values of
    all ranks is the mean over completions: `score/*` and `judge/correct_without_coverage_frac` are about the scored
    ones, `gate/*_frac` and `judge/unscored_frac` about all. `judge/calls`, `retries`, `reused`, `failures/*` (tries
    that failed, cured or not), tokens and `judge/cost` are one process's sums for the batch, `judge/cost_so_far` those
    since it began, latencies one process's percentiles. `judge/self_disagreement` is about the issues that were judged
    more than once.

    No value at all is logged as NaN, for every rank must log the same names. TRL then drops this one batch of the
    metric from the log, on all ranks: with many ranks and few completions each, a gap where one rank scored none.
    """
    scores = [one.score for one in graded if one.score is not None]
    failures = {kind: stats.failures[kind] for kind in FAILURE_KINDS}
    failures["other"] = stats.failures.total() - sum(failures.values())
    return {
        "score/total": [score.total for score in scores],
        "score/order": [score.order for score in scores],
        "score/coverage": [score.coverage for score in scores],
        "score/correctness": [score.correctness for score in scores],
        **{f"gate/{reason}_frac": [float(one.gate_reason == reason) for one in graded] for reason in GATE_REASONS},
        "judge/unscored_frac": [float(one.unscored) for one in graded],
        "judge/correct_without_coverage_frac": [score.correct_without_coverage for score in scores],
        "judge/calls": [float(stats.calls)],
        "judge/retries": [float(stats.retries)],
        "judge/reused": [float(stats.reused)],
        **{f"judge/failures/{kind}": [float(count)] for kind, count in failures.items()},
        "judge/tokens_in": [float(stats.tokens_in)],
        "judge/tokens_cached": [float(stats.tokens_cached)],
        "judge/tokens_out": [float(stats.tokens_out)],
        "judge/cost": [costs[0]] if costs[0] is not None else [],
        "judge/cost_so_far": [costs[1]] if costs[1] is not None else [],
        "judge/self_disagreement": [1.0] * stats.disagreed + [0.0] * (stats.repeated - stats.disagreed),
        "judge/latency_p50_s": _percentile(stats.latencies_s, 0.50),
        "judge/latency_p95_s": _percentile(stats.latencies_s, 0.95),
    }


def _graded(case: Case, judgments: Mapping[str, Judgment | None], quorum: float) -> Graded:
    return Graded(judgments=judgments, score=score_case(case, judgments, quorum))


def _short(verdict: float) -> float:
    return int(verdict) if verdict in (0, 1) else round(verdict, 3)


def _percentile(values: Sequence[float], share: float) -> list[float]:
    """The smallest value that at least `share` of all do not exceed, alone in a list; of nothing, nothing."""
    return [sorted(values)[math.ceil(share * len(values)) - 1]] if values else []


def _unavailable(num_judged: int, stats: EndpointStats, judging: JudgeConfig) -> str:
    failure = stats.most_frequent_failure() or f"no verdict came within judge_deadline_s = {judging.judge_deadline_s:g}"
    return (
        f"none of the {num_judged} completions that went to the judge could be scored, so training on would learn "
        f"nothing. Most frequent failure: {failure}. Ask the judge one question by the same command with "
        "--dry_run true, which says what to change; when it answers, go on with --resume_from_checkpoint latest."
    )
