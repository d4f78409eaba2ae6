"""The reward: gates, then the judge, then the score, in the shape that TRL asks a reward function for."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from data.cases import Case
from data.endpoint import EndpointStats
from rewards.answer import final_answer
from rewards.early import EarlyJudge
from rewards.gates import GATE_REASONS, GateConfig, GateReason, gate
from rewards.judge import Judge, JudgeConfig, judge_batch
from rewards.mini_judge import MiniJudge, count_extra_issues
from rewards.score import Judgment, Score, score_case

RewardKind = Literal["legit", "order_only"]
FAILURE_KINDS = (
    "timeout", "connection", "http_429", "http_5xx", "http_4xx", "malformed",
    "circuit_open", "length", "whitespace", "filtered", "logprobs", "unusable", "other",
)  # fmt: skip


class JudgeUnavailable(Exception):  # noqa: N818  (a state of the judge, not of the caller)
    """No completion of a whole batch could be scored, so that training on would learn nothing."""


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """What the policy is paid for."""

    reward: RewardKind = field(
        default="legit",
        metadata={"help": "legit: the score, 0 to 10; order_only: 10 for the right final order, else 0."},
    )
    gate_penalty: float = field(
        default=-5.0, metadata={"help": "Reward of a completion that a gate holds back from the judge."}
    )

    def __post_init__(self) -> None:
        if self.reward not in get_args(RewardKind):
            raise ValueError(f"reward must be one of {', '.join(get_args(RewardKind))}, got {self.reward!r}")
        if not self.gate_penalty <= 0:
            raise ValueError(f"gate_penalty must be 0 or below, the worst score, got {self.gate_penalty}")


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


def reward_of(graded: Graded, config: RewardConfig) -> float | None:
    """The penalty if gated, None if unscored, else 5 order + 2 coverage + 3 correctness or, for order_only, 10 order.

    >>> scored = Graded(score=Score(1, 0.5, 0.25, 0, 5, 5))
    >>> [reward_of(scored, RewardConfig(reward=kind)) for kind in ("legit", "order_only")]
    [6.75, 10]
    >>> [reward_of(graded, RewardConfig(gate_penalty=-5.0)) for graded in (Graded(gate_reason="empty"), Graded())]
    [-5.0, None]
    """
    if graded.gate_reason is not None:
        return config.gate_penalty
    if graded.score is None:
        return None
    return graded.score.total if config.reward == "legit" else 10 * graded.score.order


def read_completion(
    case: Case, text: str, ids: Sequence[int], gates: GateConfig, end_token_ids: frozenset[int]
) -> tuple[str, GateReason | None]:
    """The answer that a completion gives, and why a gate holds it back from the judge; None if none does."""
    answer = final_answer(text)
    return answer, gate(answer, "stop" if ids and ids[-1] in end_token_ids else "length", gates, case.question)


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
) -> list[float | None]:
    """One reward per completion, None where the judge failed: TRL leaves those out of their group's baseline.

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

    metrics = batch_metrics(graded, stats, judging.costs(stats))
    if isinstance(judge, MiniJudge):
        metrics["mini/extra_issues"] = [float(count_extra_issues(*item)) for item in judged]
    for name, values in metrics.items():
        for value in values or [math.nan]:
            log_metric(name, value)
    log_extra("doc_id", list(doc_id))
    log_extra("gate", [reason or "" for reason in reasons])
    log_extra("verdicts", [one.verdicts for one in graded])
    return [reward_of(one, reward) for one in graded]


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
