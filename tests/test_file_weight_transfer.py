"""Server mode without a GPU: a real vLLM server gets its weights by file."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from data.environment import ON_CPU
from tests.training_runs import Workshop

pytestmark = pytest.mark.slow


@contextmanager
def policy_server(model, log):
    """The base URL of a vLLM server of that model, ready to be trained."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--host", "127.0.0.1",
        "--port", str(port), "--max-model-len", "512", "--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1",
        "--weight-transfer-config", '{"backend": "file"}',
    ]  # fmt: skip
    environ = {**os.environ, **ON_CPU, "VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environ) as server:
        try:
            deadline = time.monotonic() + 600
            while not is_up(f"http://127.0.0.1:{port}/health"):
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(timeout=60)
            except subprocess.TimeoutExpired:
                server.kill()  # one that is told to end while it starts may wait for ever


def is_up(url):
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310  (our own server)
            return True
    except OSError:
        return False


def test_a_server_on_a_cpu_is_trained_and_stays_the_trainers_policy(tmp_path):
    workshop = Workshop.build(tmp_path)
    lora = ("--use_peft", "true", "--lora_dropout", "0", "--lora_target_modules", "[all-linear]")
    with policy_server(workshop.folder / "base", tmp_path / "server.log") as url:
        run = workshop.run(
            "run", *lora, "--learning_rate", "0.01", "--vllm_mode", "server", "--vllm_server_base_url", url
        )
    assert run.returncode == 0, run.err
    assert [step for step, _ in run.parity()] == [0, 2]
    assert max(gap for _, gap in run.parity()) < 1e-4
    assert max(row["sampling/sampling_logp_difference/max"] for row in run.metrics().values()) < 1e-4
