"""Plain thresholds on what a run logs, a sentence each: what they mean, and when they come true. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from data.endpoint import EndpointStats
from rewards.exploitation import exploitation
from rewards.reward import batch_metrics
from rewards.symptoms import symptoms
from train.evaluation import summarize
from train.options import suggest

FORM = "'warn|stop if METRIC <|> NUMBER', then perhaps ' * first' and ' for N logs'"
EXAMPLE = "'warn if score/coverage < 0.8 * first for 3 logs'"
# What no run should show: against a number where that means harm everywhere, else against how the run began.
WATCH = (
    "warn if judge/unscored_frac > 0.2 for 3 logs",
    "warn if score/coverage < 0.8 * first for 5 logs",
    "warn if answer/num_chars < 0.5 * first for 5 logs",
    "warn if answer/num_chars > 3 * first for 5 logs",
    "warn if answer/repeated_frac > 0.2 for 3 logs",
    "warn if answer/listed_frac > 1.5 * first for 5 logs",
    "warn if gate/hedged_order_frac > 0.05 for 3 logs",
    "warn if entropy < 0.2 * first for 5 logs",
    "warn if eval_exploitation > 1.5 * first",
)

_SENTENCE = re.compile(
    r"(warn|stop) if (\S+) ([<>]) (-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)( ?\* ?first)?(?: for ([1-9]\d*) logs?)?"
)
_OURS = (*batch_metrics([], EndpointStats()), *symptoms([]))
_DROP = "drop this rule (--alerts null drops all)"
_TWO_JUDGES = tuple(f"eval_{name}" for name in exploitation({}, {}))
_OF_EVALUATIONS = (*summarize([None]), "eval_step", *_TWO_JUDGES)


class AlertStop(Exception):  # noqa: N818  (the run's own rule, no fault)
    """A rule has asked the run to end; what it says is why."""


@dataclass(frozen=True, kw_only=True)
class AlertConfig:
    """What a run warns of, or is stopped for."""

    alerts: list[str] | None = field(
        default=None,
        metadata={
            "help": f"Sentences of the form {FORM}, such as {EXAMPLE}; first is the metric's first value in this run. "
            "null: what docs/reward-hacking.md lists, which only warns; []: none."
        },
    )

    def __post_init__(self) -> None:
        self.rules()

    def rules(self) -> list["Rule"]:
        """The sentences, read.

        Raises:
            ValueError: the first sentence that means nothing, and what would be right.
        """
        return [read_rule(sentence) for sentence in (WATCH if self.alerts is None else self.alerts)]

    def idle(self, *, evaluates: bool, has_two_judges: bool) -> Iterator[str]:
        """What is wrong with rules about evaluations that a run does not make."""
        for rule in self.rules() if self.alerts else ():
            about = f"alerts: {rule.sentence!r}: {rule.metric} is logged"
            if rule.metric in _OF_EVALUATIONS and not evaluates:
                yield f"{about} by evaluations alone: set eval_strategy: steps and eval_cases, or {_DROP}"
            elif rule.metric in _TWO_JUDGES and not has_two_judges:
                yield (
                    f"{about} where evaluations have another judge than training: set another eval_judge or "
                    f"eval_judge_model, or {_DROP}"
                )


@dataclass(frozen=True, slots=True)
class Rule:
    """One threshold; `of_first`: as a multiple of the metric's first value; `num_logs` it has to hold in a row."""

    sentence: str
    stops: bool
    metric: str
    is_below: bool
    number: float
    of_first: bool
    num_logs: int


def read_rule(sentence: str) -> Rule:
    """The rule that a sentence tells.

    >>> rule = read_rule("stop if kl > 10 for 3 logs")
    >>> rule.stops, rule.metric, rule.is_below, rule.number, rule.of_first, rule.num_logs
    (True, 'kl', False, 10.0, False, 3)

    Raises:
        ValueError: it has another form, too large a limit or number of logs, or names a metric that no run logs.
    """
    match = _SENTENCE.fullmatch(" ".join(sentence.split()))
    if match is None:
        raise ValueError(f"alerts: {sentence!r} must have the form {FORM}, such as {EXAMPLE}")
    action, metric, sign, number, of_first, num_logs = match.groups()
    if not math.isfinite(float(number)):
        raise ValueError(f"alerts: {sentence!r}: {number} is too large, the limit must be a finite number")
    if len(num_logs or "") > 4:
        raise ValueError(f"alerts: {sentence!r}: a rule may wait for at most 9999 logs in a row, got {num_logs}")
    known = _OF_EVALUATIONS if metric.startswith("eval_") else _OURS
    is_ours = known is _OF_EVALUATIONS or any(name.startswith(metric.partition("/")[0] + "/") for name in known)
    if is_ours and metric not in known:
        raise ValueError(f"alerts: {sentence!r}: no metric is named {metric}{suggest(metric, known)}")
    return Rule(sentence, action == "stop", metric, sign == "<", float(number), bool(of_first), int(num_logs or 1))


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule that has come true: `value` is the metric's, `threshold` what it has crossed."""

    step: int
    rule: Rule
    value: float
    threshold: float

    @property
    def why(self) -> str:
        """In a sentence, with the figures."""
        side = "below" if self.rule.is_below else "above"
        return f"{self.rule.metric} is {self.value:.4g}, {side} {self.threshold:.4g}: {self.rule.sentence}"


class Rules:
    """The rules' memory of a run: tells of each rule when it comes true, and again only after it was false."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._num_true = dict.fromkeys(rules, 0)  # logs in a row
        self._first: dict[str, float] = {}

    def see(self, step: int, logs: Mapping[str, Any]) -> list[Alert]:
        """The alerts of what is logged at a step; a metric that is missing, None or NaN in it changes nothing."""
        alerts = []
        for rule in self._num_true:
            value = logs.get(rule.metric)
            if value is None or math.isnan(value):
                continue
            first = self._first.setdefault(rule.metric, value)
            threshold = rule.number * first if rule.of_first else rule.number
            is_true = value < threshold if rule.is_below else value > threshold
            self._num_true[rule] = self._num_true[rule] + 1 if is_true else 0
            if self._num_true[rule] == rule.num_logs:
                alerts.append(Alert(step, rule, value, threshold))
        return alerts

    def unknown(self, logs: Mapping[str, Any]) -> list[str]:
        """What to tell of rules whose metric is not in the first log of training, which has the names of all others."""
        names = (*logs, *_OF_EVALUATIONS)
        return [
            f"alerts: {rule.sentence!r}: the run's first log has no {rule.metric}{suggest(rule.metric, names)}"
            for rule in self._num_true
            if rule.metric not in names
        ]

    def unseen(self) -> list[str]:
        """The metrics of rules that nothing was logged of so far."""
        return sorted({rule.metric for rule in self._num_true} - self._first.keys())
