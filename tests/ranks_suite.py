"""Two processes learn what one does, however they share the weights: DDP, ZeRO-2, ZeRO-3 and FSDP2 on a CPU, over gloo.

`make test-ranks` runs it; `make test` does not, for it takes minutes. One vLLM server serves all of the runs, one after
the other. DeepSpeed's need deepspeed, which the CPU environment has not: pip install "deepspeed==0.19.*".
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.fake_llm_server import HANGING, FakeLLM, verdict
from tests.test_file_weight_transfer import policy_server
from tests.training_runs import ROOT, Finished, Workshop
from train.checkpoint_dirs import find_checkpoints

pytestmark = [pytest.mark.slow]

needs_deepspeed = pytest.mark.skipif(not importlib.util.find_spec("deepspeed"), reason="deepspeed is not installed")
WAYS = [
    pytest.param("ddp", id="ddp"),
    pytest.param("zero2", id="zero2", marks=needs_deepspeed),
    pytest.param("zero3", id="zero3", marks=needs_deepspeed),
    pytest.param("fsdp2", id="fsdp2"),
]
COMPARED = ("loss", "grad_norm", "reward", "completions/mean_length", "num_tokens")
TOLERANCE = 1e-4  # float32, whose sums run in another order with two ranks
BATCH = {1: ("8", "2"), 2: ("8", "1")}  # per process, and passes: 16 completions with either number of ranks


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    workshop = Workshop.build(tmp_path_factory.mktemp("workshop"))
    with policy_server(workshop.folder / "base", workshop.folder / "server.log") as url:
        yield workshop, ("--vllm_mode", "server", "--vllm_server_base_url", url)


def command(served, name, way, *overrides):
    workshop, server = served
    num_ranks = 1 if way == "single" else 2
    size, passes = BATCH[num_ranks]
    batch = ("--per_device_train_batch_size", size, "--gradient_accumulation_steps", passes)
    launcher = ["-m", "accelerate.commands.launch", "--config_file", str(ROOT / f"configs/accelerate/{way}.yaml"),
                "--num_processes", str(num_ranks), "--mixed_precision", "no", "--main_process_port", "0"]  # fmt: skip
    _, *run = workshop.command(name, *server, *batch, "--max_steps", "3", "--save_steps", "2", *overrides)
    run.insert(0, str(ROOT / "tests/grpo_on_cpus.py"))
    return [sys.executable, *(launcher if num_ranks > 1 else []), *run]


def start(served, name, way, *overrides):
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PET_SIGNALS_TO_HANDLE": "SIGINT"}
    if way in ("ddp", "fsdp2"):
        environ["ACCELERATE_USE_CPU"] = "true"  # DeepSpeed it would switch off
    return subprocess.Popen(
        command(served, name, way, *overrides), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=served[0].folder, env=environ, start_new_session=True,
    )  # fmt: skip


def run(served, name, way, *overrides):
    with start(served, name, way, *overrides) as process:
        out, _ = process.communicate(timeout=600)
    return Finished(served[0].folder / name, process.returncode, out, "")


@pytest.fixture(scope="module")
def alone(served):
    return run(served, "alone", "single")


@pytest.mark.parametrize("way", WAYS)
def test_two_ranks_learn_what_one_does_and_go_on_from_a_checkpoint(served, alone, way, capsys):
    assert alone.returncode == 0, alone.out
    both = run(served, way, way)
    assert both.returncode == 0, both.out
    one, two = alone.metrics(), both.metrics()
    assert one[1].keys() == two[1].keys()
    gaps = {name: max(abs(one[step][name] - two[step][name]) for step in one) for name in COMPARED}
    with capsys.disabled():
        print(f"\n{way}: greatest gaps to one rank {gaps}")
    assert max(gaps.values()) < TOLERANCE
    assert max(gap for _, gap in both.parity()) < 1e-4

    resumed = served[0].folder / f"{way}-resumed"
    shutil.copytree(both.directory, resumed, ignore=shutil.ignore_patterns("checkpoint-3", "metrics.jsonl", "slurm"))
    assert [path.name for path in find_checkpoints(resumed)] == ["checkpoint-2"]
    again = run(served, resumed.name, way, "--resume_from_checkpoint", "latest")
    assert again.returncode == 0, again.out
    for name in COMPARED:
        assert again.metrics()[3][name] == pytest.approx(two[3][name], abs=TOLERANCE), name


def test_a_judge_that_fails_one_rank_ends_both(served):
    """The ranks are started by hand, so that nobody else could end the one that waits for the other."""
    ranks = []
    with FakeLLM(lambda _: verdict(True, True)) as judge, socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        taken.close()
        for rank, url in enumerate((judge.base_url, "http://127.0.0.1:9/v1")):  # nothing listens at the second
            asks = ("--judge", "endpoint", "--judge_base_url", url, "--judge_model", "fake", "--judge_max_retries", "0",
                    "--judge_preflight", "false", "--gate_truncated", "false")  # fmt: skip
            environ = {**os.environ, "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "true", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": port, "WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}  # fmt: skip
            batch = ("--per_device_train_batch_size", "8", "--gradient_accumulation_steps", "1")
            run = [sys.executable, *served[0].command("one_fails", *served[1], *batch, *asks)]
            ranks.append(subprocess.Popen(run, stderr=subprocess.PIPE, text=True, cwd=served[0].folder, env=environ))
        told = [rank.communicate(timeout=300)[1] for rank in ranks]
    for number, rank in enumerate(ranks):
        assert rank.returncode == 1, told[number]
        assert f"stopped (rank {number}): none of the" in told[number]


def test_a_signal_to_all_processes_saves_on_both_ranks(served):
    hangs = threading.Event()
    with FakeLLM(lambda _: HANGING if hangs.is_set() else verdict(True, True)) as server:
        judge = ("--judge", "endpoint", "--judge_base_url", server.base_url, "--judge_model", "fake",
                 "--judge_preflight", "false", "--gate_truncated", "false", "--save_steps", "50")  # fmt: skip
        path = served[0].folder / "signalled"
        with start(served, "signalled", "ddp", *judge) as process:
            while not (path / "metrics.jsonl").exists():
                assert process.poll() is None, process.stdout.read()
                time.sleep(0.05)
            hangs.set()
            seen = len(server.requests)
            while len(server.requests) == seen:
                time.sleep(0.05)
            for pid in workers_of(process.pid):
                os.kill(pid, signal.SIGTERM)
            out, _ = process.communicate(timeout=120)
    assert [found.name for found in find_checkpoints(path)] in (["checkpoint-1"], ["checkpoint-2"]), out
    assert out.count("all up to here is in") == 2


def workers_of(pid):
    """The ranks that a launcher has started."""
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=True)  # noqa: S607
    return [int(line) for line in listed.stdout.split()]
