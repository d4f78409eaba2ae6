"""eval/errors.py as it is called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from simulated_run import write_simulated_run

from eval.errors import main

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_simulated_run(tmp_path_factory.mktemp("run"), num_cases=12, num_checkpoints=2)


def test_errors_shows_its_tables_and_draws_the_heat_map(run, tmp_path):
    figures, picture, latex = tmp_path / "e.json", tmp_path / "new" / "e.svg", tmp_path / "e.tex"
    command = [sys.executable, "eval/errors.py", str(run), "--json", str(figures), "--picture", str(picture)]
    done = subprocess.run([*command, "--latex", str(latex)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for title in ("What became of the issues", "given those below it: checkpoint-40", "Where a wrong order begins"):
        assert title in done.stdout
    shares = json.loads(figures.read_text(encoding="utf-8"))
    kinds = ("right", "deduction error", "decomposition error", "unjudged")
    for name in ("base", "checkpoint-20", "checkpoint-40"):
        assert sum(shares[f"{name}/outcome/{kind}"] for kind in kinds) == pytest.approx(1)
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    assert latex.read_text(encoding="utf-8").count(r"\begin{table}") == 3


def test_wrong_input_ends_with_a_message(tmp_path):
    done = subprocess.run([sys.executable, "eval/errors.py", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no grades there" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--picture", "x.gifx"], "--picture: must be a file that ends in .png or .svg or .pdf, got 'x.gifx'"),
        (["--picture", "."], "--picture: must be a file, and . is a folder"),
        (["--latex", f"{__file__}/t.tex"], f"--latex: {__file__}/t.tex would lie in {__file__}, which is a file"),
        (["--json", ""], "--json: names no path"),
    ],
)
def test_a_path_that_cannot_be_written_is_told_before_any_work(capsys, options, problem):
    with pytest.raises(SystemExit) as leaving:
        main(["no-such-run", *options])
    assert leaving.value.code == 2
    assert problem in capsys.readouterr().err


def test_grades_of_a_case_that_has_changed_since_are_refused(tmp_path, capsys):
    run = write_simulated_run(tmp_path, num_cases=3, num_checkpoints=0)
    cases = (run / "simulated_test.jsonl").read_text(encoding="utf-8")
    changed = tmp_path / "changed.jsonl"
    changed.write_text(cases.replace("인정한다.", "인정하지 않는다.", 1), encoding="utf-8")
    assert main([str(run), "--cases", str(changed)]) == 2
    assert "1 cases that have changed since" in capsys.readouterr().err
    (run / "eval" / "base" / "greedy" / "grades.cases.json").unlink()  # as files of before have none
    assert main([str(run), "--cases", str(changed)]) == 0
