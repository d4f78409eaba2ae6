"""What can be known of a run without training: its settings, its arithmetic, its cases, whether the judge answers."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from data.cases import Case
from rewards.judge import Judge
from rewards.mini_judge import MiniJudge
from rewards.preflight import UnfitJudge, find_servers, preflight
from train.config import Settings
from train.inputs import Ask, check_prompts_fit, load_tokenizer, open_judge
from train.plan import StepPlan, describe
from train.yaml_file import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

T = TypeVar("T")

# A completion of the greatest length is made of it: legal Korean, as dense in tokens as answers are.
_PROSE = "피고는 원고에게 금전을 지급할 의무가 있다고 볼 만한 증거가 없으므로 이 부분 청구는 이유 없다. "


def dry_run(
    settings: Settings,
    plan: StepPlan,
    cases: Sequence[Case],
    eval_cases: Sequence[Case],
    ask: Ask,
    judge: Judge | MiniJudge,
    eval_judge: Judge | MiniJudge | None = None,
) -> None:
    """Print the resolved configuration and the plan; check tokenizer, prompts, what TRL objects to, and the judge.

    Raises:
        ConfigError: what would stop the run.
    """
    print(settings.to_yaml())
    print("# Plan")
    sources: Mapping[str, Sequence[Case]] = {"cases": cases, "eval_cases": eval_cases}
    for name, loaded in sources.items():
        if loaded:
            print(f"{name}: {len(loaded):,} valid cases in {settings[name]}")
    for sentence in describe(plan, settings.values, settings.judge, cases):
        print(sentence)
    tokenizer = load_tokenizer(
        settings["model_name_or_path"], settings["model_revision"], settings["trust_remote_code"]
    )
    longest = check_prompts_fit(
        [*cases, *eval_cases],
        ask,
        tokenizer,
        settings["chat_template_kwargs"] or {},
        settings["vllm_max_model_length"],
        settings["max_completion_length"],
    )
    print(f"prompts: at most {longest:,} tokens, completions at most {settings['max_completion_length']:,}")
    settings.trl_configs()
    print(try_judge(judge, [*cases, *eval_cases], tokenizer, settings["max_completion_length"]))
    if eval_judge and settings.eval_judge != settings.judge:
        print("of evaluations: " + try_judge(eval_judge, eval_cases, tokenizer, settings["max_completion_length"]))


def find_judges(settings: Settings) -> None:
    """Look whether the servers are there that a dry run, or the trial before a run, will ask; it takes no time.

    Raises:
        ConfigError: one of them is not.
    """
    configs = [settings.judge]
    if settings["eval_strategy"] != "no" and settings.eval_judge != settings.judge:
        configs.append(settings.eval_judge)
    for config in configs:
        if settings.dry_run or config.judge_preflight:
            _unless_unfit(find_servers(open_judge(replace(config, judge_store=None), [])))


def try_judge(
    judge: Judge | MiniJudge,
    cases: Sequence[Case],
    tokenizer: "PreTrainedTokenizerBase",
    max_completion_length: int,
) -> str:
    """What `preflight` says of the judge, asked also about the longest issue of a response as long as any can be.

    Raises:
        ConfigError: the judge is not fit for the run.
    """
    case, issue = max(((case, issue) for case in cases for issue in case.issues), key=lambda pair: len(str(pair[1])))
    ids = tokenizer(_PROSE * (1 + max_completion_length // 10), add_special_tokens=False)["input_ids"]
    answer: str = tokenizer.decode(ids[:max_completion_length])
    return _unless_unfit(preflight(judge, (issue, answer), case.language))


def _unless_unfit(trial: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(trial)
    except UnfitJudge as error:
        raise ConfigError([f"judge: {error}\n(judge_preflight: false trains without this trial)"]) from error
