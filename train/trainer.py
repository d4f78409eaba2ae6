"""What training adds to TRL's GRPOTrainer: whole checkpoints, the same order of cases after a resume, and parity."""

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Trainer as TransformersTrainer
from transformers import TrainerCallback
from transformers.trainer_utils import SaveStrategy, rotate_checkpoints
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from data.jsonl import Appender, write_json
from rewards.schemes import COVERAGE, CoverageFloor, advantage_parts, mean_coverage, signal
from rewards.score import COVERAGE_POINTS
from train.checkpoint_dirs import UNFINISHED_NAME, publish
from train.curriculum import CURRICULUM_NAME, Curriculum
from train.evaluation import Evaluation
from train.parity import ParityConfig, ParityError, broken, check_parity, limit_of, run_dtype
from train.rollout import EarlyStart
from train.stopping import Stopping
from train.yaml_file import ConfigError

FLOOR_NAME = "coverage_floor.json"


class EpochSampler(RepeatSampler):  # type: ignore[misc]  # TRL is untyped
    """TRL's sampler, shuffled by seed and epoch: TRL's own begins again with the first epoch's order after a resume.

    With a `curriculum` that one says what each generation takes; an epoch has as many of them as without.
    """

    curriculum: Curriculum | None = None
    first_generation = 0  # of the epoch

    def set_epoch(self, epoch: int) -> None:
        """Order the cases as this epoch has them."""
        self.first_generation = epoch * (self.num_samples // self.batch_size)
        if self.shuffle:
            self.generator.manual_seed(self.seed + epoch)

    def __iter__(self) -> Iterator[int]:
        if self.curriculum is None:
            yield from super().__iter__()
            return
        for number in range(self.num_samples // self.batch_size):
            places = self.curriculum.cases_of(self.first_generation + number)
            for _ in range(self.repeat_count):
                yield from (place for place in places for _ in range(self.mini_repeat_count))


class Trainer(GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose checkpoints appear whole or not at all, and which writes no model card.

    With an `early_start`, each completion goes to the judge as soon as it is written. `evaluation` is what takes place
    where TRL would evaluate. A `coverage_floor` moves the weight of coverage, and is kept in checkpoints. A
    `curriculum` chooses the cases, and is kept in output_dir.
    """

    early_start: EarlyStart | None = None
    evaluation: Evaluation | None = None
    coverage_floor: CoverageFloor | None = None
    curriculum: Curriculum | None = None
    stopping: Stopping = Stopping()
    control: Any  # of transformers

    def _generate_and_score_completions(self, inputs: Sequence[Mapping[str, Any]]) -> Any:
        if self.early_start is None:
            return super()._generate_and_score_completions(inputs)
        self.early_start.begin_batch([row["doc_id"] for row in inputs])
        try:
            return super()._generate_and_score_completions(inputs)
        finally:
            self.early_start.begin_batch([])  # what vLLM writes in between, as for parity, is not to be judged

    def _calculate_rewards(self, *batch: Any) -> Any:
        """TRL's: the columns of all ranks in whole groups, so that what is made of them here is the same everywhere."""
        columns = super()._calculate_rewards(*batch)
        self.stopping.agree(self.accelerator.num_processes)
        rows = columns.double().cpu().numpy()
        figures: dict[str, float] = {}
        if self.coverage_floor is not None:
            self.coverage_floor.update(mean_coverage(rows))
            self.reward_weights[COVERAGE] = COVERAGE_POINTS + self.coverage_floor.weight
            state = self.coverage_floor.state()
            figures = {f"coverage_floor/{name}": math.nan if value is None else value for name, value in state.items()}
        how = self.num_generations, self.multi_objective_aggregation, self.scale_rewards
        figures |= signal(advantage_parts(rows, self.reward_weights.tolist(), *how))
        if self.curriculum is not None:
            figures |= self._learn_what_was_easy(rows @ self.reward_weights.cpu().numpy())
        for name, value in figures.items():
            self._log_metric(name, value)
        return columns

    def _learn_what_was_easy(self, rewards: NDArray[np.float64]) -> dict[str, float]:
        """Tell the curriculum the rewards of this generation, keep them for a resume; what is logged comes back."""
        assert self.curriculum is not None  # noqa: S101
        groups = rewards.reshape(-1, self.num_generations).tolist()
        row = {"generation": self._generation, "rewards": self.curriculum.learn(self._generation, groups)}
        if self.is_world_process_zero():
            with Appender(Path(self.args.output_dir) / CURRICULUM_NAME) as file:
                file.append(row)
        self._generation += 1
        return {"curriculum/resting_frac": self.curriculum.resting_frac(self._generation)}

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
        self._epoch_sampler.curriculum = self.curriculum
        return self._epoch_sampler

    def _run_epoch(self, *, epoch: int, **rest: Any) -> None:
        if self.state.global_step < self.state.max_steps:  # a finished run that is resumed would take one more step
            self._epoch_sampler.set_epoch(epoch)
            passes_done = rest["steps_trained_in_current_epoch"] if epoch == rest["epochs_trained"] else 0
            generations_done = passes_done // self._epoch_sampler.repeat_count
            self._generation = self._epoch_sampler.first_generation + generations_done
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
            if self.coverage_floor is not None:
                write_json(output_dir / UNFINISHED_NAME / name / FLOOR_NAME, self.coverage_floor.state())
            publish(output_dir / UNFINISHED_NAME / name, output_dir / name)
            rotate_checkpoints(
                str(output_dir), self.args.save_total_limit, self.state.best_model_checkpoint, use_mtime=False
            )
        self.accelerator.wait_for_everyone()

    def restore_coverage_floor(self, checkpoint: Path) -> None:
        """Go on with the floor of the checkpoint that training goes on from.

        Raises:
            ConfigError: it was trained without one.
        """
        if self.coverage_floor is None:
            return
        path = checkpoint / FLOOR_NAME
        if not path.is_file():
            raise ConfigError([f"reward: coverage_floor goes on only from its own checkpoints; {path} is missing"])
        self.coverage_floor.restore(json.loads(path.read_text(encoding="utf-8")))

    def restore_curriculum(self) -> None:
        """Go on with the rewards that output_dir has of earlier generations.

        Raises:
            ConfigError: it has none.
        """
        if self.curriculum is None:
            return
        path = Path(self.args.output_dir) / CURRICULUM_NAME
        if not path.is_file():
            raise ConfigError([f"curriculum goes on only in a run that began with one; {path} is missing"])
        self.curriculum.remember(path)

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
