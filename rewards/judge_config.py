"""Which judge gives the verdicts, how it is asked, and how much patience it gets."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from data.command import seconds
from data.endpoint import EndpointStats
from data.replicas import split_urls

JudgeKind = Literal["endpoint", "mini"]
VerdictKind = Literal["hard", "soft"]
PRICED = ("in", "cached", "out")
EVAL_PREFIX = "eval_"  # before a key of JudgeConfig: the same for the judge of evaluations


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """Which judge gives the verdicts, and how much patience it gets."""

    judge: JudgeKind = field(
        default="endpoint",
        metadata={"help": "endpoint: a language model over HTTP; mini: the exact judge of the mini world."},
    )
    judge_base_url: str | list[str] | None = field(
        default=None,
        metadata={
            "help": "OpenAI-compatible URL up to and with /v1, such as http://localhost:8000/v1; several servers of "
            "one model as a list or with commas between: each response goes to one of them."
        },
    )
    judge_model: str | None = field(default=None, metadata={"help": "The model's name at that endpoint."})
    judge_api_key_env: str = field(
        default="JUDGE_API_KEY", metadata={"help": "Environment variable that holds the endpoint's key."}
    )
    judge_temperature: float = field(default=0.0, metadata={"help": "Sampling temperature of the judge."})
    judge_max_tokens: int = field(
        default=512, metadata={"help": "Longest reply for each issue of a call, the judge's thinking included."}
    )
    judge_rationales: bool = field(
        default=True,
        metadata={"help": "Ask for a short reason before the verdict: helps large judges, misleads very small ones."},
    )
    judge_verdict: VerdictKind = field(
        default="hard",
        metadata={
            "help": "hard: the judge's yes or no; soft: its probability of yes, for endpoints that give logprobs."
        },
    )
    judge_issues_per_call: str | int = field(
        default=1, metadata={"help": "Issues of a response in one call: 1 is the paper's way, all is the cheapest."}
    )
    judge_votes: int = field(
        default=1,
        metadata={
            "help": "Times that each verdict is asked for, an odd number: hard verdicts are the majority, soft ones "
            "the mean. Set judge_temperature above 0, or the votes are much alike."
        },
    )
    judge_repeat_frac: float = field(
        default=0.02,
        metadata={
            "help": "Share of responses judged twice, the second time with other marks around them, only to log how "
            "often the judge contradicts itself."
        },
    )
    judge_preflight: bool = field(
        default=True, metadata={"help": "Try the judge on 20 easy questions before training, and stop if it fails."}
    )
    judge_warm_prefix: bool = field(
        default=False,
        metadata={
            "help": "Ask one call of a response first and the others when it is answered: for servers that compute a "
            "shared beginning anew for each of the calls that come at once."
        },
    )
    judge_timeout_s: float = field(default=60.0, metadata={"help": "Seconds for one try of one call."})
    # With 20 % faults 4 retries lose one verdict in 3,000, so one response in 400, 6 one in 10,000.
    judge_max_retries: int = field(default=6, metadata={"help": "Further tries for one call."})
    judge_deadline_s: float = field(
        default=600.0, metadata={"help": "Seconds for all verdicts of a batch; what is missing then counts as missing."}
    )
    judge_max_concurrency: int = field(
        default=64, metadata={"help": "Requests in flight to each server, of all processes of a training together."}
    )
    judge_quorum: float = field(
        default=1.0, metadata={"help": "Share of a response's verdicts that must have arrived for it to be scored."}
    )
    judge_store: str | None = field(
        default=None, metadata={"help": "Folder that keeps verdicts, so that none is paid twice; shared by processes."}
    )
    judge_prices: str | dict[str, float] | None = field(
        default=None,
        metadata={
            "help": "Price of a million tokens, {in: 0.15, cached: 0.075, out: 0.6} or as text in=0.15,out=0.6; "
            "cached tokens cost what others do where no price of theirs is given."
        },
    )

    def __post_init__(self) -> None:
        for name, kinds in (("judge", JudgeKind), ("judge_verdict", VerdictKind)):
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(f"{name} must be one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}")
        if self.judge == "endpoint":
            for name in ("judge_base_url", "judge_model"):
                if not getattr(self, name):
                    raise ValueError(f"{name} must be set for judge: endpoint (or use judge: mini with mini cases)")
            _check("judge_base_url", split_urls, self.judge_base_url)
        lowest: Mapping[str, float] = {
            "judge_max_tokens": 16,
            "judge_max_retries": 0,
            "judge_max_concurrency": 1,
            "judge_votes": 1,
        }
        for name, low in lowest.items():
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)}")
        if self.judge_votes % 2 == 0:
            raise ValueError(f"judge_votes must be odd, so that there is a majority, got {self.judge_votes}")
        for name in ("judge_timeout_s", "judge_deadline_s"):
            _check(name, seconds, getattr(self, name))
        if not 0 <= self.judge_temperature <= 2:
            raise ValueError(f"judge_temperature must lie in [0, 2], got {self.judge_temperature}")
        if not 0 <= self.judge_repeat_frac <= 1:
            raise ValueError(f"judge_repeat_frac must lie in [0, 1], got {self.judge_repeat_frac}")
        if not 0 < self.judge_quorum <= 1:
            raise ValueError(f"judge_quorum must lie in (0, 1], got {self.judge_quorum}")
        object.__setattr__(self, "judge_issues_per_call", _issues_per_call(self.judge_issues_per_call))
        object.__setattr__(self, "judge_prices", _prices(self.judge_prices))

    def group_size(self, num_issues: int) -> int:
        """How many of so many issues go into one call."""
        return num_issues if self.judge_issues_per_call == "all" else int(self.judge_issues_per_call)

    def cost(self, tokens: tuple[int, int, int]) -> float | None:
        """What tokens in, those of them cached, and tokens out have cost; None where no prices are set.

        >>> config = JudgeConfig(judge="mini", judge_prices={"in": 1.0, "cached": 0.5, "out": 4.0})
        >>> config.cost((3_000_000, 1_000_000, 500_000))  # 2 + 0.5 + 2
        4.5
        """
        if not isinstance(self.judge_prices, dict):
            return None
        tokens_in, cached, out = tokens
        prices = {"cached": self.judge_prices["in"], **self.judge_prices}
        return ((tokens_in - cached) * prices["in"] + cached * prices["cached"] + out * prices["out"]) / 1e6

    def costs(self, stats: EndpointStats) -> tuple[float | None, float | None]:
        """What the figures cost, and with what was taken before them: a step's cost and the run's so far."""
        so_far = [one + other for one, other in zip(stats.taken, stats.tokens, strict=True)]
        return self.cost(stats.tokens), self.cost((so_far[0], so_far[1], so_far[2]))


def eval_judge_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the judge of evaluations: the training judge's where no eval_judge key says otherwise.

    >>> eval_judge_settings({"judge": "mini", "judge_votes": 3, "eval_judge": None, "eval_judge_votes": 1, "seed": 7})
    {'judge': 'mini', 'judge_votes': 1}
    """
    names = [field.name for field in fields(JudgeConfig)]
    own = {name: values.get(EVAL_PREFIX + name) for name in names}
    found = {name: values.get(name) if own[name] is None else own[name] for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _check(name: str, read: Callable[[Any], object], value: Any) -> None:
    try:
        read(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _issues_per_call(value: str | int) -> str | int:
    if value == "all":
        return value
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, str) or number < 1:
        raise ValueError(f"judge_issues_per_call must be a whole number of at least 1, or all, got {value!r}")
    return number


def _prices(value: str | Mapping[str, float] | None) -> dict[str, float] | None:
    if value is None:
        return None
    try:
        pairs = [pair.split("=") for pair in value.split(",")] if isinstance(value, str) else value.items()
        prices = {name.strip(): float(price) for name, price in pairs}
    except (ValueError, TypeError):
        prices = {}
    if not {"in", "out"} <= prices.keys() <= set(PRICED) or not all(0 <= price < math.inf for price in prices.values()):
        raise ValueError(
            f"judge_prices must give a price of 0 or more for in and out, and may for cached, got {value!r}"
        )
    return prices
