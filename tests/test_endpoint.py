"""The endpoint client against a real local server that misbehaves by script."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fake_llm_server import (
    DROPPED,
    HANGING,
    TORN,
    FakeLLM,
    Reply,
    completion,
    error,
    html_page,
    in_turn,
    payload,
)

from data.endpoint import Endpoint, EndpointError, EndpointStats, Unusable
from data.endpoint import Reply as Parsed

QUESTION = [{"role": "user", "content": "기각인가 각하인가"}]


def endpoint_at(base_url, **options):
    defaults = {"api_key_env": "LEGIT_TEST_KEY", "timeout_s": 5.0, "max_retries": 2, "backoff_s": 0.01}
    return Endpoint(base_url, "fake", **(defaults | options))


def content(reply: Parsed) -> str:
    if not reply.text.strip():
        raise Unusable("blank", "whitespace")
    return reply.text


def ask(endpoint, parse=content, **sampling):
    async def once():
        async with endpoint:
            return await endpoint.ask(QUESTION, parse, **sampling)

    return asyncio.run(once())


def test_a_request_carries_model_messages_and_sampling_and_a_reply_its_parts():
    with FakeLLM(lambda _: completion("기각", reasoning_content="생각", tokens_in=7, tokens_out=3)) as server:
        endpoint = endpoint_at(server.base_url)
        reply = ask(endpoint, lambda reply: reply, temperature=0, top_k=5)
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["content-type"] == "application/json"
    assert server.requests[0].body == {"model": "fake", "messages": QUESTION, "temperature": 0, "top_k": 5}
    assert (reply.content, reply.reasoning, reply.finish_reason) == ("기각", "생각", "stop")
    assert (reply.tokens_in, reply.tokens_out) == (7, 3)
    assert (endpoint.stats.calls, endpoint.stats.retries, endpoint.stats.given_up) == (1, 0, 0)
    assert (endpoint.stats.tokens_in, endpoint.stats.tokens_out, len(endpoint.stats.latencies_s)) == (7, 3, 1)


@pytest.mark.parametrize(
    "reply",
    [
        completion("", reasoning_content="기각"),
        completion(None, reasoning_content="기각"),
        completion(" \n", reasoning="기각"),
        completion("기각", reasoning_content=None),
    ],
    ids=["reasoning_content", "null content", "reasoning", "content"],
)
def test_the_text_is_found_wherever_the_server_puts_it(reply):
    with FakeLLM(lambda _: reply) as server:
        assert ask(endpoint_at(server.base_url)) == "기각"


FAULTS = {
    "timeout": (HANGING, "timeout"),
    "dribbling body": (Reply(completion("기각").body, dribble_s=0.05), "timeout"),
    "request timeout": (error(408), "timeout"),
    "dropped": (DROPPED, "connection"),
    "torn body": (TORN, "connection"),
    "429": (error(429), "http_429"),
    "500": (error(500), "http_5xx"),
    "503": (html_page(503), "http_5xx"),
    "half a JSON": (Reply(completion("기각").body[:-20]), "malformed"),
    "HTML": (html_page(), "malformed"),
    "empty choices": (payload({"choices": []}), "malformed"),
    "error in a 200": (payload({"error": {"message": "overloaded"}}), "malformed"),
    "a list": (payload([1]), "malformed"),
    "content of parts": (payload({"choices": [{"message": {"content": [{"text": "기각"}]}}]}), "malformed"),
    "endless brackets": (Reply(b"[" * 100_000), "malformed"),
    "nothing": (Reply(b""), "malformed"),
    "whitespace": (completion(" \n\t" * 200, finish_reason="length"), "whitespace"),
}


@pytest.mark.parametrize(("fault", "kind"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_retried_and_then_named(fault, kind):
    with FakeLLM(lambda _: fault) as server:
        endpoint = endpoint_at(server.base_url, timeout_s=0.5 if kind == "timeout" else 60)
        with pytest.raises(EndpointError) as caught:
            ask(endpoint)
    assert caught.value.kind == kind
    assert len(server.requests) == 3
    stats = endpoint.stats
    assert (stats.calls, stats.retries, stats.given_up, stats.failures) == (1, 2, 1, {kind: 3})


@pytest.mark.parametrize(("fault", "kind"), FAULTS.values(), ids=FAULTS)
def test_one_fault_is_cured_by_a_retry(fault, kind):
    with FakeLLM(in_turn(fault, completion("기각"))) as server:
        endpoint = endpoint_at(server.base_url, timeout_s=3 if kind == "timeout" else 60)
        assert ask(endpoint) == "기각"
    assert (endpoint.stats.calls, endpoint.stats.retries, endpoint.stats.given_up) == (1, 1, 0)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ('{"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}', (7, 5, 3, 0)),
        ('{"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": []}', (7, 0, 3, 0)),
        ('{"prompt_tokens": 7, "completion_tokens": "three"}', (7, 0, 0, 1)),
        ('{"prompt_tokens": Infinity, "completion_tokens": -3}', (0, 0, 0, 1)),
        ('{"prompt_tokens": {"n": 7}, "completion_tokens": true}', (0, 0, 0, 1)),
        ("[7, 3]", (0, 0, 0, 1)),
        ('"unknown"', (0, 0, 0, 1)),
        ("null", (0, 0, 0, 1)),
    ],
)
def test_a_broken_usage_takes_nothing_from_the_answer_and_is_counted_as_unknown(usage, counted):
    body = b'{"choices": [{"message": {"content": "%s"}}], "usage": %s}' % ("기각".encode(), usage.encode())
    with FakeLLM(lambda _: Reply(body)) as server:
        endpoint = endpoint_at(server.base_url)
        assert ask(endpoint) == "기각"
    stats = endpoint.stats
    assert (*stats.tokens, stats.unmetered) == counted
    assert (len(server.requests), stats.failures.total()) == (1, 0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_wrong_setup_is_not_retried_and_repeats_the_servers_words(status, monkeypatch):
    monkeypatch.setenv("LEGIT_TEST_KEY", "sk-very-secret")
    answer = error(status, "Incorrect key sk-very-secret \x1b[31mfor model")
    with FakeLLM(lambda _: answer) as server:
        endpoint = endpoint_at(server.base_url)
        with pytest.raises(EndpointError, match="Incorrect key") as caught:
            ask(endpoint)
        assert server.base_url in str(caught.value)
    assert (caught.value.kind, caught.value.status, len(server.requests)) == ("http_4xx", status, 1)
    assert server.requests[0].headers["authorization"] == "Bearer sk-very-secret"
    shown = str(caught.value) + repr(endpoint.stats) + repr(endpoint)
    assert "secret" not in shown
    assert "\x1b" not in shown


def test_nobody_listens():
    with FakeLLM(lambda _: completion("기각")) as server:
        pass
    with pytest.raises(EndpointError, match=r"connection: fake at http://127\.0\.0\.1") as caught:
        ask(endpoint_at(server.base_url))
    assert caught.value.kind == "connection"


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed(status):
    with FakeLLM(in_turn(error(status, retry_after="0.6"), completion("기각"))) as server:
        started = time.perf_counter()
        assert ask(endpoint_at(server.base_url)) == "기각"
    assert 0.6 <= time.perf_counter() - started < 3


@pytest.mark.parametrize(
    "retry_after", ["soon", "-5", "nan", "inf", "", format_datetime(datetime(2020, 1, 1, tzinfo=UTC))]
)
def test_a_retry_after_that_says_nothing_does_no_harm(retry_after):
    with FakeLLM(in_turn(error(429, retry_after=retry_after), completion("기각"))) as server:
        started = time.perf_counter()
        assert ask(endpoint_at(server.base_url)) == "기각"
    assert time.perf_counter() - started < 2


def test_retry_after_may_be_a_date():
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)  # whole seconds: 1 to 2 from now
    with FakeLLM(in_turn(error(429, retry_after=when), completion("기각"))) as server:
        started = time.perf_counter()
        assert ask(endpoint_at(server.base_url)) == "기각"
    assert 0.8 <= time.perf_counter() - started < 4


def test_300_calls_at_once_stay_within_the_limit_and_reuse_their_connections():
    with FakeLLM(lambda request: completion(str(request.index), delay_s=0.01)) as server:

        async def ask_all():
            async with endpoint_at(server.base_url, max_concurrency=8) as endpoint:
                return await asyncio.gather(*(endpoint.ask(QUESTION, content) for _ in range(300)))

        assert len(asyncio.run(ask_all())) == 300
    assert server.max_in_flight == 8
    assert server.num_connections <= 8


def test_a_call_that_waits_for_its_retry_holds_no_slot():
    def script(request):
        return error(429, retry_after="3") if request.index == 0 else completion("기각")

    with FakeLLM(script) as server:

        async def ask_both():
            async with endpoint_at(server.base_url, max_concurrency=1) as endpoint:
                first = asyncio.create_task(endpoint.ask(QUESTION, content))
                await asyncio.sleep(0.2)
                await endpoint.ask(QUESTION, content)
                was_waiting = not first.done()
                await first
                return was_waiting

        assert asyncio.run(ask_both())


def test_cancelling_ends_promptly_and_frees_the_slot():
    with FakeLLM(in_turn(HANGING, completion("기각"))) as server:

        async def cancel_then_ask():
            async with endpoint_at(server.base_url, max_concurrency=1, timeout_s=3600) as endpoint:
                call = asyncio.create_task(endpoint.ask(QUESTION, content))
                while not server.requests:  # noqa: ASYNC110 - or the hanging reply would wait for the second question
                    await asyncio.sleep(0.01)
                started = time.perf_counter()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                took_s = time.perf_counter() - started
                return took_s, await endpoint.ask(QUESTION, content), endpoint.stats

        took_s, text, stats = asyncio.run(cancel_then_ask())
    assert took_s < 0.5
    assert text == "기각"
    assert not stats.failures


def test_cancelling_during_a_pause_ends_promptly():
    with FakeLLM(lambda _: error(429, retry_after="60")) as server:

        async def cancel():
            async with endpoint_at(server.base_url) as endpoint:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(endpoint.ask(QUESTION, content), timeout=0.3)

        started = time.perf_counter()
        asyncio.run(cancel())
    assert time.perf_counter() - started < 2


def test_one_endpoint_serves_loop_after_loop():
    with FakeLLM(lambda _: completion("기각")) as server:
        endpoint = endpoint_at(server.base_url)
        assert [ask(endpoint), ask(endpoint)] == ["기각", "기각"]
        # a loop that nobody closed the client of, as a trainer leaves it
        assert asyncio.run(endpoint.ask(QUESTION, content)) == "기각"
        assert ask(endpoint) == "기각"
    assert endpoint.stats.calls == 4


def test_a_bug_in_the_parse_function_is_no_endpoint_failure():
    def broken(reply):
        return reply.no_such_part

    with FakeLLM(lambda _: completion("기각")) as server:
        endpoint = endpoint_at(server.base_url)
        with pytest.raises(AttributeError):
            ask(endpoint, broken)
    assert len(server.requests) == 1


def test_half_a_surrogate_pair_can_be_asked():
    with FakeLLM(lambda _: completion("기각")) as server:

        async def once():
            async with endpoint_at(server.base_url) as endpoint:
                return await endpoint.ask([{"role": "user", "content": "기\ud800각"}], content)

        assert asyncio.run(once()) == "기각"
    assert server.requests[0].text == "기?각"


def test_stats_are_taken_and_start_again():
    stats = EndpointStats(calls=3, retries=1)
    stats.failures["timeout"] += 4
    stats.messages["timeout"] = "timeout: too slow"
    taken = stats.take()
    assert (taken.calls, taken.failures["timeout"]) == (3, 4)
    assert taken.most_frequent_failure() == "timeout: too slow (4 of 4 tries)"
    assert stats == EndpointStats()
    assert stats.most_frequent_failure() is None


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        ("http://localhost:8000/v1", "EMPTY"),
        ("https://localhost:8000/v1", "EMPTY"),
        ("http://node17:8000/v1", "EMPTY"),
    ],
)
def test_a_local_endpoint_needs_no_key(base_url, key, monkeypatch):
    monkeypatch.delenv("LEGIT_TEST_KEY", raising=False)
    assert endpoint_at(base_url)._key == key


def test_a_public_endpoint_needs_a_key(monkeypatch):
    monkeypatch.delenv("LEGIT_TEST_KEY", raising=False)
    with pytest.raises(ValueError, match=r"https://api\.example/v1 needs a key.*LEGIT_TEST_KEY is not set") as caught:
        endpoint_at("https://user:password@api.example/v1?key=hidden")
    assert "password" not in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("base_url", ["localhost:8000/v1", "", "ftp://host/v1", "http:///v1"])
def test_what_is_no_url_is_refused(base_url):
    with pytest.raises(ValueError, match="http://HOST:PORT/v1"):
        endpoint_at(base_url)
