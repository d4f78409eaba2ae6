"""The base model of the demo."""

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from data.cases import ROOT_ID
from data.mini import generate, gold_answer
from data.mini_statutes import SET
from data.records import from_record
from train.warm_start import STAMP_NAME, WarmStart, lessons, noisy_answer, warm_start

SCRIPT = Path(__file__).parents[1] / "train" / "warm_start.py"


@cache
def cases_of_train():
    return [from_record(record) for record in generate(0, "train", 1000)]


SHORT = WarmStart(num_clean_steps=3, num_noisy_steps=2)


def test_lessons_are_right_answers_first_and_careless_ones_last():
    taught = lessons(SHORT)
    assert len(taught) == 5 * SHORT.batch_size
    assert len({case.id for case, _ in taught}) == len(taught)
    is_right = [answer == gold_answer(case.answer, case.extra["mini"]) for case, answer in taught]
    assert all(is_right[: 3 * SHORT.batch_size])
    assert not any(is_right[3 * SHORT.batch_size :])
    assert lessons(SHORT) == taught


def test_lessons_tell_none_of_the_cases_to_train_and_test_on():
    taught = {case.question for case, _ in lessons(WarmStart(num_clean_steps=200, num_noisy_steps=0))}
    assert not taught & {case.question for case in cases_of_train()}
    assert not taught & {record["question"] for record in generate(0, "test", 200)}


def test_lessons_with_law_have_it_before_most_questions_and_no_number_to_learn():
    taught = [case for case, _ in lessons(WarmStart(num_clean_steps=120, num_noisy_steps=0, statutes=True))]
    with_law = [case for case in taught if case.question.startswith("1. ")]
    assert 0.5 < len(with_law) / len(taught) < 0.8
    laws = {law for case in taught for issue in case.issues for law in issue.relevant_law if "조례" in law}
    by_town = {law.partition("제1조")[0] for law in laws}
    assert len(laws) == len(SET) * len(by_town)  # each town's ordinance sets every number, in one book or another
    own = [any(law in case.question for issue in case.issues for law in issue.relevant_law) for case in with_law]
    assert all(own)


def test_lessons_of_a_world_with_the_order_first_begin_with_it():
    assert all(
        answer.startswith("주문: ") for _, answer in lessons(WarmStart(**{**vars_of(SHORT), "order_first": True}))
    )


def vars_of(settings):
    return {name: getattr(settings, name) for name in ("num_clean_steps", "num_noisy_steps")}


def test_a_careless_answer_is_well_formed_and_as_careless_as_was_set():
    settings = WarmStart(noisy_kept_frac=0.4, noisy_right_frac=0.5)
    rng = random.Random(0)
    num_issues = num_kept = num_right = num_orders_right = 0
    for case in cases_of_train():
        *lines, order_line = noisy_answer(case, rng, settings).split("\n")
        decided = {
            issue["name"]: "인정" if issue["accepted"] else "부정" for issue in case.extra["mini"]["issues"].values()
        }
        said = dict(line.split(": ") for line in lines)
        assert said.keys() <= decided.keys()
        num_issues += len(decided)
        num_kept += len(said)
        num_right += sum(decided[name] == decision for name, decision in said.items())
        num_orders_right += order_line == f"주문: {case.answer}"
    assert num_kept / num_issues == pytest.approx(0.4, abs=0.03)
    assert num_right / num_kept == pytest.approx(0.5 + 0.5 / 2, abs=0.04)  # thrown among two
    assert num_orders_right / len(cases_of_train()) == pytest.approx(0.5 + 0.5 / 4, abs=0.05)  # thrown among four


