"""From cases to responses through a real local server: nothing is asked twice, nothing is lost silently."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_llm_server import DROPPED, FakeLLM, completion, error, in_turn
from tiny_policy import write_adapter, write_policy

from eval.engine import find_policy, weights_id
from eval.solve import MAX_LOST_IN_A_ROW, main

ROOT = Path(__file__).parents[1]


def case_record(doc_id: str, question: str = "원고의 청구는 이유 있는가?") -> dict:
    issue = {"relevant_law": [], "analysis": []}
    root = {"id": "", "summary": "", "claim": [{"claimer": "원고", "content": "금원 지급"}], "conclusion": "기각한다."}
    sub = {"id": "1", "summary": "변제", "claim": [{"claimer": "피고", "content": "변제하였다"}], "conclusion": "인정"}
    return {
        "doc_id": doc_id,
        "question": f"{question} ({doc_id})",
        "answer": "기각한다.",
        "issues": [root | issue, sub | issue],
        "difficulty": "easy",
    }


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.jsonl"
    lines = [json.dumps(case_record(f"사건-{i}"), ensure_ascii=False) for i in range(6)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def solve(tmp_path, cases):
    def run(server, *options, out="responses.jsonl"):
        arguments = [
            "--cases",
            str(cases),
            "--base-url",
            server.base_url,
            "--model",
            "policy",
            "--out",
            str(tmp_path / out),
        ]
        return main([*arguments, *options])

    return run


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_case_is_asked_and_every_response_kept(solve, tmp_path, capsys):
    with FakeLLM(lambda request: completion(f"답 {request.index}", tokens_in=7, tokens_out=3)) as server:
        assert solve(server, "--temperature", "0.5", "--max-tokens", "99", "--prices", "10,20") == 0
    written = lines(tmp_path / "responses.jsonl")
    assert sorted(line["doc_id"] for line in written) == [f"사건-{i}" for i in range(6)]
    assert {line["model"] for line in written} == {"policy"}
    assert server.requests[0].body["temperature"] == 0.5
    assert server.requests[0].body["max_tokens"] == 99
    assert "42 in, 18 out, cost 0.00078" in capsys.readouterr().out


def test_law_stands_in_the_request_and_in_the_settings(solve, tmp_path, cases, capsys):
    record = case_record("법")
    record["issues"][1]["relevant_law"] = ["민법 제460조: 변제는 채무의 내용에 따른 현실의 제공으로 하여야 한다."]
    cases.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    with FakeLLM(in_turn(completion("답"))) as server:
        assert solve(server, "--retriever", "gold") == 0
        asked = server.requests[0].body["messages"][-1]["content"]
        assert asked.index("1. 민법 제460조: 변제는") < asked.index(record["question"])
        assert (
            json.loads((tmp_path / "responses.meta.json").read_text(encoding="utf-8"))["retrieval"]["retriever"]
            == "gold"
        )
        capsys.readouterr()
        assert solve(server) == 2
        assert "retrieval" in capsys.readouterr().err
        assert solve(server, "--retriever", "bm25") == 2
        assert "retriever_index must be set" in capsys.readouterr().err
        assert len(server.requests) == 1


def test_samples_are_numbered_and_added_later_without_asking_again(solve, tmp_path):
    with FakeLLM(in_turn(completion("답"))) as server:
        solve(server)
        solve(server, "--samples", "3")
        assert len(server.requests) == 18
        solve(server, "--samples", "2")
        assert len(server.requests) == 18
    keys = sorted((line["doc_id"], line["sample"]) for line in lines(tmp_path / "responses.jsonl"))
    assert keys == [(f"사건-{i}", sample) for i in range(6) for sample in range(3)]


def test_thoughts_that_arrive_apart_are_kept_apart(solve, tmp_path):
    with FakeLLM(in_turn(completion("기각", reasoning_content="생각", finish_reason="stop"))) as server:
        solve(server, "--limit", "1")
    (line,) = lines(tmp_path / "responses.jsonl")
    assert (line["response"], line["reasoning"]) == ("기각", "생각")


def test_only_thoughts_are_an_empty_response(solve, tmp_path):
    with FakeLLM(in_turn(completion(None, reasoning_content="끝없는 생각", finish_reason="length"))) as server:
        assert solve(server, "--limit", "1") == 0
    (line,) = lines(tmp_path / "responses.jsonl")
    assert (line["response"], line["finish_reason"]) == ("", "length")


def test_what_was_lost_is_told_and_asked_again(solve, tmp_path, capsys):
    with FakeLLM(lambda request: error(400, "too long") if "사건-2" in request.text else completion("답")) as server:
        assert solve(server) == 1
        assert "1 responses were lost (http_4xx)" in capsys.readouterr().err
        assert solve(server) == 1
    assert len(server.requests) == 7
    assert len(lines(tmp_path / "responses.jsonl")) == 5


def test_a_dead_endpoint_stops_the_run(solve, tmp_path, capsys):
    script = lambda request: completion("답") if request.index < 3 else error(401, "no such key")  # noqa: E731
    with FakeLLM(script) as server:
        assert solve(server, "--samples", "9", "--concurrency", "1") == 1
    assert len(server.requests) == 3 + MAX_LOST_IN_A_ROW
    assert len(lines(tmp_path / "responses.jsonl")) == 3
    message = capsys.readouterr().err
    assert "no such key" in message
    assert "the same command goes on" in message


def test_other_settings_are_refused_by_name(solve, capsys):
    with FakeLLM(in_turn(completion("답"))) as server:
        solve(server)
        assert solve(server, "--temperature", "1") == 2
        assert "temperature: 0.0 then, 1.0 now" in capsys.readouterr().err
        assert solve(server, "--temperature", "1", out="sampled.jsonl") == 0


def test_an_attempt_that_got_no_response_binds_to_no_settings(solve, tmp_path, capsys):
    with FakeLLM(in_turn(error(401, "no such key"))) as server:
        assert solve(server) == 1
        assert solve(server, "--temperature", "0.5") == 1
    with FakeLLM(in_turn(completion("답"))) as server:
        assert solve(server, "--temperature", "1", "--limit", "1") == 0
        assert solve(server) == 2
    assert "temperature: 1.0 then, 0.0 now" in capsys.readouterr().err
    assert json.loads((tmp_path / "responses.meta.json").read_text(encoding="utf-8"))["temperature"] == 1


def test_a_changed_case_is_not_taken_for_answered(solve, cases, capsys):
    with FakeLLM(in_turn(completion("답"))) as server:
        solve(server)
        cases.write_text(cases.read_text(encoding="utf-8").replace("이유 있는가", "이유 없는가"), encoding="utf-8")
        assert solve(server) == 2
    assert "answers another prompt" in capsys.readouterr().err


def test_the_request_can_be_changed_key_by_key(solve):
    with FakeLLM(in_turn(completion("답"))) as server:
        solve(
            server, "--request", '{"max_tokens": null, "max_completion_tokens": 5, "temperature": null}', "--limit", "1"
        )
    body = server.requests[0].body
    assert body["max_completion_tokens"] == 5
    assert not {"max_tokens", "temperature"} & body.keys()


def test_concurrency_is_limited(solve):
    with FakeLLM(in_turn(completion("답", delay_s=0.05))) as server:
        solve(server, "--samples", "3", "--concurrency", "4")
    assert server.max_in_flight <= 4


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--cases", "no-such-file.jsonl"], "no-such-file"),
        (["--base-url", "localhost:8000"], "no URL"),
        (["--base-url", "ftp://localhost:8000/v1"], "no URL of an endpoint: 'ftp://localhost:8000/v1'"),
        (["--timeout-s", "inf"], "must be a number of seconds above 0, and not infinite"),
        (["--timeout-s", "nan"], "must be a number of seconds above 0"),
        (["--retriever", "gold", "--retriever-model", "x"], "retriever_model has no effect with retriever gold"),
        (["--retriever-index", "law"], "retriever_index has no effect with retriever none"),
        (["--concurrency", "0"], "at least 1"),
        (["--temperature", "-1"], "[0, 2]"),
        (["--request", "[]"], "--request"),
        (["--base-url", "https://example.org/v1", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
    ],
    ids=[
        *("no file", "no URL", "ftp", "for ever", "no number", "law model", "law index"),
        *("no worker", "temperature", "request", "no key"),
    ],
)
def test_wrong_input_ends_with_a_message(solve, capsys, options, problem):
    with FakeLLM(in_turn(completion("답"))) as server:
        try:
            status = solve(server, *options)
        except SystemExit as leaving:  # argparse's own way
            status = leaving.code
    assert status == 2
    assert problem in capsys.readouterr().err


def test_a_directory_without_a_model_is_told(tmp_path, cases, capsys):
    assert main(["--cases", str(cases), "--model", str(tmp_path), "--out", str(tmp_path / "r.jsonl")]) == 2
    assert "holds no model" in capsys.readouterr().err


def test_a_killed_run_goes_on_with_what_is_missing(tmp_path, cases):
    out = tmp_path / "responses.jsonl"
    command = [sys.executable, "eval/solve.py", "--cases", str(cases), "--out", str(out), "--model", "policy"]
    command += ["--samples", "8", "--concurrency", "2"]
    with FakeLLM(in_turn(completion("답", delay_s=0.02))) as server:
        command += ["--base-url", server.base_url]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while len(server.requests) < 14:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        num_kept = out.read_bytes().count(b"\n")
        num_asked = len(server.requests)
        assert num_asked - num_kept <= 2 + 2  # those under way, and those that arrived while the process was dying
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == num_asked + 48 - num_kept
    assert len({(line["doc_id"], line["sample"]) for line in lines(out)}) == len(lines(out)) == 48


def test_a_dropped_connection_is_retried(solve, tmp_path):
    with FakeLLM(lambda request: DROPPED if request.index == 0 else completion("답")) as server:
        assert solve(server, "--limit", "1") == 0
    assert len(lines(tmp_path / "responses.jsonl")) == 1


def test_the_header_says_how_the_responses_were_made(solve, tmp_path):
    with FakeLLM(in_turn(completion("답"))) as server:
        solve(server, "--limit", "1")
    header = json.loads((tmp_path / "responses.meta.json").read_text(encoding="utf-8"))
    assert header["model"] == "policy"
    assert header["prompt_style"] == "court"
    assert not re.search("key", json.dumps(header), re.IGNORECASE)


@pytest.mark.slow
def test_vllm_in_this_process_answers_with_an_adapter_on_its_base(tmp_path, cases):
    base = write_policy(tmp_path / "base")
    adapter = write_adapter(tmp_path / "adapter", base)
    out = tmp_path / "responses.jsonl"
    command = [sys.executable, "eval/solve.py", "--cases", str(cases), "--out", str(out), "--model", str(adapter)]
    command += ["--max-tokens", "8", "--prompt-style", "bare"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = lines(out)
    assert sorted(line["doc_id"] for line in written) == [f"사건-{i}" for i in range(6)]
    assert {line["finish_reason"] for line in written} <= {"length", "stop"}
    assert "tokens: " in done.stdout
    header = json.loads((tmp_path / "responses.meta.json").read_text(encoding="utf-8"))
    assert header["weights"] == weights_id(find_policy(str(adapter)))
