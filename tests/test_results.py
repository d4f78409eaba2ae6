"""The files of an evaluation: what may stand in them, and that they say how they were made."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.cases import Case, Issue
from data.command import InputError
from data.jsonl import Appender, JsonlError
from eval.pins import SettingsError, pin_settings, sampling_of, set_aside
from eval.raters import read_rater
from eval.results import (
    Grade,
    Response,
    complete_verdicts,
    prompt_id,
    read_grades,
    read_responses,
)
from rewards.score import Judgment, score_case

CASE = Case("사건-1", "사실관계", tuple(Issue(id, f"쟁점 {id}", (), "인정") for id in ("", "1", "2")))
RIGHT, ABSENT = Judgment(True, True, "근거"), Judgment(False, False)


@pytest.fixture
def write(tmp_path):
    def write_lines(*records, name="responses.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
        return path

    return write_lines


def test_a_response_is_read_back_as_it_was_written(write):
    response = Response("사건-1", "청구를 기각한다.", "policy", "length", 3, "먼저 …", "1f2e")
    assert read_responses(write(response.to_record())).responses == (response,)


def test_an_official_response_file_loads_as_it_is(write):
    file = read_responses(write({"doc_id": "사건-1", "response": "기각"}, name="gpt-4.1.jsonl"))
    assert file.responses == (Response("사건-1", "기각", "gpt-4.1"),)
    assert file.verdicts == {}


def test_an_official_evaluators_file_brings_its_verdicts(write):
    evaluation = {
        "": {"rationales": "…", "contains_issue": True, "correct_conclusion": True, "score": 5},
        "1": {"rationales": "…", "contains_issue": True, "correct_conclusion": False, "score": 0.6},
    }
    record = {
        "doc_id": "사건-1",
        "response": "기각",
        "evaluator_model": "gemma",
        "evaluation_result": evaluation,
        "score": 9,
    }
    file = read_responses(write(record))
    verdicts = complete_verdicts(CASE, file.verdicts["사건-1", 0])
    assert verdicts == {"": Judgment(True, True, "…"), "1": Judgment(True, False, "…"), "2": None}
    assert file.evaluators == ("gemma",)


@pytest.mark.parametrize(
    "verdict",
    [
        None,
        {},
        "true",
        {"contains_issue": True},
        {"contains_issue": None, "correct_conclusion": None},
        {"contains_issue": "true", "correct_conclusion": "true"},
        {"contains_issue": 7, "correct_conclusion": 1},
    ],
    ids=["null", "empty", "a text", "half", "nulls", "texts", "out of range"],
)
def test_what_is_no_verdict_is_a_missing_one_and_no_grade(write, verdict):
    record = {"doc_id": "사건-1", "response": "기각", "evaluation_result": {"": verdict}}
    assert read_responses(write(record)).verdicts["사건-1", 0] == {"": None}


def test_duplicates_are_told_and_the_first_one_stands(write):
    lines = [{"doc_id": "a", "response": text, "sample": sample} for text, sample in (("1", 0), ("2", 0), ("3", 1))]
    file = read_responses(write(*lines))
    assert [response.text for response in file.responses] == ["1", "3"]
    assert file.duplicates == ((2, ("a", 0)),)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"response": "기각"}, '"doc_id"'),
        ({"doc_id": "a"}, '"response"'),
        ({"doc_id": 7, "response": "기각"}, '"doc_id" must be'),
        ({"doc_id": "a", "response": ["기각"]}, '"response" must be'),
        ({"doc_id": "a", "response": "", "sample": "0"}, '"sample" must be'),
        ({"doc_id": "a", "response": "", "sample": True}, '"sample" must be'),
        ({"doc_id": "a", "response": "", "evaluation_result": []}, '"evaluation_result" must be'),
    ],
    ids=["no id", "no response", "id a number", "response a list", "sample a text", "sample a bool", "verdicts a list"],
)
def test_a_line_that_is_no_response_is_named(write, record, problem):
    with pytest.raises(JsonlError, match=f"line 2: .*{problem}"):
        read_responses(write({"doc_id": "a", "response": "기각", "sample": 9}, record))


def grade(judgments, text="기각", sample=0):
    return Grade(
        Response("사건-1", text, "policy", "stop", sample), "judge", judgments, score_case(CASE, judgments), None, 2
    )


def test_a_grade_is_read_back_as_it_was_written(write):
    scored = grade({"": RIGHT, "1": RIGHT, "2": ABSENT})
    unscored = grade({"": RIGHT, "1": None, "2": ABSENT}, sample=1)
    path = write(scored.to_record(), unscored.to_record())
    assert read_grades(path, {CASE.id: CASE}) == {("사건-1", 0): scored, ("사건-1", 1): unscored}


def test_the_record_has_the_score_with_its_parts_and_null_for_what_is_missing():
    record = grade({"": RIGHT, "1": RIGHT, "2": ABSENT}).to_record()
    assert record["score"] == 7.5  # 5 + 2/2 + 3/2
    assert record["parts"]["coverage"] == 0.5
    assert record["evaluation_result"]["1"] == {
        "rationales": "근거",
        "contains_issue": True,
        "correct_conclusion": True,
    }
    record = grade({"": ABSENT, "1": ABSENT, "2": ABSENT}).to_record()
    assert (record["score"], record["parts"]["order"]) == (0, 0)
    record = grade({"": RIGHT, "1": None, "2": ABSENT}).to_record()
    assert record["evaluation_result"]["1"] is record["score"] is record["parts"]["order"] is None
    assert record["parts"]["num_judged"] == 2


def test_the_last_grade_of_a_response_counts(write):
    path = write(
        grade({"": None, "1": None, "2": None}).to_record(), grade({"": RIGHT, "1": RIGHT, "2": RIGHT}).to_record()
    )
    assert read_grades(path, {CASE.id: CASE})["사건-1", 0].score.total == 10


def test_grades_of_other_cases_are_left_out(write):
    assert read_grades(write(grade({"": RIGHT, "1": RIGHT, "2": RIGHT}).to_record()), {}) == {}


def test_scores_follow_from_the_verdicts_and_not_from_the_file(write):
    record = grade({"": RIGHT, "1": RIGHT, "2": RIGHT}).to_record() | {"score": 1.0}
    assert read_grades(write(record), {CASE.id: CASE})["사건-1", 0].score.total == 10


def test_settings_are_kept_and_differing_ones_are_named(tmp_path):
    path = tmp_path / "responses.meta.json"
    pin_settings(path, {"temperature": 0.0, "max_tokens": 64})
    pin_settings(path, {"temperature": 0.0, "max_tokens": 64})
    with pytest.raises(SettingsError, match=r"temperature: 0\.0 then, 1\.0 now") as error:
        pin_settings(path, {"temperature": 1.0, "max_tokens": 64})
    assert "max_tokens" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b'{"judge": ', b"[1]", b"\xff", b"[" * 100_000], ids=["cut", "list", "bytes", "deep"]
)
def test_damaged_settings_are_named_with_what_would_be_right(tmp_path, content):
    path = tmp_path / "grades.meta.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"grades\.meta\.json is damaged: .*must hold one object"):
        pin_settings(path, {"judge": "mini"})


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (None, '"parts" must be an object, got null'),
        ([], '"parts" must be an object'),
        ({"gate": [1]}, '"parts.gate" must be a text or null'),
        ({"num_extra_issues": "x"}, '"parts.num_extra_issues" must be a number'),
        ({"num_extra_issues": True}, '"parts.num_extra_issues" must be a number'),
    ],
    ids=["null", "list", "gate a list", "count a text", "count a bool"],
)
def test_parts_of_a_wrong_type_are_named_by_line_and_key(write, parts, problem):
    right = grade({"": RIGHT, "1": RIGHT, "2": ABSENT}).to_record()
    with pytest.raises(JsonlError, match=rf"grades\.jsonl, line 2: .*{problem}"):
        read_grades(write(right, right | {"parts": parts}, name="grades.jsonl"), {CASE.id: CASE})


RIGHT_ONE = {"contains_issue": True, "correct_conclusion": 0.5, "rationales": None}


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        ("yes", 'the verdict must be an object or null, got "yes"'),
        ([], r"the verdict must be an object or null, got \[\]"),
        ({}, '"contains_issue" must be true, false or a number in .*, got null'),
        (RIGHT_ONE | {"contains_issue": "yes"}, '"contains_issue" must be true, false or a number in .*, got "yes"'),
        (RIGHT_ONE | {"correct_conclusion": None}, '"correct_conclusion" must be .*, got null'),
        (RIGHT_ONE | {"correct_conclusion": float("inf")}, '"correct_conclusion" must be .*, got Infinity'),
        (RIGHT_ONE | {"correct_conclusion": float("nan")}, '"correct_conclusion" must be .*, got NaN'),
        (RIGHT_ONE | {"correct_conclusion": 10**400}, '"correct_conclusion" must be .*, got 1000'),
        (RIGHT_ONE | {"correct_conclusion": -1}, '"correct_conclusion" must be .*, got -1'),
        (RIGHT_ONE | {"rationales": ["근거"]}, '"rationales" must be a text or null'),
    ],
)
def test_a_verdict_of_a_wrong_type_is_named_by_line_case_issue_and_key(write, verdict, problem):
    right = grade({"": RIGHT, "1": RIGHT, "2": ABSENT}).to_record()
    wrong = right | {"sample": 1, "evaluation_result": {"": RIGHT_ONE, "1": verdict, "2": None}}
    path = write(right, wrong, name="grades.jsonl")
    with pytest.raises(JsonlError, match=rf"grades\.jsonl, line 2: case '사건-1': issue '1': {problem}"):
        read_grades(path, {CASE.id: CASE})
    with pytest.raises(JsonlError, match="line 2: case '사건-1': issue '1'"):  # as recorded verdicts too
        read_responses(path)
    with pytest.raises(JsonlError, match="line 2: case '사건-1': issue '1'"):
        read_rater(str(path), {})


@pytest.mark.parametrize(
    ("key", "value"), [("judge", 1), ("judge", None), ("model", ["m"]), ("reasoning", {}), ("prompt_id", 7)]
)
def test_other_keys_of_a_wrong_type_are_named_by_line_case_and_key(write, key, value):
    right = grade({"": RIGHT, "1": RIGHT, "2": ABSENT}).to_record()
    with pytest.raises(JsonlError, match=f"line 1: case '사건-1': \"{key}\" must be a text"):
        read_grades(write(right | {key: value}), {CASE.id: CASE})


def test_a_grade_that_stands_there_twice_is_named(write):
    one, half = grade({"": RIGHT, "1": RIGHT, "2": ABSENT}), grade({"": RIGHT, "1": None, "2": ABSENT})
    for first, second in ((one, one), (one, half), (half, half)):
        path = write(first.to_record(), grade(one.judgments, sample=1).to_record(), second.to_record())
        for read in (lambda: read_grades(path, {CASE.id: CASE}), lambda: read_rater(str(path), {})):  # noqa: B023
            with pytest.raises(JsonlError, match="line 3: case '사건-1': \"sample\" 0 is graded a second time"):
                read()
    path = write(half.to_record(), one.to_record())  # a verdict that was missing was asked for again
    assert read_grades(path, {CASE.id: CASE})["사건-1", 0] == one


def test_a_line_that_a_killed_writer_left_is_as_if_never_written(write):
    path = write(*(grade({"": RIGHT, "1": RIGHT, "2": ABSENT}, sample=sample).to_record() for sample in (0, 1)))
    path.write_bytes(path.read_bytes()[:-9])
    assert list(read_grades(path, {CASE.id: CASE})) == [("사건-1", 0)]


def test_settings_that_nothing_was_made_with_bind_nobody(tmp_path):
    path = tmp_path / "responses.meta.json"
    pin_settings(path, {"temperature": 0.0})
    pin_settings(path, {"temperature": 1.0}, is_begun=False)
    assert json.loads(path.read_text()) == {"temperature": 1.0}


@pytest.mark.parametrize(
    ("settings", "sampling"),
    [
        ({"temperature": 0.0, "max_tokens": 9, "request": {}}, {"temperature": 0.0}),
        ({"temperature": 0.0, "request": {"temperature": 0.7, "top_k": 5}}, {"temperature": 0.7, "top_k": 5}),
        ({"temperature": 1.0}, {"temperature": 1.0}),
        ({"temperature": 1.0, "request": {"temperature": None, "top_p": 0.9}}, None),  # the endpoint's own
        ({"judge": "mini"}, None),
        (None, None),
    ],
)
def test_how_responses_were_drawn_is_read_off_their_settings(tmp_path, settings, sampling):
    path = tmp_path / "responses.meta.json"
    if settings is not None:
        path.write_text(json.dumps(settings))
    assert sampling_of(path) == sampling


def test_set_aside_keeps_every_earlier_one(tmp_path):
    path = tmp_path / "grades.jsonl"
    for text in ("first", "second"):
        path.write_text(text)
        set_aside(path)
    assert [(tmp_path / f"grades.jsonl.old-{n}").read_text() for n in (1, 2)] == ["first", "second"]


texts = st.text(max_size=20)
responses = st.builds(
    Response, texts, texts, st.text(min_size=1, max_size=9), st.none() | texts, st.integers(0, 9), st.none() | texts,
    st.none() | texts,
)  # fmt: skip


@given(response=responses)
def test_any_text_survives_the_file(tmp_path_factory, response):
    path = tmp_path_factory.mktemp("any") / "responses.jsonl"
    with Appender(path) as file:
        file.append(response.to_record())
    assert read_responses(path).responses == (response,)


@given(st.text(), st.text())
def test_a_prompt_has_one_id(first, second):
    one, other = ([{"role": "user", "content": text}] for text in (first, second))
    assert (prompt_id(one) == prompt_id(other)) == (first == second)
