"""A run's checkpoints side by side: only what is missing is computed, and the table says what the files say."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_llm_server import FakeLLM, error, verdict
from tiny_policy import copy_as_checkpoint, write_policy

from data.jsonl import Appender
from data.mini import generate, gold_answer
from data.records import from_record
from eval.checkpoints import main
from eval.engine import Policy, weights_id
from eval.pins import pin_settings
from eval.solve import ask_about

ROOT = Path(__file__).parents[1]
NUM_CASES = 6
CONFIG = """\
model_name_or_path: {base}
eval_cases: {cases}
prompt_style: bare
max_completion_length: 16
judge: mini
dtype: float32
"""


@pytest.fixture
def records():
    return generate(0, "test", NUM_CASES)


@pytest.fixture
def run_dir(tmp_path, records):
    """A run's folder with its config, held-out cases and nothing else."""
    cases = tmp_path / "test.jsonl"
    cases.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    path = tmp_path / "run"
    path.mkdir()
    (path / "config.yaml").write_text(CONFIG.format(base=tmp_path / "base", cases=cases))
    return path


@pytest.fixture
def solved(run_dir, records):
    """Writes a checkpoint that has answered already: the first `num_right` cases as the court did, the others not."""

    def write(step, num_right, sampling="greedy", samples=1):
        name = f"checkpoint-{step}" if step else "base"
        policy = Policy(str(run_dir / name) if step else str(run_dir.parent / "base"))
        if step:
            checkpoint = run_dir / name
            checkpoint.mkdir(exist_ok=True)
            (checkpoint / "config.json").write_text("{}")
            header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
            weights = len(header).to_bytes(8, "little") + header + step.to_bytes(4, "little")
            (checkpoint / "model.safetensors").write_bytes(weights)
        folder = run_dir / "eval" / name / sampling
        settings = {
            "weights": weights_id(policy),
            "prompt_style": "bare",
            "temperature": 0.0 if sampling == "greedy" else 1.0,
            "max_tokens": 16,
        }
        pin_settings(folder / "responses.meta.json", settings)
        gold = {record["doc_id"]: gold_answer(record["answer"], record["mini"]) for record in records[:num_right]}
        with Appender(folder / "responses.jsonl") as file:
            for question in ask_about([from_record(record) for record in records], samples, "bare"):
                file.append(question.response(name, gold.get(question.case_id, "모름: 인정"), "stop").to_record())
        if step:
            (checkpoint / "trainer_state.json").write_text("{}")  # makes it whole

    return write


def summary(run_dir):
    return json.loads((run_dir / "eval" / "summary.json").read_text(encoding="utf-8"))