def test_a_folder_that_no_warm_start_wrote_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(
        ValueError, match=r"no warm start wrote it \(it has no warm_start.json\): choose another folder"
    ):
        warm_start(SHORT, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-clean-steps", "0", "--num-noisy-steps", "0"], "nothing would be taught"),
        (["--num-noisy-steps", "-1"], "num_noisy_steps must be >= 0, got -1"),
    ],
    ids=["no steps", "negative steps"],
)
def test_the_command_says_what_is_wrong_and_exits_2(tmp_path, arguments, message):
    ended = subprocess.run(
        [sys.executable, SCRIPT, "--out", tmp_path / "base", *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "base").exists()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "base"
    assert warm_start(SHORT, path)
    return path


@pytest.mark.slow
def test_the_end_token_stands_wherever_it_is_looked_for(base):
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    eos_id = AutoTokenizer.from_pretrained(base).eos_token_id
    assert eos_id is not None
    assert AutoConfig.from_pretrained(base).eos_token_id == eos_id
    assert GenerationConfig.from_pretrained(base).eos_token_id == eos_id


@pytest.mark.slow
def test_the_tokenizer_gives_every_text_back(base):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    for text in (
        "변제: 부정\n주문: 원고의 청구를 기각한다.",
        "한자(漢字)와 emoji 🙂, tabs\t and  spaces ",
        "\u3000\r\n",
    ):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@pytest.mark.slow
def test_a_chat_turn_costs_one_token(base):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    user, assistant = {"role": "user", "content": "돈을 갚았다."}, {"role": "assistant", "content": "변제: 인정"}
    prompt = tokenizer.apply_chat_template([user], add_generation_prompt=True, tokenize=False)
    whole = tokenizer.apply_chat_template([user, assistant], tokenize=False)
    assert whole == f"{prompt}변제: 인정{tokenizer.eos_token}"
    assert len(tokenizer(prompt)["input_ids"]) == len(tokenizer("돈을 갚았다.")["input_ids"]) + 1


@pytest.mark.slow
def test_the_same_settings_are_taught_once_and_others_anew(base):
    weights, stamp = base / "model.safetensors", base / STAMP_NAME
    before = weights.stat().st_mtime_ns
    assert not warm_start(SHORT, base)
    assert weights.stat().st_mtime_ns == before
    taught = weights.read_bytes()

    assert warm_start(WarmStart(seed=1, **vars_of(SHORT)), base)
    assert json.loads(stamp.read_text(encoding="utf-8"))["seed"] == 1
    assert weights.read_bytes() != taught

    assert warm_start(SHORT, base)
    assert weights.read_bytes() == taught  # the same settings, the same model


@pytest.mark.slow
def test_an_interrupted_warm_start_is_made_again(tmp_path):
    unfinished = tmp_path / "base.unfinished"
    unfinished.mkdir()
    (unfinished / "model.safetensors").write_text("half a mo")
    assert warm_start(SHORT, tmp_path / "base")
    assert not unfinished.exists()
    assert not warm_start(SHORT, tmp_path / "base")


@pytest.mark.slow
def test_right_answers_teach_the_form_within_three_hundred_steps(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from data.prompts import build_prompt

    warm_start(WarmStart(num_clean_steps=300, num_noisy_steps=0), tmp_path / "base")
    model, tokenizer = (auto.from_pretrained(tmp_path / "base") for auto in (AutoModelForCausalLM, AutoTokenizer))
    cases = [from_record(record) for record in generate(0, "test", 20)]
    num_well_formed = num_issues_named = num_issues = 0
    for case in cases:
        prompt = tokenizer.apply_chat_template(
            build_prompt(case, "bare"), add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        written = model.generate(**prompt, max_new_tokens=80, do_sample=False)[0, prompt["input_ids"].shape[1] :]
        answer = tokenizer.decode(written, skip_special_tokens=True)
        num_well_formed += written[-1] == tokenizer.eos_token_id and answer.split("\n")[-1].startswith("주문: ")
        num_issues += len(case.issues) - 1
        names = {issue.summary.removesuffix(" 여부") for issue in case.issues if issue.id != ROOT_ID}
        num_issues_named += len(names & {line.split(": ")[0] for line in answer.split("\n")})
    assert num_well_formed >= 19
    assert num_issues_named / num_issues > 0.8
