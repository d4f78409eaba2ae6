import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.cases import Case, Issue
from rewards.score import Judgment, score_case

RIGHT = Judgment(True, True)
WRONG = Judgment(True, False)
ABSENT = Judgment(False, False)
UNCOVERED_RIGHT = Judgment(False, True)


def case_with(num_sub_issues: int) -> Case:
    ids = ["", *(str(i + 1) for i in range(num_sub_issues))]
    return Case("가상-1", "질문", tuple(Issue(id, "쟁점", (), "이유 있다") for id in ids))


def judged(root: Judgment | None, *others: Judgment | None) -> dict[str, Judgment | None]:
    return {"": root} | {str(i + 1): judgment for i, judgment in enumerate(others)}


@pytest.mark.parametrize(
    ("judgments", "total", "order", "coverage", "correctness"),
    [
        pytest.param((RIGHT, RIGHT, RIGHT), 10.0, 1, 1, 1, id="all right"),
        pytest.param((ABSENT, ABSENT, ABSENT), 0.0, 0, 0, 0, id="nothing"),
        pytest.param((RIGHT, ABSENT, ABSENT), 5.0, 1, 0, 0, id="order alone"),
        pytest.param((ABSENT, RIGHT, WRONG), 2 + 1.5, 0, 1, 0.5, id="covered, one wrong"),
        pytest.param((WRONG, RIGHT), 5.0, 0, 1, 1, id="the root's coverage earns nothing"),
        pytest.param((UNCOVERED_RIGHT, RIGHT), 10.0, 1, 1, 1, id="nor is it asked for"),
        pytest.param((ABSENT, UNCOVERED_RIGHT, ABSENT), 0.0, 0, 0, 0, id="right but absent earns nothing"),
        pytest.param((RIGHT, RIGHT, RIGHT, WRONG, ABSENT), 5 + 2 * 3 / 4 + 3 * 2 / 4, 1, 0.75, 0.5, id="four issues"),
    ],
)
def test_the_parts_and_their_sum(judgments, total, order, coverage, correctness):
    score = score_case(case_with(len(judgments) - 1), judged(*judgments))
    assert (score.order, score.coverage, score.correctness) == (order, coverage, correctness)
    assert score.total == pytest.approx(total)


def test_right_without_coverage_is_counted():
    score = score_case(case_with(4), judged(RIGHT, UNCOVERED_RIGHT, RIGHT, ABSENT, ABSENT))
    assert score.correct_without_coverage == 0.25


def test_a_wrong_descendant_takes_nothing_from_its_ancestor():
    issues = tuple(Issue(id, "쟁점", (), "이유 있다") for id in ("", "1", "1.1", "10"))
    score = score_case(Case("가상-1", "질문", issues), {"": RIGHT, "1": RIGHT, "1.1": WRONG, "10": RIGHT})
    assert score.total == pytest.approx(5 + 2 + 3 * 2 / 3)


def test_soft_verdicts_enter_as_probabilities():
    score = score_case(case_with(1), judged(Judgment(1, 0.6), Judgment(0.5, 0.8)))
    assert score.total == pytest.approx(5 * 0.6 + 2 * 0.5 + 3 * 0.4)


@pytest.mark.parametrize(
    ("judgments", "quorum", "total"),
    [
        pytest.param((RIGHT, RIGHT, None), 1.0, None, id="one missing"),
        pytest.param((None, RIGHT, RIGHT), 0.5, None, id="the root missing, whatever the quorum"),
        pytest.param((RIGHT, RIGHT, None), 0.5, 10.0, id="half is enough"),
        pytest.param((RIGHT, WRONG, RIGHT, None, None), 0.5, 5 + 2 + 1.5, id="the observed stand for all"),
        pytest.param((RIGHT, RIGHT, None, None), 0.5, None, id="a third is not"),
        pytest.param((RIGHT, None), 0.01, None, id="never from the root alone"),
        pytest.param((RIGHT, *[ABSENT] * 11, *[None] * 9), 0.55, 5.0, id="11 of 20 are 55 % in floats too"),
    ],
)
def test_a_missing_verdict_is_no_grade(judgments, quorum, total):
    score = score_case(case_with(len(judgments) - 1), judged(*judgments), quorum)
    assert (score.total if score else None) == total
    if score:
        assert score.num_judged == sum(judgment is not None for judgment in judgments)
        assert score.num_issues == len(judgments)


def test_a_forgotten_issue_is_an_error_not_a_discount():
    with pytest.raises(ValueError, match=r"no judgment for issues \['2'\]"):
        score_case(case_with(2), judged(RIGHT, RIGHT))


def test_a_foreign_judgment_is_an_error():
    with pytest.raises(ValueError, match=r"does not have: \['2'\]"):
        score_case(case_with(1), judged(RIGHT, RIGHT, RIGHT))


@pytest.mark.parametrize("quorum", [0, -1, 1.01, float("nan")])
def test_a_quorum_outside_its_range_is_refused(quorum):
    with pytest.raises(ValueError, match="quorum"):
        score_case(case_with(1), judged(RIGHT, RIGHT), quorum)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_verdict_is_a_probability(value):
    with pytest.raises(ValueError, match="contains_issue"):
        Judgment(value, True)


soft = st.builds(Judgment, st.floats(0, 1), st.floats(0, 1))


@given(st.lists(soft, min_size=2, max_size=12))
def test_the_score_stays_in_its_range_and_is_the_sum_of_its_parts(judgments):
    score = score_case(case_with(len(judgments) - 1), judged(*judgments))
    assert 0 <= score.correctness <= score.coverage + 1e-9 <= 1 + 2e-9
    assert -1e-9 <= score.total <= 10 + 1e-9
    assert score.total == pytest.approx(5 * score.order + 2 * score.coverage + 3 * score.correctness)


@given(st.lists(st.builds(Judgment, st.booleans(), st.booleans()), min_size=2, max_size=12), st.data())
def test_a_better_verdict_never_lowers_the_score(judgments, data):
    index = data.draw(st.integers(0, len(judgments) - 1))
    better = [*judgments[:index], RIGHT, *judgments[index + 1 :]]
    case = case_with(len(judgments) - 1)
    assert score_case(case, judged(*better)).total >= score_case(case, judged(*judgments)).total - 1e-9


@given(st.lists(st.builds(Judgment, st.booleans(), st.booleans()), min_size=2, max_size=12), st.randoms())
def test_the_order_of_the_issues_does_not_matter(judgments, random):
    case, verdicts = case_with(len(judgments) - 1), judged(*judgments)
    shuffled = list(case.issues)
    random.shuffle(shuffled)
    other = Case(case.id, case.question, tuple(shuffled))
    assert score_case(other, verdicts).total == pytest.approx(score_case(case, verdicts).total)
