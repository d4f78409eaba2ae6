"""Weights from the trainer to a vLLM server by way of a file, for server mode on machines without a GPU.

TRL and vLLM hand weights over by NCCL, which needs CUDA. Here the trainer writes them into shared memory, and tells the
server the path. Server: `--weight-transfer-config '{"backend": "file"}'`, on the same machine as the trainer.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm.distributed.weight_transfer.base import WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo

BACKEND = "file"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  (a file here never touches a disk)


@dataclass
class FileInit(WeightTransferInitInfo):  # type: ignore[misc]  # vLLM is not followed by mypy
    """Nothing needs to be agreed on."""


@dataclass
class FileUpdate(WeightTransferUpdateInfo):  # type: ignore[misc]
    """A safetensors file with every weight under the name that a checkpoint has it by."""

    path: str


class FileWeightTransferEngine(WeightTransferEngine[FileInit, FileUpdate]):  # type: ignore[misc]
    """The server's side, in each of vLLM's workers: loads the file into the live model."""

    init_info_cls = FileInit
    update_info_cls = FileUpdate

    def init_transfer_engine(self, init_info: FileInit) -> None:
        """Nothing to open."""

    def start_weight_update(self) -> None:
        """Nothing to prepare: the weights are plain tensors (`train.vllm_cpu`)."""

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Load one update; vLLM's own waits for an accelerator afterwards, and there is none."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: FileUpdate) -> None:
        """Copy the file's tensors into the model, one after the other."""
        from safetensors import safe_open

        with safe_open(update_info.path, framework="pt") as file:
            self.model.load_weights((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118

    def finish_weight_update(self) -> None:
        """Nothing to finish."""

    def shutdown(self) -> None:
        """Nothing to close."""


def send_weights_by_file() -> None:
    """Make TRL's client hand over weights by file where the trainer runs on a CPU; with a GPU nothing changes."""
    import torch
    from safetensors.torch import save_file
    from trl.generation import vllm_generation
    from trl.generation.vllm_client import VLLMClient

    class FileVLLMClient(VLLMClient):  # type: ignore[misc]
        _directory: Path | None = None

        def init_communicator(self, device: Any = 0) -> None:
            if torch.device(device).type != "cpu":
                super().init_communicator(device)
                return
            config = self.get_server_info()["weight_transfer_config"]
            if config is None or config["backend"] != BACKEND:
                raise RuntimeError(
                    f"the vLLM server at {self.base_url} cannot take weights from a trainer on a CPU: restart it with "
                    f"""--weight-transfer-config '{{"backend": "{BACKEND}"}}'"""
                )
            parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
            self._directory = Path(tempfile.mkdtemp(prefix="legit_rl_weights_", dir=parent))
            atexit.register(shutil.rmtree, self._directory, ignore_errors=True)
            self._post(f"{self.base_url}/init_weight_transfer_engine", json={"init_info": {}})

        def update_named_params(self, metadata: Any, named_params: Iterator[tuple[str, torch.Tensor]]) -> None:
            if self._directory is None:
                super().update_named_params(metadata, named_params)
                return
            path = self._directory / "weights.safetensors"
            # Cloned: with LoRA the tensors are merged for as long as the iterator is at them.
            save_file({name: weight.detach().contiguous().clone() for name, weight in named_params}, path)
            self._start_weight_update()
            self._post(f"{self.base_url}/update_weights", json={"update_info": {"path": str(path)}})
            self._finish_weight_update()

    vllm_generation.VLLMClient = FileVLLMClient
