"""The policy in training, asked about held-out cases and judged by the judge of evaluations.

When that happens (eval_strategy, eval_steps, eval_on_start), and what becomes of it (metric_for_best_model,
load_best_model_at_end, save_total_limit), is left to transformers; `train.trainer` puts this in place of TRL's own
evaluation, which rewards with the training judge, samples only as training does, and returns no score to choose by.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, get_args

from data.cases import Case
from data.jsonl import Appender
from rewards.answer import final_answer, is_empty
from rewards.exploitation import exploitation
from rewards.judge import Judge, JudgeConfig, judge_batch
from rewards.mini_judge import MiniJudge
from rewards.score import Judgment, Score, nothing_found, score_case

if TYPE_CHECKING:
    from train.trainer import Trainer

EVALUATIONS_NAME = "eval_in_training.jsonl"
PARTS = ("score", "order", "coverage", "correctness")
BEST_BY = tuple(f"eval_{part}" for part in PARTS)  # legal values of metric_for_best_model
Sampling = Literal["greedy", "t1"]
TEMPERATURES: Mapping[str, float] = {"greedy": 0.0, "t1": 1.0}


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What an evaluation in training takes (eval_strategy and eval_steps say when there is one)."""

    eval_num_cases: int = field(
        default=64, metadata={"help": "Cases of an evaluation in training: the first so many of eval_cases."}
    )
    eval_sampling: Sampling = field(
        default="greedy", metadata={"help": "How they are answered: greedy, or t1, one sample at temperature 1."}
    )

    def __post_init__(self) -> None:
        if self.eval_num_cases < 1:
            raise ValueError(f"eval_num_cases must be at least 1, got {self.eval_num_cases}")
        if self.eval_sampling not in get_args(Sampling):
            raise ValueError(f"eval_sampling must be one of {', '.join(get_args(Sampling))}, got {self.eval_sampling}")


@dataclass(frozen=True)
class Evaluation:
    """Evaluates a trainer's present policy on fixed cases, each with its prompt's token ids.

    Its judge is an object of its own: what it is asked must not appear in the figures of the training judge. So is
    `training_judge`, which is asked about the same answers where it is another one, with its settings.
    """

    cases: Sequence[tuple[Case, list[int]]]
    judge: Judge | MiniJudge
    judging: JudgeConfig
    sampling: Sampling
    output_dir: Path
    training_judge: tuple[Judge | MiniJudge, JudgeConfig] | None = None

    def run(self, trainer: "Trainer") -> dict[str, float]:
        """The figures of `summarize`, the same on every rank, each of which answers its share of the cases.

        With another training judge, those of `exploitation` too, as eval_exploitation and so on, NaN where not
        defined. One line with them and every case's score goes to eval_in_training.jsonl.
        """
        from accelerate.utils import gather_object

        rank, num_ranks = trainer.accelerator.process_index, trainer.accelerator.num_processes
        own = share(self.cases, rank, num_ranks)
        with sampling_at(trainer, TEMPERATURES[self.sampling]):
            ids, _ = trainer._generate_single_turn([ids for _, ids in own], None, {}, num_generations=1)
        answers = map(final_answer, trainer.processing_class.batch_decode(ids, skip_special_tokens=True))
        items = [(case, answer) for (case, _), answer in zip(own, answers, strict=True)]
        verdicts = _judged(items, self.judge, self.judging, trainer)
        quorum = self.judging.judge_quorum
        scores = [score_case(case, one, quorum) for (case, _), one in zip(items, verdicts, strict=True)]
        by_id = dict(gather_object([(case.id, score) for (case, _), score in zip(own, scores, strict=True)]))
        figures = summarize(list(by_id.values())) | {"eval_step": float(trainer.state.global_step)}
        if self.training_judge is not None:
            others = _judged(items, *self.training_judge, trainer)
            both = gather_object([(case.id, *two) for (case, _), *two in zip(items, others, verdicts, strict=True)])
            told = exploitation({id: other for id, other, _ in both}, {id: own for id, _, own in both})
            figures |= {f"eval_{name}": math.nan if share is None else share for name, share in told.items()}
        if trainer.is_world_process_zero():
            finite = {name: value if math.isfinite(value) else None for name, value in figures.items()}
            about = {"sampling": self.sampling, "judge": self.judging.judge_model or self.judging.judge}
            with Appender(self.output_dir / EVALUATIONS_NAME) as file:
                file.append(about | finite | {"scores": {id: score and asdict(score) for id, score in by_id.items()}})
        return figures


def _judged(
    items: Sequence[tuple[Case, str]], judge: Judge | MiniJudge, judging: JudgeConfig, trainer: "Trainer"
) -> list[Mapping[str, Judgment | None]]:
    """As eval/grade.py judges: a gate turns nothing away, and an empty answer treats no issue without a call."""
    judged = [item for item in items if not is_empty(item[1])]
    waiting = trainer.stopping.unless_stopped(judge_batch(judge, judged, judging.judge_deadline_s))
    verdicts = iter(asyncio.run_coroutine_threadsafe(waiting, trainer.async_loop).result() or ())
    trainer.stopping.agree(trainer.accelerator.num_processes)
    judge.stats.take()
    return [nothing_found(case) if is_empty(answer) else next(verdicts) for case, answer in items]


def summarize(scores: Sequence[Score | None]) -> dict[str, float]:
    """Means over the scored cases, NaN where there is none, and the share of the others: always the same names.

    >>> summarize([Score(1, 0.5, 0.25, 0, 5, 5), None])["eval_score"], summarize([None])["eval_unscored_frac"]
    (6.75, 1.0)
    """
    scored = [score for score in scores if score is not None]
    rows = [(score.total, score.order, score.coverage, score.correctness) for score in scored]
    means = map(fmean, zip(*rows, strict=True)) if rows else [math.nan] * len(PARTS)
    figures = {f"eval_{part}": mean for part, mean in zip(PARTS, means, strict=True)}
    return figures | {"eval_unscored_frac": 1 - len(scored) / len(scores)}


def share(cases: Sequence[Any], rank: int, num_ranks: int) -> list[Any]:
    """A rank's cases: as many for each, as TRL's server mode needs, so that the last ones may be some of the first.

    >>> [share("abcde", rank, 3) for rank in range(3)]
    [['a', 'b'], ['c', 'd'], ['e', 'a']]
    """
    size = math.ceil(len(cases) / num_ranks)
    return [cases[place % len(cases)] for place in range(rank * size, (rank + 1) * size)]


@contextmanager
def sampling_at(trainer: "Trainer", temperature: float) -> Iterator[None]:
    """Has the trainer generate at another temperature within the block; 0 is greedy."""
    target: Any = trainer.vllm_generation if trainer.use_vllm else trainer.generation_config
    values: dict[str, Any] = {"temperature": temperature}
    if not trainer.use_vllm:
        values = {"temperature": temperature or 1.0, "do_sample": temperature > 0}
    before = {name: getattr(target, name) for name in values}
    try:
        for name, value in values.items():
            setattr(target, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)
