"""The front door: what it takes, what it refuses, and how it says so. No torch anywhere."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rewards.judge_config import JudgeConfig
from train.config import OWN, read_settings
from train.keys import known_options
from train.yaml_file import ConfigError

ROOT = Path(__file__).parents[1]
MINIMAL = {
    "cases": "cases.jsonl",
    "model_name_or_path": "some/model",
    "output_dir": "outputs/none",
    "judge": "mini",
    "use_vllm": True,
    "vllm_max_model_length": 512,
    "max_completion_length": 64,
}
ENDPOINT = {"judge": "endpoint", "judge_base_url": "http://localhost:8001/v1", "judge_model": "some/judge"}


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    def write(**changes):
        values = {name: value for name, value in {**MINIMAL, **changes}.items() if value is not ...}
        Path("run.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        return "run.yaml"

    return write


def problems(*arguments):
    with pytest.raises(ConfigError) as raised:
        read_settings(arguments)
    return raised.value.problems


def test_values_reach_the_config_that_reads_them(write):
    settings = read_settings([write(reward="order_only", gate_penalty=-2, learning_rate=5e-4, lora_r=8, use_peft=True)])
    assert settings.reward.reward == "order_only"
    assert settings.reward.gate_penalty == -2.0
    assert settings.judge.judge == "mini"
    assert settings.data.cases == "cases.jsonl"
    assert settings.training["learning_rate"] == 5e-4
    assert settings.model == {"model_name_or_path": "some/model", "lora_r": 8, "use_peft": True}
    assert "judge" not in settings.training
    assert settings["num_generations"] == 8  # TRL's default
    assert settings["gate_min_hangul_frac"] == settings.gates.gate_min_hangul_frac


def test_the_command_line_overrides_the_file(write):
    settings = read_settings(
        [write(), "--learning_rate", "1e-6", "--run_name", "123", "--dry-run", "--gate_penalty=-1", "--reward",
         "order_only", "--generation_kwargs", "{presence_penalty: 0.1}", "--split", "null"]
    )  # fmt: skip
    assert settings["learning_rate"] == 1e-6
    assert settings["run_name"] == "123"
    assert settings.dry_run
    assert settings.reward.gate_penalty == -1.0
    assert settings["generation_kwargs"] == {"presence_penalty": 0.1}
    assert settings.data.split is None


def test_every_misspelled_key_is_told_with_its_line_and_the_right_one(write):
    found = problems(write(learning_rat=1e-6, judge_modle="x"), "--num_generation", "4")
    assert found == [
        "run.yaml, line 8: unknown key learning_rat: did you mean learning_rate?",
        "run.yaml, line 9: unknown key judge_modle: did you mean judge_model?",
        "--num_generation: unknown key num_generation: did you mean num_generations?",
    ]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model_init_kwargs", {"atn_implementation": "eager"}, "did you mean attn_implementation?"),
        ("generation_kwargs", {"tempratur": 1}, "did you mean temperature?"),
        ("gradient_checkpointing_kwargs", {"use_reentrnat": False}, "did you mean use_reentrant?"),
        ("accelerator_config", {"split_batch": True}, "did you mean split_batches?"),
    ],
)
def test_misspelled_nested_keys_are_told(write, name, value, message):
    assert problems(write(**{name: value})) == [f"run.yaml, line 8: {name} has no key {next(iter(value))}: {message}"]


def test_a_model_takes_what_its_own_config_has(write):
    read_settings([write(model_init_kwargs={"use_cache": False, "final_logit_softcapping": 30.0})])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": "fast"}, "learning_rate must be a number, got 'fast'"),
        ({"bf16": "yes"}, "bf16 must be true or false or null, got 'yes'"),
        ({"per_device_train_batch_size": 1.5}, "must be a whole number"),
        ({"eval_strategy": "step"}, "eval_strategy must be one of no, steps, epoch, got 'step': did you mean steps?"),
        ({"vllm_mode": "colocated"}, "one of colocate, server"),
        ({"loss_type": "ppo"}, "one of grpo, dapo"),
        ({"prompt_style": "korean"}, "one of court, bare"),
        ({"judge": "gpt"}, "one of endpoint, mini"),
        ({"reward": "legitt"}, "did you mean legit?"),
        ({"run_name": 7}, "run_name must be text or null, got 7"),
        ({"dtype": "fp32"}, "one of auto, bfloat16, float16, float32"),
        ({**ENDPOINT, "judge_max_retries": -1}, "judge_max_retries must be at least 0"),
        ({"retriever": "bm25", "retriever_index": "law", "retriever_model": "x"}, "retriever_model has no effect"),
        ({**ENDPOINT, "judge_timeout_s": math.inf}, "judge_timeout_s: must be a number of seconds above 0, and not"),
        ({**ENDPOINT, "eval_judge_timeout_s": math.nan}, "eval_judge_timeout_s: must be a number of seconds above 0"),
        ({"parity_tolerance": 0}, "parity_tolerance must be above 0"),
        ({"gate_penalty": 1}, "gate_penalty must be 0 or below"),
        ({"alerts": ["warn if kl => 1"]}, "alerts: 'warn if kl => 1' must have the form"),
        ({"alerts": "warn if kl > 1"}, "alerts must be a list"),
        ({"curriculum": "skp"}, "did you mean skip?"),
        ({"curriculum": "skip", "curriculum_rest": 0}, "curriculum_rest must be at least 1"),
        ({"alerts": ["warn if eval_score < 5"]}, "eval_score is logged by evaluations alone: set eval_strategy"),
        ({"alerts": ["warn if eval_score < 5"]}, "or drop this rule (--alerts null drops all)"),
    ],
)
def test_a_wrong_value_is_told_what_is_legal(write, changes, message):
    (found,) = problems(write(**changes))
    assert found.startswith("run.yaml, line")
    assert message in found


def test_a_url_that_is_none_is_told_for_both_judges(write):
    found = problems(write(**ENDPOINT | {"judge_base_url": "ftp://a/v1", "eval_judge_base_url": "b"}))
    assert [problem.partition("; it must")[0] for problem in found] == [
        "run.yaml, line 8: judge_base_url: no URL of an endpoint: 'ftp://a/v1'"
    ]
    (found,) = problems(write(**ENDPOINT | {"eval_judge_base_url": "b"}))
    assert "eval_judge_base_url: no URL of an endpoint" in found


def test_a_missing_judge_is_told(write):
    found = problems(write(judge="endpoint"))
    assert any("judge_base_url must be set" in problem for problem in found)


@pytest.mark.parametrize("argument", ["stray", "-x"])
def test_a_stray_argument_is_refused(write, argument):
    assert "belongs to no key" in problems(write(), argument)[0]


def test_what_is_written_beside_a_run_gives_the_same_run(write):
    path = write(
        learning_rate=1e-6, lora_r=4, use_peft=True, generation_kwargs={"presence_penalty": 0.5}, run_name="no"
    )
    first = read_settings([path, "--dry_run", "true", "--resume_from_checkpoint", "latest"])
    Path("again.yaml").write_text(first.to_yaml())
    again = read_settings(["again.yaml"])
    assert {**again.values, "dry_run": True, "resume_from_checkpoint": "latest"} == first.values
    assert yaml.safe_load(first.to_yaml())["learning_rate"] == 1e-6


@pytest.mark.parametrize(("value", "meaning"), [("true", "latest"), ("latest", "latest"), ("false", None)])
def test_resuming_takes_true_for_latest(write, value, meaning):
    assert read_settings([write(), "--resume_from_checkpoint", value])["resume_from_checkpoint"] == meaning


def test_no_key_belongs_to_two_configs():
    ours = [name for config in OWN for name in known_options([config]).keys() - known_options([]).keys()]
    configs = (*OWN, JudgeConfig)  # once more with eval_ before its keys
    assert len(ours) == len(set(ours)) == sum(len(config.__dataclass_fields__) for config in configs)


def test_the_judge_of_evaluations_has_keys_of_its_own(write):
    settings = read_settings([write(eval_judge="endpoint", eval_judge_base_url="http://a/v1", eval_judge_model="b")])
    assert (settings.judge.judge, settings.eval_judge.judge, settings.eval_judge.judge_model) == (
        "mini",
        "endpoint",
        "b",
    )
    assert not any(name.startswith("eval_judge") for name in settings.training)
    assert read_settings([write()]).eval_judge == settings.judge
    assert "did you mean eval_judge_model" in problems(write(eval_judge_modell="b"))[0]
    assert "eval_judge_base_url must be set" in problems(write(eval_judge="endpoint"))[0]


def test_the_best_checkpoint_is_never_chosen_by_the_training_reward(write):
    (problem,) = problems(write(metric_for_best_model="reward", eval_strategy="steps", eval_cases="held_out.jsonl"))
    assert "metric_for_best_model must be one of eval_score" in problem


def test_a_rule_on_exploitation_needs_two_judges(write):
    evaluated = {
        "eval_strategy": "steps",
        "eval_cases": "held_out.jsonl",
        "alerts": ["stop if eval_exploitation > 0.3"],
    }
    (problem,) = problems(write(**evaluated))
    assert "where evaluations have another judge than training: set another eval_judge or eval_judge_model" in problem
    two = {"eval_judge": "endpoint", "eval_judge_base_url": "http://a/v1", "eval_judge_model": "b"}
    assert read_settings([write(**evaluated, **two)]).alerts.rules()[0].metric == "eval_exploitation"


def test_a_misspelled_key_ends_the_command_before_anything_heavy_loads(write):
    code = (
        "import sys, runpy\nsys.argv = sys.argv[1:]\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as leaving:\n    assert leaving.code == 2\n"
        "assert not {'torch', 'trl', 'transformers', 'vllm', 'datasets', 'openai'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-c", code, str(ROOT / "train/grpo.py"), write(learning_rat=1)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "run.yaml, line 8: unknown key learning_rat: did you mean learning_rate?\n"
