"""Whole and half-written checkpoints."""

import pytest

from tests.whole_checkpoint import write_checkpoint
from train.checkpoint_dirs import (
    STATE_NAME,
    UNFINISHED_NAME,
    checkpoint_to_resume,
    damage_of_checkpoint,
    find_checkpoints,
    publish,
    why_not_resume,
)


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


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("model.safetensors", b"\xff", "model.safetensors is cut off within its header (1 bytes)"),
        ("model.safetensors", None, "model.safetensors is missing"),
        ("trainer_state.json", b"", "trainer_state.json is empty"),
        ("trainer_state.json", None, "trainer_state.json is missing"),
        ("trainer_state.json", b"{}", "trainer_state.json is damaged: it has no global_step"),
        ("optimizer.pt", None, "optimizer.pt is missing"),
        ("optimizer.pt", b"PK\x03\x04", "optimizer.pt is cut off or no file of torch (4 bytes)"),
        ("scheduler.pt", None, "scheduler.pt is missing"),
        ("rng_state.pth", b"", "rng_state.pth is cut off or no file of torch (0 bytes)"),
    ],
)
def test_a_damaged_checkpoint_is_told_with_the_one_to_go_on_from(tmp_path, name, content, told):
    whole, last = write_checkpoint(tmp_path, 9), write_checkpoint(tmp_path, 10)
    (last / name).unlink()
    if content is not None:
        (last / name).write_bytes(content)
    assert damage_of_checkpoint(whole) is None
    for resume in ("latest", str(last)):
        why = why_not_resume(tmp_path, resume, with_optimizer=True)
        expected = (
            f"{last} is no whole checkpoint: {told}; to go on from the last whole one: --resume_from_checkpoint {whole}"
        )
        assert why == expected
    assert why_not_resume(tmp_path, str(whole), with_optimizer=True) is None
    (whole / "scheduler.pt").unlink()
    assert f"no other in {tmp_path} is whole" in why_not_resume(tmp_path, "latest", with_optimizer=True)


def test_a_run_named_for_a_checkpoint_is_told_by_what_it_is(tmp_path):
    write_checkpoint(tmp_path / "run", 9)
    why = why_not_resume(tmp_path / "run", str(tmp_path / "run"), with_optimizer=True)
    assert why == f"{tmp_path}/run is a run's folder, not a checkpoint: name one of its checkpoints, or latest"


def test_a_checkpoint_of_weights_alone_needs_no_optimiser(tmp_path):
    path = write_checkpoint(tmp_path, 3)
    (path / "optimizer.pt").unlink()
    assert why_not_resume(tmp_path, "latest", with_optimizer=False) is None
    assert why_not_resume(tmp_path, "latest", with_optimizer=True) is not None


@pytest.mark.parametrize("piece", ["global_step3/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "optimizer_0/x.pt"])
def test_of_a_checkpoint_in_pieces_those_that_are_there_are_looked_at(tmp_path, piece):
    path = write_checkpoint(tmp_path, 3)
    (path / piece).parent.mkdir()
    (path / "optimizer.pt").rename(path / piece)
    assert why_not_resume(tmp_path, "latest", with_optimizer=True) is None
    (path / piece).write_bytes(b"")
    assert "is cut off" in why_not_resume(tmp_path, "latest", with_optimizer=True)


@pytest.mark.parametrize("is_there", [False, True])
def test_publishing_names_the_folder_and_leaves_nothing_behind(tmp_path, is_there):
    if is_there:
        written(tmp_path, "checkpoint-5", "old")
    publish(written(tmp_path / UNFINISHED_NAME, "checkpoint-5", "new"), tmp_path / "checkpoint-5")
    assert (tmp_path / "checkpoint-5" / "shards" / "model.safetensors").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-5"]
