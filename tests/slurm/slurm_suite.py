"""slurm/grpo.slurm on a real Slurm of this machine, with fake GPUs and a slow judge, but real vLLM and real training.

`make test-slurm` runs it; `make test` does not, for it installs Slurm (Debian, as root) where there is none.
"""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training_runs import ROOT, Finished, Workshop

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

LIMIT_S = 900  # for anything at all: the machine may be busy
COMPARED = ("loss", "reward", "grad_norm", "completions/mean_length", "num_tokens")


@dataclass(frozen=True)
class Cluster:
    """A Slurm with a workshop, and jobs in it."""

    workshop: Workshop
    environ: dict[str, str]

    def call(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, env=self.environ, cwd=ROOT).stdout

    def submit(
        self, name: str, *overrides: str, judge: str | None = None, hangs_after: int | None = None, **environ: str
    ) -> "Job":
        """A run of smoke.yaml with a judge server, which may stop answering after a step."""
        folder = self.workshop.folder
        (folder / f"{name}.judge").mkdir()
        if hangs_after is not None:
            (folder / f"{name}.judge" / "hang").write_text(str(hangs_after))
        judge = judge or f"python -m tests.slurm.slow_judge {folder / name}.judge"
        keys = {
            "judge": "endpoint",
            "judge_model": "fake",
            "judge_base_url": "http://the-jobs-own/v1",
            "judge_gpus": "1",
            "judge_store": f"{folder / name}.store",
            "gate_truncated": "false",
            "max_steps": "5",
            "save_steps": "50",
            "report_to": "wandb",
        }
        settings = [text for key, value in keys.items() for text in (f"--{key}", value)]
        _, *run = self.workshop.command(name, *settings, *overrides)
        done = subprocess.run(
            ["sbatch", "--parsable", f"--output={folder / name}.log", "slurm/grpo.slurm", *run],
            capture_output=True, text=True, check=True, cwd=ROOT,
            env=self.environ | {"JUDGE_SERVER": judge, "SBATCH_GPUS_PER_NODE": "2"} | environ,
        )  # fmt: skip
        return Job(self, int(done.stdout), name)


@dataclass(frozen=True)
class Job:
    """A submitted job."""

    cluster: Cluster
    id: int
    name: str

    @property
    def run(self) -> Finished:
        return Finished(self.cluster.workshop.folder / self.name, 0, "", "")

    @property
    def log(self) -> str:
        path = self.cluster.workshop.folder / f"{self.name}.log"
        return path.read_text() if path.exists() else ""

    def shown(self, what: str) -> str:
        """What Slurm says of the job; asked again where a busy slurmctld gives no answer."""
        for _ in range(20):
            done = subprocess.run(
                ["scontrol", "show", "job", str(self.id)], capture_output=True, text=True, env=self.cluster.environ
            )
            if found := re.search(rf"\b{what}=(\S+)", done.stdout):
                return found[1]
            time.sleep(1)
        raise AssertionError(f"no {what} of job {self.id}: {done.stderr}")

    def wait_for(self, what, told: str) -> float:
        """The seconds until `what()` holds."""
        began = time.monotonic()
        while not what():
            assert time.monotonic() < began + LIMIT_S, f"{told} did not come\n{self.log}"
            time.sleep(0.2)
        return time.monotonic() - began

    def is_over(self) -> bool:
        return self.shown("JobState") in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

    def end(self) -> str:
        """The state that the job ends in."""
        self.wait_for(self.is_over, "the end")
        return self.shown("JobState")

    def wait_for_the_hang(self) -> None:
        """Until training waits for a judge that does not answer."""
        path = self.cluster.workshop.folder / f"{self.name}.judge" / "requests"
        self.wait_for(lambda: self.is_over() or (path.exists() and "hangs" in path.read_text()), "a call that hangs")
        assert not self.is_over(), self.log

    def processes(self) -> dict[int, str]:
        """Process id -> command line of all that the job has running."""
        listed = subprocess.run(["scontrol", "listpids", str(self.id)], capture_output=True, text=True,
                                env=self.cluster.environ).stdout.split("\n")[1:]  # fmt: skip
        pids = [line.split()[0] for line in listed if line.split()]
        paths = [Path(f"/proc/{pid}/cmdline") for pid in pids if pid.isdigit()]
        return {
            int(path.parent.name): path.read_bytes().replace(b"\0", b" ").decode() for path in paths if path.exists()
        }


