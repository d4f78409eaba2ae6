"""A case is shown as its tree, each statement above the judgment's words that support it."""

import json
import re
from html import unescape

import pytest
from fake_llm_server import FakeLLM
from judgment_replay import JUDGMENTS, replay

from data.build import main as build
from data.loading import load_cases
from data.side_by_side import page
from data.view import main


@pytest.fixture
def built(tmp_path):
    with FakeLLM(replay) as server:
        options = ["--base-url", server.base_url, "--model", "m", "--limit", "2"]
        assert build([str(JUDGMENTS), "--out", str(tmp_path), *options]) == 0
    return tmp_path / "cases.jsonl"


def shown(capsys, *arguments) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    lines = capsys.readouterr().out.split("\n")
    return "".join(line.strip("│ ├─└").replace(" ", "") for line in lines)


def test_the_tree_shows_every_issue_with_the_words_that_support_it(built, capsys):
    text = shown(capsys, built, "--doc-id", "예제지방법원-2021가합4001")
    case = next(c for c in map(json.loads, built.read_text(encoding="utf-8").splitlines()) if "4001" in c["doc_id"])
    for issue in case["issues"]:
        assert issue["conclusion"].replace(" ", "").replace("\n", "")[:20] in text
    assert "2.4해지기간을지켰는지여부" in text
    assert "support100,at" in text


def test_without_the_judgments_only_the_support_is_shown(built, capsys):
    built.with_name("judgments.jsonl").unlink()
    text = shown(capsys, built, "--limit", "1")
    assert "support100" in text
    assert "support100,at" not in text


def test_markup_in_a_case_is_text(tmp_path, capsys):
    issue = {"id": "1", "summary": "[red]여부[/]", "claim": [], "conclusion": "[bold]그렇다[/nothing]"}
    root = {"id": "", "summary": "", "claim": [], "conclusion": "기각한다."}
    record = {"doc_id": "[a]", "question": "[link=x]무엇[/link]", "answer": "기각한다.", "issues": [root, issue]}
    (tmp_path / "a.jsonl").write_text(json.dumps(record), encoding="utf-8")
    text = shown(capsys, tmp_path / "a.jsonl")
    assert "[red]여부[/]" in text
    assert "[bold]그렇다[/nothing]" in text
    assert "[link=x]무엇[/link]" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"), [(["--doc-id", "x"], "no case with the doc_id 'x'"), ([], "no such file")]
)
def test_what_is_not_there_is_said(built, capsys, arguments, complaint):
    path = built if arguments else built.with_name("none.jsonl")
    assert main([str(path), *arguments]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("line", ['{"doc_id": "a"}', '{"doc_id": "a", "text": 1}'])
def test_judgments_that_are_none_are_named_with_their_line(built, capsys, line):
    path = built.with_name("judgments.jsonl")
    path.write_text(line + "\n")
    assert main([str(built)]) == 2
    assert capsys.readouterr().err.startswith(f"{path}, line 1: no judgment of data/build.py")


def test_the_page_marks_in_the_judgment_what_supports_each_statement(built, tmp_path):
    out = tmp_path / "page.html"
    assert main([str(built), "--html", str(out), "--limit", "2"]) == 0
    html = out.read_text(encoding="utf-8")
    for case, line in zip(load_cases(built), built.with_name("judgments.jsonl").read_text().splitlines(), strict=True):
        judgment = json.loads(line)["text"]
        section = html.split("<section>")[1 + [c.id for c in load_cases(built)].index(case.id)]
        shown = section.split('<div class="judgment">')[1].split("</div>")[0]
        assert unescape(re.sub("<[^>]*>", "", shown)).strip("\n") == judgment.strip("\n")
        span = next(s for s in case.extra["spans"] if s["kind"] == "conclusion" and s["score"] == 100)
        marks = re.findall(r'<mark data-keys="([^"]*)">(.*?)</mark>', shown, re.DOTALL)
        key = re.search(rf'data-key="(c\d-{span["issue"]}-conclusion-0)"', section)[1]
        found = unescape("".join(text for keys, text in marks if key in keys.split(" ")))
        assert found == "".join(judgment[start:end] for start, end in span["at"])
        for issue in case.sub_issues:
            assert all(step in unescape(section) for step in (*issue.analysis, *issue.relevant_law, issue.conclusion))


def test_markup_in_a_case_or_its_judgment_is_text_on_the_page(tmp_path):
    evil = "<script>alert(1)</script>\"'&"
    issue = {"id": "1", "summary": evil, "claim": [{"claimer": evil, "content": evil}], "conclusion": evil}
    root = {"id": "", "summary": "", "claim": [], "conclusion": evil}
    span = {"issue": "1", "kind": "conclusion", "place": 0, "score": 90.0, "at": [[0, 8]]}
    record = {"doc_id": evil, "question": evil, "answer": evil, "issues": [root, issue], "spans": [span]}
    (tmp_path / "a.jsonl").write_text(json.dumps(record), encoding="utf-8")
    html = page(load_cases(tmp_path / "a.jsonl"), {evil: evil})
    assert html.count("<script") == 1  # our own
    assert "alert(1)" in html
    assert re.search(r'<mark data-keys="c0-1-conclusion-0">&lt;script&gt;</mark>', html)
