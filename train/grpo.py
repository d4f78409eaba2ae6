"""Train a policy with GRPO on the LEGIT reward: accelerate launch train/grpo.py configs/X.yaml [--key value ...]."""

import os
import sys
from functools import partial
from pathlib import Path

from data.jsonl import write_text
from data.loading import InvalidCasesError
from rewards.early import EarlyJudge
from rewards.judge import Judge
from rewards.judge_card import card_notice
from rewards.reward import JudgeUnavailable, rubric_reward
from train.checkpoint_dirs import checkpoint_to_resume
from train.config import Settings, read_settings
from train.dry_run import dry_run, try_judge
from train.environment import prepare_environment
from train.evaluation import Evaluation
from train.inputs import (
    build_dataset,
    check_prompts_fit,
    end_token_ids,
    load_both,
    load_tokenizer,
    open_judge,
    prompt_ids,
)
from train.parity import ParityError
from train.plan import plan_step
from train.rollout import EarlyStart
from train.tracking import start_tracking
from train.yaml_file import ConfigError

NUM_PARITY_PROMPTS = 8
MAX_PARITY_TOKENS = 256


def main(settings: Settings) -> None:
    """Train as the settings say; all that comes of it is in output_dir."""
    style, template_kwargs = settings.data.prompt_style, settings["chat_template_kwargs"] or {}
    prepare_environment(use_cpu=settings["use_cpu"])
    plan = plan_step(settings.values, num_processes=int(os.environ.get("WORLD_SIZE", "1")))
    cases, eval_cases = load_both(settings.data, plan)
    judge = open_judge(settings.judge, [*cases, *eval_cases])
    if os.environ.get("RANK", "0") == "0" and (notice := card_notice(settings.judge)):
        print(notice, file=sys.stderr)
    eval_judge = None if settings["eval_strategy"] == "no" else open_judge(settings.eval_judge, eval_cases)
    if settings.dry_run:
        if os.environ.get("RANK", "0") == "0":
            dry_run(settings, plan, cases, eval_cases, judge, eval_judge)
        return

    from transformers import PrinterCallback, ProgressCallback
    from transformers.utils.logging import disable_progress_bar
    from trl import get_peft_config, get_quantization_config

    from train.progress import RunProgress
    from train.trainer import ParityProbe, Trainer

    disable_progress_bar()  # of every file that is read or written; RunProgress has the one that matters
    training, model = settings.trl_configs()
    output_dir = Path(training.output_dir)
    tokenizer = load_tokenizer(model.model_name_or_path, model.model_revision, training.trust_remote_code)
    check_prompts_fit(
        cases, style, tokenizer, template_kwargs, training.vllm_max_model_length, plan.max_completion_length
    )
    if settings.judge.judge_preflight and os.environ.get("RANK", "0") == "0":
        print(try_judge(judge, [*cases, *eval_cases], tokenizer, plan.max_completion_length), file=sys.stderr)
        if eval_judge and settings.eval_judge != settings.judge:
            print(try_judge(eval_judge, eval_cases, tokenizer, plan.max_completion_length), file=sys.stderr)
    if training.use_vllm and training.vllm_mode == "server":
        from train.file_weight_transfer import send_weights_by_file

        send_weights_by_file()  # only where there is no GPU

    early = None
    if settings.rollout.overlap_judge and training.use_vllm and isinstance(judge, Judge):
        early = EarlyJudge(judge, settings.judge.judge_deadline_s)
    by_id = {case.id: case for case in (*cases, *eval_cases)}
    end_ids = end_token_ids(model.model_name_or_path, model.model_revision, tokenizer)
    trainer = Trainer(
        model=model.model_name_or_path,
        args=training,
        reward_funcs=partial(
            rubric_reward,
            cases=by_id,
            judge=early or judge,
            reward=settings.reward,
            gates=settings.gates,
            judging=settings.judge,
            end_token_ids=end_ids,
        ),
        train_dataset=build_dataset(cases, style),
        eval_dataset=build_dataset(eval_cases, style) if training.eval_strategy != "no" else None,  # or it refuses
        peft_config=get_peft_config(model),
        quantization_config=get_quantization_config(model),
        callbacks=[RunProgress(output_dir)],
    )
    trainer.remove_callback(PrinterCallback if training.disable_tqdm else ProgressCallback)
    if eval_judge:
        asked = [
            (case, prompt_ids(case, style, tokenizer, template_kwargs))
            for case in eval_cases[: settings.evaluation.eval_num_cases]
        ]
        sampling = settings.evaluation.eval_sampling
        trainer.evaluation = Evaluation(asked, eval_judge, settings.eval_judge, sampling, output_dir)
    if early:
        trainer.early_start = EarlyStart(trainer, early, cases=by_id, gates=settings.gates, end_token_ids=end_ids)
    if training.use_vllm:
        prompts = [prompt_ids(case, style, tokenizer, template_kwargs) for case in cases[:NUM_PARITY_PROMPTS]]
        trainer.add_callback(ParityProbe(trainer, [ids[:MAX_PARITY_TOKENS] for ids in prompts], settings.parity))
    else:
        print("use_vllm is false: transformers writes the completions, many times slower", file=sys.stderr)

    if trainer.is_world_process_zero():
        write_text(output_dir / "config.yaml", settings.to_yaml())
        start_tracking(training, settings.given.get("project"), settings.values)
    trainer.train(resume_from_checkpoint=checkpoint_to_resume(output_dir, settings["resume_from_checkpoint"]))
    trainer.save_model(str(output_dir))


if __name__ == "__main__":
    rank = os.environ.get("RANK", "0")
    try:
        main(read_settings(sys.argv[1:]))
    except (ConfigError, InvalidCasesError) as error:
        if rank == "0":  # the others find the same
            print(error, file=sys.stderr)
        sys.exit(2)
    except (JudgeUnavailable, ParityError) as error:
        print(f"stopped (rank {rank}): {error}", file=sys.stderr)
        sys.exit(1)
