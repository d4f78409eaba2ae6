"""What a run is given, checked against each other before a model loads: cases, judge and tokenizer."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.cases import Case
from data.contexts import Contexts, RetrievalConfig, contexts_for, drop_some
from data.jsonl import JsonlError
from data.law import LawError, known_laws
from data.loading import load_cases
from data.prompts import PromptStyle, build_prompt
from rewards.gates import GateConfig
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.mini_judge import MiniJudge
from train.config import DataConfig, Settings
from train.curriculum import Curriculum, graded_rewards, loader_lag
from train.plan import StepPlan
from train.yaml_file import ConfigError

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

Ask = Callable[[Case], list[dict[str, str]]]  # the messages that put a case to the policy


def load_both(data: DataConfig, plan: StepPlan) -> tuple[list[Case], list[Case]]:
    """The cases to train on and those to evaluate on, if any.

    Raises:
        InvalidCasesError: with all problems of a source.
        ConfigError: a case is in both, or there are too few for one generation.
    """
    cases = load_cases(data.cases, data.split, data.on_invalid)
    eval_cases = load_cases(data.eval_cases, data.eval_split, data.on_invalid) if data.eval_cases else []
    if shared := sorted({case.id for case in cases} & {case.id for case in eval_cases}):
        raise ConfigError(
            [f"eval_cases: {len(shared)} of them are also in cases, {shared[0]!r} for one: evaluate on held-out cases"]
        )
    if len(cases) < plan.prompts:
        raise ConfigError(
            [f"cases: {data.cases} has {len(cases)}, and one generation takes {int(plan.prompts)} prompts: give more "
             "cases, or lower per_device_train_batch_size or gradient_accumulation_steps"]
        )  # fmt: skip
    return cases, eval_cases


def open_curriculum(settings: Settings, plan: StepPlan, cases: Sequence[Case]) -> Curriculum | None:
    """What chooses the cases of each generation, None where all of them come in turn.

    Raises:
        ConfigError: curriculum_grades are none, or of other cases.
    """
    config = settings.curriculum
    if config.curriculum == "off":
        return None
    ids, known = [case.id for case in cases], {}
    if path := config.curriculum_grades:
        try:
            graded = graded_rewards(path, settings["reward_weights"])
        except (JsonlError, OSError) as error:
            raise ConfigError([f"curriculum_grades: {error}"]) from error
        known = {id: graded[id] for id in ids if id in graded}
        if not known:
            raise ConfigError([f"curriculum_grades: {path} has no grade of a case that is trained on"])
    per_pass = settings["per_device_train_batch_size"] * plan.num_processes
    passes = plan.completions // per_pass * plan.num_iterations
    ahead = settings["dataloader_num_workers"] * (settings["dataloader_prefetch_factor"] or 2)
    return Curriculum(
        ids,
        config,
        size=int(plan.prompts),
        lag=loader_lag(settings["gradient_accumulation_steps"], passes, ahead),
        seed=settings["seed"],
        known=known,
    )


def rank_share(slots: int, rank: int, num_ranks: int) -> int:
    """A rank's part of the requests that all ranks together may have in flight; never none.

    >>> [rank_share(10, rank, 4) for rank in range(4)], rank_share(2, 3, 4)
    ([3, 3, 2, 2], 1)
    """
    return max(1, slots // num_ranks + (rank < slots % num_ranks))


def open_judge(config: JudgeConfig, cases: Sequence[Case]) -> Judge | MiniJudge:
    """The judge that the configuration names, able to judge these cases; nothing is asked over a network yet.

    Of its judge_max_concurrency it takes this rank's part.

    Raises:
        ConfigError: its endpoint needs a key that is not set, or it is the mini world's and a case is not.
    """
    try:
        rank, num_ranks = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1")))
        slots = rank_share(config.judge_max_concurrency, rank, num_ranks)
        judge = load_judge(replace(config, judge_max_concurrency=slots))
        if isinstance(judge, MiniJudge):
            for case in cases:
                asyncio.run(judge.judge_case(case, ""))
    except ValueError as error:
        raise ConfigError([f"judge: {error}"]) from error
    return judge


def find_law(
    data: DataConfig, retrieval: RetrievalConfig, gates: GateConfig, cases: Sequence[Case], eval_cases: Sequence[Case]
) -> Contexts:
    """The law that stands before the questions: for a part of the training cases perhaps, for all others.

    Raises:
        ConfigError: there is none to be had, or that of held-out cases has got into the index.
    """
    try:
        of_cases = contexts_for(cases, retrieval, held_out=False)
        of_eval_cases = contexts_for(eval_cases, retrieval, held_out=True)
        if gates.gate_precedents:
            known_laws(gates.gate_precedents)
    except LawError as error:
        raise ConfigError([f"retriever: {error}"]) from error
    return {**drop_some(of_cases, data.retriever_dropout, seed=0), **of_eval_cases}


def asker(style: PromptStyle, laws: Contexts) -> Ask:
    """Puts a case to the policy as its configuration says."""
    return lambda case: build_prompt(case, style, laws.get(case.id, ()))


def build_dataset(cases: Sequence[Case], ask: Ask) -> "Dataset":
    """One row per case: `prompt`, the messages to the policy, and `doc_id`, by which the reward finds the case."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": ask(case), "doc_id": case.id} for case in cases])


