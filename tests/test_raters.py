"""Raters of every kind become one table of marks, and nothing is lost or made up on the way."""

import json
import unicodedata

import numpy as np
import pytest

from data.cases import Case, Issue
from data.command import InputError
from data.jsonl import JsonlError
from eval.raters import (
    Item,
    Rater,
    cases_of_marks,
    check_common,
    differing_scores,
    fit_to_cases,
    panels,
    read_rater,
    scores_of,
)
from rewards.score import Judgment

CASE = Case("사건-1", "질문", tuple(Issue(id, "쟁점", (), "인정") for id in ("", "1", "2")), difficulty="easy")
CASES = {CASE.id: CASE}
ITEM = Item("gpt", "사건-1")
RIGHT, WRONG, ABSENT = Judgment(True, True), Judgment(True, False), Judgment(False, False)
MARK = {"contains_issue": 1, "correct_conclusion": 1}
GRADE = {"doc_id": "사건-1", "model": "gpt", "response": "답", "evaluation_result": {"": MARK, "1": MARK, "2": None}}


def write(path, *records):
    path.write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in records), encoding="utf-8")
    return path


def rater(name="a", marks=None, stored=None, item=ITEM) -> Rater:
    return Rater(name, {item: {"": RIGHT, "1": RIGHT, "2": ABSENT} if marks is None else marks}, stored or {})


def test_a_grades_file_is_read_and_the_last_grade_of_a_response_holds(tmp_path):
    later = GRADE | {"evaluation_result": {"": MARK, "1": MARK, "2": MARK}, "score": 10.0}
    found = read_rater(str(write(tmp_path / "judge.jsonl", GRADE | {"score": 3}, later)), {})
    assert found.name == "judge"
    assert found.marks == {ITEM: {"": RIGHT, "1": RIGHT, "2": RIGHT}}
    assert found.stored_scores == {ITEM: 10.0}


def test_an_evaluators_file_without_model_takes_the_name_of_the_file(tmp_path):
    record = {key: value for key, value in GRADE.items() if key != "model"}
    found = read_rater(f"lawyer={write(tmp_path / 'gpt.jsonl', record)}", {})
    assert (found.name, list(found.marks)) == ("lawyer", [ITEM])
    assert found.marks[ITEM]["2"] is None


def test_an_expert_file_is_read(tmp_path):
    marks = {
        "": {"annotator": "x", "contains_issue": 1, "correct_conclusion": 0, "score": 0},
        "1": {"annotator": "x", "contains_issue": 0, "correct_conclusion": None},
        "2": {"annotator": "x", "contains_issue": 1, "correct_conclusion": None},
    }
    file = write(tmp_path / "experts.json", {"gpt": {"사건-1": {"score": 2.5, "evaluation_result": marks}}})
    found = read_rater(str(file), {"gpt": "GPT"})
    assert found.marks == {Item("GPT", "사건-1"): {"": WRONG, "1": ABSENT, "2": None}}
    assert found.stored_scores == {Item("GPT", "사건-1"): 2.5}


def test_a_folder_of_grades_is_one_rater(tmp_path):
    for generator in ("gpt", "gemma"):
        (tmp_path / "judge" / generator).mkdir(parents=True)
        write(tmp_path / "judge" / generator / "grades.jsonl", GRADE | {"model": generator})
    assert {item.generator for item in read_rater(str(tmp_path / "judge"), {}).marks} == {"gpt", "gemma"}


def test_one_response_in_two_files_of_a_rater_is_refused(tmp_path):
    for sampling in ("greedy", "t1"):
        (tmp_path / "base" / sampling).mkdir(parents=True)
        write(tmp_path / "base" / sampling / "grades.jsonl", GRADE)
    with pytest.raises(InputError, match=r"greedy/grades\.jsonl and .*t1/grades\.jsonl both mark gpt's response"):
        read_rater(str(tmp_path), {})


def test_a_stored_score_must_be_a_number(tmp_path):
    path = write(tmp_path / "a.jsonl", GRADE | {"score": float("inf")})
    with pytest.raises(JsonlError, match="line 1: case '사건-1': \"score\" must be a number, got Infinity"):
        read_rater(str(path), {})


