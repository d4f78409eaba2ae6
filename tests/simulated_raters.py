"""Simulated raters of the mini world: they know the exact verdicts and err at known rates. No human marked anything."""

import asyncio
import json
import math
import random
from pathlib import Path

from fake_llm_server import Reply, Request, Script, completion, payload

from data.loading import load_cases
from data.mini import generate, gold_answer
from rewards.mini_judge import MiniJudge
from rewards.rubric import render

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


def write_likert_file(path: Path, spread: int) -> Path:
    """Likert grades of a simulated rater, beside the world's files: the share of exact verdicts, give or take."""
    rng = random.Random(path.stem)
    records = []
    for generator, record, marks in simulated_marks(path.parent, 0.0, path.stem):
        grade = round(10 * sum(map(all, marks.values())) / len(marks)) + rng.randint(-spread, spread)
        records.append(record | {"model": generator, "judge": path.stem, "likert": min(10, max(0, grade))})
    return write_lines(path, records)


def simulated_soft_judge(folder: Path, error_rate: float) -> Script:
    """A script for FakeLLM: P(true) is 0.65 for yes and 0.15 for no, each exact verdict turned over at that rate."""
    known: dict[str, dict[str, tuple[float, ...]]] = {}  # the question about an issue -> answer -> P(true) of both
    cases = {case.id: case for case in load_cases(folder / "cases.jsonl")}
    for _, record, marks in simulated_marks(folder, error_rate, "soft"):
        for issue in cases[record["doc_id"]].issues:
            chances = tuple(0.65 if mark else 0.15 for mark in marks[issue.id])
            question = _question(render(issue, "", rationales=False)[-1]["content"])
            known.setdefault(question, {})[record["response"]] = chances

    def script(request: Request) -> Reply:
        answers = known[_question(request.text)]
        contains, correct = answers[max((answer for answer in answers if answer in request.text), key=len)]
        spelled = [
            ('{"contains_issue": ', 1.0),
            ("true", contains),
            (', "correct_conclusion": ', 1.0),
            ("true", correct),
            ("}", 1.0),
        ]
        body = json.loads(completion("".join(token for token, _ in spelled)).body)
        body["choices"][0]["logprobs"] = {"content": [_token(token, chance) for token, chance in spelled]}
        return payload(body)

    return script


def _token(token: str, chance: float) -> dict[str, object]:
    others = {token: chance} if chance == 1 else {token: chance, "false": 1 - chance}
    alternatives = [{"token": other, "logprob": math.log(p)} for other, p in others.items()]
    return {"token": token, "logprob": math.log(chance), "top_logprobs": alternatives}


def _question(text: str) -> str:
    return text.rpartition("# 판정할 쟁점")[2]


def write_lines(path: Path, records) -> Path:
    """A JSON Lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path
