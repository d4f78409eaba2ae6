"""From responses to grades by a real local server: no failure becomes a grade, no verdict is paid for twice."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_llm_server import HANGING, FakeLLM, error, in_turn, verdict

from data.mini import generate, gold_answer
from eval.grade import main
from eval.grading import MAX_UNJUDGED_IN_A_ROW
from rewards.rubric import prompt_version

ROOT = Path(__file__).parents[1]
NUM_ISSUES = 3
ANSWER = "피고의 변제 항변은 이유 있으므로 원고의 청구를 기각한다."


def case_record(doc_id: str, difficulty: str = "easy") -> dict:
    issues = [
        {
            "id": id,
            "summary": f"쟁점-{id or '주문'}",
            "claim": [{"claimer": "원고", "content": "주장"}],
            "conclusion": "인정",
        }
        for id in ("", "1", "2")
    ]
    return {"doc_id": doc_id, "question": "사실관계", "answer": "인정", "issues": issues, "difficulty": difficulty}


def write(path: Path, records) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def grade(tmp_path):
    """Grades `responses` to 10 cases, through a server or with whatever options say; returns the exit status."""
    cases = write(tmp_path / "cases.jsonl", [case_record(f"사건-{i}", ("easy", "hard")[i % 2]) for i in range(10)])

    def run(responses, *options, server=None):
        path = write(tmp_path / "responses.jsonl", responses)
        arguments = ["--cases", str(cases), "--responses", str(path), "--out", str(tmp_path / "out")]
        if server is not None:
            arguments += ["--judge", server.base_url, "--judge-model", "judge", "--judge-max-retries", "0"]
        return main([*arguments, *options])

    return run


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def responses(num: int = 10, text: str = ANSWER) -> list[dict]:
    return [{"doc_id": f"사건-{i}", "response": f"{text} ({i})"} for i in range(num)]


def judged_fairly(request, **options):
    """The order is right, issue 1 is covered and right, issue 2 is absent: 5 + 2/2 + 3/2 points."""
    is_there = "쟁점-2" not in request.text
    return verdict(is_there, is_there, **options)


def summary(out: Path) -> dict:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def test_every_response_is_judged_and_summed_up(grade, out, tmp_path, capsys):
    with FakeLLM(judged_fairly) as server:
        assert grade(responses(), "--json", str(tmp_path / "figures.json"), server=server) == 0
    assert len(server.requests) == 10 * NUM_ISSUES
    assert [line["score"] for line in read(out / "grades.jsonl")] == [7.5] * 10
    figures = summary(out)
    assert figures["mean/score"] == figures["mean/score/low"] == figures["macro/score"] == 7.5
    assert (figures["mean/order"], figures["mean/coverage"], figures["mean/correctness"]) == (1, 0.5, 0.5)
    assert (figures["num_cases"], figures["unscored_frac"], figures["judge/missing_frac"]) == (10, 0, 0)
    assert json.loads((tmp_path / "figures.json").read_text()) == figures
    assert "7.50 [7.50,7.50]" in capsys.readouterr().out


def test_a_second_run_asks_nothing_and_says_the_same(grade, out):
    with FakeLLM(judged_fairly) as server:
        grade(responses(), server=server)
        first = summary(out)
        assert grade(responses(), server=server) == 0
    assert len(server.requests) == 10 * NUM_ISSUES
    assert summary(out) == first
    assert len(read(out / "grades.jsonl")) == 10


def test_new_responses_are_judged_beside_the_old_ones(grade, out):
    with FakeLLM(judged_fairly) as server:
        grade(responses(4), server=server)
        grade(responses(10), server=server)
    assert len(server.requests) == 10 * NUM_ISSUES
    assert summary(out)["num_cases"] == 10


def test_a_missing_verdict_is_null_and_only_it_is_asked_for_again(grade, out, capsys):
    is_down = True

    def script(request):
        return error(500) if is_down and "쟁점-1" in request.text else judged_fairly(request)

    with FakeLLM(script) as server:
        assert grade(responses(), server=server) == 1
        (line, *_) = read(out / "grades.jsonl")
        assert line["score"] is line["evaluation_result"]["1"] is line["parts"]["coverage"] is None
        assert line["evaluation_result"]["2"]["contains_issue"] is False
        assert summary(out)["mean/score"] is None
        assert summary(out)["unscored_frac"] == 1
        assert "10 verdicts are missing" in capsys.readouterr().err
        is_down = False
        num_asked = len(server.requests)
        assert grade(responses(), server=server) == 0
        assert len(server.requests) == num_asked + 10
    assert summary(out)["mean/score"] == 7.5


def test_a_dead_judge_stops_the_run_before_it_writes_many_nulls(grade, out, capsys):
    script = lambda request: judged_fairly(request) if request.index < NUM_ISSUES else error(503, "out of memory")  # noqa: E731
    many = [{"doc_id": f"사건-{i % 10}", "response": f"{ANSWER} ({i})", "sample": i // 10} for i in range(50)]
    with FakeLLM(script) as server:
        assert grade(many, "--judge-max-concurrency", "1", server=server) == 1
    message = capsys.readouterr().err
    assert "no verdict at all" in message
    assert "out of memory" in message
    assert len(read(out / "grades.jsonl")) == 1 + MAX_UNJUDGED_IN_A_ROW
    assert not (out / "summary.json").exists()
    with FakeLLM(judged_fairly) as server:
        assert grade(many, server=server) == 0
    assert summary(out)["mean/score"] == 7.5
    assert summary(out)["num_responses"] == 50


def test_a_judge_that_is_dead_from_the_start_is_told_however_few_the_responses(grade, out, capsys):
    with FakeLLM(in_turn(error(404, "no such model"))) as server:
        assert grade(responses(2), server=server) == 1
    assert "no such model" in capsys.readouterr().err


def test_an_attempt_without_a_verdict_binds_to_nothing(grade, out, capsys):
    with FakeLLM(in_turn(error(404, "no such model"))) as server:
        blank = {"doc_id": "사건-9", "response": "", "sample": 1}
        assert grade([*responses(2), blank], server=server) == 1
    with FakeLLM(judged_fairly) as server:
        other = responses(3, text="다른 답")
        assert grade(other, "--judge-temperature", "0.7", server=server) == 0
        assert [line["score"] for line in read(out / "grades.jsonl")] == [7.5] * 3
        assert grade(other, server=server) == 2
    assert "judge_temperature: 0.7 then, 0.0 now" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["grades.jsonl", "grades.cases.json", "summary.json"])
def test_a_folder_in_the_place_of_a_file_is_told(grade, out, capsys, name):
    (out / name).mkdir(parents=True)
    with FakeLLM(judged_fairly) as server:
        assert grade(responses(1), server=server) == 2
    assert capsys.readouterr().err.endswith(f"{out / name} is a folder, and must be a file\n")


def test_a_file_of_something_else_is_not_taken_for_an_attempt(grade, out, capsys):
    out.mkdir()
    write(out / "grades.jsonl", [{"pupil": "a", "grade": 1}])
    with FakeLLM(judged_fairly) as server:
        assert grade(responses(), server=server) == 2
    assert 'line 1: no response: it lacks "doc_id"' in capsys.readouterr().err
    assert read(out / "grades.jsonl") == [{"pupil": "a", "grade": 1}]


def test_how_responses_were_drawn_is_kept_with_their_grades(grade, out, tmp_path, capsys):
    meta = tmp_path / "responses.meta.json"
    meta.write_text('{"model": "m", "temperature": 0.0, "request": {"top_p": 0.9, "stop": "x"}}')
    with FakeLLM(judged_fairly) as server:
        assert grade(responses(4), server=server) == 0
        assert json.loads((out / "grades.sampling.json").read_text()) == {"temperature": 0.0, "top_p": 0.9}
        meta.write_text('{"model": "m", "temperature": 1.0, "request": {"top_p": 0.9}}')
        assert grade(responses(), server=server) == 2
        assert "temperature: 0.0 then, 1.0 now" in capsys.readouterr().err
        assert grade(responses(), "--rejudge", "all", server=server) == 0


def test_no_response_is_an_error_that_names_the_file(grade, out, tmp_path, capsys):
    for options in (["--judge", "mini"], ["--judge", "recorded"], ["--judge", "mini", "--scheme", "likert"]):
        assert grade([], *options, "--rejudge", "all") == 2
        assert f"{tmp_path / 'responses.jsonl'} holds no response" in capsys.readouterr().err
    assert grade([{"doc_id": "다른 사건", "response": ANSWER}], "--judge", "mini") == 2
    assert f"none of its responses is to a case of {tmp_path / 'cases.jsonl'}" in capsys.readouterr().err
    failed = {"doc_id": "사건-0", "response": ANSWER, "evaluation_result": {"": None, "1": "error"}}
    assert grade([failed], "--judge", "recorded") == 2
    assert "holds no verdicts" in capsys.readouterr().err
    assert not out.exists()


def test_responses_that_no_judge_can_read_stay_unscored_and_stop_nothing(grade, out, capsys):
    stubborn = {f"({i})" for i in range(9)}

    def script(request):
        return error(400, "too long") if any(mark in request.text for mark in stubborn) else judged_fairly(request)

    with FakeLLM(script) as server:
        assert grade(responses()[9:], server=server) == 0
        for _ in range(2):  # a second time, only what cannot be judged is left to do
            grade(responses(), server=server)
    figures = summary(out)
    assert figures["num_cases"] == 1
    assert len(read(out / "grades.jsonl")) <= 10


@pytest.mark.parametrize("text", ["", "  \n", "<think>끝없는 생각", "<think>생각</think>", "…"])
def test_an_empty_answer_costs_no_call_and_finds_nothing(grade, out, text):
    with FakeLLM(judged_fairly) as server:
        assert grade([{"doc_id": "사건-0", "response": text}, *responses()[1:]], server=server) == 0
    assert len(server.requests) == 9 * NUM_ISSUES
    line = next(line for line in read(out / "grades.jsonl") if line["doc_id"] == "사건-0")
    assert line["score"] == 0
    assert not any(issue["contains_issue"] for issue in line["evaluation_result"].values())
    assert summary(out)["num_empty_responses"] == 1
    assert summary(out)["mean/score"] == pytest.approx(0.9 * 7.5)


def test_gates_are_told_and_change_no_score(grade, out):
    cut = [{**response, "finish_reason": "length"} for response in responses()]
    with FakeLLM(judged_fairly) as server:
        grade(cut, server=server)
    assert summary(out)["gate/truncated_frac"] == 1
    assert summary(out)["mean/score"] == 7.5


def test_whatever_does_not_match_is_told_and_counted(grade, out, capsys):
    odd = [*responses(4), {"doc_id": "사건-0", "response": "다시"}, {"doc_id": "다른 사건", "response": ANSWER}]
    with FakeLLM(judged_fairly) as server:
        assert grade(odd, server=server) == 0
    figures = summary(out)
    assert figures["num_unknown_cases"] == figures["num_duplicates"] == 1
    assert figures["num_cases_without_response"] == 6
    left_out = json.loads((out / "left_out.json").read_text(encoding="utf-8"))
    assert left_out["duplicates"] == ["사건-0 (sample 0), line 5"]
    message = capsys.readouterr().err
    assert "다른 사건" in message
    assert "사건-4; 사건-5; 사건-6; 사건-7; 사건-8 and 1 more" in message


def test_the_verdicts_of_an_evaluators_file_are_scored_by_our_formula(grade, out):
    evaluation = {
        id: {"rationales": "", "contains_issue": id != "2", "correct_conclusion": id != "2", "score": 0}
        for id in ("", "1", "2")
    }
    official = [
        {**response, "evaluator_model": "gemma", "evaluation_result": evaluation, "score": 1.3}
        for response in responses()
    ]
    official[0]["evaluation_result"] = {"": evaluation[""], "1": evaluation["1"]}  # a call that failed
    assert grade(official, "--judge", "recorded") == 0
    figures = summary(out)
    assert figures["mean/score"] == 7.5
    assert figures["unscored_frac"] == pytest.approx(0.1)
    assert {line["judge"] for line in read(out / "grades.jsonl")} == {"gemma"}


def test_another_judge_is_refused(grade, capsys):
    with FakeLLM(judged_fairly) as server:
        grade(responses(), server=server)
        assert grade(responses(), "--judge-temperature", "0.7", server=server) == 2
    assert "judge_temperature: 0.0 then, 0.7 now" in capsys.readouterr().err


def test_each_language_has_its_own_prompts_pinned(tmp_path, out, capsys):
    """Korean alone as it always was; the others as they come, in folders from before they were pinned too."""
    records = [case_record(f"사건-{code}") | {"language": code} for code in ("ko", "en", "ja")]
    command = ["--cases", str(write(tmp_path / "cases.jsonl", records)), "--out", str(out)]

    def grade(server, *languages):
        lines = [{"doc_id": f"사건-{code}", "response": f"{ANSWER} {code}"} for code in languages]
        path = write(tmp_path / "responses.jsonl", lines)
        return main([*command, "--responses", str(path), "--judge", server.base_url, "--judge-model", "judge"])

    def pinned():
        settings = json.loads((out / "grades.meta.json").read_text())
        return {name: value for name, value in settings.items() if name.startswith("prompt_version")}

    ko, en, ja = map(prompt_version, ("ko", "en", "ja"))
    with FakeLLM(judged_fairly) as server:
        assert grade(server, "en") == 0
        assert pinned() == {"prompt_version_en": en}
        (out / "grades.meta.json").write_text(
            (out / "grades.meta.json").read_text().replace(f'_en": "{en}', f'": "{ko}')  # as it was of old
        )
        assert grade(server, "en") == 0
        assert grade(server, "ko", "ja") == 0
        assert pinned() == {"prompt_version": ko, "prompt_version_en": en, "prompt_version_ja": ja}
        (out / "grades.meta.json").write_text((out / "grades.meta.json").read_text().replace(ja, "other"))
        assert grade(server, "ko", "en") == 0
        assert grade(server, "ja") == 2
        assert f"prompt_version_ja: 'other' then, '{ja}' now" in capsys.readouterr().err


def test_grades_of_other_responses_are_refused(grade, capsys):
    with FakeLLM(judged_fairly) as server:
        grade(responses(), server=server)
        assert grade(responses(text="다른 답"), server=server) == 2
    assert "another response" in capsys.readouterr().err


def test_grades_of_a_case_that_has_changed_since_are_refused(grade, tmp_path, capsys):
    cases = tmp_path / "cases.jsonl"
    with FakeLLM(judged_fairly) as server:
        assert grade(responses(), server=server) == 0
        cases.write_text(cases.read_text(encoding="utf-8").replace('"인정"', '"부정"', 2), encoding="utf-8")
        assert grade(responses(), server=server) == 2
        assert "1 cases that have changed since, such as '사건-0'" in capsys.readouterr().err
        assert grade(responses(), "--rejudge", "all", server=server) == 0


def test_a_damaged_mini_case_is_told_before_a_verdict_is_paid(tmp_path, capsys):
    record = generate(0, "test", 1)[0] | {"mini": {}}
    cases = write(tmp_path / "cases.jsonl", [record])
    path = write(tmp_path / "responses.jsonl", [{"doc_id": record["doc_id"], "response": "주문: 기각"}])
    with FakeLLM(judged_fairly) as server:
        options = ["--cases", str(cases), "--responses", str(path), "--out", str(tmp_path / "out")]
        assert main([*options, "--judge", server.base_url, "--judge-model", "judge"]) == 2
        assert not server.requests
    assert "damaged" in capsys.readouterr().err


def test_rejudging_all_keeps_the_old_grades_aside(grade, out):
    with FakeLLM(judged_fairly) as server:
        grade(responses(), server=server)
    with FakeLLM(in_turn(verdict(False, False))) as server:
        assert grade(responses(), "--rejudge", "all", server=server) == 0
        assert len(server.requests) == 10 * NUM_ISSUES
    assert summary(out)["mean/score"] == 0
    assert len(read(out / "grades.jsonl.old-1")) == 10
    assert (out / "summary.json.old-1").exists()


def test_the_mini_judge_is_exact_and_counts_extra_issues(tmp_path, capsys):
    records = generate(0, "test", 5)
    cases = write(tmp_path / "cases.jsonl", records)
    gold = [gold_answer(record["answer"], record["mini"]) for record in records]
    answers = [
        {"doc_id": record["doc_id"], "response": "외계인의 개입: 인정\n" + answer}
        for record, answer in zip(records, gold, strict=True)
    ]
    path = write(tmp_path / "responses.jsonl", answers)
    assert main(["--cases", str(cases), "--responses", str(path), "--out", str(tmp_path), "--judge", "mini"]) == 0
    figures = summary(tmp_path)
    assert figures["mean/score"] == 10
    assert figures["extra_issues/mean"] == 1
    num_issues = sum(len(record["issues"]) - 1 for record in records)
    assert figures["extra_issues/frac"] == pytest.approx(5 / (5 + num_issues))


def test_the_mini_judge_is_refused_for_other_cases(grade, capsys):
    assert grade(responses(), "--judge", "mini") == 2
    assert "mini" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--judge", "http://localhost:1/v1"], "judge_model"),
        (["--judge", "maxi"], "maxi"),
        (["--judge", "recorded"], "holds no verdicts"),
        (["--judge", "http://localhost:1/v1", "--judge-model", "m", "--judge-quorum", "2"], "judge_quorum"),
        (["--judge", "mini", "--gate-min-hangul-frac", "7"], "gate_min_hangul_frac"),
        (["--judge", "recorded", "--judge-model", "x"], "--judge-model has no effect with --judge recorded"),
        (["--judge", "mini", "--judge-votes", "3"], "--judge-votes has no effect with the judge mini"),
    ],
    ids=["no model", "unknown judge", "no verdicts", "quorum", "gate", "recorded and a model", "mini and votes"],
)
def test_wrong_input_ends_with_a_message(grade, capsys, options, problem):
    assert grade(responses(), *options) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_at_random_moments_repeats_no_call_and_ends_the_same(grade, out, tmp_path, seed):
    """Killed twice: each time the server answers some calls more and holds back what comes then, until the kill."""
    with FakeLLM(judged_fairly) as server:
        grade(responses(), server=server)
    untouched = summary(out)

    rng = random.Random(seed)
    again = tmp_path / "again"
    command = [sys.executable, "eval/grade.py", "--cases", str(tmp_path / "cases.jsonl"), "--out", str(again)]
    command += ["--responses", str(tmp_path / "responses.jsonl"), "--judge-model", "judge"]
    command += ["--judge-max-concurrency", "3", "--judge-repeat-frac", "0"]
    answered: list[str] = []
    num_to_answer = 0

    def script(request):
        if len(answered) == num_to_answer:
            return HANGING
        answered.append(request.text)
        return judged_fairly(request)

    with FakeLLM(script) as server:
        command += ["--judge", server.base_url]
        for _ in range(2):
            num_new = rng.randint(0, 12)
            num_to_answer = len(answered) + num_new
            num_arriving = len(server.requests) + num_new + 3
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while len(server.requests) < num_arriving:  # all three slots wait, so every answer has arrived
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(0.1 * rng.random())
            process.send_signal(signal.SIGKILL)
            process.wait()
        num_to_answer = 10 * NUM_ISSUES
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(answered) == len(set(answered)) == 10 * NUM_ISSUES
    assert len(server.requests) == 10 * NUM_ISSUES + 2 * 3
    assert summary(again) == untouched


def test_what_the_judge_has_cost_is_told_and_kept(grade, out, capsys):
    prices = ("--judge-prices", "in=2,out=10", "--judge-repeat-frac", "0")
    with FakeLLM(judged_fairly) as server:
        assert grade(responses(), *prices, server=server) == 0
    # 30 calls of 100 tokens in and 10 out: 3,000 x 2 and 300 x 10 millionths
    assert "judge: 30 calls, 3,000 tokens in (0 cached), 300 out, cost 0.009" in capsys.readouterr().out
    (cost,) = read(out / "cost.jsonl")
    assert (cost["tokens_in"], cost["tokens_out"], cost["cost"]) == (3000, 300, pytest.approx(0.009))
