"""What a user meets first: every command tells what it does, at once and without loading an engine."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = [
    "data/view.py",
    "data/prepare.py",
    "data/build.py",
    "data/mini.py",
    "eval/agreement.py",
    "eval/annotate.py",
    "eval/checkpoints.py",
    "eval/compare.py",
    "eval/errors.py",
    "eval/grade.py",
    "eval/report.py",
    "eval/solve.py",
    "train/grpo.py",
    "train/warm_start.py",
]
HEAVY = {"torch", "vllm", "trl", "transformers", "datasets", "wandb"}
HELP = """
import runpy, sys
sys.argv = [sys.argv[1], "--help"]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as leaving:
    assert not leaving.code, leaving.code
heavy = sorted({name.partition(".")[0] for name in sys.modules} & set(%r))
assert not heavy, f"--help loaded {heavy}"
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_loads_no_engine(command):
    done = subprocess.run(
        [sys.executable, "-c", HELP % sorted(HEAVY), str(ROOT / command)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert command in done.stdout, "no example of the command in its help"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_option_ends_with_a_message_and_no_traceback(command):
    done = subprocess.run([sys.executable, command, "--no_such_option", "1"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
