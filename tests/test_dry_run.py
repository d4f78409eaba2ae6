"""What costs nothing is looked at before cases and tokenizers are read: no torch in these runs."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fake_llm_server import FakeLLM, verdict
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
