"""The exact judge of the mini world."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.priced_extras import PricedExtrasJudge
from data.cases import Case, Issue
from rewards.mini_judge import MiniJudge, count_extra_issues
from rewards.score import score_case

ORDER = "피고는 원고에게 대여금의 일부를 지급하라. 나머지 청구를 기각한다."
ISSUES = {
    "1": {"name": "소비대차 성립", "accepted": True},
    "1.1": {"name": "변제", "accepted": False},
    "1.2": {"name": "상계", "accepted": True},
}
CASE = Case(
    id="mini-1",
    question="돈을 돌려달라.",
    issues=(Issue("", "", (), ORDER), *(Issue(id, issue["name"], (), "결론") for id, issue in ISSUES.items())),
    extra={"mini": {"version": 1, "order_first": False, "issues": ISSUES}},
)


def judge(answer, case=CASE):
    return asyncio.run(MiniJudge().judge_case(case, answer))


def marks(answer):
    return {id: (bool(j.contains_issue), bool(j.correct_conclusion)) for id, j in judge(answer).items()}


RIGHT, WRONG, ABSENT = (True, True), (True, False), (False, False)
GOLD = f"소비대차 성립: 인정\n변제: 부정\n상계: 인정\n주문: {ORDER}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(GOLD, (RIGHT, RIGHT, RIGHT, RIGHT), id="the court's own answer"),
        pytest.param("", (ABSENT, ABSENT, ABSENT, ABSENT), id="nothing"),
        pytest.param("\n".join(reversed(GOLD.split("\n"))), (RIGHT, RIGHT, RIGHT, RIGHT), id="any order of lines"),
        pytest.param(f" 변제 :부정 \n\n  주문:  {ORDER}\r", (RIGHT, ABSENT, RIGHT, ABSENT), id="free spaces"),
        pytest.param("변제: 인정", (ABSENT, ABSENT, WRONG, ABSENT), id="named and decided wrong"),
        pytest.param("변제: 부정\n변제: 부정", (ABSENT, ABSENT, RIGHT, ABSENT), id="twice alike"),
        pytest.param("변제: 부정\n변제: 인정", (ABSENT, ABSENT, ABSENT, ABSENT), id="both ways earns nothing"),
        pytest.param("변제: 부정\n변제: 인정\n변제: 부정", (ABSENT, ABSENT, ABSENT, ABSENT), id="two against one"),
        pytest.param("변제: 부정 인정", (ABSENT, ABSENT, ABSENT, ABSENT), id="both in one line"),
        pytest.param("변제: 부정한다", (ABSENT, ABSENT, ABSENT, ABSENT), id="right in part"),
        pytest.param("변제: 부정.", (ABSENT, ABSENT, ABSENT, ABSENT), id="a full stop too many"),
        pytest.param("변제:\n: 부정", (ABSENT, ABSENT, ABSENT, ABSENT), id="cut off"),
        pytest.param("변제 부정", (ABSENT, ABSENT, ABSENT, ABSENT), id="no colon"),
        pytest.param("1.1 변제: 부정", (ABSENT, ABSENT, ABSENT, ABSENT), id="a name that is not the issue's"),
        pytest.param("변제: 부정: 부정", (ABSENT, ABSENT, ABSENT, ABSENT), id="two colons"),
        pytest.param("변제: 부정, 상계: 인정", (ABSENT, ABSENT, ABSENT, ABSENT), id="two issues in one line"),
        pytest.param(f"주문: {ORDER}\n주문: {ORDER}", (RIGHT, ABSENT, ABSENT, ABSENT), id="the order twice alike"),
        pytest.param(f"주문: {ORDER}\n주문: 원고의 청구를 기각한다.", (WRONG, ABSENT, ABSENT, ABSENT), id="two orders"),
        pytest.param(f"주문: {ORDER[:-1]}", (WRONG, ABSENT, ABSENT, ABSENT), id="an order cut off"),
        pytest.param(
            "주문: 피고는 원고에게 대여금의 일부를 지급하라.", (WRONG, ABSENT, ABSENT, ABSENT), id="an order in part"
        ),
        pytest.param(ORDER, (ABSENT, ABSENT, ABSENT, ABSENT), id="an order without its name"),
    ],
)
def test_the_judge_reads_whole_lines_strictly(answer, expected):
    assert tuple(marks(answer).values()) == expected


def test_the_score_of_a_partial_answer():
    answer = f"소비대차 성립: 인정\n변제: 인정\n주문: {ORDER}"
    assert score_case(CASE, judge(answer)).total == pytest.approx(5 + 2 * 2 / 3 + 3 * 1 / 3)


def test_text_in_another_normal_form_reads_the_same():
    import unicodedata

    assert marks(unicodedata.normalize("NFD", GOLD)) == marks(GOLD)


@pytest.mark.parametrize(
    ("answer", "num_extra"),
    [
        pytest.param(GOLD, 0, id="only the court's issues"),
        pytest.param("소멸시효: 부정\n소멸시효: 인정\n시효 중단: 인정\n변제: 부정", 2, id="different names once each"),
        pytest.param("아무 말: 인정", 1, id="an invented name"),
        pytest.param("소멸시효: 글쎄\n소멸시효", 0, id="lines that decide nothing"),
    ],
)
def test_extra_issues_are_counted(answer, num_extra):
    assert count_extra_issues(CASE, answer) == num_extra


def test_a_real_case_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"case 'mini-1' is not of the mini world.*judge: endpoint"):
        judge(GOLD, replace(CASE, extra={}))
    with pytest.raises(ValueError, match="not of the mini world"):
        count_extra_issues(replace(CASE, extra={}), GOLD)


def test_a_case_of_another_version_of_the_world_is_refused():
    with pytest.raises(ValueError, match=r"version 0 of the mini world.*write the cases again"):
        judge(GOLD, replace(CASE, extra={"mini": {"version": 0, "order_first": False, "issues": ISSUES}}))


def test_nothing_is_asked_of_any_endpoint():
    exact = MiniJudge()
    asyncio.run(exact.judge_case(CASE, GOLD))
    stats = exact.stats.take()
    assert (stats.calls, stats.retries, stats.tokens_in, stats.tokens_out) == (0, 0, 0, 0)


lines = st.sampled_from([*GOLD.split("\n"), "변제: 인정", "소멸시효: 부정", "주문: 원고의 청구를 기각한다.", "", "글"])


@given(st.lists(lines, max_size=12), st.randoms())
def test_the_verdict_does_not_depend_on_the_order_of_lines(written, random):
    shuffled = list(written)
    random.shuffle(shuffled)
    assert marks("\n".join(written)) == marks("\n".join(shuffled))


@given(st.text(max_size=200))
def test_any_text_is_judged_on_every_issue(answer):
    assert judge(answer).keys() == {"", *ISSUES}
    assert count_extra_issues(CASE, answer) >= 0


@pytest.mark.parametrize(
    "mini",
    [
        5,
        "x",
        [],
        {},
        {"version": 1},
        {"version": 1, "issues": [1]},
        {"version": 1, "issues": {"1": ISSUES["1"]}},
        {"version": 1, "issues": ISSUES | {"1": {"name": "변제", "accepted": "yes"}}},
    ],
    ids=["number", "text", "list", "empty", "no issues", "issues a list", "an issue less", "no decision"],
)
def test_a_damaged_mini_key_is_told_with_the_way_out(mini):
    with pytest.raises(ValueError, match=r"case 'mini-1'.*write the cases again"):
        judge(GOLD, replace(CASE, extra={"mini": mini}))


def test_a_price_on_extra_issues_takes_credit_from_right_conclusions_alone():
    answer = f"{GOLD}\n이미 지급: 인정\n시효: 부정"
    priced = asyncio.run(PricedExtrasJudge(0.25).judge_case(CASE, answer))

    assert [float(one.correct_conclusion) for one in priced.values()] == [1, 0.5, 0.5, 0.5]  # the root first
    assert all(one.contains_issue == 1 for one in priced.values())


def test_the_price_on_extra_issues_ends_at_nothing_and_costs_nothing_where_there_are_none():
    five = GOLD + "".join(f"\n쟁점 {number}: 인정" for number in range(5))
    for answer, worth in ((GOLD, 1), (five, 0)):
        priced = asyncio.run(PricedExtrasJudge(0.25).judge_case(CASE, answer))
        assert priced["1.1"].correct_conclusion == worth
