"""A model behind OpenAI-compatible URLs: the client of the judge, the solver and the data set builder."""

import asyncio
import json
import math
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from data.command import InputError
from data.endpoint_stats import EndpointError, EndpointStats
from data.replicas import Breaker, by_affinity, shown_url, split_urls
from data.reply import Reply, Unusable, kind_of_status, pause_asked_s, read_reply

if TYPE_CHECKING:  # takes a while to import: left to the first request
    from httpx2 import AsyncClient

__all__ = ["Endpoint", "EndpointError", "EndpointStats", "Reply", "Unusable"]

T = TypeVar("T")

NO_KEY = "EMPTY"
WORDS_SHOWN = 400  # characters of a server's own message that an error repeats
BREAKING = ("timeout", "connection", "http_5xx", "malformed")  # what a server that is down or drowning does


@dataclass(frozen=True, slots=True)
class _Session:
    """The client, the slots and the breaker of one server that belong to one event loop."""

    url: str
    client: "AsyncClient"
    slots: asyncio.Semaphore
    breaker: Breaker


@dataclass(slots=True)
class _Call:
    """One call under way: its body, the servers as it prefers them, the one that failed it last."""

    body: Mapping[str, Any]
    order: Sequence[int]
    until: float
    avoided: int | None = None


class Endpoint:
    """A chat model behind one or more OpenAI-compatible URLs, with a limit on concurrency, patience and retries.

    With several, each call goes to the server that its `affinity` belongs to, so that a server's prefix cache serves
    all calls with one beginning; to another while that one is down (`data.replicas`), or when it has just failed it.

    Clients live in event loops, and so does this one: each loop that asks gets its own connections and its own
    `max_concurrency` slots, made at the first request. `async with` closes those of the running loop.

    Args:
        base_url: up to and with /v1; several as a list or with commas between.
        api_key_env: environment variable that holds the key, read here and kept out of every message. Where it is
            unset, servers on this machine or on plain http are sent "EMPTY".
        timeout_s: for one try, from the request to the last byte of the reply.
        max_retries: further tries after timeouts, dropped connections, 429, 5xx and unusable replies.
        max_concurrency: calls at once, to each of the URLs.
        backoff_s: upper end of the first random pause before a retry; it doubles from try to try.

    Raises:
        InputError: a URL that is none, or no key for an endpoint that must have one.
    """

    def __init__(
        self,
        base_url: str | Sequence[str],
        model: str,
        *,
        api_key_env: str,
        timeout_s: float = 60.0,
        max_retries: int = 4,
        max_concurrency: int = 64,
        backoff_s: float = 1.0,
    ) -> None:
        self.model = model
        self.urls = split_urls(base_url)
        self.shown_url = ", ".join(map(shown_url, self.urls))
        self.stats = EndpointStats()
        self._api_key_env = api_key_env
        self._keys = [_key(url, api_key_env) for url in self.urls]
        self._key = self._keys[0]
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_concurrency = max_concurrency
        self._backoff_s = backoff_s
        self._backoff = wait_random_exponential(multiplier=backoff_s, max=30.0)
        self._sessions: dict[asyncio.AbstractEventLoop, tuple[_Session, ...]] = {}

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        parse: Callable[[Reply], T],
        *,
        affinity: str | None = None,
        until: float = math.inf,
        **sampling: Any,
    ) -> T:
        """What `parse` makes of the model's reply; `sampling` goes into the request as it is.

        Args:
            affinity: calls with the same one go to the same server; without it, calls with the same messages do.
            until: the time.monotonic() from which nothing is sent any more.

        Raises:
            EndpointError: of the last try, when none gave a reply that `parse` could use.
        """
        text = messages[-1]["content"] if affinity is None else affinity
        call = _Call({"model": self.model, "messages": messages, **sampling}, by_affinity(self.urls, text), until)
        self.stats.calls += 1
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._max_retries + 1),
            retry=retry_if_exception(lambda error: isinstance(error, EndpointError) and not error.is_final),
            wait=self._pause_s,
            before_sleep=self._count_retry,
            reraise=True,
        )
        try:
            return await tries(self._try, call, parse)
        except EndpointError:
            self.stats.given_up += 1
            raise

    async def models(self) -> tuple[str, ...]:
        """The names that the first server lists, none where it keeps no list.

        Raises:
            EndpointError: the server cannot be reached.
        """
        try:
            listed = json.loads(await self._send(self._servers()[0], "GET", "/models", None))
            return tuple(str(model["id"]) for model in listed["data"])
        except (ValueError, LookupError, TypeError):
            return ()
        except EndpointError as error:
            if error.kind in ("connection", "timeout"):
                raise
            return ()

    def each(self) -> "tuple[Endpoint, ...]":
        """One endpoint for each of the URLs, otherwise like this one, with figures of its own."""
        return tuple(
            Endpoint(
                [url],
                self.model,
                api_key_env=self._api_key_env,
                timeout_s=self._timeout_s,
                max_retries=self._max_retries,
                max_concurrency=self._max_concurrency,
                backoff_s=self._backoff_s,
            )
            for url in self.urls
        )

    async def close(self) -> None:
        """Closes the running loop's connections; asking again opens new ones."""
        for session in self._sessions.pop(asyncio.get_running_loop(), ()):
            await session.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _try(self, call: _Call, parse: Callable[[Reply], T]) -> T:
        raw, latency_s = await self._exchange(call)
        try:
            reply = read_reply(raw, latency_s)
            self.stats.tokens_in += reply.tokens_in
            self.stats.tokens_out += reply.tokens_out
            self.stats.tokens_cached += reply.tokens_cached
            self.stats.unmetered += not reply.is_metered
            self.stats.latencies_s.append(reply.latency_s)
            return parse(reply)
        except Unusable as error:
            self._fail(error.kind, str(error), is_final=error.is_final)

    async def _exchange(self, call: _Call) -> tuple[bytes, float]:
        """The body of a server's response, and the seconds that it took."""
        while True:
            place, session = await self._server_for(call)
            async with session.slots:
                if not session.breaker.admits(time.monotonic()):
                    continue  # it has failed others while this call waited for its slot
                if time.monotonic() >= call.until:  # the slot may come from a call that the same deadline has cancelled
                    raise EndpointError("deadline", "not sent: its time was up", is_final=True)
                # Written out only now: thousands of requests may wait for a slot. Half a surrogate pair cannot be sent.
                content = json.dumps(call.body, ensure_ascii=False).encode("utf-8", "replace")
                started = time.perf_counter()
                is_probe = session.breaker.begin()
                try:
                    raw = await self._send(session, "POST", "/chat/completions", content)
                except EndpointError as error:
                    call.avoided = place
                    if error.kind in BREAKING:
                        session.breaker.failed(time.monotonic(), is_probe, str(error))
                    else:
                        session.breaker.worked()
                    raise
                except BaseException:
                    session.breaker.cancelled(is_probe)
                    raise
                session.breaker.worked()
                return raw, time.perf_counter() - started

    async def _server_for(self, call: _Call) -> tuple[int, _Session]:
        """The server that the call prefers of those that may be asked, another than the one that failed it last.

        Where none may be asked the call waits, which is no failure of its own, until each has failed as many probes as
        a call has retries.
        """
        servers = self._servers()
        while True:
            now = time.monotonic()
            admitting = [place for place in call.order if servers[place].breaker.admits(now)]
            if admitting:
                place = next((place for place in admitting if place != call.avoided), admitting[0])
                return place, servers[place]
            soonest = min((server.breaker for server in servers), key=lambda breaker: breaker.wait_s(now))
            wait_s = soonest.wait_s(now)
            if all(server.breaker.failed_probes >= self._max_retries for server in servers):
                self._fail("circuit_open", f"not asked for {wait_s:.1f} s: {soonest.reason}", is_final=True)
            await asyncio.sleep(wait_s + random.uniform(0, self._backoff_s))

    async def _send(self, session: _Session, method: str, path: str, content: bytes | None) -> bytes:
        import httpx2

        try:
            async with asyncio.timeout(self._timeout_s):  # of the whole reply: a dribble of bytes is no progress
                response = await session.client.request(method, session.url.rstrip("/") + path, content=content)
        except TimeoutError:
            self._fail("timeout", f"no whole reply within {self._timeout_s:g} s", url=session.url)
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            self._fail("connection", str(error) or type(error).__name__, url=session.url)
        if response.status_code >= 400:
            self._fail(
                kind_of_status(response.status_code),
                f"HTTP {response.status_code}, {response.text}",
                response.status_code,
                pause_asked_s(response.headers.get("retry-after", "0")),
                url=session.url,
            )
        return response.content

    def _fail(
        self,
        kind: str,
        reason: str,
        status: int | None = None,
        retry_after_s: float = 0.0,
        *,
        url: str | None = None,
        is_final: bool = False,
    ) -> NoReturn:
        """Counts a failed try and raises its error, without the key and without what a terminal would obey."""
        for key in self._keys:
            reason = reason.replace(key, "***") if key != NO_KEY else reason
        printable = "".join(char if char.isprintable() else " " for char in reason)
        words = " ".join(printable.split())[:WORDS_SHOWN]
        where = self.shown_url if url is None else shown_url(url)
        error = EndpointError(kind, f"{self.model} at {where}: {words}", status, retry_after_s, is_final=is_final)
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

    def _servers(self) -> tuple[_Session, ...]:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions = {other: held for other, held in self._sessions.items() if not other.is_closed()}
            self._sessions[loop] = tuple(map(self._session, self.urls, self._keys))
        return self._sessions[loop]

    def _session(self, url: str, key: str) -> _Session:
        import httpx2

        from data.connections import Connections

        transport = None if getproxies() else Connections(self._max_concurrency)
        limits = httpx2.Limits(max_connections=self._max_concurrency, max_keepalive_connections=self._max_concurrency)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        client = httpx2.AsyncClient(
            headers=headers, transport=transport, limits=limits, timeout=None, follow_redirects=True
        )
        return _Session(url, client, asyncio.Semaphore(self._max_concurrency), Breaker(2 * self._backoff_s))


def _key(base_url: str, api_key_env: str) -> str:
    url = urlsplit(base_url)
    key = os.environ.get(api_key_env, "")
    if not key and url.scheme == "https" and url.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise InputError(
            f"{shown_url(base_url)} needs a key, and the environment variable {api_key_env} is not set; "
            "set it (to EMPTY, if this endpoint takes none)"
        )
    return key or NO_KEY