def test_the_table_shows_each_checkpoint_and_the_gain_over_the_base(run_dir, solved, capsys):
    solved(0, 0)
    solved(10, 3)
    solved(20, 6)
    assert main([str(run_dir), "--sampling", "greedy", "--no-report"]) == 0
    figures = summary(run_dir)
    means = [figures[f"greedy/{name}/mean/score"] for name in ("base", "checkpoint-10", "checkpoint-20")]
    assert means == [0, 5, 10]
    assert figures["greedy/diff/score"] == figures["greedy/diff/score/low"] == 10
    assert figures["greedy/checkpoint-10/extra_issues/mean"] == 0.5
    shown = capsys.readouterr().out
    for row in ("base", "checkpoint-10", "checkpoint-20", "gain over base"):
        assert row in shown
    assert "10.00 [10.00,10.00]" in shown
    assert str(run_dir / "eval" / "curves.png") in shown
    assert (run_dir / "eval" / "curves.png").read_bytes().startswith(b"\x89PNG")
    grade = json.loads((run_dir / "eval/checkpoint-20/greedy/grades.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (grade["model"], grade["judge"], grade["score"]) == ("checkpoint-20", "mini", 10)


def test_greedy_has_one_sample_and_temperature_1_as_many_as_asked(run_dir, solved):
    for step in (0, 10):
        solved(step, 3)
        solved(step, 3, "t1", samples=4)
    assert main([str(run_dir), "--samples", "4", "--no-report"]) == 0
    figures = summary(run_dir)
    assert figures["greedy/base/num_responses"] == NUM_CASES
    assert figures["t1/base/num_responses"] == 4 * NUM_CASES
    assert figures["t1/base/num_cases"] == NUM_CASES


def test_a_limit_shows_only_its_cases_and_loses_nothing(run_dir, solved, tmp_path):
    solved(0, 0)
    solved(10, 3)
    path = tmp_path / "few.json"
    assert main([str(run_dir), "--sampling", "greedy", "--no-report", "--limit", "3", "--json", str(path)]) == 0
    few = json.loads(path.read_text())
    assert few["greedy/checkpoint-10/mean/score"] == 10
    assert few["greedy/checkpoint-10/num_cases"] == 3
    assert main([str(run_dir), "--sampling", "greedy", "--no-report"]) == 0
    assert summary(run_dir)["greedy/checkpoint-10/mean/score"] == 5


def test_nothing_is_graded_twice(run_dir, solved):
    solved(0, 0)
    solved(10, 3)
    path = run_dir / "eval/checkpoint-10/greedy/grades.jsonl"
    main([str(run_dir), "--sampling", "greedy", "--no-report"])
    first = path.read_bytes()
    main([str(run_dir), "--sampling", "greedy", "--no-report"])
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["no-such-run"], "no-such-run is no run"),
        (["--sampling", "warm"], "'warm' is none of greedy, t1"),
        (["--cases", "no-such-file.jsonl"], "no-such-file"),
        (["--judge", "http://localhost:1/v1"], "judge_model"),
        (["--judge", "ftp://localhost:1/v1"], "--judge: no URL of an endpoint"),
        (["--watch", "inf"], "--watch: must be a number of seconds above 0, and not infinite"),
        (["--out", __file__], "--out: must be a folder"),
        (["--retriever", "gold", "--retriever-model", "m"], "retriever_model has no effect with retriever gold"),
    ],
    ids=["no run", "sampling", "no cases", "no judge model", "no URL", "for ever", "no folder", "law model"],
)
def test_wrong_input_ends_with_a_message(run_dir, solved, capsys, options, problem):
    solved(0, 0)
    arguments = options if options[0] == "no-such-run" else [str(run_dir), *options]
    try:
        status = main(arguments)
    except SystemExit as leaving:  # argparse's own way
        status = leaving.code
    assert status == 2
    assert problem in capsys.readouterr().err


def test_a_run_that_is_named_by_nothing_is_refused(capsys):
    with pytest.raises(SystemExit):
        main([""])
    assert "run_dir: names no path" in capsys.readouterr().err


def test_a_run_with_law_is_evaluated_without_it(run_dir, solved, capsys):
    solved(0, 6)
    with (run_dir / "config.yaml").open("a", encoding="utf-8") as file:
        file.write("retriever: dense\nretriever_index: law\nretriever_model: m\nretriever_k: 3\n")
    options = [str(run_dir), "--sampling", "greedy", "--no-report"]
    assert main(options) == 2
    assert "law holds no law corpus" in capsys.readouterr().err
    assert main([*options, "--retriever", "none"]) == 0


def test_a_run_without_held_out_cases_asks_for_some(run_dir, capsys):
    config = run_dir / "config.yaml"
    config.write_text(config.read_text().replace("eval_cases", "cases"))
    assert main([str(run_dir)]) == 2
    assert "--cases" in capsys.readouterr().err


@pytest.fixture
def two_judges(run_dir):
    """Runs eval/checkpoints.py on a run that was trained by the judge at a server and is evaluated by the exact one."""

    def run(server):
        config = (run_dir / "config.yaml").read_text(encoding="utf-8").replace("judge: mini", "judge: endpoint")
        judge = f"judge_base_url: {server.base_url}\njudge_model: kind\njudge_max_retries: 0\njudge_repeat_frac: 0\n"
        (run_dir / "config.yaml").write_text(config + judge + "eval_judge: mini\n", encoding="utf-8")
        return main([str(run_dir), "--sampling", "greedy", "--no-report"])

    return run


def test_what_one_judge_credits_and_the_other_rejects_is_told(run_dir, solved, records, two_judges, capsys):
    solved(0, 0)
    solved(10, 3)
    config = (run_dir / "config.yaml").read_text(encoding="utf-8")
    with FakeLLM(lambda _: verdict(True, True)) as server:
        assert two_judges(server) == 0
        num_asked = len(server.requests)
        (run_dir / "config.yaml").write_text(config, encoding="utf-8")
        assert two_judges(server) == 0
        assert len(server.requests) == num_asked == sum(len(one["issues"]) for one in [*records, *records[:3]])
    figures = summary(run_dir)
    num_credits = [2 * len(record["issues"]) - 1 for record in records]
    assert figures["greedy/base/exploitation"] == 1
    assert figures["greedy/checkpoint-10/exploitation"] == pytest.approx(sum(num_credits[3:]) / sum(num_credits))
    assert figures["greedy/checkpoint-10/mean/score"] == 5  # by the judge of evaluations
    assert "100.0%" in capsys.readouterr().out


