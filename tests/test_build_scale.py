"""What the benchmark of the builder's speed builds are judgments like others: selected, and sound cases in the end."""

import json
from statistics import fmean

from benchmarks.build_scale import answer, issues_of, render
from data.build import main
from data.judgment_text import parse_judgment
from data.loading import load_cases
from data.mini import generate
from tests.fake_llm_server import FakeLLM, Reply

RECORDS = generate(0, "train", 12)


def test_rendered_mini_cases_are_built_into_cases_with_their_trees(tmp_path):
    judgments = [{"text": render(number, record)} for number, record in enumerate(RECORDS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judgments), encoding="utf-8")
    with FakeLLM(lambda request: Reply(answer(RECORDS, json.dumps(request.body).encode()))) as server:
        options = ["--base-url", server.base_url, "--model", "m", "--second-opinion"]
        assert main([str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out"), *options]) == 0
        stages = {request.body["response_format"]["json_schema"]["name"] for request in server.requests}
    cases = {case.id: case for case in load_cases(tmp_path / "out" / "cases.jsonl")}
    assert len(cases) == len(RECORDS)
    assert len(stages) == 6  # all of them
    for number, record in enumerate(RECORDS):
        case = cases[f"예제지방법원-2024가합{number}"]
        assert case.answer.startswith(record["answer"])
        assert [issue.id for issue in case.sub_issues] == [issue["id"] for issue in issues_of(number, record)]


def test_they_are_as_long_as_real_ones_and_unlike_each_other():
    reasons = [parse_judgment(render(number, record)).reasons for number, record in enumerate(RECORDS)]
    assert 3500 < fmean(map(len, reasons)) < 4700
    assert len({text[200:400] for text in reasons}) == len(reasons)
