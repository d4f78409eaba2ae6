"""A case that its judgment does not bear out is rejected, and the reason says where."""

import copy
from dataclasses import replace

import pytest
from judgment_replay import Known, known

from data.checks import check_case
from data.stages import STAGES, Draft, case_record, read_prompt

FIRE = known()["01_fire_insurance"]
FOOD = known()["04_food_supply_pdf"]
EXAMPLES = "\n".join(read_prompt(stage.name, "ko") for stage in STAGES)


def draft_of(one: Known, **changed_replies) -> Draft:
    draft = Draft(one.judgment)
    for stage in STAGES:
        draft = stage.put(draft, changed_replies.get(stage.name, one.replies[stage.name]))
    return draft


def check(one: Known, **changed_replies) -> list[str]:
    draft = draft_of(one, **changed_replies)
    return check_case(draft, case_record(draft, "ko"), EXAMPLES)[0]


def with_issue(one: Known, issue_id: str, **changes) -> dict:
    tree = copy.deepcopy(one.replies["tree"])
    issue = next(issue for issue in tree["issues"] if issue["id"] == issue_id)
    issue.update(changes)
    return tree


def with_fact(one: Known, sentence: str) -> dict:
    return {"statement": f"{one.replies['statement']['statement']}\n\n{sentence}"}


@pytest.mark.parametrize("name", known())
def test_hand_made_cases_stand(name):
    assert check(known()[name]) == []


def test_spans_say_what_of_the_judgment_supports_each_statement():
    draft = draft_of(FIRE)
    _, spans = check_case(draft, case_record(draft, "ko"))
    conclusion = next(span for span in spans if span["issue"] == "2.4" and span["kind"] == "conclusion")
    assert conclusion["score"] == 100
    ((start, end),) = conclusion["at"]
    assert FIRE.judgment.text[start:end] == "피고의 해지는 해지기간 안에 이루어진 것으로서 적법하다."
    kinds = {"fact", "statement", "claim", "analysis", "conclusion"}
    assert {span["kind"] for span in spans} == kinds


@pytest.mark.parametrize(
    ("one", "replies", "reason"),
    [
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "2.4", id="7.1")},
            "schema: issue '7.1': its parent '7' is missing",
            id="no parent",
        ),
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "3", conclusion="")},
            "schema: issue '3': the conclusion is empty",
            id="no conclusion",
        ),
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "3", conclusion="우주선의 궤도를 계산한 결과 로켓은 달까지 날아갈 수 있다.")},
            "grounding: conclusion 1 of issue '3' has support",
            id="an invented conclusion",
        ),
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "1", conclusion="피고는 보험가입금액 280,000,000원을 지급할 의무가 있다.")},
            "grounding: conclusion 1 of issue '1' has numbers that the judgment has not: 280000000",
            id="a wrong amount",
        ),
        pytest.param(
            FIRE,
            {"statement": with_fact(FIRE, "원고는 2019. 7. 31. 피고에게 전화하였다.")},
            "has numbers that the judgment has not: 31",
            id="an invented date",
        ),
        pytest.param(
            FIRE,
            {"statement": with_fact(FIRE, "원고는 고의 또는 중대한 과실로 중요한 사항을 부실하게 고지하였다.")},
            "leakage: the facts give away the conclusion of issue '2.1' (likeness 100)",
            id="a conclusion among the facts",
        ),
        pytest.param(
            FIRE,
            {"statement": with_fact(FIRE, "보험설계사에 관한 원고의 주장은 이유 없다.")},
            "leakage: the facts speak as the court does ('주장은이유없')",
            id="the court's words",
        ),
        pytest.param(
            FOOD,
            {"statement": with_fact(FOOD, FOOD.judgment.order.split("\n")[0][3:].replace("하라", "한다"))},
            "leakage: the facts give away the order",
            id="the order",
        ),
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "1", summary="우산 보관료 채권이 발생하였는지 여부가 문제이다")},
            "leakage: text of a prompt: ",
            id="text of the prompt's example",
        ),
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "1", relevant_law=["상인은 상당한 보수를 청구할 수 있다. 상법 제61조"])},
            "law: issue '1' cites 상법 제61조, which the judgment does not",
            id="a law that the court did not cite",
        ),
        pytest.param(
            FIRE,
            {"refine": with_issue(FIRE, "1", relevant_law=["상법 제651조: 상인이 그 영업범위 내에서 타인을 위하여"])},
            "leakage: text of a prompt: ",
            id="the law of the prompt's example",
        ),
        pytest.param(
            FOOD,
            {"refine": with_issue(FOOD, "2.2", claims=[{"claimer": "피고 D", "content": "원고가 피고 B임을 알았다."}])},
            "parties: a claim of issue '2.2' names no party of this case: 피고 D",
            id="a claimer that is no party",
        ),
    ],
)  # fmt: skip
def test_a_case_that_does_not_stand_says_why(one, replies, reason):
    reasons = check(one, **replies)
    assert any(found.startswith(reason) or reason in found for found in reasons), reasons


