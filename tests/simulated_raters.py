"""Simulated raters of the mini world: they know the exact verdicts and err at known rates. No human marked anything."""

import asyncio
import json
import random
from pathlib import Path

from data.loading import load_cases
from data.mini import generate, gold_answer
from rewards.mini_judge import MiniJudge

GENERATORS = ("policy-a", "policy-b")


def write_world(folder: Path, num_cases: int = 40) -> Path:
    """Cases, and answers of two careless policies to them, in files of `folder`; returns the path of the cases."""
    rng = random.Random(7)
    records = generate(0, "test", num_cases)
    for number, record in enumerate(records):
        record["difficulty"] = ("easy", "medium", "hard")[number % 3]
    write_lines(folder / "cases.jsonl", records)
    for generator in GENERATORS:
        answers = []
        for record in records:
            lines = [line for line in gold_answer(record["answer"], record["mini"]).split("\n") if rng.random() < 0.8]
            lines = [line.replace("인정", "부정") if rng.random() < 0.3 else line for line in lines]
            answers.append({"doc_id": record["doc_id"], "model": generator, "response": "\n".join(lines)})
        write_lines(folder / f"{generator}.jsonl", answers)
    return folder / "cases.jsonl"


def simulated_marks(folder: Path, error_rate: float, seed: str, missing_rate: float = 0.0):
    """(generator, doc_id, marks by issue id): each exact verdict turned over with the error rate, None if missing."""
    rng = random.Random(seed)
    cases = {case.id: case for case in load_cases(folder / "cases.jsonl")}
    for generator in GENERATORS:
        for line in (folder / f"{generator}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            exact = asyncio.run(MiniJudge().judge_case(cases[record["doc_id"]], record["response"]))
            marks = {}
            for issue_id, judgment in exact.items():
                contains = bool(judgment.contains_issue) ^ (rng.random() < error_rate)
                correct = bool(judgment.correct_conclusion) ^ (rng.random() < error_rate)
                missing = rng.random() < missing_rate
                marks[issue_id] = None if missing else (contains, correct)
            yield generator, record, marks


def write_expert_file(path: Path, error_rate: float, missing_rate: float = 0.0) -> Path:
    """An official expert file of a simulated rater, beside the world's files."""
    content = {generator: {} for generator in GENERATORS}
    for generator, record, marks in simulated_marks(path.parent, error_rate, path.stem, missing_rate):
        result = {
            id: mark and {"annotator": "simulated", "contains_issue": int(mark[0]), "correct_conclusion": int(mark[1])}
            for id, mark in marks.items()
        }
        content[generator][record["doc_id"]] = {"evaluation_result": result}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def write_lines(path: Path, records) -> Path:
    """A JSON Lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path
