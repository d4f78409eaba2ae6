"""Evaluations in W&B and trackio: logged by the real libraries, read back from the files that they left."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from simulated_run import write_simulated_run

from data.command import InputError
from eval.compare import main
from eval.graded import read_inputs
from eval.metrics import PARTS
from eval.summary import summarize_grades
from eval.tracking import VERDICT_COLUMNS, Evaluated, case_set_id, log_checkpoints, tracked_figures, verdict_rows
from eval.wandb_history import History, compare_histories, history_sheet, read_history

ROOT = Path(__file__).parents[1]


def evaluated(run_dir) -> tuple[list[Evaluated], dict]:
    inputs = read_inputs([str(run_dir)], None)
    found = [
        Evaluated("greedy", graded.name, graded.step, summarize_grades(graded.grades, inputs.cases), graded.grades)
        for graded in inputs.sets
    ]
    return found, dict(inputs.cases)


def make_run(path, tracker, seed=0, num_cases=6):
    run_dir = write_simulated_run(path, num_cases=num_cases, num_checkpoints=2, seed=seed)
    config = run_dir / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("report_to: none", f"report_to: {tracker}"))
    (run_dir / "wandb_run_id").write_text(f"id{path.name}\n")
    return run_dir


def test_names_and_rows_are_those_that_a_reader_looks_for(tmp_path):
    (base, *_), cases = evaluated(write_simulated_run(tmp_path, num_cases=3, num_checkpoints=1))
    figures = tracked_figures(base)
    assert figures["eval/step"] == 0
    assert figures["eval/greedy/score"] == base.figures["mean/score"]
    assert figures["eval/greedy/score/low"] == base.figures["mean/score/low"]
    assert "eval/greedy/unscored_frac" in figures
    assert not any(value is None for value in figures.values())
    rows = verdict_rows(base.grades, cases)
    assert len(rows) == sum(len(case.issues) for case in cases.values())
    assert all(len(row) == len(VERDICT_COLUMNS) for row in rows)
    assert case_set_id(["b", "a"]) == case_set_id(["a", "b"]) != case_set_id(["a"])


def test_runs_without_evaluations_are_compared_by_what_they_were_trained_on():
    def history(name, *scores):
        parts = ("total", "order", "coverage", "correctness")
        rows = [
            {"train/global_step": step, **{f"train/score/{part}": score for part in parts}}
            for step, score in enumerate(scores)
        ]
        return History(name, tuple(rows), None)

    first, second = history("first", *range(40)), history("second", *(2 * step for step in range(30)))
    figures = compare_histories(first, second)
    assert figures["training/step/29/diff/score"] == 29
    assert "training/step/29/diff/score/low" not in figures  # training logs no intervals
    rows = history_sheet(first, second).rows
    assert len(rows) <= 12
    assert rows[-1] == ("training, step 29", "+29.00", "+29.00", "+29.00", "+29.00")
    with pytest.raises(InputError, match="no figures at a common step"):
        compare_histories(first, History("empty", (), None))


def test_the_difference_of_independent_means_adds_their_distances_by_squares():
    rows = [
        {"eval/step": 5, **{f"eval/t1/{part}{end}": value for part in PARTS for end, value in ends.items()}}
        for ends in ({"": 1.0, "/low": 0.7, "/high": 1.4}, {"": 3.0, "/low": 2.7, "/high": 3.3})
    ]
    first, second = (History(name, (row,), {"judge": "j"}) for name, row in zip("ab", rows, strict=True))
    figures = compare_histories(first, second)
    assert figures["t1/step/5/diff/order"] == 2
    assert figures["t1/step/5/diff/order/low"] == pytest.approx(2 - 0.5)  # 0.3 and 0.4 across
    assert figures["t1/step/5/diff/order/high"] == pytest.approx(2 + (0.09 + 0.09) ** 0.5)


@pytest.mark.parametrize("spec", ["outputs/nowhere", "nowhere", "/no/such/folder", "./a/b", "../a/b/c"])
def test_a_folder_that_is_missing_is_told_with_what_may_be_named(spec):
    with pytest.raises(InputError, match=f"^{re.escape(spec)}: no such folder; .*output_dir.*entity/project/run_id"):
        read_history(spec)


def test_without_a_tracker_nothing_is_logged(tmp_path):
    run_dir = write_simulated_run(tmp_path, num_cases=2, num_checkpoints=1)
    assert log_checkpoints(run_dir, *evaluated(run_dir), {"judge": "mini"}) == []


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """Logs runs with the real wandb, each call in a process of its own, as eval/checkpoints.py is one."""
    folder = tmp_path_factory.mktemp("wandb")

    def log(run_dir, judge="mini"):
        code = (
            "import sys; sys.path.insert(0, 'tests')\n"
            "from test_tracking import evaluated, log_checkpoints\n"
            f"print(log_checkpoints({str(run_dir)!r}, *evaluated({str(run_dir)!r}), {{'judge': {judge!r}}}))"
        )
        environ = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
        environ |= {"HOME": str(folder), "WANDB_SILENT": "true", "TRACKIO_DIR": str(folder / "trackio")}
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().splitlines()[-1]

    one = make_run(folder / "one", "wandb")
    two = make_run(folder / "two", "wandb", seed=0)
    other = make_run(folder / "other", "wandb", seed=5)
    return log, one, two, other


@pytest.mark.slow
def test_wandb_gets_each_checkpoint_once_on_its_own_step_axis(offline):
    log, run_dir, *_ = offline
    assert log(run_dir) == "['greedy/base', 'greedy/checkpoint-20', 'greedy/checkpoint-40']"
    assert log(run_dir) == "[]"
    history = read_history(str(run_dir))
    points = history.evaluated("greedy")["score"]
    checkpoints, _ = evaluated(run_dir)
    assert {step: point.centre for step, point in points.items()} == pytest.approx(
        {checkpoint.step: checkpoint.figures["mean/score"] for checkpoint in checkpoints}
    )
    assert points[40].low == pytest.approx(checkpoints[-1].figures["mean/score/low"])
    assert history.evaluation["num_cases"] == 6
    assert history.evaluation["judge"] == {"judge": "mini"}
    (content,) = [file.read_bytes() for file in run_dir.glob("wandb/offline-run-*/run-idone.wandb")]
    assert b"eval/*" in content  # the axis is defined for them all
    tables = sorted(run_dir.glob("wandb/offline-run-*/files/media/table/eval/verdicts/greedy/*.table.json"))
    assert [table.name.split("_")[0] for table in tables] == ["base", "checkpoint-20", "checkpoint-40"]
    table = json.loads(tables[0].read_text(encoding="utf-8"))
    assert table["columns"] == list(VERDICT_COLUMNS)
    assert any("판결과" in str(row) for row in table["data"])


@pytest.mark.slow
def test_runs_are_compared_from_their_history(offline, tmp_path, capsys):
    log, one, two, other = offline
    for run_dir in (one, two, other):
        log(run_dir)
    path = tmp_path / "c.json"
    assert main([f"wandb:{one}", f"wandb:{two}", "--json", str(path)]) == 0
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert figures["greedy/step/40/diff/score"] == 0  # the same seed
    assert figures["greedy/step/40/diff/score/low"] < 0 < figures["greedy/step/40/diff/score/high"]
    assert "greedy, step 40" in capsys.readouterr().out
    assert main([f"wandb:{one}", f"wandb:{other}"]) == 2
    assert "not evaluated alike" in capsys.readouterr().err


@pytest.mark.slow
def test_a_history_survives_a_run_that_was_killed_and_one_that_went_on(offline, tmp_path):
    log, run_dir, *_ = offline
    log(run_dir)
    (file,) = run_dir.glob("wandb/offline-run-*/run-idone.wandb")
    whole = read_history(str(file.parent))
    for name, size in (("offline-run-20260101_000000-idone", 0.6), ("offline-run-20260102_000000-idone", 1)):
        (tmp_path / name).mkdir()
        content = file.read_bytes()
        (tmp_path / name / file.name).write_bytes(content[: int(size * len(content))])
    both = read_history(str(tmp_path))
    assert len(both.rows) > len(whole.rows)
    assert both.evaluated("greedy") == whole.evaluated("greedy")
    (tmp_path / name / "run-another.wandb").write_bytes(content)
    with pytest.raises(InputError, match="several runs"):
        read_history(str(tmp_path))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "run-empty.wandb").write_bytes(b"something else")
    with pytest.raises(InputError, match="no file of an offline W&B run"):
        read_history(str(tmp_path / "empty"))


@pytest.mark.slow
def test_trackio_gets_the_figures(offline, tmp_path):
    pytest.importorskip("trackio", reason="trackio is not installed (extra dev)")
    log, *_ = offline
    run_dir = make_run(tmp_path / "trackio-run", "trackio")
    assert log(run_dir) == "['greedy/base', 'greedy/checkpoint-20', 'greedy/checkpoint-40']"
    databases = list(Path(offline[1].parent, "trackio").glob("*.db"))
    assert [path.stem for path in databases] == ["legit-rl"]
    with sqlite3.connect(databases[0]) as database:
        rows = [json.loads(metrics) for (metrics,) in database.execute("select metrics from metrics order by id")]
    assert [row["eval/step"] for row in rows] == [0, 20, 40]
    assert rows[0]["eval/greedy/coverage"] == evaluated(run_dir)[0][0].figures["mean/coverage"]


@pytest.mark.slow
def test_records_are_read_across_the_ends_of_blocks(tmp_path):
    from wandb.proto.wandb_internal_pb2 import Record

    def row(step, padding):
        record = Record()
        for name, value in (("eval/step", step), ("filler", "x" * padding)):
            item = record.history.item.add()
            item.nested_key.append(name)
            item.value_json = json.dumps(value)
        return record.SerializeToString()

    block = 32 * 1024
    content = b":W&B\xe1\xbe\x00"
    empty = (
        len(content) + 7 + len(row(0, 1000)) - 1000
    )  # the first record leaves 3 bytes of the block: no room for a header
    for step, data in enumerate((row(0, block - 3 - empty - 4), row(1, 10), row(2, 2 * block), row(3, 5))):
        place = 0
        while place < len(data):
            left = block - len(content) % block
            if left < 7:
                content += b"\0" * left
                continue
            piece = data[place : place + left - 7]
            is_first, is_last = place == 0, place + len(piece) == len(data)
            kind = 1 if is_first and is_last else 2 if is_first else 4 if is_last else 3
            content += b"\0\0\0\0" + len(piece).to_bytes(2, "little") + bytes([kind]) + piece
            place += len(piece)
        if step == 0:
            assert 0 < block - len(content) < 7
    (tmp_path / "run-made.wandb").write_bytes(content)
    assert [row["eval/step"] for row in read_history(str(tmp_path)).rows] == [0, 1, 2, 3]
