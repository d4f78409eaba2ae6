"""Seconds and peak memory of every script that reads grades: `python benchmarks/eval_scale.py`."""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from data.cases import Case, Claim, Issue
from data.command import positive
from data.jsonl import Appender
from data.loading import load_cases, to_record
from eval.results import Grade, Response
from rewards.score import Judgment, score_case

ROOT = Path(__file__).parents[1]
CONFIG = "model_name_or_path: synthetic\neval_cases: {cases}\nprompt_style: court\nmax_completion_length: 4096\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Writes synthetic grades as large as those of the official test set, runs errors.py, compare.py "
        "and report.py on them, and prints what each took. Asked for: 300 cases x 6 checkpoints, each script in under "
        "30 s and 1 GB, the page under 15 MB.",
        epilog="example: python benchmarks/eval_scale.py --num_cases 300 --num_checkpoints 6",
    )
    parser.add_argument("--num_cases", type=positive, default=300)
    parser.add_argument("--num_checkpoints", type=positive, default=6)
    parser.add_argument("--num_letters", type=positive, default=4_000, help="of a response; real ones: 1,400 to 8,400")
    parser.add_argument("--keep", type=Path, help="folder to write into and keep (default: a temporary one)")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        run_dir = args.keep or Path(folder)
        write_run(run_dir, args.num_cases, args.num_checkpoints, args.num_letters)
        megabytes = sum(path.stat().st_size for path in run_dir.glob("eval/*/*/grades.jsonl")) / 1e6
        table = Table(title=f"{args.num_cases} x {args.num_checkpoints} responses, {megabytes:.0f} MB of grades")
        for column in ("command", "seconds", "of CPU", "peak MB"):
            table.add_column(column, justify="left" if column == "command" else "right")
        for command in (["errors.py", "--picture", f"{run_dir}/heat_map.png"], ["compare.py"], ["report.py"]):
            script = [sys.executable, str(ROOT / "eval" / command[0]), str(run_dir), *command[1:]]
            table.add_row(f"eval/{command[0]}", *measure(script))
        Console().print(table)
        print(f"report.html: {(run_dir / 'eval' / 'report.html').stat().st_size / 1e6:.1f} MB")


def measure(command: list[str]) -> tuple[str, str, str]:
    """Seconds, seconds of CPU and peak megabytes of a command that must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[1]} failed")
    seconds = time.perf_counter() - start
    return f"{seconds:.1f}", f"{usage.ru_utime + usage.ru_stime:.1f}", f"{usage.ru_maxrss * 1024 / 1e6:.0f}"


def write_run(run_dir: Path, num_cases: int, num_checkpoints: int, num_letters: int) -> None:
    """A run's folder with its cases and the grades of its base and its checkpoints."""
    rng = random.Random(0)
    words = sorted({word for case in _samples() for issue in case.issues for word in "\n".join(issue.analysis).split()})
    run_dir.mkdir(parents=True, exist_ok=True)
    cases = [_case(rng, words, number) for number in range(num_cases)]
    with Appender(run_dir / "cases.jsonl") as file:
        for case in cases:
            file.append(to_record(case))
    (run_dir / "config.yaml").write_text(CONFIG.format(cases=run_dir / "cases.jsonl"), encoding="utf-8")
    for number in range(num_checkpoints):
        name = f"checkpoint-{10 * number}" if number else "base"
        with Appender(run_dir / "eval" / name / "greedy" / "grades.jsonl") as file:
            for case in cases:
                text = _prose(rng, words, int(rng.uniform(0.4, 1.6) * num_letters))
                response = Response(case.id, text, name, rng.choice(("stop", "stop", "stop", "length")))
                judgments = {issue.id: _judgment(rng, words, number) for issue in case.issues}
                file.append(Grade(response, "synthetic", judgments, score_case(case, judgments)).to_record())


def _samples() -> list[Case]:
    return [case for name in ("easy", "medium", "hard") for case in load_cases(ROOT / f"data/samples/{name}.jsonl")]


def _case(rng: random.Random, words: list[str], number: int) -> Case:
    difficulty, num_issues = rng.choice((("easy", 3), ("medium", 7), ("hard", 14)))
    ids = [""]
    while len(ids) <= num_issues:
        parent = rng.choice([id for id in ids if id.count(".") < 2])
        children = [id for id in ids[1:] if id.rpartition(".")[0] == parent]
        ids.append(f"{parent}.{len(children) + 1}".lstrip("."))
    issues = tuple(
        Issue(id, _prose(rng, words, 40), (Claim("원고", _prose(rng, words, 120)),), _prose(rng, words, 100))
        for id in ids
    )
    return Case(f"합성지방법원-2024가합{number}", _prose(rng, words, 2500), issues, difficulty)


def _judgment(rng: random.Random, words: list[str], number: int) -> Judgment | None:
    if rng.random() < 0.002:
        return None
    covered = rng.random() < 0.7 - 0.02 * number
    return Judgment(covered, covered and rng.random() < 0.4 + 0.05 * number, _prose(rng, words, 150))


def _prose(rng: random.Random, words: list[str], num_letters: int) -> str:
    """Words in no order: they pack worse than sentences do, so the page's size is not flattered."""
    return " ".join(rng.choices(words, k=max(1, num_letters // 4)))


if __name__ == "__main__":
    main()
