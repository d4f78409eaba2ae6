"""Every reward scheme in two processes of the real recipe: what each rank makes of the columns is of all of them."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.mini_runs import training
from rewards.schemes import PARTS, SCHEMES, CoverageFloor, advantage_parts, mean_coverage, signal
from tests.test_evaluation import TWO_RANKS
from tests.training_runs import ROOT
from train.warm_start import WarmStart, warm_start

pytestmark = pytest.mark.slow

NUM_GENERATIONS, STEPS = 4, 3
SCRIPT = """
import sys
from train.config import read_settings
from train.grpo import main

FLOOR = ["--coverage_floor", "0.8", "--coverage_floor_rate", "20"]
for kind in ("legit", "order_only", "decoupled", "coverage_floor"):
    floor = FLOOR if kind == "coverage_floor" else []
    main(read_settings([*sys.argv[2:], "--reward", kind, *floor, "--output_dir", f"{sys.argv[1]}/{kind}"]))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder for each scheme, trained by two ranks; `resumed` is coverage_floor gone on with after one step."""
    folder = tmp_path_factory.mktemp("schemes")
    warm_start(WarmStart(num_clean_steps=150, num_noisy_steps=0), folder / "base")
    subprocess.run([sys.executable, ROOT / "data/mini.py", "--out", folder, "--train", "16", "--test", "4"], check=True)
    (folder / "all.py").write_text(SCRIPT)
    options = {
        "cases": folder / "train.jsonl", "model_name_or_path": folder / "base", "use_vllm": "false",
        "max_completion_length": 32, "num_generations": NUM_GENERATIONS, "max_steps": STEPS, "save_steps": 1,
        "log_completions": "true", "num_completions_to_print": 0,
    }  # fmt: skip
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    command = [sys.executable, *TWO_RANKS, folder / "all.py", folder, ROOT / "configs/smoke.yaml", *words]
    _finish(command, ACCELERATE_USE_CPU="true")
    # In one process: transformers cannot load an optimiser's state into several on a CPU.
    before = shutil.ignore_patterns("checkpoint-[23]")
    shutil.copytree(folder / "coverage_floor", folder / "resumed", ignore=before)
    run = ["--reward", "coverage_floor", "--coverage_floor", "0.8", "--coverage_floor_rate", "20",
           "--output_dir", folder / "resumed", "--resume_from_checkpoint", "latest"]  # fmt: skip
    _finish([sys.executable, ROOT / "train/grpo.py", ROOT / "configs/smoke.yaml", *words, *run])
    return folder


def _finish(command, **environ):
    environ = {**os.environ, "OMP_NUM_THREADS": "1", **environ}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr


def completions(run, step):
    """The columns and advantages of all ranks' completions of a step."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(run / "completions" / f"completions_{step:05d}.parquet").to_pydict()
    return np.array([table[part] for part in PARTS], dtype=np.float64).T, np.array(table["advantage"])


@pytest.mark.parametrize("kind", SCHEMES)
def test_the_advantages_and_the_signal_are_those_of_the_scheme(runs, kind):
    rows = {row["step"]: row for row in training(runs / kind)}
    assert list(rows) == [1, 2, 3]
    num_learned = 0
    for step, row in rows.items():
        columns, advantages = completions(runs / kind, step)
        weights = np.add(SCHEMES[kind].weights, (0, row.get("coverage_floor/weight", 0), 0))
        assert row["reward"] == pytest.approx((columns @ weights).mean(), abs=1e-4)
        parts = advantage_parts(columns, weights, NUM_GENERATIONS, SCHEMES[kind].aggregation, "group")
        ours = parts.sum(axis=-1).ravel()
        if kind == "decoupled":  # which TRL scales by the whole batch
            ours /= ours.std(ddof=1) + 1e-4
        assert advantages == pytest.approx(ours, abs=2e-3)
        for name, value in signal(parts).items():
            assert row[name] is None if np.isnan(value) else row[name] == pytest.approx(value, abs=1e-4)
        num_learned += bool(np.abs(advantages).max())
    assert num_learned


def test_the_floor_is_that_of_all_ranks_together(runs):
    floor = CoverageFloor(0.8, rate=20.0, max_weight=20.0)
    for row in training(runs / "coverage_floor"):
        floor.update(mean_coverage(completions(runs / "coverage_floor", row["step"])[0]))
        for name, value in floor.state().items():
            assert row[f"coverage_floor/{name}"] == pytest.approx(value, abs=1e-6)
    assert floor.weight > 0
    saved = json.loads((runs / "coverage_floor/checkpoint-3/coverage_floor.json").read_text())
    assert saved == pytest.approx(floor.state(), abs=1e-6)


def test_a_resumed_run_goes_on_with_the_floor_of_its_checkpoint(runs):
    floor = CoverageFloor(0.8, rate=20.0, max_weight=20.0)
    floor.restore(json.loads((runs / "resumed/checkpoint-1/coverage_floor.json").read_text()))
    rows = {row["step"]: row for row in training(runs / "resumed")}
    assert list(rows) == [1, 2, 3]
    for step in (2, 3):
        floor.update(mean_coverage(completions(runs / "resumed", step)[0]))
        assert rows[step]["coverage_floor/weight"] == pytest.approx(floor.weight, abs=1e-5)
        assert rows[step]["coverage_floor/floor"] == pytest.approx(rows[1]["coverage_floor/floor"])
    assert not list((runs / "legit").glob("*/coverage_floor.json"))
