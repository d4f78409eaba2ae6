"""Every YAML that is shipped goes through the front door."""

from pathlib import Path

import pytest
import yaml

from train.config import read_settings
from train.plan import plan_step

CONFIGS = Path(__file__).parents[1] / "configs"
RUNS = sorted(CONFIGS.glob("*.yaml"))
ABLATIONS = ("order_only", "decoupled")
NUM_PROCESSES = {"qwen7b": 8, "qwen7b_rag": 8, "gemma4b_paper": 4, "qwen7b_2node": 8, "qwen32b_zero3": 16} | {
    f"gemma4b_{reward}": 4 for reward in ABLATIONS
}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_run_is_a_sound_configuration(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", str(NUM_PROCESSES.get(path.stem, 1)))
    settings = read_settings([str(path)])
    assert settings["use_vllm"]
    assert not Path(settings["output_dir"]).is_absolute()


@pytest.mark.parametrize(
    ("name", "prompts", "updates"), [("qwen7b", 32, 1), ("gemma4b_paper", 32, 1), ("mini", 16, 1), ("smoke", 4, 1)]
)
def test_batches_are_what_the_comments_say(name, prompts, updates):
    settings = read_settings([str(CONFIGS / f"{name}.yaml"), "--dry_run", "true"])
    plan = plan_step(settings.values, NUM_PROCESSES.get(name, 1))
    assert (plan.prompts, plan.updates) == (prompts, updates)


@pytest.mark.parametrize("reward", ABLATIONS)
def test_an_ablation_of_the_papers_recipe_is_one_line_away(reward):
    paper, ablation = (
        (CONFIGS / f"gemma4b_{name}.yaml").read_text(encoding="utf-8").splitlines() for name in ("paper", reward)
    )
    changed = [line for line, before in zip(ablation, paper, strict=True) if line != before]
    assert changed == [f"output_dir: outputs/gemma4b_{reward}", f"reward: {reward}"]


@pytest.mark.parametrize("path", sorted((CONFIGS / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_launch_files_have_keys_that_accelerate_knows(path):
    text = path.read_text(encoding="utf-8")
    launch = yaml.safe_load(text)
    assert launch["distributed_type"] in ("NO", "MULTI_GPU", "DEEPSPEED", "FSDP")
    assert launch["num_processes"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((CONFIGS / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_launch_files_are_read_by_accelerate(path):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(path))
    assert config.distributed_type.value == yaml.safe_load(path.read_text(encoding="utf-8"))["distributed_type"]
