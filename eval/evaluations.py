"""A run's checkpoints: one engine answers for all, the judge grades, and the training judge too if it is another."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from data.cases import Case
from data.command import InputError
from data.contexts import Contexts
from data.jsonl import Appender
from data.progress import progress_bar
from eval.engine import Engine, Prompts, lora_rank, weights_id
from eval.grading import DeadJudgeError
from eval.judging import grade_file
from eval.pins import holds, pin_settings, read_settings, set_aside
from eval.results import Grade, Key, Response, read_responses
from eval.runs import Checkpoint, Run
from eval.solve import Question, ask_about, ask_policy, unanswered
from eval.summary import summarize_grades
from eval.tracking import Evaluated
from rewards.exploitation import exploitation
from rewards.gates import GateConfig
from rewards.judge import JudgeConfig

TEMPERATURES = {"greedy": 0.0, "t1": 1.0}
TRAINING_JUDGE = "training_judge"  # the folder, beside the grades, of those that the training judge gives


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One checkpoint asked in one way: its folder, and all questions that it has to answer."""

    checkpoint: Checkpoint
    sampling: str
    directory: Path
    questions: tuple[Question, ...]

    @property
    def responses_path(self) -> Path:
        """Where its responses are, or will be."""
        return self.directory / "responses.jsonl"


def plan(
    run: Run,
    checkpoints: Sequence[Checkpoint],
    cases: Sequence[Case],
    samplings: Sequence[str],
    num_samples: int,
    out: Path,
    laws: Contexts = MappingProxyType({}),
) -> list[Evaluation]:
    """Every checkpoint in every way of sampling; greedy decoding has one sample, whatever `num_samples` says."""
    questions = {
        sampling: tuple(ask_about(cases, num_samples if TEMPERATURES[sampling] else 1, run.prompt_style, laws))
        for sampling in samplings
    }
    return [
        Evaluation(checkpoint, sampling, out / checkpoint.name / sampling, questions[sampling])
        for checkpoint in checkpoints
        for sampling in samplings
    ]


class Solver:
    """Fills responses files: one engine, started when the first is needed, goes through all checkpoints of a run."""

    def __init__(self, run: Run, tensor_parallel_size: int) -> None:
        self._run = run
        self._tensor_parallel_size = tensor_parallel_size
        self._started: tuple[Engine, Prompts] | None = None

    def solve_missing(self, evaluations: Sequence[Evaluation]) -> None:
        """Have every checkpoint answer what its file lacks."""
        todo: list[tuple[Evaluation, list[Question]]] = []
        for evaluation in evaluations:
            _pin(evaluation, self._run)
            if questions := unanswered(evaluation.questions, evaluation.responses_path):
                todo.append((evaluation, questions))
        if not todo:
            return
        engine, prompts = self._started = self._started or self._start(todo)
        with progress_bar("responses", sum(len(questions) for _, questions in todo)) as advance:
            for evaluation, questions in todo:
                engine.load(evaluation.checkpoint.policy)
                with Appender(evaluation.responses_path) as file:

                    def keep(response: Response, file: Appender = file) -> None:
                        file.append(response.to_record())
                        advance()

                    ask_policy(
                        engine,
                        prompts,
                        questions,
                        evaluation.checkpoint.name,
                        keep,
                        temperature=TEMPERATURES[evaluation.sampling],
                        max_tokens=self._run.max_completion_length,
                    )

    def _start(self, todo: Sequence[tuple[Evaluation, Sequence[Question]]]) -> tuple[Engine, Prompts]:
        """An engine with room for all of the evaluations' questions, and for the adapters that are still to come."""
        policies = [evaluation.checkpoint.policy for evaluation, _ in todo]
        prompts = Prompts(policies[-1], self._run.chat_template_kwargs)
        longest = max(len(prompts.encode(question.messages)) for one, _ in todo for question in one.questions)
        ranks = [lora_rank(policy.adapter) for policy in policies if policy.adapter]
        engine = Engine(
            policies[0],
            max_model_len=longest + self._run.max_completion_length,
            max_lora_rank=max(self._run.lora_rank, *ranks, 0),
            dtype=self._run.dtype,
            tensor_parallel_size=self._tensor_parallel_size,
        )
        return engine, prompts


@dataclass
class Grading:
    """Grades evaluations with `judge`; with `training_judge` too, if it is another one, until that one fails."""

    cases: Mapping[str, Case]
    judge: JudgeConfig
    training_judge: JudgeConfig | None
    gates: GateConfig

    def grade(self, evaluation: Evaluation) -> Evaluated:
        """The evaluation with its grades and figures; only verdicts that are missing are asked for."""
        grades = self._grade(evaluation, self.judge, evaluation.directory)
        figures = summarize_grades(grades, self.cases)
        if self.training_judge is not None:
            try:
                others = self._grade(evaluation, self.training_judge, evaluation.directory / TRAINING_JUDGE)
                figures |= exploitation(
                    *({key: grade.judgments for key, grade in graded.items()} for graded in (others, grades))
                )
            except (DeadJudgeError, InputError) as error:
                print(f"Exploitation is not told: the training judge cannot be asked. {error}", file=sys.stderr)
                self.training_judge = None
        checkpoint = evaluation.checkpoint
        return Evaluated(evaluation.sampling, checkpoint.name, checkpoint.step, figures, grades)

    def _grade(self, evaluation: Evaluation, judge: JudgeConfig, directory: Path) -> dict[Key, Grade]:
        asked = {(question.case_id, question.sample) for question in evaluation.questions}
        file = read_responses(evaluation.responses_path)
        file = replace(file, responses=tuple(response for response in file.responses if response.key in asked))
        judged_by = "" if judge is self.judge else " by the training judge"
        title = f"grades of {evaluation.checkpoint.name}, {evaluation.sampling}{judged_by}"
        return grade_file(self.cases, file, directory, judge, self.gates, title)


def _pin(evaluation: Evaluation, run: Run) -> None:
    """Settings of a folder; what other weights gave, from an earlier run into the same place, makes way."""
    path = evaluation.directory / "responses.meta.json"
    settings = {
        "weights": weights_id(evaluation.checkpoint.policy),
        "prompt_style": run.prompt_style,
        "temperature": TEMPERATURES[evaluation.sampling],
        "max_tokens": run.max_completion_length,
    }
    if path.is_file() and read_settings(path).get("weights") != settings["weights"]:
        print(
            f"{evaluation.directory} is of other weights; it is now {set_aside(evaluation.directory)}", file=sys.stderr
        )
    pin_settings(path, settings, is_begun=holds(evaluation.responses_path))
