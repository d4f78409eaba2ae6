"""An early end: a wait for the judge is cut short, nothing that was learnt is lost, a resumed run is the same run."""

import asyncio
import json
import re
import signal
import threading
import time

import pytest

from rewards.reward import JudgeUnavailable
from tests.fake_llm_server import HANGING, FakeLLM, verdict
from tests.training_runs import Finished, Workshop
from train.stopping import STATUS, Preempted, Stopping


async def stopped_while(work, reason, stopping):
    async def rubric(completions, **_):
        return [await work() for _ in completions]

    guarded = asyncio.ensure_future(stopping.guard(rubric)(completions=["a", "b"]))
    await asyncio.sleep(0.01)
    if reason:
        stopping.ask(reason)
    return await guarded


async def at_once():
    return 7.5


def test_a_rubric_that_nothing_stops_is_left_as_it_is():
    stopping = Stopping()
    assert asyncio.run(stopped_while(at_once, None, stopping)) == [7.5, 7.5]
    stopping.agree(num_ranks=1)
    stopping.look(num_ranks=1)


def test_a_wait_is_cut_short_and_the_end_comes_where_all_ranks_agree():
    stopping = Stopping()
    assert asyncio.run(stopped_while(lambda: asyncio.sleep(3600), Preempted("SIGTERM"), stopping)) == [None, None]
    stopping.look(num_ranks=2)  # another rank may wait in a collective
    for end in (stopping.agree, stopping.look):
        with pytest.raises(Preempted, match="SIGTERM"):
            end(num_ranks=1)


def test_a_judge_that_scores_nothing_ends_the_run_in_the_same_place():
    async def fails():
        raise JudgeUnavailable("gone")

    stopping = Stopping()
    assert asyncio.run(stopped_while(fails, None, stopping)) == [None, None]
    with pytest.raises(JudgeUnavailable, match="gone"):
        stopping.agree(num_ranks=1)


def test_what_is_asked_first_counts():
    stopping = Stopping()
    stopping.ask(Preempted("SIGTERM"))
    stopping.ask(JudgeUnavailable("because its server was ended too"))
    with pytest.raises(Preempted):
        stopping.agree(num_ranks=1)


@pytest.mark.slow
def test_sigterm_in_a_judge_wait_loses_nothing_and_the_resumed_run_is_the_same(tmp_path):
    ended = Finished(tmp_path / "ended", 0, "", "")
    hangs, waited_for = threading.Event(), threading.Event()

    def script(request):  # by the text alone, but for the run's own marks around it
        if hangs.is_set() and (ended.directory / "metrics.jsonl").exists() and max(ended.metrics(), default=0) >= 3:
            waited_for.set()
            return HANGING
        draw = sum(re.sub("[0-9a-f]{8,}", "", request.text).encode()) % 4
        return verdict(draw % 2 == 0, draw < 2)

    workshop = Workshop.build(tmp_path)
    with FakeLLM(script) as server:
        judge = ("--judge", "endpoint", "--judge_base_url", server.base_url, "--judge_model", "fake")
        long = (*judge, "--judge_preflight", "false", "--gate_truncated", "false", "--max_steps", "5",
                "--save_steps", "50", "--report_to", "wandb")  # fmt: skip
        store = ("--judge_store", str(tmp_path / "store"))
        evaluated = ("--eval_cases", str(tmp_path / "eval.jsonl"), "--eval_strategy", "steps", "--eval_steps", "1",
                     "--per_device_eval_batch_size", "4", "--eval_judge", "mini", "--report_to", "none")  # fmt: skip
        uninterrupted = workshop.run("uninterrupted", *long, *evaluated, "--save_steps", "1", "--save_total_limit", "1")
        hangs.set()
        with workshop.start("ended", *long, *store) as process:
            while not waited_for.wait(0.1):
                assert process.poll() is None, process.stderr.read()
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            while not list(ended.directory.glob("checkpoint-*")) and process.poll() is None:
                process.send_signal(signal.SIGTERM)  # again and again, in the middle of the save
                time.sleep(0.02)
            print(f"saved {time.monotonic() - began:.2f} s after the first signal")
            _, err = process.communicate(timeout=60)
            print(f"over {time.monotonic() - began:.2f} s after the first signal")
        assert process.returncode == STATUS, err
        assert "Traceback" not in err
        assert [path.name for path in ended.directory.glob("checkpoint-*")] == ["checkpoint-3"]
        assert "all up to here is in" in err
        run_id = (ended.directory / "wandb_run_id").read_text()
        hangs.clear()
        resumed = workshop.run("ended", *long, *store, "--resume_from_checkpoint", "latest")
    assert resumed.returncode == 0, resumed.err
    assert uninterrupted.returncode == 0, uninterrupted.err
    assert list(resumed.metrics()) == [1, 2, 3, 4, 5]
    for step, row in uninterrupted.metrics().items():
        for name in ("loss", "reward", "grad_norm", "completions/mean_length", "num_tokens"):
            assert resumed.metrics()[step][name] == pytest.approx(row[name], abs=1e-5), (step, name)
    assert (resumed.directory / "wandb_run_id").read_text() == run_id
    assert max(gap for _, gap in resumed.parity()) < 1e-4

    state = json.loads((uninterrupted.directory / "checkpoint-5" / "trainer_state.json").read_text())
    kept = {path.name for path in uninterrupted.directory.glob("checkpoint-*")}
    assert kept == {
        f"checkpoint-{state['best_global_step']}",
        "checkpoint-5",
    }  # the limit is one: the best, and the last
