"""What an OpenAI-compatible server sends back: a chat completion, or reasons why not. Pure."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST_PAUSE_S = 120.0  # a server may ask for more patience than this; a run should rather hear of it


# A token as it was written, and the logarithms of the probabilities of those that could have stood there.
TokenChoices = tuple[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat completion as it arrived. Empty `content` beside a full `reasoning` is what reasoning parsers leave.

    `tokens_cached` of the `tokens_in` were in the server's prefix cache, where it tells; `logprobs` where asked for.
    Tokens are 0, and `is_metered` False, where the server does not tell their number.
    """

    content: str
    reasoning: str
    finish_reason: str | None
    tokens_in: int
    tokens_out: int
    latency_s: float
    tokens_cached: int = 0
    logprobs: tuple[TokenChoices, ...] = ()
    is_metered: bool = True

    @property
    def text(self) -> str:
        """The content, or the reasoning where the content is blank."""
        return self.content if self.content.strip() else self.reasoning


class Unusable(Exception):  # noqa: N818  (the reply's state, raised by parse functions)
    """The reply arrived but is not what was asked for; `kind` is what it is counted as, `is_final` forbids a retry."""

    def __init__(self, reason: str, kind: str = "unusable", *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.is_final = is_final


def read_reply(raw: bytes, latency_s: float) -> Reply:
    """The reply that the body of a response holds.

    Raises:
        Unusable: of kind malformed, whatever is wrong with the body.
    """
    try:
        completion = json.loads(raw)
        choice = completion["choices"][0]
        usage = completion.get("usage")
        tokens = [_count(usage, name) for name in ("prompt_tokens", "completion_tokens")]
        return Reply(
            content=_text(choice["message"], "content"),
            reasoning=_text(choice["message"], "reasoning_content") or _text(choice["message"], "reasoning"),
            finish_reason=choice.get("finish_reason"),
            tokens_in=tokens[0] or 0,
            tokens_out=tokens[1] or 0,
            latency_s=latency_s,
            tokens_cached=_count(_entry(usage, "prompt_tokens_details"), "cached_tokens") or 0,
            logprobs=tuple(map(_choices, (choice.get("logprobs") or {}).get("content") or ())),
            is_metered=None not in tokens,
        )
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Unusable(f"no chat completion: {raw.decode('utf-8', 'replace')}", "malformed") from None


def _choices(entry: Mapping[str, Any]) -> TokenChoices:
    logprobs = {top["token"]: float(top["logprob"]) for top in entry.get("top_logprobs") or ()}
    return entry["token"], {entry["token"]: float(entry["logprob"]), **logprobs}


def _entry(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, dict) else None


def _count(holder: Any, key: str) -> int | None:
    """A number of tokens, None where there is none: what a server says of its usage takes nothing from its answer."""
    number = _entry(holder, key)
    return number if type(number) is int and number >= 0 else None


def _text(message: Mapping[str, Any], key: str) -> str:
    text = message.get(key) or ""
    if not isinstance(text, str):
        raise TypeError(f"{key} is no text")
    return text


def kind_of_status(status: int) -> str:
    """What a failure with that HTTP status is counted as."""
    if status == 408:
        return "timeout"
    if status == 429:
        return "http_429"
    return "http_5xx" if status >= 500 else "http_4xx"


def pause_asked_s(retry_after: str) -> float:
    """Seconds that a Retry-After header asks for, as a number or as a date; 0 where it says nothing sensible.

    >>> [pause_asked_s(value) for value in ("2.5", "soon", "-1", "86400")]
    [2.5, 0.0, 0.0, 120.0]
    """
    try:
        asked_s = float(retry_after)
    except ValueError:
        try:
            asked_s = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return min(max(asked_s, 0.0), LONGEST_PAUSE_S) if math.isfinite(asked_s) else 0.0
