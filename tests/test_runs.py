"""What a run's folder tells: settings, and which checkpoints are whole."""

import json
import struct

import pytest

from data.command import InputError
from eval.engine import Policy, find_policy, lora_rank, weights_id
from eval.runs import find_checkpoints, has_whole_weights, read_run

CONFIG = """\
model_name_or_path: base-model
eval_cases: cases.jsonl
prompt_style: bare
max_completion_length: 64
judge: mini
judge_quorum: 0.8
gate_min_hangul_frac: 0.0
learning_rate: 1.0e-06
"""


def write_weights(path, values=(1.0, 2.0)):
    """A safetensors file with one tensor, byte by byte."""
    data = struct.pack(f"<{len(values)}f", *values)
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def write_checkpoint(run_dir, step, values=(1.0, 2.0)):
    path = run_dir / f"checkpoint-{step}"
    write_weights(path / "model.safetensors", values)
    (path / "config.json").write_text("{}")
    (path / "trainer_state.json").write_text("{}")
    return path


def test_a_run_has_the_settings_that_evaluation_shares(run_dir):
    run = read_run(run_dir)
    assert (run.base, run.eval_cases, run.prompt_style) == ("base-model", "cases.jsonl", "bare")
    assert run.judge == {"judge": "mini", "judge_quorum": 0.8}
    assert run.gates == {"gate_min_hangul_frac": 0.0}


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "is no run"), ("", "it must have"), ("model_name_or_path: x", "prompt_style"), ("a: [", "no YAML")],
    ids=["no file", "empty", "a key missing", "no YAML"],
)
def test_a_folder_that_is_no_run_is_told(tmp_path, text, problem):
    if text is not None:
        (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_run(tmp_path)


def test_checkpoints_come_by_step_after_the_base(run_dir):
    for step in (100, 20, 3):
        write_checkpoint(run_dir, step)
    checkpoints, partial = find_checkpoints(read_run(run_dir))
    assert [(checkpoint.name, checkpoint.step) for checkpoint in checkpoints] == [
        ("base", 0),
        ("checkpoint-3", 3),
        ("checkpoint-20", 20),
        ("checkpoint-100", 100),
    ]
    assert partial == []


@pytest.mark.parametrize("missing", ["config.json", "trainer_state.json", "model.safetensors"])
def test_a_checkpoint_that_is_not_whole_is_left_out_and_told(run_dir, missing):
    write_checkpoint(run_dir, 1)
    (write_checkpoint(run_dir, 2) / missing).unlink()
    checkpoints, partial = find_checkpoints(read_run(run_dir))
    assert [checkpoint.name for checkpoint in checkpoints] == ["base", "checkpoint-1"]
    assert partial == ["checkpoint-2"]


@pytest.mark.parametrize("num_bytes", [0, 5, 30, -1], ids=["empty", "no header", "half a header", "a byte short"])
def test_weights_that_were_cut_off_are_not_whole(run_dir, num_bytes):
    path = write_checkpoint(run_dir, 1) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:num_bytes])
    assert not has_whole_weights(path.parent)


def test_every_shard_of_the_index_must_be_there(run_dir):
    path = write_checkpoint(run_dir, 1)
    (path / "model.safetensors").rename(path / "model-1.safetensors")
    index = {"weight_map": {"w": "model-1.safetensors", "v": "model-2.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert not has_whole_weights(path)
    write_weights(path / "model-2.safetensors")
    assert has_whole_weights(path)


def test_a_run_without_checkpoints_has_its_final_model(run_dir):
    write_weights(run_dir / "model.safetensors")
    (run_dir / "config.json").write_text("{}")
    checkpoints, _ = find_checkpoints(read_run(run_dir))
    assert [(checkpoint.name, checkpoint.step) for checkpoint in checkpoints] == [("base", 0), ("final", None)]


def test_adapters_stand_on_the_base_of_the_run(run_dir):
    path = run_dir / "checkpoint-5"
    write_weights(path / "adapter_model.safetensors")
    config = {"base_model_name_or_path": "where/it/was/trained", "r": 8, "rank_pattern": {"q_proj": 24}}
    (path / "adapter_config.json").write_text(json.dumps(config))
    (path / "trainer_state.json").write_text("{}")
    checkpoints, _ = find_checkpoints(read_run(run_dir))
    assert checkpoints[1].policy == Policy("base-model", path)
    assert find_policy(str(path)) == Policy("where/it/was/trained", path)
    assert lora_rank(path) == 24


def test_a_name_that_is_no_folder_is_a_hub_id():
    assert find_policy("Qwen/Qwen2.5-7B-Instruct") == Policy("Qwen/Qwen2.5-7B-Instruct")


def test_other_weights_have_another_id(tmp_path):
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    write_weights(one / "model.safetensors", [0.0] * 50_000)
    write_weights(same / "model.safetensors", [0.0] * 50_000)
    write_weights(other / "model.safetensors", [1e-6] * 50_000)
    ids = [weights_id(Policy(str(path))) for path in (one, same, other)]
    assert ids[0] == ids[1] != ids[2]
    assert weights_id(Policy("hub/id")) == "hub/id"
