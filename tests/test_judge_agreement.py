"""What the benchmark of cheaper verdicts compares: on a fake wire, with verdicts that hang on the marks."""

import asyncio
import json
import math
import re

import pytest

from benchmarks.judge_agreement import WAYS, judge_all, report
from data.cases import Case, Issue
from data.endpoint import EndpointStats
from rewards.judge import JudgeConfig
from rewards.score import Judgment
from tests.fake_llm_server import FakeLLM, Reply, completion

CASE = Case("c", "질문", (Issue("", "", (), "주문"), Issue("1", "쟁점", (), "결론")))


def with_logprobs(content: str) -> Reply:
    """The reply with probability 1 for each of its tokens."""
    body = json.loads(completion(content).body)
    tokens = re.findall(r"true|false|[^tf]+|[tf]", content)
    body["choices"][0]["logprobs"] = {
        "content": [{"token": t, "logprob": 0.0, "top_logprobs": [{"token": t, "logprob": 0.0}]} for t in tokens]
    }
    return Reply(json.dumps(body).encode())


def test_the_last_way_alone_has_other_marks_and_kappa_says_what_they_change():
    marks = []

    def script(request):
        marks.append(re.search(r"[0-9a-f]{8}", request.text)[0])
        is_as_first = marks[-1] == marks[0]
        verdicts = [
            {"contains_issue": is_root == is_as_first, "correct_conclusion": is_root == is_as_first}
            for is_root in (True, False)
        ]
        if request.body["response_format"]["json_schema"]["name"] == "judgments":
            return completion(json.dumps({"1": verdicts[0], "2": verdicts[1]}))
        return with_logprobs(json.dumps(verdicts["법원의 결론: 결론" in request.text]))

    with FakeLLM(script) as server:
        config = JudgeConfig(
            judge_base_url=server.base_url, judge_model="fake", judge_rationales=False, judge_repeat_frac=0.0
        )
        figures = report(*asyncio.run(judge_all(config, [(CASE, "답")])))
    assert [figures[f"{name}/calls"] for name, *_ in WAYS] == [2, 2, 1, 2]
    assert [mark == marks[0] for mark in marks] == [True] * 5 + [False] * 2
    for field in ("contains_issue", "correct_conclusion"):
        assert [figures[f"{name}/kappa/{field}"] for name, *_ in WAYS] == pytest.approx([1, 1, 1, -1])


def test_a_kappa_that_is_not_defined_is_no_figure():
    found = [
        {(0, ""): Judgment(True, False), (0, "1"): Judgment(value, False)} for value in (False, False, True, False)
    ]
    figures = report(found, [EndpointStats()] * 4, [1.0] * 4)
    assert {key for key in figures if "kappa" in key} == {f"{name}/kappa/contains_issue" for name, *_ in WAYS}
    assert all(math.isfinite(value) for value in figures.values())
