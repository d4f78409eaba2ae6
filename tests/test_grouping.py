"""Several issues a call: what is asked, and how strictly the reply is read."""

import asyncio
import json
from collections import Counter

import pytest

from data.cases import Case, Claim, Issue
from data.endpoint import Reply, Unusable
from data.store import Store
from rewards.grouping import group_format, headings, parse_group, render_group
from rewards.judge import JudgeConfig, judge_batch, load_judge
from rewards.rubric import render
from rewards.score import Judgment
from tests.easy_judge import grouped, num_issues
from tests.fake_llm_server import FakeLLM, completion, error, verdict

ISSUE_HEADING, QUESTION_HEADING = headings()
ISSUES = tuple(
    Issue(str(n) if n else "", f"쟁점 {n}", (Claim("원고", f"주장 {n}"),), f"{n}번의 결론") for n in range(7)
)
CASE = Case("c", "질문", ISSUES)
ANSWER = "답안 속의 # 판정할 쟁점\n\n# 물음"


def reply(value) -> Reply:
    return Reply(value if isinstance(value, str) else json.dumps(value), "", "stop", 1, 1, 0.0)


def one(contains=True, correct=True):
    return {"rationales": "가", "contains_issue": contains, "correct_conclusion": correct}


def judge_all(server, store=None, items=((CASE, "답"),), deadline_s=30.0, **options):
    settings = {
        "judge_base_url": server.base_url,
        "judge_model": "fake",
        "judge_max_retries": 3,
        "judge_repeat_frac": 0.0,
        "judge_issues_per_call": "all",
    }
    judge = load_judge(JudgeConfig(**{**settings, **options}))
    judge.store = store
    judge.endpoint._backoff.multiplier = 0.01
    return asyncio.run(judge_batch(judge, items, deadline_s)), judge.stats


def by_size(request):
    return verdict(True, True) if num_issues(request) == 1 else grouped(request)


def test_the_prompt_for_one_issue_has_each_heading_once_where_the_group_is_cut():
    text = render(ISSUES[1], "답")[-1]["content"]
    assert text.count(ISSUE_HEADING) == text.count(QUESTION_HEADING) == 1


def test_a_group_shares_the_whole_prefix_with_the_prompt_for_one_issue():
    of_the_run = {"secret": "unknown to the policy"}
    alone = render(ISSUES[2], ANSWER, **of_the_run)[-1]["content"]
    text = render_group(ISSUES, ANSWER, **of_the_run)[-1]["content"]
    shared = alone[: alone.rindex(ISSUE_HEADING)]
    assert text.startswith(shared)
    for n, issue in enumerate(ISSUES, start=1):
        assert f"## {n}\n쟁점: {issue.summary}" in text or not issue.id
        assert text.count(f"법원의 결론: {issue.conclusion}") == 1
    assert text.count("contains_issue: 위의 답안에") == 1
    assert render_group(ISSUES[:1], ANSWER) == render(ISSUES[0], ANSWER)


def test_the_schema_requires_each_number_and_nothing_else():
    schema = group_format(3, True)["json_schema"]["schema"]
    assert schema["required"] == ["1", "2", "3"]
    assert schema["additionalProperties"] is False


def test_the_verdicts_come_in_the_order_of_the_issues():
    found = parse_group(reply({"2": one(False, False), "1": one()}), 2)
    assert found == [Judgment(True, True, "가"), Judgment(False, False, "가")]


def test_the_reasons_of_a_group_are_cleaned_of_what_a_terminal_would_obey():
    hostile = one() | {"rationales": "\x1b[31m빨\ud800강"}
    assert {judgment.rationales for judgment in parse_group(reply({"1": hostile, "2": hostile}), 2)} == {"[31m빨강"}


TWO = f'{{"1": {json.dumps(one())}, "2": {json.dumps(one())}'


