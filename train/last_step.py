"""The run as it was after its last whole step, to be saved although the next one is under way."""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import TrainerCallback

from train.checkpoint_dirs import is_whole
from train.stopping import Stopping

if TYPE_CHECKING:
    from train.trainer import Trainer


class LastStep(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Keeps what a step that is given up has moved on: random states and the count of tokens.

    Weights, optimiser and schedule change at a step's end only, so that the last step's are those at hand.
    """

    def __init__(self, trainer: "Trainer", stopping: Stopping, updates: int) -> None:
        """`updates` are the optimiser steps that learn from one generation: the run ends after all of them."""
        self._trainer = trainer
        self._stopping = stopping
        self._updates = updates

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._keep()
        self._stopping.begin()

    def on_step_begin(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        if state.global_step % self._updates == 0:
            self._stopping.agree(self._trainer.accelerator.num_processes)

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._keep()

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._keep()

    def save(self) -> Path | None:
        """Write the last step's checkpoint, and tell where it is; None if there is none. On all ranks, together."""
        trainer, step = self._trainer, self._trainer.state.global_step
        path = Path(trainer.args.output_dir) / f"checkpoint-{step}"
        trainer.accelerator.wait_for_everyone()
        if step == 0 or is_whole(path):
            return path if step else None
        trainer.state.num_input_tokens_seen = self._num_tokens
        python, numpy, cpu, cuda = self._random
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        trainer._save_checkpoint(trainer.model, None)
        return path

    def seed_of(self, index: int, ids: Sequence[int]) -> int:
        """A seed for one completion: another for each place, prompt and step, the same one after a resume."""
        about = (self._trainer.args.seed, self._trainer.state.global_step, index, *ids)
        return int.from_bytes(hashlib.sha256(repr(about).encode()).digest()[:4], "big")

    def _keep(self) -> None:
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        self._random = random.getstate(), np.random.get_state(), torch.get_rng_state(), cuda
        self._num_tokens = self._trainer.state.num_input_tokens_seen
