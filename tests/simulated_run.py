"""A training run that never was: mini cases, and simulated responses of a base and its checkpoints, graded exactly.

The simulated policy learns to decide right and to order right, and forgets to cover, as LEGIT's did.
"""

import json
import random
from pathlib import Path

from data.jsonl import Appender, write_text
from data.mini import generate, issue_line, join_answer
from data.records import from_record
from eval.judging import grade_file
from eval.results import Response, read_responses
from rewards.gates import GateConfig
from rewards.judge import JudgeConfig

CONFIG = """\
model_name_or_path: {run_dir}/simulated-base
eval_cases: {cases}
prompt_style: bare
max_completion_length: 64
judge: mini
report_to: none
"""
GATES = GateConfig(gate_min_hangul_frac=0.0)
WRONG_ORDERS = ("원고의 청구를 기각한다.", "이 사건 소를 각하한다.", "피고는 원고에게 100원을 지급하라.")


def write_simulated_run(
    run_dir: Path, num_cases: int = 40, num_checkpoints: int = 5, num_samples: int = 1, seed: int = 0
) -> Path:
    """The run's folder, as training and eval/checkpoints.py leave it, without any weights."""
    records = generate(seed, "test", num_cases)
    cases = {record["doc_id"]: from_record(record) for record in records}
    path = run_dir / "simulated_test.jsonl"
    write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    write_text(run_dir / "config.yaml", CONFIG.format(run_dir=run_dir, cases=path))
    for number in range(num_checkpoints + 1):
        name = f"checkpoint-{20 * number}" if number else "base"
        folder = run_dir / "eval" / name / ("greedy" if num_samples == 1 else "t1")
        skill = number / max(1, num_checkpoints)
        with Appender(folder / "responses.jsonl") as file:
            for record in records:
                for sample in range(num_samples):
                    fates = Fates(f"{seed} {record['doc_id']} {sample}", name)
                    text, reason = simulated_response(fates, record, skill)
                    file.append(Response(record["doc_id"], text, f"{name}", reason, sample).to_record())
        responses = read_responses(folder / "responses.jsonl")
        grade_file(cases, responses, folder, JudgeConfig(judge="mini"), GATES)
    return run_dir


class Fates:
    """Uniform draws that checkpoints have in part in common, so that most cases stay as they are and some turn."""

    def __init__(self, case: str, checkpoint: str) -> None:
        self._case, self._checkpoint = random.Random(case), random.Random(f"{case} {checkpoint}")

    def draw(self) -> float:
        return (self._case.random() + 0.15 * self._checkpoint.random()) % 1


def simulated_response(fates: Fates, record: dict, skill: float) -> tuple[str, str]:
    """What a policy of this skill, 0 to 1, might write, and its finish_reason: covers less and decides better."""
    lines, num_right = [], 0
    for id, issue in record["mini"]["issues"].items():
        depth = id.count(".")
        covers = fates.draw() < 0.85 - 0.2 * skill - 0.15 * depth
        is_right = fates.draw() < 0.5 + 0.42 * skill - 0.05 * depth
        if covers:
            num_right += is_right
            lines.append(issue_line(issue["name"], issue["accepted"] == is_right))
    orders_right = fates.draw() < 0.1 + 0.35 * skill + 0.45 * num_right / len(record["mini"]["issues"])
    wrong = [order for order in WRONG_ORDERS if order != record["answer"]]
    text = join_answer(lines, record["answer"] if orders_right else wrong[len(lines) % len(wrong)])
    if fates.draw() < 0.08 * (1 - skill):
        return text[: len(text) // 2], "length"
    return text, "stop"
