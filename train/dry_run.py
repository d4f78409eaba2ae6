"""What can be known of a run without training: its settings, its arithmetic, its cases, whether the judge answers."""

import asyncio
from collections.abc import Mapping, Sequence

from data.cases import Case
from data.endpoint import EndpointError
from rewards.judge import Judge, check_judge
from rewards.mini_judge import MiniJudge
from train.config import Settings
from train.inputs import check_prompts_fit, load_tokenizer
from train.plan import StepPlan, describe
from train.yaml_file import ConfigError


def dry_run(
    settings: Settings, plan: StepPlan, cases: Sequence[Case], eval_cases: Sequence[Case], judge: Judge | MiniJudge
) -> None:
    """Print the resolved configuration and the plan; check tokenizer, prompts and judge.

    Raises:
        ConfigError: what would stop the run.
    """
    print(settings.to_yaml())
    print("# Plan")
    sources: Mapping[str, Sequence[Case]] = {"cases": cases, "eval_cases": eval_cases}
    for name, loaded in sources.items():
        if loaded:
            print(f"{name}: {len(loaded):,} valid cases in {settings[name]}")
    for sentence in describe(plan, settings.values, cases):
        print(sentence)
    tokenizer = load_tokenizer(
        settings["model_name_or_path"], settings["model_revision"], settings["trust_remote_code"]
    )
    longest = check_prompts_fit(
        [*cases, *eval_cases],
        settings.data.prompt_style,
        tokenizer,
        settings["chat_template_kwargs"] or {},
        settings["vllm_max_model_length"],
        settings["max_completion_length"],
    )
    print(f"prompts: at most {longest:,} tokens, completions at most {settings['max_completion_length']:,}")
    try:
        print(asyncio.run(check_judge(judge)))
    except EndpointError as error:
        raise ConfigError([f"judge: {error}"]) from error