def load_tokenizer(name: str, revision: str, trust_remote_code: bool) -> "PreTrainedTokenizerBase":
    """The policy's tokenizer.

    Raises:
        ConfigError: there is none to be had, or it cannot turn messages into a prompt.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError([f"model_name_or_path: no tokenizer can be loaded from {name}: {reason}"]) from error
    if tokenizer.chat_template is None:
        problem = f"model_name_or_path: the tokenizer of {name} has no chat template: take an instruct model"
        raise ConfigError([problem])
    return tokenizer


def end_token_ids(name: str, revision: str, tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """The tokens that end a completion, as TRL and vLLM see it: the tokenizer's and the model's own."""
    from transformers import AutoConfig, GenerationConfig

    try:
        generation = GenerationConfig.from_pretrained(name, revision=revision)
    except OSError:  # an older model, which has them in its config
        generation = GenerationConfig.from_model_config(AutoConfig.from_pretrained(name, revision=revision))
    own = generation.eos_token_id
    ids = own if isinstance(own, list) else [own]
    return frozenset(id for id in [tokenizer.eos_token_id, *ids] if id is not None)


def prompt_ids(
    case: Case, ask: Ask, tokenizer: "PreTrainedTokenizerBase", template_kwargs: Mapping[str, Any]
) -> list[int]:
    """The tokens of a case's prompt, up to where the policy begins to write."""
    ids: list[int] = tokenizer.apply_chat_template(
        ask(case), add_generation_prompt=True, tokenize=True, return_dict=False, **template_kwargs
    )
    return ids


def check_prompts_fit(
    cases: Sequence[Case],
    ask: Ask,
    tokenizer: "PreTrainedTokenizerBase",
    template_kwargs: Mapping[str, Any],
    room: int | None,
    max_completion_length: int,
) -> int:
    """The longest prompt in tokens.

    Raises:
        ConfigError: with the longest completion it does not fit into `room`, vllm_max_model_length.
    """
    longest, at = 0, ""
    texts = [
        (tokenizer.apply_chat_template(ask(case), add_generation_prompt=True, tokenize=False,
                                       **template_kwargs), case.id)
        for case in cases
    ]  # fmt: skip
    for text, id in sorted(texts, key=lambda item: -len(item[0].encode())):
        if len(text.encode()) <= longest:
            break  # no token is shorter than a byte
        length = len(tokenizer(text, add_special_tokens=False)["input_ids"])
        if length > longest:
            longest, at = length, id
    if room and longest + max_completion_length > room:
        raise ConfigError(
            [f"vllm_max_model_length: {room} is too small for the prompt of case {at!r} ({longest} tokens) and "
             f"max_completion_length ({max_completion_length}): it must be {longest + max_completion_length} or more"]
        )  # fmt: skip
    return longest
