"""A checkpoint as a trainer leaves it, written without torch: every file has the form that its name promises."""

import json
import struct
import zipfile
from pathlib import Path


def write_safetensors(path: Path, *values: float) -> Path:
    """A safetensors file with one tensor, byte by byte."""
    data = struct.pack(f"<{len(values)}f", *values)
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def write_checkpoint(run_dir: Path, step: int) -> Path:
    """The folder of a whole checkpoint of one process."""
    path = run_dir / f"checkpoint-{step}"
    path.mkdir(parents=True)
    write_safetensors(path / "model.safetensors", 1.0, 2.0)
    (path / "config.json").write_text("{}")
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        with zipfile.ZipFile(path / name, "w") as archive:  # which is what torch.save writes
            archive.writestr("archive/data.pkl", "state")
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return path
