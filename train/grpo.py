"""Train a policy with GRPO on the LEGIT reward: accelerate launch train/grpo.py configs/X.yaml [--key value ...]."""

import math
import os
import sys
from functools import partial
from pathlib import Path

from data.command import InputError
from data.jsonl import write_text
from rewards.early import EarlyJudge
from rewards.judge import Judge
from rewards.judge_card import card_notice, verdict_settings
from rewards.mini_judge import MiniJudge
from rewards.reward import JudgeUnavailable, RewardColumns, rubric_reward
from train.alert_rules import AlertStop
from train.checkpoint_dirs import checkpoint_to_resume
from train.config import Settings, read_settings
from train.dry_run import dry_run, find_judges, try_judge
from train.environment import prepare_environment
from train.evaluation import Evaluation
from train.inputs import (
    asker,
    build_dataset,
    check_prompts_fit,
    end_token_ids,
    find_law,
    load_both,
    load_tokenizer,
    open_curriculum,
    open_judge,
    prompt_ids,
)
from train.parity import ParityError
from train.plan import plan_step
from train.rollout import EarlyStart, Watch, ignore
from train.stopping import STATUS, Preempted, Stopping, leave, wait_for_rank_0
from train.tracking import start_tracking

NUM_PARITY_PROMPTS = 8
MAX_PARITY_TOKENS = 256


