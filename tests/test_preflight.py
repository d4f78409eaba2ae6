"""The judge's trial before a run: what passes, and what is said of everything that does not."""

import asyncio
from dataclasses import replace

import pytest

from data.cases import Issue
from rewards.judge import JudgeConfig, load_judge
from rewards.mini_judge import MiniJudge
from rewards.preflight import UnfitJudge, easy_questions, find_servers, preflight
from tests.easy_judge import asked, grouped, right_on_easy_questions
from tests.fake_llm_server import HANGING, FakeLLM, completion, error, html_page, verdict

LONG = (Issue("1", "쟁점", (), "긴 답안에 관한 결론"), "가" * 5000)


def trial(script, *, model="fake", longest=None, **options):
    with FakeLLM(script) as server:
        config = JudgeConfig(
            **{"judge_base_url": server.base_url, "judge_model": model, "judge_max_retries": 0} | options
        )
        return asyncio.run(preflight(load_judge(config), longest)), server


def unfit(script, **options) -> str:
    with pytest.raises(UnfitJudge) as stopped:
        trial(script, **options)
    return str(stopped.value)


def test_the_easy_questions_are_20_with_verdicts_of_each_kind():
    kinds = [(one.contains_issue, one.correct_conclusion) for one in easy_questions()]
    assert len(kinds) == 20
    assert {kind: kinds.count(kind) for kind in kinds} == {(True, True): 7, (True, False): 7, (False, False): 6}


@pytest.mark.parametrize("options", [{}, {"judge_rationales": False}, {"judge_issues_per_call": "all"}], ids=str)
def test_a_good_judge_passes_and_is_told_of(options):
    said, server = trial(right_on_easy_questions(lambda _: verdict(False, False)), **options)
    assert "20 of 20 easy questions right" in said
    assert server.base_url in said
    assert len(server.requests) == 20 + ("judge_issues_per_call" in options)


def test_every_server_is_tried():
    script = right_on_easy_questions(lambda _: verdict(True, True))
    with FakeLLM(script) as good, FakeLLM(lambda _: error(500, "out of memory")) as bad:
        urls = [good.base_url, bad.base_url]
        judge = load_judge(JudgeConfig(judge_base_url=urls, judge_model="fake", judge_max_retries=0))
        with pytest.raises(UnfitJudge, match=bad.base_url):
            asyncio.run(preflight(judge))
    assert judge.stats.calls == 0


def test_the_longest_response_must_fit():
    def short_of_context(request):
        return error(400, "maximum context length is 4096") if LONG[1] in request.text else verdict(True, True)

    said = unfit(right_on_easy_questions(short_of_context), longest=LONG)
    assert "maximum context length is 4096" in said
    assert "--max-model-len" in said
    fits, _ = trial(right_on_easy_questions(lambda _: verdict(True, True)), longest=LONG)
    assert "5,000 characters fits" in fits


def test_18_of_20_are_enough_and_17_are_not():
    def wrong_on(num):
        wrong = easy_questions()[:num]

        def script(request):
            if asked(request) in wrong:
                return verdict(False, True)
            return right_on_easy_questions(lambda _: verdict(True, True))(request)

        return script

    assert "18 of 20" in trial(wrong_on(2))[0]
    assert "only 17 of 20" in unfit(wrong_on(3))


def test_one_reply_in_20_that_cannot_be_read_is_one_too_many_even_if_a_retry_cures_it():
    def script(request):
        return completion("예") if request.index == 7 else right_on_easy_questions(lambda _: error(500))(request)

    assert "enforce response_format json_schema" in unfit(script, judge_max_retries=2)


def test_a_model_that_is_not_served_is_told_with_those_that_are():
    assert "serves fake. Set judge_model" in unfit(lambda _: verdict(True, True), model="fakee")


def test_a_group_that_comes_back_short_is_told():
    def script(request):
        is_group = "1" in request.body["response_format"]["json_schema"]["schema"]["properties"]
        short = completion('{"1": {"rationales": "", "contains_issue": true, "correct_conclusion": true}}')
        return short if is_group else right_on_easy_questions(grouped)(request)

    assert "json_schema" in unfit(script, judge_issues_per_call="all")


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (error(401, "no such key"), "judge_api_key_env"),
        (error(404, "no such model"), "judge_model"),
        (error(400, "response_format is not supported"), "json_schema"),
        (error(500), "see its log"),
        (HANGING, "judge_timeout_s"),
        (html_page(), "judge_base_url"),
        (completion(" " * 99, finish_reason="length"), "disable_any_whitespace"),
        (completion('{"rationales": "끝', finish_reason="length"), "judge_max_tokens"),
        (completion("예"), "response_format json_schema"),
    ],
    ids=["401", "404", "400", "500", "timeout", "HTML", "whitespace", "length", "prose"],
)
def test_a_fault_says_what_to_change(fault, advice):
    assert advice in unfit(lambda _: fault, judge_timeout_s=0.3 if fault is HANGING else 60)


def test_servers_are_found_without_a_question_asked():
    with FakeLLM(lambda _: error(500)) as server:
        config = JudgeConfig(judge_base_url=[server.base_url] * 2, judge_model="fake", judge_max_retries=0)
        asyncio.run(find_servers(load_judge(config)))
        with pytest.raises(UnfitJudge, match="serves fake"):
            asyncio.run(find_servers(load_judge(replace(config, judge_model="other"))))
        assert server.requests == []
    asyncio.run(find_servers(MiniJudge()))
    with pytest.raises(UnfitJudge, match="Is the server running"):
        asyncio.run(find_servers(load_judge(config)))


def test_soft_verdicts_need_logprobs():
    script = right_on_easy_questions(lambda _: verdict(True, True))
    assert "judge_verdict: hard" in unfit(script, judge_verdict="soft")


def test_where_nobody_listens_it_asks_whether_the_server_runs():
    config = JudgeConfig(judge_base_url="http://127.0.0.1:1/v1", judge_model="fake", judge_max_retries=0)
    with pytest.raises(UnfitJudge, match="Is the server running"):
        asyncio.run(preflight(load_judge(config)))


def test_the_exact_judge_needs_no_trial():
    assert "exact" in asyncio.run(preflight(MiniJudge()))
