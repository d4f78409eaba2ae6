"""One OpenAI-compatible chat endpoint: the client of the judge, the solver and the data set builder."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from data.reply import Reply, Unusable, kind_of_status, pause_asked_s, read_reply

if TYPE_CHECKING:  # openai takes most of a second to import: left to the first request
    from openai import AsyncOpenAI

__all__ = ["Endpoint", "EndpointError", "EndpointStats", "Reply", "Unusable"]

T = TypeVar("T")

NO_KEY = "EMPTY"
WORDS_SHOWN = 400  # characters of a server's own message that an error repeats


class EndpointError(Exception):
    """No usable reply. Says nothing about what was asked.

    `kind` is timeout, connection, http_429, http_5xx, http_4xx (the endpoint is set up wrongly: never retried),
    malformed (no chat completion), or the kind of the parse function's Unusable. `status` is the HTTP status, if any.
    """

    def __init__(self, kind: str, message: str, status: int | None = None, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s


@dataclass
class EndpointStats:
    """What has been asked of an endpoint since the last `take`.

    `calls` that were asked, `reused` answers that needed no call (the caller had them stored), `retries` on top of
    the calls, `given_up` calls without a usable reply. `failures` counts failed tries by kind, cured or not;
    `messages` keeps the last words of each kind. Tokens and latencies are of all replies, usable or not.
    """

    calls: int = 0
    reused: int = 0
    retries: int = 0
    given_up: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    messages: dict[str, str] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    latencies_s: list[float] = field(default_factory=list)

    def take(self) -> "EndpointStats":
        """The figures so far, which start again from nothing."""
        taken = replace(self)
        vars(self).update(vars(EndpointStats()))
        return taken

    def most_frequent_failure(self) -> str | None:
        """The commonest kind of failed try with its count and last words, None when nothing failed."""
        if not self.failures:
            return None
        kind, count = self.failures.most_common(1)[0]
        return f"{self.messages[kind]} ({count} of {self.calls + self.retries} tries)"


@dataclass(frozen=True, slots=True)
class _Session:
    """The client and the slots that belong to one event loop."""

    client: "AsyncOpenAI"
    slots: asyncio.Semaphore


class Endpoint:
    """A chat model behind an OpenAI-compatible URL, with a limit on concurrency, patience and retries.

    Clients live in event loops, and so does this one: each loop that asks gets its own connections and its own
    `max_concurrency` slots, made at the first request. `async with` closes those of the running loop.

    Args:
        base_url: up to and with /v1.
        api_key_env: environment variable that holds the key, read here and kept out of every message. Where it is
            unset, servers on this machine or on plain http are sent "EMPTY".
        timeout_s: for one try, from the request to the last byte of the reply.
        max_retries: further tries after timeouts, dropped connections, 429, 5xx and unusable replies.
        backoff_s: upper end of the first random pause before a retry; it doubles from try to try.

    Raises:
        ValueError: a URL that is none, or no key for an endpoint that must have one.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str,
        timeout_s: float = 60.0,
        max_retries: int = 4,
        max_concurrency: int = 64,
        backoff_s: float = 1.0,
    ) -> None:
        self.model = model
        self.shown_url = _shown(base_url)
        self.stats = EndpointStats()
        self._base_url = base_url
        self._key = _key(base_url, api_key_env)
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_concurrency = max_concurrency
        self._backoff = wait_random_exponential(multiplier=backoff_s, max=30.0)
        self._sessions: dict[asyncio.AbstractEventLoop, _Session] = {}

    async def ask(self, messages: Sequence[Mapping[str, str]], parse: Callable[[Reply], T], **sampling: Any) -> T:
        """What `parse` makes of the model's reply; `sampling` goes into the request as it is.

        Raises:
            EndpointError: of the last try, when none gave a reply that `parse` could use.
        """
        body = {"model": self.model, "messages": messages, **sampling}
        self.stats.calls += 1
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._max_retries + 1),
            retry=retry_if_exception(lambda error: isinstance(error, EndpointError) and error.kind != "http_4xx"),
            wait=self._pause_s,
            before_sleep=self._count_retry,
            reraise=True,
        )
        try:
            return await tries(self._try, body, parse)
        except EndpointError:
            self.stats.given_up += 1
            raise

    async def close(self) -> None:
        """Closes the running loop's connections; asking again opens new ones."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _try(self, body: Mapping[str, Any], parse: Callable[[Reply], T]) -> T:
        session = self._session()
        async with session.slots:
            # Written out only now: thousands of requests may wait for a slot. Half a surrogate pair cannot be sent.
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            started = time.perf_counter()
            raw = await self._post(session.client, content)
        try:
            reply = read_reply(raw, time.perf_counter() - started)
            self.stats.tokens_in += reply.tokens_in
            self.stats.tokens_out += reply.tokens_out
            self.stats.latencies_s.append(reply.latency_s)
            return parse(reply)
        except Unusable as error:
            self._fail(error.kind, str(error))

    async def _post(self, client: "AsyncOpenAI", content: bytes) -> bytes:
        import httpx2
        from openai import APIConnectionError, APIStatusError

        try:
            # The raw reply, not the client's typed one: that is built without checks, costs a third more time, and
            # loses the keys that reasoning arrives in.
            async with asyncio.timeout(self._timeout_s):  # of the whole reply: a dribble of bytes is no progress
                response = await client.post("/chat/completions", cast_to=httpx2.Response, content=content)
        except TimeoutError:
            self._fail("timeout", f"no whole reply within {self._timeout_s:g} s")
        except APIConnectionError as error:
            self._fail("connection", str(error.__cause__ or error))
        except APIStatusError as error:
            status = error.status_code
            retry_after_s = pause_asked_s(error.response.headers.get("retry-after", "0"))
            self._fail(kind_of_status(status), f"HTTP {status}, {error.response.text}", status, retry_after_s)
        return response.content

    def _fail(self, kind: str, reason: str, status: int | None = None, retry_after_s: float = 0.0) -> NoReturn:
        """Counts a failed try and raises its error, without the key and without what a terminal would obey."""
        if self._key != NO_KEY:
            reason = reason.replace(self._key, "***")
        printable = "".join(char if char.isprintable() else " " for char in reason)
        words = " ".join(printable.split())[:WORDS_SHOWN]
        error = EndpointError(kind, f"{self.model} at {self.shown_url}: {words}", status, retry_after_s)
        self.stats.failures[kind] += 1
        self.stats.messages[kind] = str(error)
        raise error from None

    def _pause_s(self, state: RetryCallState) -> float:
        """Random backoff, after what the server asked for."""
        error = state.outcome.exception() if state.outcome else None
        asked_s = error.retry_after_s if isinstance(error, EndpointError) else 0.0
        return asked_s + self._backoff(state)

    def _count_retry(self, _: RetryCallState) -> None:
        self.stats.retries += 1

    def _session(self) -> _Session:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions = {other: session for other, session in self._sessions.items() if not other.is_closed()}
            self._sessions[loop] = _Session(self._client(), asyncio.Semaphore(self._max_concurrency))
        return self._sessions[loop]

    def _client(self) -> "AsyncOpenAI":
        import httpx2
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        # As many connections as slots, all of them kept: the slots are the one limit.
        limits = httpx2.Limits(max_connections=self._max_concurrency, max_keepalive_connections=self._max_concurrency)
        return AsyncOpenAI(
            base_url=self._base_url,
            api_key=self._key,
            max_retries=0,
            timeout=None,
            http_client=DefaultAsyncHttpxClient(limits=limits, timeout=None),
        )


def _key(base_url: str, api_key_env: str) -> str:
    url = urlsplit(base_url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"no URL of an endpoint: {_shown(base_url)!r}; it must look like http://HOST:PORT/v1")
    key = os.environ.get(api_key_env, "")
    if not key and url.scheme == "https" and url.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError(
            f"{_shown(base_url)} needs a key, and the environment variable {api_key_env} is not set; "
            "set it (to EMPTY, if this endpoint takes none)"
        )
    return key or NO_KEY


def _shown(base_url: str) -> str:
    """The URL without a user, a password or a query: those can be secrets."""
    url = urlsplit(base_url)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
