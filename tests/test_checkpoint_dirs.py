"""Whole and half-written checkpoints."""

import pytest

from train.checkpoint_dirs import STATE_NAME, UNFINISHED_NAME, checkpoint_to_resume, find_checkpoints, publish


def written(folder, name, text="weights"):
    path = folder / name
    (path / "shards").mkdir(parents=True)
    (path / STATE_NAME).write_text("{}")
    (path / "shards" / "model.safetensors").write_text(text)
    return path


def test_only_whole_checkpoints_are_found_in_the_order_of_their_steps(tmp_path):
    for step in (100, 20, 3):
        written(tmp_path, f"checkpoint-{step}")
    (tmp_path / "checkpoint-200").mkdir()
    written(tmp_path, "checkpoint-best")
    written(tmp_path / UNFINISHED_NAME, "checkpoint-300")
    assert [path.name for path in find_checkpoints(tmp_path)] == ["checkpoint-3", "checkpoint-20", "checkpoint-100"]


def test_latest_is_the_last_whole_one_or_a_new_beginning(tmp_path):
    assert checkpoint_to_resume(tmp_path / "new", "latest") is None
    written(tmp_path, "checkpoint-9")
    written(tmp_path, "checkpoint-10")
    assert checkpoint_to_resume(tmp_path, "latest") == tmp_path / "checkpoint-10"
    assert checkpoint_to_resume(tmp_path, str(tmp_path / "checkpoint-9")) == tmp_path / "checkpoint-9"
    assert checkpoint_to_resume(tmp_path, None) is None


@pytest.mark.parametrize("is_there", [False, True])
def test_publishing_names_the_folder_and_leaves_nothing_behind(tmp_path, is_there):
    if is_there:
        written(tmp_path, "checkpoint-5", "old")
    publish(written(tmp_path / UNFINISHED_NAME, "checkpoint-5", "new"), tmp_path / "checkpoint-5")
    assert (tmp_path / "checkpoint-5" / "shards" / "model.safetensors").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-5"]
