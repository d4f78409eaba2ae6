"""Several servers: where a response goes, what happens to the share of a dead one, and how it comes back."""

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from data.cases import Case, Issue
from data.command import InputError
from data.endpoint import Endpoint, EndpointError
from data.replicas import BREAK_AFTER, Breaker, by_affinity, split_urls
from rewards.judge import JudgeConfig, judge_batch, load_judge
from tests.fake_llm_server import DROPPED, HANGING, FakeLLM, completion, error, verdict

URLS = ["http://a/v1", "http://b/v1", "http://c/v1"]
CASE = Case("c", "질문", tuple(Issue(str(n) if n else "", "쟁점", (), f"{n}번 결론") for n in range(5)))


def endpoint_at(urls, **options):
    defaults = {"api_key_env": "LEGIT_TEST_KEY", "timeout_s": 5.0, "max_retries": 4, "backoff_s": 0.05}
    return Endpoint(urls, "fake", **(defaults | options))


async def ask(endpoint, text):
    return await endpoint.ask([{"role": "user", "content": text}], lambda reply: reply.text)


@pytest.mark.parametrize(
    "value", ["http://a/v1,http://b/v1", "http://a/v1 , http://b/v1", ["http://a/v1", "http://b/v1"]]
)
def test_urls_are_a_list_or_a_text_with_commas(value):
    assert split_urls(value) == ("http://a/v1", "http://b/v1")


@pytest.mark.parametrize(
    "value",
    [
        *("", "localhost:8000", "ftp://a/v1", "file:///v1", "http://", "http://:8000/v1"),
        *(
            "http://a:port/v1",
            "http://a:70000/v1",
            "http://[::1/v1",
            "http://a b/v1",
            "http://a/v1,",
            "http://a/v1\x00",
        ),
        ["http://a/v1", "ftp://b/v1"],
    ],
)
def test_what_is_no_url_of_an_endpoint_is_refused(value):
    with pytest.raises(InputError, match=r"no URL of an endpoint: .*; it must look like http://HOST:PORT/v1"):
        split_urls(value)


def test_a_refused_url_is_told_without_its_secrets():
    for url in ("ftp://user:secret@a/v1?key=secret", "http://user:secret@[::1/v1?key=secret"):
        with pytest.raises(InputError) as raised:
            split_urls(url)
        assert "secret" not in str(raised.value)


def test_texts_are_spread_evenly_and_only_those_of_a_lost_server_move():
    texts = [f"답 {n}" for n in range(3000)]
    before = {text: URLS[by_affinity(URLS, text)[0]] for text in texts}
    assert min(Counter(before.values()).values()) > 900
    left = URLS[:2]
    after = {text: left[by_affinity(left, text)[0]] for text in texts}
    assert all(after[text] == before[text] for text in texts if before[text] in left)
    moved = Counter(after[text] for text in texts if before[text] == URLS[2])
    assert min(moved.values()) > 400


def test_a_breaker_opens_probes_and_closes():
    breaker = Breaker(first_pause_s=2.0)
    for _ in range(BREAK_AFTER):
        assert breaker.admits(0.0)
        breaker.failed(0.0, breaker.begin())
    assert not breaker.admits(1.9)
    assert breaker.wait_s(0.5) == 1.5
    assert breaker.admits(2.0)
    assert breaker.begin()
    assert not breaker.admits(2.0)  # one probe at a time
    breaker.failed(2.0, True)
    assert not breaker.admits(5.9)  # twice the pause
    assert breaker.admits(6.0)
    is_probe = breaker.begin()
    breaker.cancelled(is_probe)
    assert breaker.admits(6.0)
    breaker.begin()
    breaker.worked()
    assert breaker.admits(6.0)
    assert not breaker.begin()


def test_all_issues_of_a_response_go_to_one_server():
    with FakeLLM(lambda _: verdict(True, True)) as one, FakeLLM(lambda _: verdict(True, True)) as two:
        config = JudgeConfig(judge_base_url=[one.base_url, two.base_url], judge_model="fake", judge_repeat_frac=0.0)
        asyncio.run(judge_batch(load_judge(config), [(CASE, f"답 {n}번.") for n in range(40)], 30))
    asked = [[n for n in range(40) for r in server.requests if f"답 {n}번." in r.text] for server in (one, two)]
    assert not set(asked[0]) & set(asked[1])
    assert all(count == 5 for found in asked for count in Counter(found).values())
    assert min(len(set(found)) for found in asked) >= 10


