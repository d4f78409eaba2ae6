"""train/grpo.py for several ranks on a CPU, with checkpoints that can be loaded there.

transformers asks torch to load a rank's optimiser to "cpu:0", which torch refuses: "don't know how to restore data
location of torch.storage.UntypedStorage (tagged with cpu:0)". On GPUs nothing of the kind is needed.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    import torch

    torch.serialization.register_package(
        0, lambda _: None, lambda storage, location: storage if location.startswith("cpu:") else None
    )
    sys.argv[0] = str(Path(__file__).parents[1] / "train" / "grpo.py")
    runpy.run_path(sys.argv[0], run_name="__main__")
