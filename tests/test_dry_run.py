"""What costs nothing is looked at before cases and tokenizers are read: no torch in these runs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from data.mini import generate
from tests.fake_llm_server import FakeLLM, verdict
from tests.tiny_policy import write_policy
from tests.whole_checkpoint import write_checkpoint

ROOT = Path(__file__).parents[1]


@pytest.fixture
def start(tmp_path):
    """Starts a run whose cases do not exist: what is told before that was found out before."""

    def start(url, *options, **changes):
        config = {
            "cases": "nowhere.jsonl", "model_name_or_path": "nowhere", "output_dir": "run", "judge": "endpoint",
            "judge_base_url": url, "judge_model": "fake", "judge_max_retries": 0, **changes,
        }  # fmt: skip
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
        command = [sys.executable, str(ROOT / "train/grpo.py"), "run.yaml", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return start


NOBODY = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("options", [("--dry_run", "true"), ()], ids=["dry run", "run"])
def test_a_judge_that_is_not_there_is_told_before_anything_is_read(start, tmp_path, options):
    done = start(NOBODY, *options)
    assert done.returncode == 2
    assert "Is the server running" in done.stderr
    assert "nowhere.jsonl" not in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


def test_a_model_that_the_judge_does_not_serve_is_told_as_early(start):
    with FakeLLM(lambda _: verdict(True, True)) as server:
        done = start(server.base_url, "--dry_run", "true", judge_model="fakee")
    assert "it serves fake. Set judge_model" in done.stderr
    assert "nowhere.jsonl" not in done.stderr


def test_the_judge_of_evaluations_is_looked_for_too(start):
    evaluated = {"eval_strategy": "steps", "eval_cases": "held_out.jsonl", "eval_judge_base_url": NOBODY}
    with FakeLLM(lambda _: verdict(True, True)) as server:
        done = start(server.base_url, "--dry_run", "true", **evaluated)
        assert server.requests == []
    assert f"at {NOBODY}" in done.stderr


def test_without_a_trial_a_run_looks_for_no_judge(start):
    assert "nowhere.jsonl" in start(NOBODY, judge_preflight=False).stderr


def test_resuming_where_nothing_is_says_that_the_run_begins_anew(start, tmp_path):
    resume = ("--resume_from_checkpoint", "latest", "--judge_preflight", "false")
    line = "no checkpoint in run yet: the run begins at step 0"
    assert line in start(NOBODY, *resume).stderr
    assert line not in start(NOBODY, *resume[2:]).stderr
    write_checkpoint(tmp_path / "run", 3)
    assert line not in start(NOBODY, *resume).stderr


def test_the_other_ranks_leave_it_to_rank_0_to_tell_what_all_have_found(start, tmp_path):
    """A launcher ends all processes as soon as one has ended, and rank 0 has asked the judge before it is as far."""
    start(NOBODY)  # writes the YAML
    command = [sys.executable, str(ROOT / "train/grpo.py"), "run.yaml", "--judge_preflight", "false"]
    environ = {**os.environ, "WORLD_SIZE": "2"}
    pipes = {"cwd": tmp_path, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environ | {"RANK": "1"}, **pipes) as other:
        time.sleep(5)  # it needs less than two to find out
        first = subprocess.run(command, env=environ | {"RANK": "0"}, **pipes)
        assert first.returncode == 2
        assert "nowhere.jsonl" in first.stderr
        assert other.poll() is None
        other.terminate()
        assert other.communicate(timeout=30)[1] == ""


@pytest.mark.slow
def test_what_only_trl_objects_to_stops_a_dry_run_too(tmp_path):
    write_policy(tmp_path / "base", max_length=4096)
    for split in ("train", "test"):
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in generate(0, split, 8)]
        (tmp_path / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    keys = {"eval_strategy": "steps", "eval_steps": "7", "save_steps": "20", "load_best_model_at_end": "true",
            "cases": "train.jsonl", "eval_cases": "test.jsonl", "model_name_or_path": "base", "output_dir": "run",
            "vllm_max_model_length": "4096", "dry_run": "true"}  # fmt: skip
    options = [word for name, value in keys.items() for word in (f"--{name}", value)]
    command = [sys.executable, str(ROOT / "train/grpo.py"), str(ROOT / "configs/smoke.yaml"), *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "round multiple of the evaluation steps" in done.stderr
    assert "Traceback" not in done.stderr
