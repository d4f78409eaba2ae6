"""Files of weights and of training state that are not whole."""

import json

import pytest

from data.weights import damage_of, damage_of_weights
from tests.whole_checkpoint import write_checkpoint, write_safetensors


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def test_whole_files_have_no_damage(tmp_path):
    checkpoint = write_checkpoint(tmp_path, 1)
    assert [damage_of(path) for path in checkpoint.iterdir()] == [None] * 7
    assert damage_of_weights(checkpoint) is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is cut off within its header (0 bytes)"),
        (b"\x10\0\0\0\0\0\0\0{}", "is cut off within its header (10 bytes)"),
        (b"\x02\0\0\0\0\0\0\0{]", "has a header that cannot be read"),
        (b"\x02\0\0\0\0\0\0\0[]", "has a header that cannot be read"),
        (b"\x08\0\0\0\0\0\0\0" + b'{"w":{}}', "has a header that cannot be read"),
    ],
    ids=["empty", "short", "no JSON", "a list", "no offsets"],
)
def test_broken_safetensors_are_told(tmp_path, content, told):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert damage_of(tmp_path / "model.safetensors") == f"model.safetensors {told}"


def test_safetensors_that_were_cut_off_are_told_with_their_sizes(tmp_path):
    path = write_safetensors(tmp_path / "model.safetensors", 1.0, 2.0)
    size = path.stat().st_size
    cut(path, size - 1)
    assert damage_of(path) == f"model.safetensors has {size - 1} bytes, and {size} by its header"


@pytest.mark.parametrize("name", ["optimizer.pt", "rng_state.pth", "training_args.bin"])
def test_an_archive_of_torch_without_its_end_is_told(tmp_path, name):
    path = write_checkpoint(tmp_path, 1) / name
    cut(path, path.stat().st_size - 8)
    assert damage_of(path) == f"{name} is cut off or no file of torch ({path.stat().st_size} bytes)"


def test_broken_json_is_told(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text("")
    assert damage_of(path) == "trainer_state.json is empty"
    path.write_text('{"global_step": ')
    assert damage_of(path).startswith("trainer_state.json is no JSON (")


def test_all_shards_must_be_there(tmp_path):
    checkpoint = write_checkpoint(tmp_path, 1)
    index = checkpoint / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    write_safetensors(checkpoint / "one.safetensors", 1.0)
    assert damage_of_weights(checkpoint) == "two.safetensors is missing"
    for damaged in ("[]", '{"weight_map": {}}', '{"weight_map": {"a": 5}}', '{"weight_map": {"a": 5, "b": "x"}}'):
        index.write_text(damaged)
        assert damage_of_weights(checkpoint).startswith("model.safetensors.index.json is damaged"), damaged


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_json_that_its_reader_could_not_read_is_told(tmp_path, encoding):
    (tmp_path / "trainer_state.json").write_text('{"global_step": 1}', encoding=encoding)
    assert damage_of(tmp_path / "trainer_state.json").startswith("trainer_state.json is no JSON (")