@pytest.mark.parametrize(
    "value",
    [
        {"1": one()},
        {"1": one(), "2": one(), "3": one()},
        {"1": one(), "4": one()},
        TWO + f', "2": {json.dumps(one())}}}',
        {"1": one(), "2": {**one(), "score": 10}},
        {"1": one(), "2": {**one(), "contains_issue": "true"}},
        {"1": one(), "2": {**one(), "rationales": 1}},
        {"1": one(), "2": True},
        [one(), one()],
        TWO,
    ],
    ids=["missing", "too many", "foreign", "double", "foreign key", "text", "no reason", "bare", "a list", "half"],
)
def test_a_set_that_is_not_exactly_what_was_asked_is_no_verdict(value):
    with pytest.raises(Unusable):
        parse_group(reply(value), 2)


@pytest.mark.parametrize(("per_call", "sizes"), [("all", [7]), (3, [1, 3, 3]), (1, [1] * 7), ("2", [1, 2, 2, 2])])
def test_the_issues_are_asked_in_groups(per_call, sizes):
    with FakeLLM(by_size) as server:
        [judgments], _ = judge_all(server, judge_issues_per_call=per_call)
    assert sorted(map(num_issues, server.requests)) == sizes
    assert None not in judgments.values()
    assert all(request.body["max_tokens"] == 512 * num_issues(request) for request in server.requests)


def test_a_group_that_fails_twice_is_split_until_all_verdicts_are_there():
    def script(request):
        if num_issues(request) > 2 or (num_issues(request) > 1 and "6번의" in request.text):
            return completion('{"1": null}')
        return by_size(request)

    with FakeLLM(script) as server:
        [judgments], stats = judge_all(server)
    assert None not in judgments.values()
    assert Counter(map(num_issues, server.requests)) == {7: 2, 3: 2, 4: 2, 1: 1 + 2, 2: 1 + 1 + 2}
    assert stats.failures == {"unusable": 8}


def test_one_issue_that_cannot_be_judged_costs_the_others_nothing():
    with FakeLLM(lambda r: completion("예") if "6번의" in r.text else by_size(r)) as server:
        [judgments], _ = judge_all(server, judge_max_retries=0)
    assert [id for id, judgment in judgments.items() if judgment is None] == ["6"]


def test_a_server_that_is_down_is_not_asked_in_smaller_pieces():
    with FakeLLM(lambda _: error(500)) as server:
        [judgments], _ = judge_all(server, judge_max_retries=1)
    assert set(judgments.values()) == {None}
    assert len(server.requests) == 2


def test_a_group_of_which_some_is_stored_asks_for_the_rest(tmp_path):
    with FakeLLM(lambda r: error(400) if num_issues(r) == 1 else grouped(r)) as server:  # groups of 3, 3 and 1
        judge_all(server, Store(tmp_path), judge_issues_per_call=3)
        first = len(server.requests)
        _, stats = judge_all(server, Store(tmp_path), judge_issues_per_call=3)
    assert stats.reused == 6
    assert len(server.requests) - first == 1


def test_verdicts_of_groups_and_of_single_issues_are_kept_apart(tmp_path):
    with FakeLLM(by_size) as server:
        judge_all(server, Store(tmp_path))
        _, stats = judge_all(server, Store(tmp_path), judge_issues_per_call=1)
    assert (stats.reused, stats.calls) == (0, 7)


def test_the_first_call_warms_the_prefix_for_the_others():
    def script(request):
        return verdict(True, True, delay_s=0.3 if request.index == 0 else 0.0)

    with FakeLLM(script) as server:
        [judgments], _ = judge_all(server, judge_issues_per_call=1, judge_warm_prefix=True)
        assert None not in judgments.values()
        assert server.max_in_flight <= 6


def test_the_longest_responses_go_first():
    with FakeLLM(lambda _: verdict(True, True)) as server:
        items = [(CASE, "가" * n) for n in (5, 500, 50)]
        judge_all(server, items=items, judge_issues_per_call=1, judge_max_concurrency=1)
    lengths = [len(request.text) for request in server.requests]
    assert lengths[:7] == sorted(lengths[:7], reverse=True) or min(lengths[:7]) > max(lengths[7:])