def main(settings: Settings, judge: Judge | MiniJudge | None = None) -> None:
    """Train as the settings say, or with another judge than they name; all that comes of it is in output_dir."""
    template_kwargs = settings["chat_template_kwargs"] or {}
    prepare_environment(use_cpu=settings["use_cpu"])
    stopping = Stopping()
    stopping.listen()
    plan = plan_step(settings.values, num_processes=int(os.environ.get("WORLD_SIZE", "1")))
    is_main = os.environ.get("RANK", "0") == "0"
    if is_main and judge is None:
        find_judges(settings)
    checkpoint = checkpoint_to_resume(Path(settings["output_dir"]), settings["resume_from_checkpoint"])
    if is_main and settings["resume_from_checkpoint"] and checkpoint is None:
        print(f"no checkpoint in {settings['output_dir']} yet: the run begins at step 0", file=sys.stderr)
    cases, eval_cases = load_both(settings.data, plan)
    laws = find_law(settings.data, settings.retrieval, settings.gates, cases, eval_cases)
    ask = asker(settings.data.prompt_style, laws)
    curriculum = open_curriculum(settings, plan, cases)
    judge = judge or open_judge(settings.judge, [*cases, *eval_cases])
    if is_main and (notice := card_notice(settings.judge, {case.language for case in cases})):
        print(notice, file=sys.stderr)
    eval_judge = None if settings["eval_strategy"] == "no" else open_judge(settings.eval_judge, eval_cases)
    if settings.dry_run:
        if is_main:
            dry_run(settings, plan, cases, eval_cases, ask, judge, eval_judge)
        return

    from transformers import PrinterCallback, ProgressCallback
    from transformers.utils.logging import disable_progress_bar
    from trl import get_peft_config, get_quantization_config

    from train.alerts import Alerts
    from train.last_step import LastStep
    from train.progress import RunProgress
    from train.throughput import Throughput
    from train.trainer import ParityProbe, Trainer

    disable_progress_bar()  # of every file that is read or written; RunProgress has the one that matters
    training, model = settings.trl_configs()
    output_dir = Path(training.output_dir)
    tokenizer = load_tokenizer(model.model_name_or_path, model.model_revision, training.trust_remote_code)
    check_prompts_fit(
        cases, ask, tokenizer, template_kwargs, training.vllm_max_model_length, plan.max_completion_length
    )
    if is_main and settings.judge.judge_preflight:
        print(try_judge(judge, [*cases, *eval_cases], tokenizer, plan.max_completion_length), file=sys.stderr)
    if is_main and eval_judge and settings.eval_judge.judge_preflight and settings.eval_judge != settings.judge:
        print(try_judge(eval_judge, eval_cases, tokenizer, plan.max_completion_length), file=sys.stderr)
    if training.use_vllm and training.vllm_mode == "server":
        from train.file_weight_transfer import send_weights_by_file

        send_weights_by_file()  # only where there is no GPU

    early = None
    if settings.rollout.overlap_judge and training.use_vllm and isinstance(judge, Judge):
        early = EarlyJudge(judge, settings.judge.judge_deadline_s)
    by_id = {case.id: case for case in (*cases, *eval_cases)}
    end_ids = end_token_ids(model.model_name_or_path, model.model_revision, tokenizer)
    rubric = partial(
        rubric_reward,
        cases=by_id,
        judge=early or judge,
        reward=settings.reward,
        gates=settings.gates,
        judging=settings.judge,
        end_token_ids=end_ids,
    )
    trainer = Trainer(
        model=model.model_name_or_path,
        args=training,
        reward_funcs=RewardColumns(stopping.guard(rubric)).functions,
        train_dataset=build_dataset(cases, ask),
        eval_dataset=build_dataset(eval_cases, ask) if training.eval_strategy != "no" else None,  # or it refuses
        peft_config=get_peft_config(model),
        quantization_config=get_quantization_config(model),
        callbacks=[RunProgress(output_dir)],
    )
    trainer.coverage_floor = settings.reward.new_floor()
    trainer.curriculum = curriculum
    trainer.stopping = stopping
    last_step = LastStep(trainer, stopping, updates=math.ceil(plan.updates))
    trainer.add_callback(last_step)
    trainer.add_callback(Alerts(settings.alerts, output_dir, stopping))
    trainer.remove_callback(PrinterCallback if training.disable_tqdm else ProgressCallback)
    if eval_judge:
        asked = [
            (case, prompt_ids(case, ask, tokenizer, template_kwargs))
            for case in eval_cases[: settings.evaluation.eval_num_cases]
        ]
        sampling = settings.evaluation.eval_sampling
        other = None
        if verdict_settings(settings.judge) != verdict_settings(settings.eval_judge):
            other = (open_judge(settings.judge, eval_cases), settings.judge)
        trainer.evaluation = Evaluation(asked, eval_judge, settings.eval_judge, sampling, output_dir, other)
    if early:
        trainer.early_start = EarlyStart(trainer, early, cases=by_id, gates=settings.gates, end_token_ids=end_ids)
    if training.use_vllm:
        look = partial(stopping.look, trainer.accelerator.num_processes)
        finished = trainer.early_start.finished if trainer.early_start else ignore
        Watch(finished, look, last_step.seed_of).over(trainer.vllm_generation)
        prompts = [prompt_ids(case, ask, tokenizer, template_kwargs) for case in cases[:NUM_PARITY_PROMPTS]]
        trainer.add_callback(ParityProbe(trainer, [ids[:MAX_PARITY_TOKENS] for ids in prompts], settings.parity))
        trainer.add_callback(Throughput(trainer))
    else:
        print("use_vllm is false: transformers writes the completions, many times slower", file=sys.stderr)

    if trainer.is_world_process_zero():
        write_text(output_dir / "config.yaml", settings.to_yaml())
        start_tracking(training, settings.given.get("project"), settings.values)
    if checkpoint:
        trainer.restore_coverage_floor(checkpoint)
        trainer.restore_curriculum()
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    except (Preempted, JudgeUnavailable, AlertStop):
        saved = last_step.save()
        print(f"all up to here is in {saved}" if saved else "nothing was learnt yet", file=sys.stderr)
        raise
    trainer.save_model(str(output_dir))


if __name__ == "__main__":
    rank = os.environ.get("RANK", "0")
    try:
        main(read_settings(sys.argv[1:]))
    except InputError as error:
        if rank != "0":  # it finds the same, and a launcher ends all as soon as one has ended
            wait_for_rank_0()
        print(error, file=sys.stderr)
        sys.exit(2)
    except AlertStop as error:
        print(f"stopped by alerts: {error}. See docs/reward-hacking.md", file=sys.stderr)
        sys.exit(1)
    except (JudgeUnavailable, ParityError) as error:
        print(f"stopped (rank {rank}): {error}", file=sys.stderr)
        sys.exit(1)
    except Preempted as error:
        print(f"ended by {error}; the same command with --resume_from_checkpoint latest goes on", file=sys.stderr)
        leave(STATUS)
