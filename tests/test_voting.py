"""Votes and probabilities: hand-worked, and through the judge."""

import asyncio
import json
import math
import re
from itertools import count

import pytest

from data.cases import Case, Issue
from data.endpoint import Reply, Unusable
from data.reply import read_reply
from data.store import Store
from rewards.judge import JudgeConfig, judge_batch, load_judge
from rewards.score import Judgment
from rewards.voting import disagree, soften, vote
from tests.fake_llm_server import FakeLLM, completion, error, verdict

YES, NO, HALF = Judgment(True, True, "예"), Judgment(False, False, "아니오"), Judgment(True, False, "반")
CASE = Case("c", "질문", (Issue("", "", (), "주문"), Issue("1", "쟁점", (), "결론")))


def chances(judgment):
    return judgment.contains_issue, judgment.correct_conclusion


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([YES], YES),
        ([None], None),
        ([YES, NO, YES], YES),
        ([YES, HALF, NO], Judgment(True, False, "반")),
        ([NO, NO, None], NO),
        ([YES, NO, None], None),
        ([YES, HALF, None], None),
        ([YES, None, None], None),
        ([YES, YES, YES, NO, None], YES),
    ],
)
def test_a_majority_of_all_votes_decides_field_by_field(votes, verdict):
    assert vote(votes) == verdict


def test_soft_votes_are_averaged():
    votes = [Judgment(0.9, 0.2, "가"), Judgment(0.5, 0.4, "나"), None]
    assert chances(vote(votes, soft=True)) == pytest.approx((0.7, 0.3))
    assert vote([votes[0], None, None], soft=True) is None


def test_votes_disagree_where_any_field_does():
    assert disagree([YES, HALF])
    assert not disagree([YES, YES])
    assert not disagree([Judgment(0.6, 0.1), Judgment(0.9, 0.4)])


def judge_case(script, store=None, answer="답", **options):
    with FakeLLM(script) as server:
        settings = {"judge_base_url": server.base_url, "judge_model": "fake", "judge_max_retries": 0}
        judge = load_judge(JudgeConfig(**{**settings, "judge_repeat_frac": 0.0, **options}))
        judge.store = store
        [judgments] = asyncio.run(judge_batch(judge, [(CASE, answer)], 30))
    return judgments, judge.stats, len(server.requests)


def test_three_votes_are_asked_and_stored_each_once(tmp_path):
    said = count()

    def script(request):
        return verdict(next(said) % 3 != 0, True) if "결론: 결론" in request.text else verdict(True, True)

    judgments, stats, num_requests = judge_case(script, Store(tmp_path), judge_votes=3)
    assert (judgments["1"].contains_issue, num_requests, stats.repeated, stats.disagreed) == (True, 6, 2, 1)
    again, stats, num_requests = judge_case(lambda _: error(500), Store(tmp_path), judge_votes=3)
    assert (again, num_requests, stats.reused) == (judgments, 0, 6)


def test_a_repeat_is_counted_and_decides_nothing():
    said = count()
    judgments, stats, num_requests = judge_case(
        lambda _: verdict(next(said) % 2 == 0, True), judge_repeat_frac=1.0, judge_max_concurrency=1
    )
    assert judgments == {"": Judgment(True, True, "근거"), "1": Judgment(True, True, "근거")}
    assert (num_requests, stats.repeated, stats.disagreed) == (4, 2, 2)


def test_a_repeat_that_fails_costs_nothing():
    said = count()
    judgments, stats, _ = judge_case(
        lambda _: verdict(True, True) if next(said) % 2 == 0 else error(400),
        judge_repeat_frac=1.0,
        judge_max_concurrency=1,
    )
    assert None not in judgments.values()
    assert stats.repeated == 0


