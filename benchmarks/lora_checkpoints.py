"""What one engine saves on many LoRA checkpoints: `python benchmarks/lora_checkpoints.py outputs/demo/base`."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from data.command import positive
from data.mini import generate

ROOT = Path(__file__).parents[1]
RANK = 8
CONFIG = """\
model_name_or_path: {base}
eval_cases: {cases}
prompt_style: bare
max_completion_length: 64
judge: mini
dtype: float32
use_peft: true
lora_r: {rank}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Makes LoRA checkpoints of a small base with random weights, evaluates them by one call of "
        "eval/checkpoints.py and one by one by eval/solve.py, each with an engine of its own, and prints the seconds "
        "of both and how many responses are the same. Asked for: all of them in one engine in less than twice what "
        "one costs alone, times their number, less the starts that are saved.",
        epilog="example: python benchmarks/lora_checkpoints.py outputs/demo/base --num-checkpoints 8 --num-cases 50",
    )
    parser.add_argument("base", type=Path, help="model directory, such as make demo leaves in outputs/demo/base")
    parser.add_argument("--num-checkpoints", type=positive, default=8)
    parser.add_argument("--num-cases", type=positive, default=50)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        adapters = write_run(run_dir, args.base.absolute(), args.num_checkpoints, args.num_cases)
        once, together = seconds_of(
            run_dir / "eval", "eval/checkpoints.py", run_dir, "--sampling", "greedy", "--no-report"
        )
        alone, num_equal = [], 0
        for adapter in adapters:
            out = run_dir / "alone" / adapter.name / "responses.jsonl"
            how = ("--cases", run_dir / "cases.jsonl", "--prompt-style", "bare", "--max-tokens", "64", "--out", out)
            alone.append(seconds_of(out.parent, "eval/solve.py", "--model", adapter, *how))
            num_equal += same(out, run_dir / "eval" / adapter.name / "greedy" / "responses.jsonl")

    starts, answers = sum(start for start, _ in alone), sum(answer for _, answer in alone)
    table = Table(title=f"{args.num_checkpoints} LoRA checkpoints, {args.num_cases} mini cases each, greedy")
    for column in ("", "engines", "start s", "answers s", "all s"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("one engine, the base too", "1", *figures(once, together))
    table.add_row("each alone, mean", "1", *figures(starts / len(alone), answers / len(alone)))
    table.add_row(f"each alone, all {len(alone)}", str(len(alone)), *figures(starts, answers))
    Console().print(table)
    expected = starts / len(alone) + answers
    print(f"alone {len(alone)} times without the {len(alone) - 1} extra starts: {expected:.1f} s; "
          f"one engine: {(once + together) / expected:.2f} times that (asked for: below 2)")  # fmt: skip
    print(f"same responses: {num_equal} of {len(alone) * args.num_cases}")


def write_run(run_dir: Path, base: Path, num_checkpoints: int, num_cases: int) -> list[Path]:
    """A run's folder with its cases and whole checkpoints; returns these."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in generate(0, "test", num_cases)]
    (run_dir / "cases.jsonl").write_text("".join(lines), encoding="utf-8")
    config = CONFIG.format(base=base, cases=run_dir / "cases.jsonl", rank=RANK)
    (run_dir / "config.yaml").write_text(config, encoding="utf-8")
    adapters = []
    for step in range(1, num_checkpoints + 1):
        torch.manual_seed(step)
        model = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
        lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")
        adapted = get_peft_model(model, lora)
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.02)
        adapters.append(run_dir / f"checkpoint-{step}")
        adapted.save_pretrained(adapters[-1])
        (adapters[-1] / "trainer_state.json").write_text("{}")
    return adapters


def seconds_of(out: Path, script: str, *arguments: str | Path) -> tuple[float, float]:
    """Seconds until a command's first response is written somewhere in `out`, and from then to its end."""
    begin, first = time.perf_counter(), 0.0
    process = subprocess.Popen(
        [sys.executable, str(ROOT / script), *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while process.poll() is None:
        if not first and any(path.stat().st_size for path in out.rglob("responses.jsonl")):
            first = time.perf_counter() - begin
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"{script} failed:\n{process.stderr.read().decode() if process.stderr else ''}")
    return first, time.perf_counter() - begin - first


def same(one: Path, other: Path) -> int:
    """How many cases have the same response in both files."""
    texts = [
        {record["doc_id"]: record["response"] for record in map(json.loads, path.read_text("utf-8").splitlines())}
        for path in (one, other)
    ]
    return sum(texts[0][id] == texts[1][id] for id in texts[0])


def figures(start: float, answers: float) -> tuple[str, str, str]:
    """The three cells of a row."""
    return f"{start:.1f}", f"{answers:.1f}", f"{start + answers:.1f}"


if __name__ == "__main__":
    main()
