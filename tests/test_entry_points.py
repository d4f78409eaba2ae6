"""What a user meets first: every command tells what it does, at once and without loading an engine."""

import importlib
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
    "data/retrieve.py",
    "eval/agreement.py",
    "eval/annotate.py",
    "eval/checkpoints.py",
    "eval/compare.py",
    "eval/errors.py",
    "eval/four_way.py",
    "eval/grade.py",
    "eval/report.py",
    "eval/solve.py",
    "train/grpo.py",
    "train/warm_start.py",
]
HEAVY = {"torch", "vllm", "trl", "transformers", "datasets", "wandb"}
# One process for both questions to a command: starting one takes most of the time.
TRY = """
import runpy, sys
command = sys.argv[1]

def status(*options):
    sys.argv = [command, *options]
    try:
        runpy.run_path(command, run_name="__main__")
    except SystemExit as leaving:
        return leaving.code or 0

assert status("--help") == 0
heavy = sorted({name.partition(".")[0] for name in sys.modules} & set(%r))
assert not heavy, f"--help loaded {heavy}"
assert status("--no_such_option", "1") == 2, "a wrong option must end with status 2"
"""

OUTPUTS = [  # of every command that writes where it is told to
    ("data.build", "--out"), ("data.build", "--json"), ("data.mini", "--out"), ("data.prepare", "--out"),
    ("data.prepare", "--json"), ("data.retrieve", "index --out"), ("data.retrieve", "search --out"),
    ("data.retrieve", "evaluate --json"), ("data.view", "--html"), ("eval.agreement", "--out"),
    ("eval.agreement", "--json"), ("eval.agreement", "--cards"), ("eval.annotate", "export --out"),
    ("eval.annotate", "import --out"), ("eval.checkpoints", "--out"), ("eval.checkpoints", "--json"),
    ("eval.compare", "--json"), ("eval.compare", "--latex"), ("eval.errors", "--json"), ("eval.errors", "--latex"),
    ("eval.errors", "--picture"), ("eval.four_way", "--json"), ("eval.four_way", "--latex"), ("eval.grade", "--out"),
    ("eval.grade", "--json"), ("eval.report", "--out"), ("eval.report", "--json"), ("eval.report", "--latex"),
    ("eval.report", "--pictures"), ("eval.solve", "--out"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "option"), OUTPUTS)
def test_where_nothing_can_be_written_is_told_at_once(module, option, capsys):
    with pytest.raises(SystemExit) as leaving:
        importlib.import_module(module).main([*option.split(), f"{__file__}/new/x.png"])
    assert leaving.value.code == 2
    told = capsys.readouterr().err
    assert f"{option.split()[-1]}: {__file__}/new/x.png would lie in {__file__}, which is a file" in told


NUMBERS = [  # that make no sense
    ("data.build", "--max-retries -1"), ("data.build", "--max-tokens 0"), ("data.build", "--temperature nan"),
    ("data.prepare", "--test-sizes 1 1 -1"), ("data.prepare", "--valid-frac 1.5"), ("data.view", "--limit -1"),
    ("data.view", "--limit 0"), ("eval.agreement", "--resamples 0"), ("eval.agreement", "--seed -1"),
    ("eval.solve", "--max-retries -1"), ("benchmarks.build_scale", "--workers 0"),
    ("benchmarks.client_overhead", "--verdicts 0"), ("benchmarks.coverage_study", "--seeds 0"),
    ("benchmarks.eval_scale", "--num_cases -1"), ("benchmarks.fault_bias", "--faults 2"),
    ("benchmarks.judge_agreement", "--num 0"), ("benchmarks.judge_step", "--prompts 0"),
    ("benchmarks.judge_vllm", "--rounds 0"), ("benchmarks.load_cases", "--num_issues 0"),
    ("benchmarks.lora_checkpoints", "--num-cases 0"), ("benchmarks.retrieval_speed", "--queries 0"),
    ("benchmarks.retrieval_study", "--steps 0"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "option"), NUMBERS)
def test_a_number_that_makes_no_sense_is_told_with_what_would(module, option, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [module, *option.split()])
    with pytest.raises(SystemExit) as leaving:
        importlib.import_module(module).main()
    assert leaving.value.code == 2
    told = capsys.readouterr().err
    assert f"{option.split()[0]}: must be a " in told
    assert told.endswith(f"got {option.split()[-1]!r}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_loads_no_engine_and_a_wrong_option_is_told(command):
    done = subprocess.run(
        [sys.executable, "-c", TRY % sorted(HEAVY), str(ROOT / command)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert command in done.stdout, "no example of the command in its help"
    assert done.stderr.strip(), "nothing is said of a wrong option"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["priced_extras", "simulated_noise"])
def test_help_of_a_benchmark_that_is_train_grpo_with_another_judge_shows_its_example(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert f"example: python -m benchmarks.{name}" in done.stdout
