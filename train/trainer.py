"""What training adds to TRL's GRPOTrainer: whole checkpoints, the same order of cases after a resume, and parity."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer as TransformersTrainer
from transformers import TrainerCallback
from transformers.trainer_utils import SaveStrategy, rotate_checkpoints
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from train.checkpoint_dirs import UNFINISHED_NAME, publish
from train.evaluation import Evaluation
from train.parity import ParityConfig, ParityError, broken, check_parity, limit_of, run_dtype
from train.rollout import EarlyStart


class EpochSampler(RepeatSampler):  # type: ignore[misc]  # TRL is untyped
    """TRL's sampler, shuffled by seed and epoch: TRL's own begins again with the first epoch's order after a resume."""

    def set_epoch(self, epoch: int) -> None:
        """Order the cases as this epoch has them."""
        if self.shuffle:
            self.generator.manual_seed(self.seed + epoch)


class Trainer(GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose checkpoints appear whole or not at all, and which writes no model card.

    With an `early_start`, each completion goes to the judge as soon as it is written. `evaluation` is what takes place
    where TRL would evaluate.
    """

    early_start: EarlyStart | None = None
    evaluation: Evaluation | None = None
    control: Any  # of transformers

    def _generate_and_score_completions(self, inputs: Sequence[Mapping[str, Any]]) -> Any:
        if self.early_start is None:
            return super()._generate_and_score_completions(inputs)
        self.early_start.begin_batch([row["doc_id"] for row in inputs])
        try:
            return super()._generate_and_score_completions(inputs)
        finally:
            self.early_start.begin_batch([])  # what vLLM writes in between, as for parity, is not to be judged

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        sampler = super()._get_train_sampler(dataset)
        self._epoch_sampler = EpochSampler(
            sampler.data_source,
            sampler.mini_repeat_count,
            sampler.batch_size,
            sampler.repeat_count,
            sampler.shuffle,
            sampler.seed,
        )
        return self._epoch_sampler

    def _run_epoch(self, *, epoch: int, **rest: Any) -> None:
        if self.state.global_step < self.state.max_steps:  # a finished run that is resumed would take one more step
            self._epoch_sampler.set_epoch(epoch)
            super()._run_epoch(epoch=epoch, **rest)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """The figures of `Evaluation.run`, logged; called by transformers when the configuration says."""
        if self.evaluation is None:
            return super().evaluate(*args, **kwargs)
        self.model.eval()
        metrics = self.evaluation.run(self)
        self.model.train()
        TransformersTrainer.log(self, dict(metrics))  # TRL's own would put what training has gathered into the line
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Whether the policy is the best so far; only one that is being saved can be the best checkpoint."""
        if not self.control.should_save and self.args.save_strategy != SaveStrategy.BEST:
            return False
        return bool(super()._determine_best_metric(metrics, trial))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write the checkpoint aside, force it to disk, and only then give it its name and remove older ones."""
        output_dir = Path(self.args.output_dir)
        name = f"checkpoint-{self.state.global_step}"
        if self.args.should_save:
            shutil.rmtree(output_dir / UNFINISHED_NAME, ignore_errors=True)  # what a killed process left of its last
        self.accelerator.wait_for_everyone()
        if self.state.best_global_step:
            best = output_dir / f"checkpoint-{self.state.best_global_step}"
            if best.is_dir() or best.name == name:
                self.state.best_model_checkpoint = str(best)
        super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # every rank has written its part
        if self.args.should_save:
            publish(output_dir / UNFINISHED_NAME / name, output_dir / name)
            rotate_checkpoints(
                str(output_dir), self.args.save_total_limit, self.state.best_model_checkpoint, use_mtime=False
            )
        self.accelerator.wait_for_everyone()

    def _get_output_dir(self, trial: Any) -> str:
        """Where transformers and TRL write checkpoints, and look for older ones to remove."""
        return str(Path(super()._get_output_dir(trial)) / UNFINISHED_NAME)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None: TRL would write a README.md about itself into every output_dir."""


class ParityProbe(TrainerCallback):  # type: ignore[misc]
    """Compares vLLM with the trainer before the first step (so after a resume), at each log, and after the last step.

    Before and after, on the same fixed sequences; in between TRL tells how far the two were apart on what vLLM has
    just written, which proves the sync that training itself uses. With dropout that figure is no proof: not looked at.
    """

    def __init__(self, trainer: GRPOTrainer, sequences: Sequence[Sequence[int]], config: ParityConfig) -> None:
        self._trainer = trainer
        self._sequences = sequences
        self._config = config
        self._has_dropout = any(isinstance(part, torch.nn.Dropout) and part.p > 0 for part in trainer.model.modules())
        self._dtype = run_dtype(trainer)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        check_parity(self._trainer, self._sequences, self._config, "before the first step")

    def on_log(self, *_: Any, logs: Mapping[str, Any], **__: Any) -> None:
        limit = limit_of(self._dtype, self._config)
        gap = logs.get(f"sampling/sampling_logp_difference/{limit.statistic}")
        if gap is not None and not self._has_dropout and not float(gap) <= limit.tolerance:
            raise ParityError(broken(float(gap), limit, self._dtype, "on what vLLM has just written"))

    def on_train_end(self, *_: Any, **__: Any) -> None:
        check_parity(self._trainer, self._sequences, self._config, "after the last step")