@pytest.mark.parametrize("fault", [DROPPED, error(503), HANGING], ids=["dropped", "503", "hanging"])
def test_the_share_of_a_dead_server_moves_and_comes_back(fault):
    state = {"dead": True}

    def sick(_):
        return fault if state["dead"] else completion("둘")

    with FakeLLM(lambda _: completion("하나")) as well, FakeLLM(sick) as ill:

        async def life():
            async with endpoint_at([well.base_url, ill.base_url], timeout_s=2.0) as endpoint:
                away = await asyncio.gather(*(ask(endpoint, f"질문 {n}") for n in range(100)))
                asked_while_dead = len(ill.requests)
                await asyncio.gather(*(ask(endpoint, f"또 {n}") for n in range(100)))
                probes = len(ill.requests) - asked_while_dead
                state["dead"] = False
                until = time.monotonic() + 20
                while "둘" not in (back := await asyncio.gather(*(ask(endpoint, f"질문 {n}") for n in range(100)))):
                    assert time.monotonic() < until
                    await asyncio.sleep(0.1)
                back = await asyncio.gather(*(ask(endpoint, f"질문 {n}") for n in range(100)))
                return away, probes, back, endpoint.stats

        away, probes, back, stats = asyncio.run(life())
    assert set(away) == {"하나"}
    assert probes <= 2
    assert 30 <= back.count("둘") <= 70
    assert stats.given_up == 0


def test_a_server_that_is_alone_and_dead_is_probed_instead_of_stormed():
    with FakeLLM(lambda _: error(503, "no capacity")) as server:

        async def ask_all():
            endpoint = endpoint_at(server.base_url, max_concurrency=4, max_retries=2, backoff_s=0.2)
            results = await asyncio.gather(*(ask(endpoint, str(n)) for n in range(100)), return_exceptions=True)
            return results, endpoint.stats

        results, stats = asyncio.run(ask_all())
    assert {type(result) for result in results} == {EndpointError}
    assert len(server.requests) < 40  # 300 without a breaker
    assert any("no capacity" in str(result) for result in results if result.kind == "circuit_open")
    assert stats.failures["circuit_open"] > 50


def test_a_server_that_restarts_is_waited_for_without_loss():
    started = time.monotonic()

    def script(_):
        return completion("기각") if time.monotonic() - started > 3 else error(503)

    with FakeLLM(script) as server:

        async def ask_all():
            endpoint = endpoint_at(server.base_url, max_concurrency=4, backoff_s=0.3)
            return await asyncio.gather(*(ask(endpoint, str(n)) for n in range(500)))

        assert set(asyncio.run(ask_all())) == {"기각"}


WAITING = {
    "own loop": "asyncio.run(judge_batch(judge, [(case, 'a')], 3600))",
    "trainer's loop": "asyncio.run_coroutine_threadsafe(judge_batch(judge, [(case, 'a')], 3600), loop).result()",
}
WAITER = """
import asyncio, atexit, signal, sys, threading

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits it ignored
from data.cases import Case, Issue
from rewards.judge import JudgeConfig, judge_batch, load_judge

loop = asyncio.new_event_loop()  # on a daemon thread, as TRL has one
thread = threading.Thread(target=loop.run_forever, daemon=True)
thread.start()

@atexit.register
def shut_down():
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)
    print("done", flush=True)

case = Case("c", "q", (Issue("", "", (), "x"), Issue("1", "s", (), "y")))
judge = load_judge(JudgeConfig(judge_base_url=sys.argv[1], judge_model="fake", judge_timeout_s=3600))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
def test_a_signal_during_a_judge_wait_is_obeyed_within_two_seconds(wait, number):
    command = [sys.executable, "-c", WAITER + wait]
    with FakeLLM(lambda _: HANGING) as server:
        process = subprocess.Popen(
            [*command, server.base_url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        until = time.monotonic() + 30
        while len(server.requests) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        started = time.perf_counter()
        process.send_signal(number)
        # All that was waited for is over: what remains is the interpreter's own end, 2 s on a busy machine.
        assert process.stdout.readline() == ("done\n" if number == signal.SIGINT else "")
        assert time.perf_counter() - started < 2
        assert process.wait(timeout=30) != 0
        process.stdout.close()