def test_one_call_in_fifty_is_repeated():
    with FakeLLM(lambda _: verdict(True, True)) as server:
        judge = load_judge(JudgeConfig(judge_base_url=server.base_url, judge_model="fake"))
        asyncio.run(judge_batch(judge, [(CASE, f"답 {n}") for n in range(200)], 60))
    assert 400 + 2 <= len(server.requests) <= 400 + 20
    assert judge.stats.repeated == len(server.requests) - 400


def test_a_repeat_has_other_marks_so_that_it_shows_what_the_verdict_hangs_on_and_a_vote_has_the_same():
    def script(request):
        marks.append(re.search(r"[0-9a-f]{8}", request.text)[0])
        return verdict(marks[-1] == marks[0], True)

    for options, num_marks in (({"judge_repeat_frac": 1.0}, 2), ({"judge_votes": 3}, 1)):
        marks = []
        with FakeLLM(script) as server:
            config = JudgeConfig(judge_base_url=server.base_url, judge_model="fake", **options)
            judge = load_judge(config)
            asyncio.run(judge_batch(judge, [(CASE, "답")], 30))
        assert len(set(marks)) == num_marks
        assert (judge.stats.repeated, judge.stats.disagreed > 0) == (2, num_marks == 2)


def tokens(*spelled):
    """Logprobs as servers send them: (token, {alternative: probability})."""
    return [
        {
            "token": token,
            "logprob": math.log(chances.get(token, 1.0)),
            "top_logprobs": [{"token": other, "logprob": math.log(p)} for other, p in chances.items()],
        }
        for token, chances in spelled
    ]


def soft_reply(contains: float, correct: float):
    """A verdict of true and false with these probabilities of true, cut into tokens in two manners."""
    text = '{"contains_issue": true, "correct_conclusion": false}'
    spelled = [
        ('{"', {}),
        ("contains", {}),
        ('_issue":', {}),
        (" true", {" true": contains, " false": (1 - contains) * 0.9, "false": (1 - contains) * 0.1}),
        (', "correct_conclusion', {}),
        ('": f', {'": f': 1 - correct, '": t': correct}),
        ("alse}", {}),
    ]
    body = json.loads(completion(text).body)
    body["choices"][0]["logprobs"] = {"content": tokens(*spelled)}
    return completion(text), json.dumps(body).encode()


def test_a_soft_verdict_is_the_probability_of_true_where_the_value_begins():
    reply = read_reply(soft_reply(0.75, 0.125)[1], 0.0)
    [judgment] = soften([Judgment(True, False, "")], reply)
    assert chances(judgment) == pytest.approx((0.75, 0.125))


def test_without_logprobs_there_is_no_soft_verdict():
    with pytest.raises(Unusable) as raised:
        soften([YES], Reply("{}", "", "stop", 1, 1, 0.0))
    assert raised.value.kind == "logprobs"


def test_the_judge_asks_for_logprobs_only_for_soft_verdicts():
    plain, soft = soft_reply(0.75, 0.25)
    wire = type(plain)(soft)
    with FakeLLM(lambda _: wire) as server:
        config = JudgeConfig(
            judge_base_url=server.base_url,
            judge_model="fake",
            judge_verdict="soft",
            judge_rationales=False,
            judge_repeat_frac=0.0,
        )
        [judgments] = asyncio.run(judge_batch(load_judge(config), [(CASE, "답")], 30))
    assert server.requests[0].body["logprobs"] is True
    assert chances(judgments["1"]) == pytest.approx((0.75, 0.25))


def test_an_endpoint_without_logprobs_is_asked_once_for_a_soft_verdict():
    with FakeLLM(lambda _: verdict(True, True)) as server:
        config = JudgeConfig(
            judge_base_url=server.base_url, judge_model="fake", judge_verdict="soft", judge_repeat_frac=0.0
        )
        [judgments] = asyncio.run(judge_batch(load_judge(config), [(CASE, "답")], 30))
    assert set(judgments.values()) == {None}
    assert len(server.requests) == len(CASE.issues)
