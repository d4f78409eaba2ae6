"""A judge that is told of answers ahead of time says what it would have said, and sooner."""

import asyncio
import time

import pytest

from data.cases import Case, Issue
from rewards.early import EarlyJudge
from rewards.judge import JudgeConfig, judge_batch, load_judge
from rewards.score import Judgment
from tests.fake_llm_server import FakeLLM, completion, verdict

CASE = Case("c", "질문", (Issue("", "", (), "뿌리의결론"), Issue("1", "쟁점", (), "하나의결론")))
OTHER = Case("d", "질문", (Issue("", "", (), "다른결론"), Issue("1", "쟁점", (), "또다른결론")))
YES = Judgment(contains_issue=True, correct_conclusion=True, rationales="근거")
NO = Judgment(contains_issue=False, correct_conclusion=False, rationales="근거")


def judging(script, work, deadline_s=30.0, **config):
    """What the coroutine function `work` makes of an EarlyJudge before a server with that script, and its requests."""
    with FakeLLM(script) as server:
        settings = {"judge_max_retries": 0, "judge_repeat_frac": 0.0, **config}
        judge = load_judge(JudgeConfig(judge_base_url=server.base_url, judge_model="fake", **settings))

        async def run():
            async with judge.endpoint:
                return await work(EarlyJudge(judge, deadline_s))

        return asyncio.run(run()), server.requests


def by_answer(request):
    return verdict(True, True) if "좋은 답" in request.text else verdict(False, False)


def test_the_verdicts_are_those_of_a_judge_that_was_told_of_nothing():
    items = [(CASE, "좋은 답"), (CASE, "나쁜 답"), (OTHER, "좋은 답")]

    async def told(judge):
        for case, answer in items[:2]:
            judge.begin(case, answer)
        return await judge_batch(judge, items, 30)

    async def untold(judge):
        return await judge_batch(judge, items, 30)

    early, requests = judging(by_answer, told)
    assert early == judging(by_answer, untold)[0] == [{"": YES, "1": YES}, {"": NO, "1": NO}, {"": YES, "1": YES}]
    assert len(requests) == 6


def test_an_answer_told_of_twice_and_asked_for_twice_is_judged_once():
    async def work(judge):
        judge.begin(CASE, "좋은 답")
        judge.begin(CASE, "좋은 답")
        return await judge_batch(judge, [(CASE, "좋은 답")] * 3, 30)

    verdicts, requests = judging(by_answer, work)
    assert verdicts == [{"": YES, "1": YES}] * 3
    assert len(requests) == 2


def test_a_later_batch_is_judged_anew():
    async def work(judge):
        judge.begin(CASE, "좋은 답")
        return [await judge_batch(judge, [(CASE, "좋은 답")], 30) for _ in range(2)]

    first, second = judging(by_answer, work)[0]
    assert first == second
    assert len(judging(by_answer, work)[1]) == 4


def test_what_is_begun_goes_on_while_nobody_waits():
    async def work(judge):
        judge.begin(CASE, "좋은 답")
        await asyncio.sleep(5)  # the policy writes on
        started = time.perf_counter()
        await judge_batch(judge, [(CASE, "좋은 답")], 30)
        return time.perf_counter() - started

    waited_s, _ = judging(lambda _: verdict(True, True, delay_s=3), work)
    assert waited_s < 2


@pytest.mark.parametrize("begins", [True, False], ids=["begun", "not begun"])
def test_the_deadline_leaves_the_verdicts_that_came_in_time(begins):
    def script(request):
        return verdict(True, True) if "하나의결론" in request.text else verdict(True, True, delay_s=60)

    async def work(judge):
        if begins:
            judge.begin(CASE, "좋은 답")
        return await judge_batch(judge, [(CASE, "좋은 답")], 3)

    started = time.perf_counter()
    assert judging(script, work, deadline_s=3)[0] == [{"": None, "1": YES}]
    assert time.perf_counter() - started < 10


def test_what_was_begun_and_is_not_wanted_is_given_up():
    async def work(judge):
        judge.begin(CASE, "좋은 답")
        await asyncio.sleep(0.2)
        judge.discard()
        await asyncio.sleep(0.2)
        return await judge_batch(judge, [(OTHER, "좋은 답")], 30), asyncio.all_tasks() - {asyncio.current_task()}

    def script(request):
        return (
            completion("{}", delay_s=3600)
            if "하나의결론" in request.text or "뿌리의" in request.text
            else by_answer(request)
        )

    (verdicts, left), _ = judging(script, work)
    assert verdicts == [{"": YES, "1": YES}]
    assert not left


def test_failures_are_missing_and_the_statistics_are_the_judges():
    async def work(judge):
        judge.begin(CASE, "좋은 답")
        verdicts = await judge_batch(judge, [(CASE, "좋은 답")], 30)
        return verdicts, judge.stats.take()

    (verdicts, stats), _ = judging(lambda _: completion("그렇다"), work)
    assert verdicts == [{"": None, "1": None}]
    assert stats.calls == 2
    assert stats.failures["unusable"] == 2
