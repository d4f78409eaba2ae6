"""The whole way in one go: judgment, case, a step of GRPO, a response, its grade; one server plays all models but the
policy."""

import json

import pytest
from fake_llm_server import FakeLLM, verdict
from judgment_replay import JUDGMENTS, replay

from data.build import main as build
from data.jsonl import write_text
from data.loading import load_cases
from data.prompts import build_prompt
from eval.grade import main as grade
from eval.results import Response
from rewards.answer import final_answer, is_empty
from rewards.rubric import judge_words
from tests.easy_judge import right_on_easy_questions
from tests.tiny_policy import write_policy
from tests.training_runs import Workshop

pytestmark = pytest.mark.slow

ROOM = 8192  # the judgments' questions are long: a byte of theirs is a token of the tiny policy's


def anyone(request):
    """The builder's model, or else a judge that finds every issue covered and only the order right."""
    if request.body["response_format"]["json_schema"]["name"].startswith("legit_"):
        return replay(request)
    is_root = judge_words("ko").root_summary in request.text
    return right_on_easy_questions(lambda _: verdict(True, is_root))(request)


def write_responses(model_dir, case) -> list[str]:
    """Four samples of 24 tokens of a trained model."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    model = AutoModelForCausalLM.from_pretrained(model_dir)
    prompt = tokenizer.apply_chat_template(
        build_prompt(case), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    ids = model.generate(**prompt, max_new_tokens=24, do_sample=True, num_return_sequences=4)
    return tokenizer.batch_decode(ids[:, prompt["input_ids"].shape[1] :], skip_special_tokens=True)


def test_a_judgment_becomes_a_case_that_trains_a_policy_whose_response_is_graded(tmp_path):
    workshop = Workshop(tmp_path)
    write_policy(tmp_path / "base", max_length=ROOM)
    with FakeLLM(anyone) as server:
        endpoint = ("--base-url", server.base_url, "--model", "m")
        assert build([str(JUDGMENTS), "--out", str(tmp_path / "built"), "--limit", "2", *endpoint]) == 0
        cases = load_cases(tmp_path / "built" / "cases.jsonl")
        write_text(tmp_path / "train.jsonl", (tmp_path / "built" / "cases.jsonl").read_text(encoding="utf-8"))

        judge = {"judge": "endpoint", "judge_base_url": server.base_url, "judge_model": "m", "judge_preflight": "false"}
        batch = {
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 1,
            "num_generations": 2,
            "max_steps": 1,
        }
        length = {"vllm_max_model_length": ROOM, "max_completion_length": 24, "gate_truncated": "false"}
        settings = judge | batch | length | {"prompt_style": "court"}
        trained = workshop.run("run", *(text for key, value in settings.items() for text in (f"--{key}", str(value))))
        assert trained.returncode == 0, trained.err
        assert trained.metrics()[1]["judge/calls"] > 0

        responses = [
            Response(case.id, text, "run", "stop", sample)
            for case in cases
            for sample, text in enumerate(write_responses(trained.directory, case))
        ]
        lines = [json.dumps(response.to_record(), ensure_ascii=False) + "\n" for response in responses]
        write_text(tmp_path / "responses.jsonl", "".join(lines))
        files = ("--cases", str(tmp_path / "train.jsonl"), "--responses", str(tmp_path / "responses.jsonl"))
        options = ("--judge", server.base_url, "--judge-model", "m", "--out", str(tmp_path / "graded"))
        assert grade([*files, *options]) == 0
    graded = [json.loads(line) for line in (tmp_path / "graded" / "grades.jsonl").read_text().splitlines()]
    assert {row["doc_id"] for row in graded} == {case.id for case in cases}
    scores = [0.0 if is_empty(final_answer(response.text)) else 7.0 for response in responses]
    assert sorted(row["score"] for row in graded) == sorted(scores)  # 7: the order right, all covered, none right
    assert 7.0 in scores