def test_names_in_another_unicode_form_are_the_same_names(tmp_path):
    file = write(tmp_path / "a.jsonl", GRADE | {"doc_id": unicodedata.normalize("NFD", "사건-1")})
    assert list(read_rater(str(file), {}).marks) == [ITEM]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            {"gpt": {"사건-1": {"evaluation_result": {"1": {"contains_issue": 2, "correct_conclusion": 0}}}}},
            "issue '1'",
        ),
        ({"gpt": {"사건-1": {"evaluation_result": {"1": {"contains_issue": "예", "correct_conclusion": 0}}}}}, "0, 1"),
        ({"gpt": {"사건-1": {"score": 1}}}, "evaluation_result"),
        ({"gpt": []}, "gpt"),
        ({"gpt": {}}, "no marks"),
    ],
)
def test_what_is_no_mark_is_named(tmp_path, content, problem):
    with pytest.raises(InputError, match=problem):
        read_rater(str(write(tmp_path / "experts.json", content)), {})


def test_responses_that_nobody_judged_are_no_rater(tmp_path):
    with pytest.raises(JsonlError, match="no marks"):
        read_rater(str(write(tmp_path / "r.jsonl", {"doc_id": "a", "response": "b"})), {})


def test_marks_that_no_case_has_are_left_out_and_told():
    foreign = rater(marks={"": RIGHT, "1": RIGHT, "2": RIGHT, "9": RIGHT})
    unknown = rater("b", item=Item("gpt", "사건-9"))
    (first, second), notes = fit_to_cases([foreign, unknown], CASES)
    assert set(first.marks[ITEM]) == {"", "1", "2"}
    assert not second.marks
    assert ["'9'" in notes[0], "'사건-9'" in notes[1]] == [True, True]


def test_an_issue_without_a_mark_is_missing_and_leaves_the_response_unscored():
    (found,), _ = fit_to_cases([rater(marks={"": RIGHT, "1": RIGHT})], CASES)
    assert found.marks[ITEM]["2"] is None
    assert scores_of(found, CASES) == {ITEM: None}


def test_raters_without_a_response_in_common_are_refused_with_what_they_have():
    with pytest.raises(InputError, match=r"gpt-4\.1") as error:
        check_common([rater(), rater("b", item=Item("gpt-4.1", "사건-1"))])
    assert "--alias" in str(error.value)
    with pytest.raises(InputError, match="no case in common"):
        check_common([rater(), rater("b", item=Item("gpt", "사건-2"))])


def test_a_stored_score_that_the_marks_do_not_make_is_found_and_not_used():
    found = rater(stored={ITEM: 9.0})
    assert differing_scores(found, scores_of(found, CASES)) == [(ITEM, 9.0, 7.5)]
    rounded = rater(stored={ITEM: 7.496})
    assert differing_scores(rounded, scores_of(rounded, CASES)) == []


def test_marks_alone_make_cases_enough_for_a_score():
    cases = cases_of_marks([rater(marks={"": RIGHT, "1": RIGHT}), rater("b", marks={"2": ABSENT})])
    assert {issue.id for issue in cases["사건-1"].issues} == {"", "1", "2"}
    with pytest.raises(InputError, match="--cases"):
        cases_of_marks([rater(marks={"1": RIGHT})])


def test_panels_hold_scores_and_outcomes_with_nan_for_what_is_missing():
    other = rater("b", marks={"": Judgment(1, 0.4), "1": Judgment(0.6, 0.3), "2": None})
    of = panels([rater(), other], CASES, [ITEM])
    assert of["score"].raters == ("a", "b")
    np.testing.assert_array_equal(of["score"].values, [[7.5], [np.nan]])
    np.testing.assert_array_equal(of["outcome"].values, [[2, 0], [1, np.nan]])
    np.testing.assert_array_equal(of["contains_issue"].values, [[1, 0], [1, np.nan]])
    assert of["outcome"].cases == ("사건-1", "사건-1")
    np.testing.assert_array_equal(panels([other], CASES, [ITEM], threshold=0.2)["outcome"].values, [[2, np.nan]])