@pytest.mark.parametrize(
    "claimer", ["피고들", "피고 C", "피고 회사", "피고 주식회사 □□푸드시스템", "피고 3", "원고와 피고 B", "B"]
)
def test_parties_may_be_called_as_the_judgment_calls_them(claimer):
    claims = [{"claimer": claimer, "content": "원고가 실제 영업주가 피고 B임을 알았다."}]
    assert check(FOOD, refine=with_issue(FOOD, "2.2", claims=claims)) == []


def test_what_a_party_asserts_gives_nothing_away():
    sentence = "피고는 원고가 고의 또는 중대한 과실로 중요한 사항을 부실하게 고지하였다고 주장한다."
    assert check(FIRE, statement=with_fact(FIRE, sentence)) == []


def test_the_order_is_compared_to_the_character():
    draft = draft_of(FIRE)
    record = case_record(draft, "ko")
    changed = replace(
        draft, judgment=replace(draft.judgment, order=draft.judgment.order.replace("기각한다", "각하한다"))
    )
    assert "order: the answer is not the judgment's order to the character" in check_case(changed, record)[0]
    spaced = replace(draft, judgment=replace(draft.judgment, order=draft.judgment.order.replace("1. ", "1.")))
    assert len(check_case(spaced, record)[0]) == 1


def test_a_tree_that_leaves_out_most_of_what_is_decided_is_rejected():
    tree = copy.deepcopy(FOOD.replies["refine"])
    tree["issues"] = [issue for issue in tree["issues"] if issue["id"] == "1"]
    [reason] = check(FOOD, refine=tree, split={"issues": []})
    assert reason.startswith("completeness: no issue tells of 11 of the 12 sections that decide: ")
    assert "3.가. 명의대여자 책임의 성립" in reason


@pytest.mark.parametrize(
    ("cited", "is_known"),
    [
        ("상법 제651조", True),
        ("상법 제65조", False),  # the judgment has 제651조 and 제655조
        ("상법 제655조의2", False),
        ("대법원 2006. 6. 9. 선고 2006다1967 판결", False),  # it has 2006다19672
        ("대법원 2009. 5. 14. 선고 2006다19672 판결", True),
    ],
)
def test_a_law_is_known_by_its_whole_number(cited, is_known):
    reasons = check(FIRE, refine=with_issue(FIRE, "1", relevant_law=[cited]))
    assert ([reason.partition(":")[0] for reason in reasons] == []) == is_known


@pytest.mark.parametrize(
    "change",
    [{"conclusion": "원고"}, {"summary": ""}, {"claims": [{"claimer": "피고", "content": "가"}]}, {"analysis": ["."]}],
    ids=lambda change: next(iter(change)),
)
def test_an_issue_must_say_something(change):
    reasons = check(FIRE, refine=with_issue(FIRE, "1", **change))
    assert any("of issue '1' says next to nothing" in reason for reason in reasons), reasons


def test_a_statement_must_tell_most_of_the_facts():
    statement = {"statement": FIRE.replies["statement"]["statement"][:200]}
    assert [reason.partition(":")[0] for reason in check(FIRE, statement=statement)] == ["completeness"]


def test_a_tree_that_mixes_the_judgment_s_sections_is_rejected():
    names = {"2.1": "1.1", "2.2": "3.1", "3.1": "1.2", "3.2": "2.1"}
    tree = copy.deepcopy(FOOD.replies["tree"])
    for issue in tree["issues"]:
        issue["id"] = names.get(issue["id"], issue["id"])
    (reason,) = check(FOOD, refine=tree)
    assert reason.startswith("sections: 4 of 4 sub-issues stand in another main section")
