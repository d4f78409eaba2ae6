"""train/grpo.py for several ranks on a CPU: torch cannot load what is meant for "cpu:1", as transformers calls one.

Without this, a resume of DDP or FSDP2 there ends in "don't know how to restore data location of
torch.storage.UntypedStorage (tagged with cpu:0)". On GPUs nothing of the kind is needed.
"""

import runpy
import sys
from pathlib import Path

import torch

torch.serialization.register_package(
    0, lambda _: None, lambda storage, location: storage if location.startswith("cpu:") else None
)
sys.argv[0] = str(Path(__file__).parents[1] / "train" / "grpo.py")
runpy.run_path(sys.argv[0], run_name="__main__")
