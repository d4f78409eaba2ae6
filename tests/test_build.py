"""From judgments to cases through a real server: nothing is paid for twice, whatever stops the work."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fake_llm_server import DROPPED, FakeLLM, completion, error, in_turn
from judgment_replay import JUDGMENTS, known, known_in, replay, stage_of

from data.build import main
from data.building import CHARS_PER_TOKEN
from data.loading import load_cases
from data.records import from_record

ROOT = Path(__file__).parents[1]
NUM_QUESTIONS = 41  # four stages for each of ten judgments, and one compound leaf


@pytest.fixture
def build(tmp_path):
    def run(server, *options, sources=(str(JUDGMENTS),)):
        endpoint = ("--base-url", server.base_url, "--model", "m", "--max-retries", "0")
        return main([*sources, "--out", str(tmp_path / "out"), *endpoint, *options])

    return run


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def figures(tmp_path):
    return json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))


def asked(*servers):
    return Counter(json.dumps(request.body, sort_keys=True) for server in servers for request in server.requests)


def start(tmp_path, server, *options, root=ROOT):
    command = [sys.executable, str(root / "data" / "build.py"), str(JUDGMENTS), "--out", str(tmp_path / "out")]
    return subprocess.Popen(
        [*command, "--base-url", server.base_url, "--model", "m", "--max-retries", "0", *options],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ten_judgments_become_the_ten_cases_that_were_made_by_hand(build, tmp_path):
    with FakeLLM(replay) as server:
        assert build(server) == 0
    cases = {case.id: case for case in load_cases(tmp_path / "out" / "cases.jsonl")}
    gold = {one.case["doc_id"]: one.case for one in known().values()}
    assert cases.keys() == gold.keys()
    for doc_id, case in cases.items():
        assert case.answer == gold[doc_id]["answer"]
        assert case.difficulty == gold[doc_id]["difficulty"]
        told = from_record(gold[doc_id]).sub_issues
        assert [replace(issue, relevant_law=()) for issue in case.sub_issues] == [
            replace(issue, relevant_law=()) for issue in told
        ]
        assert Path(case.extra["source"]).parent == JUDGMENTS
        assert case.extra["kind"] == gold[doc_id]["kind"]
    assert len(server.requests) == NUM_QUESTIONS
    dropped = {Path(line["source"]).stem: line["reasons"] for line in lines(tmp_path / "out" / "dropped.jsonl")}
    assert dropped.keys() == {"06_climbing_fall", "12_broker_damages"}
    texts = {line["doc_id"]: line["text"] for line in lines(tmp_path / "out" / "judgments.jsonl")}
    assert all(case.answer.split("\n")[0] in texts[doc_id] for doc_id, case in cases.items())
    assert (tmp_path / "out" / "rejected.jsonl").read_text() == ""
    assert figures(tmp_path)["cases"] == 10


def test_a_finished_folder_asks_nothing_again_and_stays_as_it_is(build, tmp_path):
    with FakeLLM(replay) as server:
        build(server)
        before = (tmp_path / "out" / "cases.jsonl").read_bytes()
        assert build(server) == 0
        assert len(server.requests) == NUM_QUESTIONS
    assert (tmp_path / "out" / "cases.jsonl").read_bytes() == before


def test_an_unusable_reply_leaves_a_judgment_for_the_next_run(build, tmp_path, capsys):
    def stammer(request):
        is_one = stage_of(request) == "tree" and known_in(request) is known()["03_title_trust"]
        return completion("아마도") if is_one else replay(request)

    with FakeLLM(stammer) as server:
        assert build(server) == 1
    assert figures(tmp_path)["cases"] == 9
    assert figures(tmp_path)["unfinished"] == 1
    assert "03_title_trust.txt: unusable" in capsys.readouterr().err
    with FakeLLM(replay) as server:
        assert build(server) == 0
        assert Counter(map(stage_of, server.requests)) == {"tree": 1, "refine": 1}
    assert figures(tmp_path)["cases"] == 10


@pytest.mark.parametrize("blank", [{"facts": ["", " "]}, {"statement": " "}], ids=["facts", "statement"])
def test_a_blank_reply_is_none(build, tmp_path, blank):
    script = lambda request: completion(json.dumps(blank)) if stage_of(request) in blank else replay(request)  # noqa: E731
    with FakeLLM(script) as server:
        assert build(server, "--limit", "1") == 1
    assert figures(tmp_path)["unfinished"] == 1


def test_a_case_that_fails_the_checks_is_kept_with_its_reasons(build, tmp_path):
    def invent(request):
        if stage_of(request) != "refine" or known_in(request) is not known()["08_officetel_gains_tax"]:
            return replay(request)
        tree = json.loads(json.dumps(known_in(request).replies["refine"]))
        tree["issues"][0]["conclusion"] = "피고가 본세 777,000,000원을 부과한 것은 적법하다."
        return completion(json.dumps(tree, ensure_ascii=False))

    with FakeLLM(invent) as server:
        assert build(server) == 0
    (rejected,) = lines(tmp_path / "out" / "rejected.jsonl")
    assert rejected["source"].endswith("08_officetel_gains_tax.txt")
    numbers = "grounding: conclusion 1 of issue '1' has numbers that the judgment has not: 777000000"
    assert rejected["reasons"][-1] == numbers
    assert rejected["case"]["doc_id"] == "예제지방법원-2022구합5002"
    assert figures(tmp_path)["rejected/grounding"] == 1


def test_the_budget_stops_cleanly_and_is_kept(build, tmp_path, capsys):
    with FakeLLM(replay) as server:
        assert build(server, "--price", "1", "1", "--budget", "0.05", "--concurrency", "2") == 1
        assert 0 < figures(tmp_path)["cost"] <= 0.05
        assert "Stopped: the budget of 0.05 allows no further question" in capsys.readouterr().err
        assert 0 < len(server.requests) < NUM_QUESTIONS
        assert build(server, "--price", "1", "1", "--budget", "5") == 0
        assert len(server.requests) == NUM_QUESTIONS


def test_a_dry_run_asks_nothing_and_estimates_what_is_missing(build, tmp_path):
    estimate = tmp_path / "estimate.json"
    dry = (str(JUDGMENTS), "--out", str(tmp_path / "out"), "--model", "m", "--dry-run", "--price", "1", "2")
    assert main([*dry, "--json", str(estimate)]) == 0
    before = json.loads(estimate.read_text())
    assert before["questions"] == 40
    assert before["cost"] == pytest.approx((before["tokens_in"] + 2 * before["tokens_out"]) / 1e6, abs=1e-4)
    with FakeLLM(replay) as server:
        build(server, "--limit", "4")
    assert main([*dry, "--json", str(estimate)]) == 0
    assert json.loads(estimate.read_text())["questions"] == 24
    with FakeLLM(replay) as server:
        build(server)
        true_in = sum(len(request.text) for request in server.requests) / CHARS_PER_TOKEN * 40 / 25
    assert before["tokens_in"] == pytest.approx(true_in, rel=0.3)


def test_a_dry_run_leaves_nothing(build, tmp_path):
    dry = (str(JUDGMENTS), "--out", str(tmp_path / "out"), "--model", "m", "--dry-run", "--limit", "2")
    assert main([*dry]) == 0
    assert not (tmp_path / "out").exists()
    with FakeLLM(replay) as server:
        build(server, "--limit", "1")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert main([*dry]) == 0
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None, "completion_tokens": 10}],
    ids=["none", "empty", "zeros", "half"],
)
def test_a_budget_binds_where_the_endpoint_tells_no_usage(build, tmp_path, capsys, usage):
    def silent(request):
        reply = replay(request)
        return replace(reply, body=json.dumps(json.loads(reply.body) | {"usage": usage}).encode())

    with FakeLLM(silent) as server:
        assert build(server, "--price", "1", "1", "--budget", "0.05", "--concurrency", "2") == 1
        told = capsys.readouterr().err
        assert "Stopped: the budget of 0.05 allows no further question" in told
        assert f"{len(server.requests)} replies came without usage" in told
        assert 0 < len(server.requests) < NUM_QUESTIONS
        letters_in = sum(len(request.text) for request in server.requests)
    found = figures(tmp_path)
    assert found["tokens_in"] == pytest.approx(letters_in / CHARS_PER_TOKEN, abs=1)
    assert found["tokens_out"] > 0
    assert found["cost"] == pytest.approx((found["tokens_in"] + found["tokens_out"]) / 1e6, abs=1e-4)
    assert found["cost"] <= 0.05


def test_a_limit_takes_the_first_judgments_that_are_not_dropped(build, tmp_path):
    with FakeLLM(replay) as server:
        build(server, "--limit", "7")
    assert sorted(Path(line["source"]).stem[:2] for line in lines(tmp_path / "out" / "cases.jsonl")) == [
        "01", "02", "03", "04", "05", "07", "08",
    ]  # fmt: skip


@pytest.mark.parametrize(("opinion", "num_cases"), [("yes", 1), ("no", 0), ("unclear", 0)])
def test_a_model_s_second_opinion_decides_the_borderline(build, tmp_path, opinion, num_cases):
    one = known()["01_fire_insurance"]
    text = one.judgment.text.replace("4. 결론", "원고는 위자료도 구하나 이를 인정할 증거가 없다.\n\n4. 결론")
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")

    def answer(request):
        if stage_of(request) == "opinion":
            return completion(json.dumps({"deterministic": opinion}))
        return completion(json.dumps(one.replies[stage_of(request)], ensure_ascii=False))

    with FakeLLM(answer) as server:
        assert build(server, sources=(str(tmp_path / "a.txt"),)) == 0
        assert server.requests == []  # without the flag it is dropped
        assert build(server, "--second-opinion", sources=(str(tmp_path / "a.txt"),)) == 0
    assert len(lines(tmp_path / "out" / "cases.jsonl")) == num_cases
    if not num_cases:
        (rejected,) = lines(tmp_path / "out" / "rejected.jsonl")
        assert rejected["reasons"] == [f"selection: a model finds discretion ({opinion}); 위자료가 언급된다: '위자료'"]


def test_the_same_judgment_is_taken_once(build, tmp_path):
    one = known()["09_acquisition_tax_procedure"]
    (tmp_path / "in").mkdir()
    texts = [one.judgment.text, one.judgment.text + "\n\n", one.judgment.text.replace("조OO", "정OO")]
    for name, text in zip("abc", texts, strict=True):
        (tmp_path / "in" / f"{name}.txt").write_text(text, encoding="utf-8")
    with FakeLLM(replay) as server:
        assert build(server, sources=(str(tmp_path / "in"),)) == 0
    assert len(lines(tmp_path / "out" / "cases.jsonl")) == 1
    (dropped,) = lines(tmp_path / "out" / "dropped.jsonl")
    assert dropped["reasons"] == [f"같은 글이 이미 있다: {tmp_path}/in/a.txt"]
    (rejected,) = lines(tmp_path / "out" / "rejected.jsonl")
    assert rejected["reasons"][0].startswith("duplicate: nearly the same judgment as")


def test_a_judgment_that_is_named_twice_is_asked_about_once(build, tmp_path):
    path = str(JUDGMENTS / "01_fire_insurance.txt")
    with FakeLLM(replay) as server:
        assert build(server, sources=(path, path)) == 0
    assert set(asked(server).values()) == {1}
    (dropped,) = lines(tmp_path / "out" / "dropped.jsonl")
    assert dropped["reasons"] == [f"같은 글이 이미 있다: {path}"]


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [(error(401, "no such key"), "http_4xx"), (DROPPED, "connection")],
    ids=["a wrong key", "a dead server"],
)
def test_an_endpoint_that_never_answers_ends_the_run(build, tmp_path, capsys, reply, complaint):
    (tmp_path / "in").mkdir()
    for number in range(3):  # the ten judgments three times over, each time another text
        for path in JUDGMENTS.glob("*.txt"):
            text = path.read_text(encoding="utf-8") + f"\n{number}"
            (tmp_path / "in" / f"{number}{path.name}").write_text(text, encoding="utf-8")
    with FakeLLM(in_turn(reply)) as server:
        assert build(server, "--concurrency", "1", sources=(str(tmp_path / "in"),)) == 1
        assert len(server.requests) == 1 if complaint == "http_4xx" else len(server.requests) <= 16
    stopped = capsys.readouterr().err.split("Stopped: the endpoint answers nothing of use: ")[1]
    assert complaint in stopped


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere.txt/a/b"], "no such file or folder"),
        (["judgments", "--rules", "nowhere.yaml"], "nowhere.yaml"),
        (["judgments", "--base-url", "localhost:8000"], "no URL of an endpoint"),
        (["judgments", "--base-url", "ftp://localhost:8000/v1"], "no URL of an endpoint: 'ftp://localhost:8000/v1'"),
        (["judgments", "--timeout-s", "nan"], "--timeout-s: must be a number of seconds above 0"),
        (["judgments", "--json", "."], "--json: must be a file, and . is a folder"),
        (["judgments", "--text-column", "x", "--base-url", "http://localhost:1/v1"], ""),
    ],
)
def test_wrong_input_is_one_message(tmp_path, capsys, arguments, complaint):
    (tmp_path / "judgments").mkdir()
    (tmp_path / "judgments" / "a.jsonl").write_text('{"text": "가"}')
    sources = [str(tmp_path / arguments[0]) if arguments[0] == "judgments" else arguments[0], *arguments[1:]]
    options = [] if "--base-url" in arguments else ["--base-url", "http://localhost:1/v1"]
    try:
        status = main([*sources, "--out", str(tmp_path / "out"), "--model", "m", *options])
    except SystemExit as leaving:  # argparse's own way
        status = leaving.code
    assert status == 2
    assert complaint in capsys.readouterr().err


def test_cases_are_not_built_among_the_judgments(tmp_path, capsys):
    endpoint = ["--base-url", "http://localhost:1/v1", "--model", "m"]
    assert main([str(tmp_path), "--out", str(tmp_path / "cases"), *endpoint]) == 2
    assert "lies among the judgments of" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--budget", "3"], []])
def test_what_belongs_together_is_asked_for(tmp_path, capsys, options):
    endpoint = ["--base-url", "http://x/v1"] if options else []
    assert main([str(JUDGMENTS), "--out", str(tmp_path), "--model", "m", *options, *endpoint]) == 2
    assert ("--budget needs --price" if options else "--base-url is missing") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "legal"),
    [
        (["--price", "nan", "1"], "at least 0"),
        (["--price", "1", "-1"], "at least 0"),
        (["--budget", "inf", "--price", "1", "1"], "at least 0"),
        (["--limit", "-1"], "at least 1"),
        (["--concurrency", "0"], "at least 1"),
        (["--concurrency", "x"], "at least 1"),
    ],
    ids=["price nan", "price below 0", "budget inf", "limit below 0", "no concurrency", "concurrency x"],
)
def test_numbers_out_of_range_are_refused_with_the_legal_ones(tmp_path, capsys, options, legal):
    with pytest.raises(SystemExit, match="2"):
        main([str(JUDGMENTS), "--out", str(tmp_path), "--model", "m", "--dry-run", *options])
    assert f"argument {options[0]}" in (told := capsys.readouterr().err)
    assert legal in told


def slowly(request):
    return replace(replay(request), delay_s=0.15)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_pays_for_nothing_twice(tmp_path):
    with FakeLLM(slowly) as server:
        process = start(tmp_path, server, "--concurrency", "1")
        while len(server.requests) < 12:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        num_before = len(server.requests)
        assert start(tmp_path, server).wait(60) == 0
    repeated = [count for count in asked(server).values() if count > 1]
    assert 12 <= num_before < NUM_QUESTIONS
    assert len(asked(server)) == NUM_QUESTIONS
    assert repeated in ([], [2])  # only the question that was under way can have been asked again
    assert len(load_cases(tmp_path / "out" / "cases.jsonl")) == 10


@pytest.mark.slow
def test_three_workers_on_one_folder_share_the_work(tmp_path):
    with FakeLLM(slowly) as server:
        processes = [start(tmp_path, server, "--concurrency", "1") for _ in range(3)]
        assert {process.wait(60) for process in processes} <= {0, 1}
        assert set(asked(server).values()) == {1}
        assert len(asked(server)) == NUM_QUESTIONS
        assert server.max_in_flight > 1
    assert len(load_cases(tmp_path / "out" / "cases.jsonl")) == 10


@pytest.mark.slow
def test_a_changed_prompt_reruns_its_stage_and_what_hangs_on_it(tmp_path):
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=shutil.ignore_patterns("__pycache__", "samples"))
    prompt = tmp_path / "data" / "languages" / "ko" / "build_refine.txt"

    def rephrase(request):
        if "반드시" not in request.text:
            return replay(request)
        tree = json.loads(json.dumps(known_in(request).replies["refine"]))
        if known_in(request) is known()["09_acquisition_tax_procedure"]:
            tree["issues"][0]["summary"] += " 문제"  # the one with a compound leaf
        return completion(json.dumps(tree, ensure_ascii=False))

    with FakeLLM(rephrase) as server:
        assert start(tmp_path, server, root=tmp_path).wait(60) == 0
        prompt.write_text(prompt.read_text(encoding="utf-8") + "\n반드시 지켜라.", encoding="utf-8")
        assert start(tmp_path, server, root=tmp_path).wait(60) == 0
    later = server.requests[NUM_QUESTIONS:]
    assert Counter(map(stage_of, later)) == {"refine": 10, "split": 1}
