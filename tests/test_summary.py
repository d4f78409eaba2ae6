"""Figures of graded sets, worked out by hand, and the table that shows them."""

import pytest

from data.cases import Case, Issue
from eval.results import Grade, Response
from eval.summary import summarize_grades, summary_sheet
from eval.tables import print_sheets, text
from rewards.score import Judgment, score_case

CASES = {
    id: Case(id, "사실관계", tuple(Issue(n, f"쟁점 {n}", (), "인정") for n in ("", "1", "2")), difficulty)
    for id, difficulty in (("a", "hard"), ("b", "easy"))
}
RIGHT, COVERED, ABSENT, ODD = Judgment(1, 1), Judgment(1, 0), Judgment(0, 0), Judgment(0, 1)


def graded(case_id, root, first, second, *, sample=0, **options):
    judgments = {"": root, "1": first, "2": second}
    score = score_case(CASES[case_id], judgments)
    return Grade(Response(case_id, "…", "policy", None, sample), "judge", judgments, score, **options)


def by_key(*grades):
    return {grade.response.key: grade for grade in grades}


GRADES = by_key(
    graded("a", RIGHT, COVERED, ODD, gate="truncated", num_extra_issues=3),  # 5 + 1 + 0; one correct without coverage
    graded("a", RIGHT, None, ABSENT, sample=1, num_extra_issues=9),  # unscored
    graded("b", ABSENT, RIGHT, RIGHT, num_extra_issues=0),  # 0 + 2 + 3
)


def test_figures_are_those_worked_out_by_hand():
    figures = summarize_grades(GRADES, CASES)
    assert figures["mean/score"] == (6 + 5) / 2
    assert figures["unscored_frac"] == pytest.approx(1 / 3)
    assert figures["gate/truncated_frac"] == pytest.approx(1 / 3)
    assert figures["gate/empty_frac"] == 0
    assert figures["judge/missing_frac"] == pytest.approx(1 / 9)
    assert figures["judge/correct_without_coverage_frac"] == pytest.approx((1 / 2 + 0) / 2)
    assert figures["extra_issues/mean"] == 1.5  # of the scored responses: 3 and 0
    assert figures["extra_issues/frac"] == 3 / (3 + 1 + 2)  # beside the issues that they cover: 1 and 2


def test_without_a_grade_there_are_counts_and_no_means():
    figures = summarize_grades({}, CASES)
    assert figures["mean/score"] is figures["unscored_frac"] is None
    assert figures["num_cases"] == 0


def test_the_table_shows_difficulties_by_level(capsys):
    print_sheets([summary_sheet("a title", summarize_grades(GRADES, CASES))])
    text = capsys.readouterr().out
    heading = next(line for line in text.splitlines() if "easy" in line)
    assert heading.split() == ["all", "easy", "hard", "macro"]
    assert "5.50 [5.00,6.00]" in text
    assert "33.3%" in text


def test_what_was_not_scored_is_a_dash():
    sheet = summary_sheet("a title", summarize_grades({}, CASES))
    assert [text(cell) for cell in sheet.rows[0]] == ["score", "–"]
