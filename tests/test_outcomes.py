"""Errors on trees small enough to be followed with a finger."""

import pytest
from graded_cases import VERDICTS, by_key, make_case, make_grade

from data.cases import Case
from eval.outcomes import (
    Below,
    Outcome,
    Reach,
    analyse_errors,
    heat_map_cell,
    issue_outcomes,
    what_is_below,
    where_errors_begin,
)
from eval.tallies import Estimate
from rewards.score import Judgment

RIGHT, DEDUCTION, DECOMPOSITION, UNJUDGED = Outcome
#  root ── 1 ── 1.1
#      │      └ 1.2
#      └─ 10 ── 10.1
CASE = make_case("c", "1", "1.1", "1.2", "10", "10.1")


def outcomes(verdicts: str) -> dict[str, Outcome]:
    return issue_outcomes({issue.id: VERDICTS[letter] for issue, letter in zip(CASE.issues, verdicts, strict=True)})


def begins(verdicts: str) -> list[str] | None:
    found = where_errors_begin(CASE, outcomes(verdicts))
    return None if found is None else [issue.id for issue in found]


@pytest.mark.parametrize(
    ("judgment", "outcome", "of_root"),
    [
        (Judgment(True, True), RIGHT, RIGHT),
        (Judgment(True, False), DEDUCTION, DEDUCTION),
        (Judgment(False, False), DECOMPOSITION, DECOMPOSITION),
        (Judgment(False, True), DECOMPOSITION, RIGHT),  # as in the score: covered or not does not matter for the order
        (Judgment(0.5, 0.5), RIGHT, RIGHT),
        (Judgment(0.9, 0.4), DEDUCTION, DEDUCTION),
        (None, UNJUDGED, UNJUDGED),
    ],
    ids=["right", "wrong", "absent", "right though absent", "half sure", "soft", "missing"],
)
def test_an_issue_has_one_outcome(judgment, outcome, of_root):
    assert issue_outcomes({"1": judgment, "": judgment}) == {"1": outcome, "": of_root}


@pytest.mark.parametrize(
    ("below", "state"),
    [
        ([DECOMPOSITION, DECOMPOSITION], Below.NONE_COVERED),
        ([DECOMPOSITION, DEDUCTION], Below.SOME_WRONG),
        ([RIGHT, DEDUCTION, DECOMPOSITION], Below.SOME_WRONG),
        ([RIGHT, DECOMPOSITION], Below.MIXED),
        ([RIGHT, RIGHT], Below.ALL_RIGHT),
        ([RIGHT, UNJUDGED], Below.UNJUDGED),
    ],
)
def test_what_is_below_is_exactly_one_of_these(below, state):
    assert what_is_below(below) is state


@pytest.mark.parametrize(
    ("verdicts", "where"),
    [
        ("wrrrrr", [""]),  # all below is right: the order alone is wrong
        ("wwwrrr", ["1.1"]),
        ("wrwwrr", [""]),  # the errors under 1 did not get past it
        ("wwnwwr", ["10", "1.1", "1.2"]),
        ("wwrrnn", ["1", "10.1"]),
        ("w?wrrr", None),  # nobody knows whether 1 passed the error on
        ("wr?rrr", [""]),  # a verdict missing under an issue that is right hides nothing
    ],
)
def test_a_wrong_order_begins_at_the_lower_ends_of_chains_of_errors(verdicts, where):
    assert begins(verdicts) == where


@pytest.mark.parametrize(
    ("below", "cell"),
    [
        ([RIGHT] * 5, (4, 4)),
        ([DECOMPOSITION], (0, 0)),
        ([RIGHT] * 3 + [DEDUCTION] * 2, (4, 3)),
        ([RIGHT] + [DECOMPOSITION] * 4, (1, 1)),
    ],
)
def test_shares_fall_into_fifths(below, cell):
    assert heat_map_cell(below) == cell


def test_outcomes_are_shares_of_all_issues_but_the_root():
    errors = analyse_errors(by_key(make_grade(CASE, "rrrwn?")), {"c": CASE})
    assert {kind: rate.estimate.centre for kind, rate in errors.outcomes.items()} == pytest.approx(
        {RIGHT: 0.4, DEDUCTION: 0.2, DECOMPOSITION: 0.2, UNJUDGED: 0.2}
    )
    assert errors.outcomes[RIGHT].num == 5


