"""A graded set cut in several ways, on numbers worked out by hand."""

import pytest
from graded_cases import by_key, make_case, make_grade

from data.cases import Case
from eval.slices import Slice, length_edges, length_name, slice_grades
from eval.summary import summarize_grades
from eval.tallies import Estimate

EASY = make_case("e", "1", difficulty="easy", kind="civil")
HARD = make_case("h", "1", "1.1", "2", "10", difficulty="hard", kind="administrative")
CASES = {case.id: case for case in (EASY, HARD)}


def cut(grades, edges=(), cases=CASES) -> dict[tuple[str, str], Slice]:
    found = slice_grades(grades, cases, summarize_grades(grades, cases), edges)
    return {(one.by, one.name): one for one in found}


def centres(one: Slice) -> dict[str, float | None]:
    return {part: value and value.centre for part, value in one.parts.items()}


def test_difficulties_and_their_macro_average():
    slices = cut(by_key(make_grade(EASY, "rr"), make_grade(HARD, "wrrnn")))
    assert centres(slices["difficulty", "easy"])["score"] == 10
    assert centres(slices["difficulty", "hard"])["score"] == pytest.approx(2 * 2 / 4 + 3 * 2 / 4)
    assert centres(slices["difficulty", "macro"])["score"] == pytest.approx((10 + 2.5) / 2)
    assert [name for by, name in slices if by == "difficulty"] == ["easy", "hard", "macro"]


def test_kinds_are_the_records_own():
    slices = cut(by_key(make_grade(EASY, "rr"), make_grade(HARD, "wrrnn")))
    assert centres(slices["kind", "civil"]) == {"score": 10, "order": 1, "coverage": 1, "correctness": 1}
    assert slices["kind", "administrative"].num == 1


def test_where_no_record_names_a_kind_there_is_none():
    plain = make_case("p", "1")
    grades = by_key(make_grade(plain, "rr"))
    assert not any(by == "kind" for by, _ in cut(grades, cases={"p": plain}))
    both = grades | by_key(make_grade(EASY, "rr"))
    assert {name for by, name in cut(both, cases={"p": plain, "e": EASY}) if by == "kind"} == {"civil", "unnamed"}


def test_depth_and_place_sort_the_issues():
    slices = cut(by_key(make_grade(HARD, "wrwnr"), make_grade(EASY, "rn")))
    # depth 1: 1 and 10 of the hard case right, 2 absent, 1 of the easy case absent; depth 2: 1.1 wrong
    assert centres(slices["depth", "1"]) == {"coverage": 0.5, "correctness": 0.5}
    assert centres(slices["depth", "2"]) == {"coverage": 1, "correctness": 0}
    assert centres(slices["place", "with children"]) == {"coverage": 1, "correctness": 1}
    assert centres(slices["place", "leaf"]) == {"coverage": 0.5, "correctness": 0.25}
    assert slices["place", "leaf"].num == 4
    assert slices["depth", "1"].parts["coverage"] == Estimate(0.5, 0, 2 / 3)  # of cases drawn: 0/1, 2/4 or 2/3


def test_the_share_without_verdict_stands_beside_the_mean():
    slices = cut(by_key(make_grade(HARD, "wr?nr"), make_grade(HARD, "rrrrr", sample=1)))
    assert slices["depth", "2"].unscored_frac == 0.5
    assert slices["depth", "2"].num == 1
    assert slices["kind", "administrative"].unscored_frac == 0.5
    assert centres(slices["kind", "administrative"])["score"] == 10


def test_responses_of_one_case_may_fall_apart_by_length_and_truncation():
    grades = by_key(
        make_grade(EASY, "rr", text="가" * 100, sample=0),
        make_grade(EASY, "wn", text="가" * 101, sample=1, finish_reason="length"),
        make_grade(EASY, "rn", text="<think>" + "가" * 500 + "</think>" + "가" * 10, sample=2, finish_reason=None),
    )
    slices = cut(grades, (100, 200))
    assert centres(slices["length", "up to 100"])["score"] == pytest.approx((10 + 5) / 2)  # thinking is no length
    assert centres(slices["length", "101 to 200"])["score"] == 0
    assert [name for by, name in slices if by == "length"] == ["up to 100", "101 to 200"]
    assert {name for by, name in slices if by == "truncation"} == {"cut off", "unknown", "whole"}
    assert centres(slices["truncation", "cut off"])["order"] == 0


def test_issues_of_unknown_trees_have_no_depth():
    flat = Case("f", "q", HARD.issues, has_tree=False)
    slices = cut(by_key(make_grade(flat, "rrrrr")), cases={"f": flat})
    assert not any(by in ("depth", "place") for by, _ in slices)


def test_edges_are_quartiles_without_repetition():
    grades = [make_grade(EASY, "rr", text="가" * length, sample=i) for i, length in enumerate((10, 20, 30, 40, 50))]
    assert length_edges(grades) == (20, 30, 40)
    assert length_edges(grades[:1]) == (10,)
    assert length_edges([]) == ()
    assert length_name(5, ()) == "any"
    assert [length_name(length, (1000,)) for length in (1000, 1001)] == ["up to 1,000", "over 1,000"]
