"""What asking an endpoint has cost and where it has failed."""

from collections import Counter
from dataclasses import dataclass, field, replace


class EndpointError(Exception):
    """No usable reply. Says nothing about what was asked.

    `kind` is timeout, connection, http_429, http_5xx, http_4xx (the endpoint is set up wrongly: never retried),
    malformed (no chat completion), circuit_open (not sent: the server is down), or the kind of
    the parse function's Unusable. `status` is the HTTP status, if any; `is_final` says that no retry would help.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        status: int | None = None,
        retry_after_s: float = 0.0,
        *,
        is_final: bool = False,
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s
        self.is_final = is_final or kind == "http_4xx"


@dataclass
class EndpointStats:
    """What has been asked of an endpoint since the last `take`.

    `calls` that were asked, `reused` answers that needed no call (the caller had them stored), `retries` on top of
    the calls, `given_up` calls without a usable reply. `failures` counts failed tries by kind, cured or not;
    `messages` keeps the last words of each kind. Tokens and latencies are of all replies, usable or not, but for the
    tokens of those that were `unmetered`; `taken` holds the tokens in, cached and out of all that was taken before. Of
    `repeated` questions, asked more than once to see how sure the answer is, `disagreed` had different answers.
    """

    calls: int = 0
    reused: int = 0
    retries: int = 0
    given_up: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    messages: dict[str, str] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    unmetered: int = 0
    repeated: int = 0
    disagreed: int = 0
    latencies_s: list[float] = field(default_factory=list)
    taken: tuple[int, int, int] = (0, 0, 0)

    @property
    def tokens(self) -> tuple[int, int, int]:
        """Tokens in, those of them cached, and tokens out."""
        return self.tokens_in, self.tokens_cached, self.tokens_out

    def take(self) -> "EndpointStats":
        """The figures so far, which start again from nothing."""
        now = replace(self)
        before = [one + other for one, other in zip(self.taken, self.tokens, strict=True)]
        vars(self).update(vars(EndpointStats(taken=(before[0], before[1], before[2]))))
        return now

    def most_frequent_failure(self) -> str | None:
        """The commonest kind of failed try with its count and last words, None when nothing failed."""
        if not self.failures:
            return None
        kind, count = self.failures.most_common(1)[0]
        return f"{self.messages[kind]} ({count} of {self.calls + self.retries} tries)"
