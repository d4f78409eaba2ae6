"""Training itself: real TRL, real vLLM in the same process, a real kill, on a CPU."""

import json
import time

import pytest
import yaml

from tests.easy_judge import right_on_easy_questions
from tests.fake_llm_server import FakeLLM, verdict
from tests.training_runs import Finished, Workshop

pytestmark = pytest.mark.slow

LORA = ("--use_peft", "true", "--lora_dropout", "0", "--lora_target_modules", "[all-linear]", "--learning_rate", "0.01")
TABLE = ("--log_completions", "true", "--num_completions_to_print", "0")
LONG = (*LORA, *TABLE, "--max_steps", "6", "--save_steps", "2", "--save_total_limit", "2", "--report_to", "wandb")
FLOAT32_PARITY = 1e-4


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    return Workshop.build(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def smoke(workshop):
    evaluate = ("--eval_cases", "eval.jsonl", "--eval_strategy", "steps", "--eval_steps", "2")
    batch = ("--per_device_eval_batch_size", "4")
    return workshop.run("smoke", *evaluate, *batch, *TABLE, launcher=("-m", "accelerate.commands.launch"))


@pytest.fixture(scope="module")
def uninterrupted(workshop):
    return workshop.run("uninterrupted", *LONG)


def test_two_steps_leave_checkpoints_metrics_and_a_final_model(smoke):
    assert smoke.returncode == 0, smoke.err
    names = {path.name for path in smoke.directory.iterdir()}
    assert {"checkpoint-1", "checkpoint-2", "config.yaml", "metrics.jsonl", "model.safetensors"} <= names
    assert not {"README.md", ".unfinished"} & names
    assert list(smoke.metrics()) == [1, 2]
    assert {
        "rewards/order/mean",
        "signal/coverage_frac",
        "score/total",
        "gate/empty_frac",
        "judge/unscored_frac",
        "mini/extra_issues",
    } <= smoke.metrics()[1].keys()
    assert yaml.safe_load((smoke.directory / "config.yaml").read_text())["max_steps"] == 2
    assert "step 2  reward" in smoke.err


def test_the_held_out_cases_are_evaluated_in_between(smoke):
    rows = [json.loads(line) for line in (smoke.directory / "metrics.jsonl").read_text().splitlines()]
    assert any("eval_score" in row and row["step"] == 2 for row in rows)


def test_the_table_of_completions_has_the_verdicts(smoke):
    import pyarrow.parquet

    (table, *_) = sorted((smoke.directory / "completions").glob("*.parquet"))
    columns = pyarrow.parquet.read_table(table).to_pydict()
    assert len(columns["completion"]) == 16
    for gate, verdicts in zip(columns["gate"], columns["verdicts"], strict=True):
        assert (gate == "") == ("" in json.loads(verdicts))


@pytest.mark.parametrize("run", ["smoke", "uninterrupted"], ids=["full", "lora"])
def test_vllm_and_the_trainer_stay_one_policy(run, request):
    run = request.getfixturevalue(run)
    assert run.returncode == 0, run.err
    first, last = run.parity()
    assert first[0] == 0
    assert last[0] == max(run.metrics())
    assert max(first[1], last[1]) < FLOAT32_PARITY
    written = [row["sampling/sampling_logp_difference/max"] for row in run.metrics().values()]
    assert max(written) < FLOAT32_PARITY


def test_a_run_killed_in_the_middle_goes_on_as_if_it_had_not_been(workshop, uninterrupted):
    killed = Finished(workshop.folder / "killed", 0, "", "")
    with workshop.start("killed", *LONG) as process:
        while not (killed.directory / "metrics.jsonl").exists() or max(killed.metrics(), default=0) < 5:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.kill()
    run_id = (killed.directory / "wandb_run_id").read_text()
    # What a process leaves that dies while it saves.
    half_written = killed.directory / ".unfinished" / "checkpoint-6"
    half_written.mkdir(parents=True, exist_ok=True)
    (half_written / "trainer_state.json").write_text("{")

    resumed = workshop.run("killed", *LONG, "--resume_from_checkpoint", "latest")

    assert resumed.returncode == 0, resumed.err
    assert [step for step, _ in resumed.parity()] == [0, 4, 6]
    assert max(gap for _, gap in resumed.parity()) < FLOAT32_PARITY
    assert list(resumed.metrics()) == [1, 2, 3, 4, 5, 6]
    for step, row in uninterrupted.metrics().items():  # steps 5 and 6 are in a second epoch, with an order of its own
        again = resumed.metrics()[step]
        assert (again["loss"], again["reward"]) == pytest.approx((row["loss"], row["reward"]), abs=1e-5), step
    assert (resumed.directory / "wandb_run_id").read_text() == run_id
    assert len(list((resumed.directory / "wandb").glob(f"offline-run-*-{run_id.strip()}"))) == 2
    assert {path.name for path in resumed.directory.glob("checkpoint-*")} == {"checkpoint-4", "checkpoint-6"}
    assert json.loads((resumed.directory / "checkpoint-6" / "trainer_state.json").read_text())["global_step"] == 6
    assert not (resumed.directory / ".unfinished").exists()


def test_a_finished_run_is_not_begun_again_by_mistake(workshop, smoke):
    again = workshop.run("smoke")
    assert again.returncode == 2
    assert "checkpoint-2" in again.err
    assert "--resume_from_checkpoint latest" in again.err


def test_a_finished_run_has_nothing_to_go_on_with(workshop, smoke):
    again = workshop.run("smoke", "--resume_from_checkpoint", "true")
    assert again.returncode == 0, again.err
    assert max(again.metrics()) == 2
    assert {path.name for path in again.directory.glob("checkpoint-*")} == {"checkpoint-1", "checkpoint-2"}


def test_a_dead_judge_stops_the_run_with_what_to_do(workshop):
    url = "http://127.0.0.1:9/v1"  # nothing listens there
    judge = ("--judge", "endpoint", "--judge_base_url", url, "--judge_model", "gone", "--judge_max_retries", "0")
    run = workshop.run("dead_judge", *judge, "--judge_preflight", "false")
    assert run.returncode == 1
    assert "Traceback" not in run.err
    for word in ("stopped", "connection", url, "--dry_run true"):
        assert word in run.err


def test_policies_that_differ_stop_the_run(workshop):
    run = workshop.run("strict", "--parity_tolerance", "1e-12")
    assert run.returncode == 1
    assert "vLLM and the trainer disagree before the first step" in run.err
    assert "Traceback" not in run.err
    assert not list(run.directory.glob("checkpoint-*"))


def test_a_dry_run_checks_and_tells_and_leaves_nothing(workshop):
    run = workshop.run("dry", "--dry_run", "true")
    assert run.returncode == 0, run.err
    assert "4 prompts x 4 = 16 completions" in run.out
    assert "num_generations: 4" in run.out
    assert "mini judge" in run.out
    assert not run.directory.exists()


def test_a_judge_that_is_not_fit_stops_the_run_before_a_model_loads(workshop):
    with FakeLLM(lambda _: verdict(True, True)) as server:
        judge = ("--judge", "endpoint", "--judge_base_url", server.base_url, "--judge_model", "fake")
        run = workshop.run("unfit", *judge)
    assert run.returncode == 2
    assert "only 7 of 20 easy questions" in run.err
    assert "Traceback" not in run.err


def test_a_dry_run_tries_the_judge(workshop):
    with FakeLLM(right_on_easy_questions(lambda _: verdict(True, True))) as server:
        judge = ("--judge", "endpoint", "--judge_base_url", server.base_url, "--judge_model", "fake")
        run = workshop.run("dry", "--dry_run", "true", *judge, "--judge_store", "verdicts")
        assert len(server.requests) == 21  # the last with a response of the greatest length
    assert run.returncode == 0, run.err
    assert "20 of 20 easy questions right" in run.out
    assert "warning: the judge fake has no judge card" in run.err
    assert "calls a generation" in run.out
    assert not (workshop.folder / "verdicts").exists()


def test_a_dry_run_tells_of_a_judge_that_does_not_answer(workshop):
    judge = ("--judge", "endpoint", "--judge_base_url", "http://127.0.0.1:9/v1", "--judge_model", "gone")
    run = workshop.run("dry", "--dry_run", "true", *judge, "--judge_max_retries", "0")
    assert run.returncode == 2
    assert "Is the server running" in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("--vllm_max_model_length", "40"), "vllm_max_model_length: 40 is too small for the prompt of case"),
        (("--gradient_accumulation_steps", "64"), "has 16, and one generation takes 128 prompts"),
        (("--eval_cases", "train.jsonl"), "16 of them are also in cases"),
        (("--model_name_or_path", "nowhere"), "no tokenizer can be loaded from nowhere"),
        (("--cases", "nowhere.jsonl"), "nowhere.jsonl"),
    ],
    ids=["prompt too long", "too few cases", "a leak", "no model", "no cases"],
)
def test_inputs_that_cannot_go_together_end_with_a_message(workshop, overrides, message):
    run = workshop.run("unsound", "--dry_run", "true", *overrides)
    assert run.returncode == 2
    assert message in run.err
    assert "Traceback" not in run.err
