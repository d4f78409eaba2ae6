"""Runs for studies: each once, killed ones again, and intervals that know of seeds and of cases."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.coverage_study import means, parts_of, table, training_table
from benchmarks.mini_runs import World, estimate, run_once

# Writes what train/grpo.py would write, and counts how often it was called.
PROGRAM = """
import json, sys
from pathlib import Path
words = sys.argv[2:]
options = dict(zip(words[::2], words[1::2]))
out = Path(options["--output_dir"])
(out.parent / "calls.txt").open("a").write(options["--seed"] + "\\n")
if (out.parent / "broken").exists():
    sys.exit(1)
parts = {"order": 1.0, "coverage": 0.5, "correctness": 0.25}
row = {"eval_step": 0.0, "eval_score": 6.75, **{f"eval_{k}": v for k, v in parts.items()}, "scores": {"a": parts}}
(out / "eval_in_training.jsonl").open("a").write(json.dumps(row) + "\\n")
step = {"step": 1, "loss": 0.5, "score/total": 6.75, "step_time": 1.0, "signal/order_frac": 0.9}
(out / "metrics.jsonl").open("a").write(json.dumps(step) + "\\n" + json.dumps({"step": 1, "eval_score": 1}) + "\\n")
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    world = World(folder=tmp_path / "world")

    def run(seed):
        key = {"setting": "tight", "scheme": "legit", "seed": seed}
        return run_once(tmp_path / "results.jsonl", key, world, {"seed": seed}, (str(tmp_path / "program.py"),))

    return run


def calls(folder: Path):
    return (folder / "calls.txt").read_text().split()


def test_a_finished_run_is_not_run_again(run, tmp_path):
    first, again, other = run(0), run(0), run(1)
    assert first == again
    assert calls(tmp_path) == ["0", "1"]
    assert other["seed"] == 1
    assert first["evaluations"] == [
        {
            "step": 0,
            "score": 6.75,
            "order": 1.0,
            "coverage": 0.5,
            "correctness": 0.25,
            "scores": {"a": [1.0, 0.5, 0.25]},
        }
    ]
    assert first["training"] == [{"step": 1, "score/total": 6.75, "signal/order_frac": 0.9}]


def test_a_run_that_died_is_begun_again_with_clean_files(run, tmp_path):
    (tmp_path / "broken").touch()
    with pytest.raises(RuntimeError, match=r"tight-legit-0/log\.txt"):
        run(0)
    (tmp_path / "broken").unlink()
    (tmp_path / "tight-legit-0/metrics.jsonl").write_text(json.dumps({"step": 7, "loss": 1.0}) + "\n")
    assert [row["step"] for row in run(0)["training"]] == [1]
    assert calls(tmp_path) == ["0", "0"]


def test_the_interval_is_of_seeds_and_of_cases():
    """Seeds' means 0 and 1, cases' means .5: variance .5 / 2 + 0, and t(.975, 1) = 12.706."""
    one = estimate(np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert (one.value, one.low, one.high) == pytest.approx((0.5, 0.5 - 12.706 * 0.5, 0.5 + 12.706 * 0.5), abs=1e-3)
    assert estimate(np.array([[0.0, 1.0]])).undefined == "one seed"


def test_the_parts_are_paired_by_case_and_add_up():
    parts = parts_of([{"b": [1, 1, 1], "a": [0, 0, 0]}, {"a": [0, 0.5, 0.5], "b": [1, 0, 0]}])
    assert parts.tolist() == [[[0, 0, 0, 0], [10, 1, 1, 1]], [[2.5, 0, 0.5, 0.5], [5, 1, 0, 0]]]
    assert table("T", [("legit", means(parts[:1]))]).splitlines()[2] == (
        "| legit | 5.00 [one seed] | 0.50 [one seed] | 0.50 [one seed] | 0.50 [one seed] |"
    )


def test_training_is_told_by_its_first_and_last_tenth():
    rows = [{"step": step, "completions/mean_length": float(step)} for step in range(20)]
    text = training_table({"legit": [{"training": rows}]})
    assert text.splitlines()[2].startswith("| legit | 0.50, 18.50 | – |")