def test_children_and_all_descendants_are_told_apart():
    # 1 is right over a right and an absent child; 10 is wrong over a wrong one; the root is right over both.
    errors = analyse_errors(by_key(make_grade(CASE, "rrrnww")), {"c": CASE})
    children = {
        below: (rate.num, rate.estimate and rate.estimate.centre)
        for (reach, below), rate in errors.parents.items()
        if reach is Reach.CHILDREN
    }
    assert children == {
        Below.NONE_COVERED: (0, None),
        Below.SOME_WRONG: (2, 0.5),  # the root, right; 10, wrong
        Below.MIXED: (1, 1.0),  # 1
        Below.ALL_RIGHT: (0, None),
        Below.UNJUDGED: (0, None),
    }
    # With the children of 1 and 10 all right, the root's children are all right, its descendants are not.
    errors = analyse_errors(by_key(make_grade(CASE, "rrnrrr")), {"c": CASE})
    assert errors.parents[Reach.CHILDREN, Below.ALL_RIGHT].num == 2  # the root and 10
    assert errors.parents[Reach.DESCENDANTS, Below.ALL_RIGHT].num == 1  # 10
    assert errors.parents[Reach.DESCENDANTS, Below.MIXED].num == 2  # the root and 1


def test_1_is_no_parent_of_10():
    case = make_case("flat", "1", "10")
    errors = analyse_errors(by_key(make_grade(case, "rrw")), {"flat": case})
    assert sum(rate.num for (reach, _), rate in errors.parents.items() if reach is Reach.DESCENDANTS) == 1  # the root's


def test_no_parent_is_dropped():
    responses = ("rrrrrr", "w?n?wn", "nnnnnn", "?rwrnr")
    grades = by_key(*(make_grade(CASE, verdicts, sample=sample) for sample, verdicts in enumerate(responses)))
    errors = analyse_errors(grades, {"c": CASE})
    for reach in Reach:
        assert sum(errors.parents[reach, below].num for below in Below) == 4 * 3  # root, 1 and 10 in each response
    assert errors.parents[Reach.CHILDREN, Below.UNJUDGED].num == 3  # the root twice, 1 once


def test_origins_share_out_each_wrong_order_once():
    grades = by_key(
        make_grade(CASE, "wrrrrr", sample=0),  # the order alone
        make_grade(CASE, "wwnwrr", sample=1),  # half 1.1, not covered; half 1.2, wrong
        make_grade(CASE, "nnrrrr", sample=2),  # 1, not covered
        make_grade(CASE, "w?rrrr", sample=3),  # cannot be followed
        make_grade(CASE, "rnnnnn", sample=4),  # no wrong order
    )
    errors = analyse_errors(grades, {"c": CASE})
    assert (errors.num_wrong_orders, errors.num_unjudged_orders) == (4, 1)
    assert {place: rate.estimate.centre for place, rate in errors.origins.items()} == pytest.approx(
        {(0, DEDUCTION): 1 / 3, (1, DECOMPOSITION): 1 / 3, (2, DECOMPOSITION): 1 / 6, (2, DEDUCTION): 1 / 6}
    )


def test_the_heat_map_counts_each_parent_once():
    errors = analyse_errors(by_key(make_grade(CASE, "rrrnww")), {"c": CASE})
    filled = {cell: (rate.num, rate.estimate.centre) for cell, rate in errors.heat_map.items() if rate.estimate}
    # root: children covered 2/2, right 1/2; 1: 1/2 and 1/2; 10: 1/1 and 0/1
    assert filled == {(4, 2): (1, 1.0), (2, 2): (1, 1.0), (4, 0): (1, 0.0)}


def test_intervals_are_over_cases():
    cases = {name: make_case(name, "1", "1.1") for name in ("a", "b")}
    grades = by_key(make_grade(cases["a"], "rrr"), make_grade(cases["b"], "www"))
    errors = analyse_errors(grades, cases)
    assert errors.outcomes[RIGHT].estimate == Estimate(0.5, 0, 1)


def test_issues_without_a_known_tree_have_outcomes_only():
    flat = Case("f", "q", make_case("f", "1", "2").issues, has_tree=False)
    errors = analyse_errors(by_key(make_grade(flat, "wrn")), {"f": flat})
    assert errors.num_without_tree == 1
    assert errors.outcomes[RIGHT].num == 2
    assert errors.num_wrong_orders == 0
    assert not any(rate.num for rate in errors.parents.values())