def test_a_training_judge_that_is_gone_stops_no_evaluation(run_dir, solved, two_judges, capsys):
    solved(0, 6)
    with FakeLLM(lambda _: error(503, "gone")) as server:
        assert two_judges(server) == 0
    assert summary(run_dir)["greedy/base/mean/score"] == 10
    assert "greedy/base/exploitation" not in summary(run_dir)
    assert "Exploitation is not told" in capsys.readouterr().err


def test_watching_evaluates_what_appears_until_the_final_model_is_there(run_dir, solved, capsys):
    def wait_for(name):
        while not (run_dir / "eval" / "summary.json").is_file() or f"greedy/{name}/num_cases" not in summary(run_dir):
            assert watching.is_alive()
            time.sleep(0.02)

    def watch():
        ended.append(main([str(run_dir), "--sampling", "greedy", "--watch", "0.1"]))

    ended = []
    solved(0, 0)
    (run_dir / "config.json").write_text("{}")
    model = run_dir / "model.safetensors"
    model.write_bytes((8).to_bytes(8, "little") + b"{}      ")
    os.utime(model, (0, 0))  # of an earlier training, which has been gone on with
    watching = threading.Thread(target=watch)
    watching.start()
    wait_for("base")
    solved(10, 3)
    wait_for("checkpoint-10")
    assert not ended
    solved(20, 6)
    os.utime(model)
    watching.join(timeout=60)
    assert ended == [0]
    assert summary(run_dir)["greedy/checkpoint-20/mean/score"] == 10
    assert (run_dir / "eval" / "report.html").stat().st_size > 100_000
    assert f"report: {run_dir / 'eval' / 'report.html'}" in capsys.readouterr().out


@pytest.mark.slow
def test_the_evaluation_goes_to_the_tracker_of_the_run(run_dir, solved):
    solved(0, 0)
    solved(10, 3)
    with (run_dir / "config.yaml").open("a", encoding="utf-8") as file:
        file.write("report_to: wandb\n")
    command = [sys.executable, "eval/checkpoints.py", str(run_dir), "--sampling", "greedy", "--no-report"]
    environ = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    few = subprocess.run([*command, "--limit", "2"], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert few.returncode == 0, few.stderr
    assert not (run_dir / "eval" / "logged.json").exists()
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert "logged to the run's tracker: greedy/base, greedy/checkpoint-10" in done.stdout
    assert list(run_dir.glob("wandb/offline-run-*/*.wandb"))


@pytest.mark.slow
def test_one_engine_answers_for_all_checkpoints_and_only_for_what_is_missing(run_dir):
    write_policy(run_dir.parent / "base", seed=0)
    first = copy_as_checkpoint(write_policy(run_dir.parent / "one", seed=1), run_dir, 1)
    second = copy_as_checkpoint(write_policy(run_dir.parent / "two", seed=2), run_dir, 2)
    (second / "trainer_state.json").unlink()

    def evaluate():
        command = [sys.executable, "eval/checkpoints.py", str(run_dir), "--samples", "2", "--no-report"]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "left out, not whole (being written, or sharded): checkpoint-2" in evaluate()
    files = {path: path.read_bytes() for path in sorted((run_dir / "eval").glob("*/*/responses.jsonl"))}
    assert [path.parts[-3:-1] for path in files] == [
        (name, sampling) for name in ("base", "checkpoint-1") for sampling in ("greedy", "t1")
    ]
    assert [content.count(b"\n") for content in files.values()] == [NUM_CASES, 2 * NUM_CASES] * 2
    assert len(set(files.values())) == 4

    # The run is trained anew into the same folder, and goes further: what the old weights gave makes way.
    (second / "trainer_state.json").write_text("{}")
    first.joinpath("model.safetensors").write_bytes((run_dir.parent / "two/model.safetensors").read_bytes())
    assert "checkpoint-1/greedy is of other weights" in evaluate()
    base_path, *_ = files
    assert base_path.read_bytes() == files[base_path]
    greedy = [
        [json.loads(line)["response"] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (run_dir / "eval" / name / "greedy/responses.jsonl" for name in ("checkpoint-1", "checkpoint-2"))
    ]
    assert sorted(greedy[0]) == sorted(greedy[1])
    assert len(list((run_dir / "eval/checkpoint-1").glob("*.old-1"))) == 2