SERVER = ("--vllm_mode", "server", "--policy_gpus", "1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder, setup = tmp_path_factory.mktemp("slurm"), str(ROOT / "tests/slurm/setup.sh")
    environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "VENV": sys.prefix, "HF_HUB_OFFLINE": "1",
               "WANDB_MODE": "offline"}  # fmt: skip
    subprocess.run([setup, "start", str(folder)], check=True)
    workshop = Workshop.build(tmp_path_factory.mktemp("workshop"))
    yield Cluster(workshop, environ)
    subprocess.run(["scancel", "--user=root"], env=environ)
    subprocess.run([setup, "stop", str(folder)], check=True)


def test_a_preempted_job_is_requeued_and_becomes_the_same_run(cluster, capsys):
    whole = cluster.submit("whole", *SERVER, SBATCH_GPUS_PER_NODE="3")
    assert whole.end() == "COMPLETED", whole.log
    job = cluster.submit("preempted", *SERVER, hangs_after=3, SBATCH_GPUS_PER_NODE="3")
    job.wait_for_the_hang()
    cluster.call("scancel", "--signal=TERM", str(job.id))
    saved_s = job.wait_for(lambda: list(job.run.directory.glob("checkpoint-*")), "a checkpoint")
    requeued_s = job.wait_for(lambda: job.shown("JobState") == "PENDING", "the requeue")
    (checkpoint,) = job.run.directory.glob("checkpoint-*")
    run_id = (job.run.directory / "wandb_run_id").read_text()
    answered = (cluster.workshop.folder / "preempted.judge" / "requests").read_text().count("answered")
    (cluster.workshop.folder / "preempted.judge" / "hang").unlink()
    cluster.call("scontrol", "update", f"JobId={job.id}", "StartTime=now")  # Slurm would wait two minutes
    assert job.end() == "COMPLETED", job.log
    assert job.shown("Restarts") == "1"
    assert "told to end, state RUNNING; all that was learnt is in" in job.log

    resumed, uninterrupted = job.run.metrics(), whole.run.metrics()
    assert list(resumed) == list(uninterrupted) == [1, 2, 3, 4, 5]
    gaps = {name: max(abs(resumed[step][name] - uninterrupted[step][name]) for step in resumed) for name in COMPARED}
    assert max(gaps.values()) < 1e-5, gaps
    assert max(gap for _, gap in job.run.parity()) < 1e-4
    assert (job.run.directory / "wandb_run_id").read_text() == run_id
    assert len(list((job.run.directory / "wandb").glob(f"offline-run-*-{run_id.strip()}"))) == 2
    assert not job.processes()
    with capsys.disabled():
        print(f"\nSIGTERM in a judge wait: {checkpoint.name} after {saved_s:.1f} s, pending {requeued_s:.1f} s later; "
              f"{answered} verdicts before it; greatest gaps to the uninterrupted run {gaps}")  # fmt: skip


def test_a_judge_server_that_dies_ends_the_job_with_its_log_and_what_was_learnt(cluster):
    job = cluster.submit("killed", hangs_after=2)
    job.wait_for_the_hang()
    (judge,) = [
        pid for pid, command in job.processes().items() if command.startswith("python -m tests.slurm.slow_judge")
    ]
    os.kill(judge, signal.SIGKILL)
    assert job.end() == "FAILED"
    log = job.run.directory / "slurm" / f"{job.id}-0" / "judge-0.log"
    assert f"judge-0 ended (status 137) before training did: {log}" in job.log
    assert "training saves its last step and ends" in job.log
    assert list(job.run.directory.glob("checkpoint-*"))
    assert not job.processes()


def test_a_cancelled_job_saves_and_stays_cancelled(cluster):
    job = cluster.submit("cancelled", hangs_after=2)
    job.wait_for_the_hang()
    cluster.call("scancel", str(job.id))
    assert job.end() == "CANCELLED"
    job.wait_for(lambda: not job.processes(), "an empty node")
    assert list(job.run.directory.glob("checkpoint-*"))
    assert job.shown("Restarts") == "0"


@pytest.mark.parametrize(
    ("name", "judge", "message"),
    [
        ("fails", "bash tests/slurm/no_such_server.sh", "judge-0 ended while it started (status 127)"),
        ("sleeps", "python -c __import__('time').sleep(600)", "judge-0 gave no answer within 3 s"),
    ],
)
def test_a_server_that_does_not_come_up_ends_the_job_with_its_last_words(cluster, name, judge, message):
    job = cluster.submit(name, judge=judge, START_LIMIT="3")
    assert job.end() == "FAILED"
    assert message in job.log
    assert "judge-0.log ends with" in job.log
    assert not (job.run.directory / "metrics.jsonl").exists()


def test_a_plan_that_cannot_work_ends_the_job_at_once(cluster):
    job = cluster.submit("unsound", "--judge_gpus", "2")
    assert job.end() == "FAILED"
    assert "1 x 2 GPUs leave none to train on" in job.log
