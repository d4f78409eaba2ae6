"""The judge against a scripted server: no fault becomes a grade, nothing is paid twice, nobody waits too long."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter

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
    verdict,
)

from data.cases import Case, Claim, Issue
from data.endpoint import Endpoint, EndpointStats
from data.store import Store
from rewards.judge import Judge, JudgeConfig, judge_batch, load_judge
from rewards.mini_judge import MiniJudge
from rewards.score import Judgment, score_case

RIGHT = Judgment(True, True, "근거")
CASE = Case(
    "대여금",
    "돈을 갚아야 하는가?",
    (
        Issue("", "", (Claim("원고", "300만 원을 지급하라."),), "피고는 원고에게 300만 원을 지급하라."),
        Issue("1", "대여 사실", (), "대여 사실이 인정된다."),
        Issue("2", "변제 항변", (), "변제 항변은 이유 없다."),
    ),
)
ALL_MISSING = {"": None, "1": None, "2": None}


def config_for(base_url, **options):
    return JudgeConfig(**{"judge_base_url": base_url, "judge_model": "fake", "judge_repeat_frac": 0.0} | options)


def judge_at(base_url, store=None, *, timeout_s=5.0, max_retries=2, max_concurrency=64, **options):
    endpoint = Endpoint(
        base_url,
        "fake",
        api_key_env="LEGIT_TEST_KEY",
        timeout_s=timeout_s,
        max_retries=max_retries,
        max_concurrency=max_concurrency,
        backoff_s=0.01,
    )
    return Judge(config_for(base_url, **options), endpoint, store)


def batch(judge, items, deadline_s=30.0):
    return asyncio.run(judge_batch(judge, items, deadline_s))


def issue_of(request) -> str:
    """The id of the issue that a request asks about."""
    told = request.text[request.text.rindex("# 판정할 쟁점") :]
    return next(issue.id for issue in CASE.issues if f"법원의 결론: {issue.conclusion}\n" in told)


def test_each_issue_is_asked_once_and_gets_its_own_verdict():
    verdicts = {"": (True, True), "1": (True, False), "2": (False, False)}
    with FakeLLM(lambda request: verdict(*verdicts[issue_of(request)])) as server:
        judge = judge_at(server.base_url)
        judgments = asyncio.run(judge.judge_case(CASE, "300만 원을 갚아야 한다."))
    assert judgments == {id: Judgment(*flags, "근거") for id, flags in verdicts.items()}
    assert sorted(issue_of(request) for request in server.requests) == ["", "1", "2"]
    assert score_case(CASE, judgments).total == 5 + 2 / 2
    assert judge.stats.calls == 3


@pytest.mark.parametrize("rationales", [True, False])
def test_a_request_asks_for_the_schema_at_temperature_zero_and_within_max_tokens(rationales):
    with FakeLLM(lambda _: verdict(True, True, "근거" if rationales else None)) as server:
        judge = judge_at(server.base_url, judge_rationales=rationales, judge_max_tokens=99)
        assert None not in asyncio.run(judge.judge_case(CASE, "답")).values()
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"]) == (0.0, 99)
    schema = body["response_format"]["json_schema"]["schema"]
    assert (next(iter(schema["properties"])) == "rationales") == rationales


FAULTS = {
    "timeout": (HANGING, "timeout"),
    "500": (error(500), "http_5xx"),
    "429": (error(429, retry_after="0.05"), "http_429"),
    "half a JSON": (completion('{"rationales": "가", "contains_issue": true, "correct_con'), "unusable"),
    "half a body": (Reply(verdict(True, True).body[:-30]), "malformed"),
    "wrong types": (completion('{"rationales": "", "contains_issue": "true", "correct_conclusion": 1}'), "unusable"),
    "foreign schema": (completion('{"found": true, "correct": true}'), "unusable"),
    "prose": (completion("답안은 쟁점을 정확히 다루었으므로 true, true입니다."), "unusable"),
    "whitespace": (completion("\n" * 500, finish_reason="length"), "whitespace"),
    "cut off": (verdict(True, True, finish_reason="length"), "length"),
    "dropped": (DROPPED, "connection"),
    "torn": (TORN, "connection"),
    "empty choices": (payload({"choices": []}), "malformed"),
    "HTML": (html_page(), "malformed"),
    "401": (error(401, "Incorrect API key"), "http_4xx"),
}


@pytest.mark.parametrize(("fault", "kind"), FAULTS.values(), ids=FAULTS)
def test_no_fault_becomes_a_grade(fault, kind):
    with FakeLLM(lambda request: fault if issue_of(request) == "1" else verdict(True, True)) as server:
        judge = judge_at(server.base_url, timeout_s=3 if kind == "timeout" else 60)
        [judgments] = batch(judge, [(CASE, "답")])
    assert judgments == {"": RIGHT, "1": None, "2": RIGHT}
    assert score_case(CASE, judgments) is None
    tries = 1 if kind == "http_4xx" else 3
    assert (judge.stats.given_up, judge.stats.failures) == (1, {kind: tries})


@pytest.mark.parametrize(("fault", "kind"), FAULTS.values(), ids=FAULTS)
def test_a_passing_fault_leaves_no_trace_in_the_verdicts(fault, kind):
    faulted: Counter[str] = Counter()

    def script(request):
        issue = issue_of(request)
        faulted[issue] += 1
        return fault if faulted[issue] == 1 else verdict(issue != "2", issue == "1")

    with FakeLLM(script) as server:
        judge = judge_at(server.base_url, timeout_s=3 if kind == "timeout" else 60)
        [judgments] = batch(judge, [(CASE, "답")])
    faultless = {"": Judgment(True, False, "근거"), "1": RIGHT, "2": Judgment(False, False, "근거")}
    assert judgments == (ALL_MISSING if kind == "http_4xx" else faultless)


def test_a_verdict_in_the_reasoning_counts():
    hidden = verdict(True, True)
    text = json.loads(hidden.body)["choices"][0]["message"]["content"]
    with FakeLLM(lambda _: completion("", reasoning_content=text)) as server:
        assert batch(judge_at(server.base_url), [(CASE, "답")]) == [{"": RIGHT, "1": RIGHT, "2": RIGHT}]


def test_a_dead_judge_is_all_missing_and_says_what_it_died_of():
    with FakeLLM(lambda _: error(401, "Incorrect API key")) as server:
        judge = judge_at(server.base_url)
        assert batch(judge, [(CASE, "가"), (CASE, "나")]) == [ALL_MISSING, ALL_MISSING]
    assert judge.stats.given_up == judge.stats.calls == 6
    assert "Incorrect API key" in judge.stats.most_frequent_failure()
    assert "6 of 6" in judge.stats.most_frequent_failure()


def test_identical_responses_are_judged_once_and_share_no_dictionary():
    with FakeLLM(lambda _: verdict(True, True)) as server:
        results = batch(judge_at(server.base_url), [(CASE, "같은 답"), (CASE, "다른 답"), (CASE, "같은 답")])
    assert len(server.requests) == 6
    assert results[0] == results[2]
    results[0]["1"] = None
    assert results[2]["1"] == RIGHT


def test_an_empty_batch_asks_nothing():
    assert batch(judge_at("http://127.0.0.1:1/v1"), []) == []


def test_300_responses_at_once_stay_within_the_limit():
    with FakeLLM(lambda _: verdict(True, True, delay_s=0.005)) as server:
        judge = judge_at(server.base_url, max_concurrency=16)

        async def judge_all():
            return await asyncio.gather(*(judge.judge_case(CASE, f"답 {n}") for n in range(300)))

        results = asyncio.run(judge_all())
    assert results == [{"": RIGHT, "1": RIGHT, "2": RIGHT}] * 300
    assert len(server.requests) == 900
    assert server.max_in_flight == 16


def test_at_the_deadline_the_verdicts_given_count_and_the_others_are_missing():
    with FakeLLM(lambda request: HANGING if issue_of(request) == "1" else verdict(True, True)) as server:
        judge = judge_at(server.base_url, timeout_s=3600)
        started = time.perf_counter()
        results = batch(judge, [(CASE, "가"), (CASE, "나")], deadline_s=3.0)
        took_s = time.perf_counter() - started
    assert results == [{"": RIGHT, "1": None, "2": RIGHT}] * 2
    assert took_s < 4.5


def test_the_deadline_holds_for_work_that_still_waits_for_a_slot():
    with FakeLLM(lambda _: HANGING) as server:
        judge = judge_at(server.base_url, timeout_s=3600, max_concurrency=1)
        started = time.perf_counter()
        results = batch(judge, [(CASE, f"답 {n}") for n in range(50)], deadline_s=0.5)
        took_s = time.perf_counter() - started
    assert results == [ALL_MISSING] * 50
    assert len(server.requests) == 1
    assert took_s < 2


def test_after_a_deadline_the_judge_works_on():
    with FakeLLM(lambda request: HANGING if "느린 답" in request.text else verdict(True, True)) as server:
        judge = judge_at(server.base_url, timeout_s=3600, max_concurrency=3)

        async def twice():
            first = await judge_batch(judge, [(CASE, "느린 답")], 0.5)
            return first + await judge_batch(judge, [(CASE, "빠른 답")], 30)

        assert asyncio.run(twice()) == [ALL_MISSING, {"": RIGHT, "1": RIGHT, "2": RIGHT}]


def test_cancelling_a_batch_ends_promptly_and_leaves_no_task():
    with FakeLLM(lambda _: HANGING) as server:
        judge = judge_at(server.base_url, timeout_s=3600)

        async def cancel():
            work = asyncio.create_task(judge_batch(judge, [(CASE, f"답 {n}") for n in range(20)], 3600))
            await asyncio.sleep(0.5)
            started = time.perf_counter()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            await asyncio.sleep(0.1)
            return time.perf_counter() - started, asyncio.all_tasks() - {asyncio.current_task()}

        took_s, left = asyncio.run(cancel())
    assert took_s < 1
    assert not left


def test_ctrl_c_during_a_batch_ends_the_process_within_two_seconds():
    script = textwrap.dedent(
        """
        import asyncio, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits it ignored
        from data.cases import Case, Issue
        from rewards.judge import JudgeConfig, judge_batch, load_judge

        case = Case("c", "q", (Issue("", "", (), "x"), Issue("1", "s", (), "y")))
        judge = load_judge(JudgeConfig(judge_base_url=sys.argv[1], judge_model="fake", judge_timeout_s=3600))
        asyncio.run(judge_batch(judge, [(case, "a")], 3600))
        """
    )
    with FakeLLM(lambda _: HANGING) as server:
        process = subprocess.Popen([sys.executable, "-c", script, server.base_url], stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while len(server.requests) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        started = time.perf_counter()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        assert time.perf_counter() - started < 2
    assert process.returncode != 0


def test_a_judge_that_ignores_the_deadline_is_held_to_it_too():
    class Slow:
        async def judge_case(self, *_, **__):
            await asyncio.sleep(3600)

    assert batch(Slow(), [(CASE, "답")], deadline_s=0.1) == [ALL_MISSING]


def test_a_bug_is_not_swallowed_as_a_missing_verdict():
    class Broken:
        stats = EndpointStats()

        async def judge_case(self, *_, **__):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        batch(Broken(), [(CASE, "답")])


def test_a_stored_verdict_is_not_paid_again_by_any_process(tmp_path):
    with FakeLLM(lambda request: verdict(True, issue_of(request) != "2")) as server:
        first = judge_at(server.base_url, Store(tmp_path))
        paid = batch(first, [(CASE, "답")])
        second = judge_at(server.base_url, Store(tmp_path))
        assert batch(second, [(CASE, "답")]) == paid
        assert len(server.requests) == 3
        assert (second.stats.calls, second.stats.reused) == (0, 3)
        batch(second, [(CASE, "다른 답")])
        assert len(server.requests) == 6


def test_a_failure_is_not_stored(tmp_path):
    with FakeLLM(in_turn(*[error(400)] * 3, verdict(True, True))) as server:
        judge = judge_at(server.base_url, Store(tmp_path))
        assert batch(judge, [(CASE, "답")]) == [ALL_MISSING]
        assert batch(judge, [(CASE, "답")]) == [{"": RIGHT, "1": RIGHT, "2": RIGHT}]


@pytest.mark.parametrize(
    ("change", "num_paid"),
    [
        ({"judge_temperature": 0.5}, 3),
        ({"judge_rationales": False}, 3),
        ({"judge_max_tokens": 999}, 0),
        ({"judge_deadline_s": 5.0}, 0),
    ],
    ids=["temperature", "rationales", "max_tokens", "deadline"],
)
def test_only_settings_that_change_the_verdict_are_paid_for_again(tmp_path, change, num_paid):
    def script(request):
        asked = request.body["response_format"]["json_schema"]["schema"]["properties"]
        return verdict(True, True, "근거" if "rationales" in asked else None)

    with FakeLLM(script) as server:
        batch(judge_at(server.base_url, Store(tmp_path)), [(CASE, "답")])
        batch(judge_at(server.base_url, Store(tmp_path), **change), [(CASE, "답")])
        assert len(server.requests) == 3 + num_paid


def test_after_a_kill_only_what_was_not_answered_is_paid(tmp_path):
    script = textwrap.dedent(
        """
        import asyncio, sys
        from data.cases import Case, Issue
        from rewards.judge import JudgeConfig, judge_batch, load_judge

        case = Case("c", "q", tuple(Issue(str(n) if n else "", "s", (), f"결론 {n}") for n in range(40)))
        judge = load_judge(JudgeConfig(judge_base_url=sys.argv[1], judge_model="fake", judge_store=sys.argv[2],
                                       judge_max_concurrency=1))
        asyncio.run(judge_batch(judge, [(case, "답")], 3600))
        """
    )
    with FakeLLM(lambda request: HANGING if request.index == 20 else verdict(True, True)) as server:
        command = [sys.executable, "-c", script, server.base_url, str(tmp_path)]
        process = subprocess.Popen(command)
        until = time.monotonic() + 30
        while len(server.requests) < 21 and time.monotonic() < until:
            time.sleep(0.05)
        process.kill()
        process.wait()
        subprocess.run(command, check=True, timeout=60)
        assert len(server.requests) == 41  # 40, and the one that hung


def test_the_mini_judge_goes_through_the_same_batch():
    judge = load_judge(JudgeConfig(judge="mini"))
    assert isinstance(judge, MiniJudge)
    with pytest.raises(ValueError, match="mini world"):
        batch(judge, [(CASE, "답")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judge": "llm"}, "one of endpoint, mini"),
        ({"judge_base_url": None}, "judge_base_url must be set"),
        ({"judge_model": ""}, "judge_model must be set"),
        ({"judge_max_tokens": 1}, "at least 16"),
        ({"judge_max_retries": -1}, "at least 0"),
        ({"judge_max_concurrency": 0}, "at least 1"),
        ({"judge_timeout_s": 0.0}, "above 0"),
        ({"judge_deadline_s": float("nan")}, "above 0"),
        ({"judge_timeout_s": float("inf")}, "judge_timeout_s: must be a number of seconds above 0, and not infinite"),
        ({"judge_deadline_s": float("inf")}, "judge_deadline_s: .*not infinite"),
        ({"judge_base_url": "ftp://localhost/v1"}, "judge_base_url: no URL of an endpoint: 'ftp://localhost/v1'"),
        ({"judge_base_url": ["http://localhost/v1", "b"]}, "judge_base_url: no URL of an endpoint"),
        ({"judge_prices": "in=1,out=inf"}, "for in and out"),
        ({"judge_temperature": 3.0}, r"\[0, 2\]"),
        ({"judge_quorum": 0.0}, r"\(0, 1\]"),
        ({"judge_quorum": 1.1}, r"\(0, 1\]"),
        ({"judge_verdict": "sure"}, "one of hard, soft"),
        ({"judge_votes": 2}, "must be odd"),
        ({"judge_votes": 0}, "at least 1"),
        ({"judge_repeat_frac": -0.1}, r"\[0, 1\]"),
        ({"judge_issues_per_call": 0}, "at least 1, or all"),
        ({"judge_issues_per_call": "some"}, "at least 1, or all"),
        ({"judge_prices": {"in": 1.0}}, "for in and out"),
        ({"judge_prices": "in=1,out=cheap"}, "for in and out"),
    ],
)
def test_a_setting_out_of_range_is_refused_with_what_is_legal(options, message):
    with pytest.raises(ValueError, match=message):
        JudgeConfig(**{"judge_base_url": "http://localhost:8000/v1", "judge_model": "fake"} | options)


def test_a_judge_is_loaded_without_a_request(tmp_path):
    judge = load_judge(config_for("http://127.0.0.1:1/v1", judge_store=str(tmp_path / "verdicts")))
    assert isinstance(judge, Judge)
    assert judge.endpoint.model == "fake"
    assert judge.stats == EndpointStats()
