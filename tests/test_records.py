import json
from contextlib import suppress
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.cases import CaseError, Claim
from data.records import from_record, same_order, to_record

ORDER = "1. 피고는 원고에게 3,000만 원을 지급하라.\n2. 소송비용은 피고가 부담한다."
ISSUE = {
    "id": "1",
    "summary": "대여 여부",
    "claim": [{"claimer": "원고", "content": "빌려주었다."}],
    "conclusion": "인정",
}
RECORD: dict[str, Any] = {
    "doc_id": "가상지방법원-2024가단1",
    "question": "원고는 피고에게 3,000만 원을 빌려주었다. 결과를 예측하시오.",
    "answer": ORDER,
    "issues": [
        {"id": "", "summary": "", "claim": [], "relevant_law": [], "analysis": [], "conclusion": ORDER},
        ISSUE | {"relevant_law": ["민법 제598조"], "analysis": ["차용증이 있다."]},
        ISSUE | {"id": "1.1", "relevant_law": [], "analysis": []},
    ],
    "difficulty": "easy",
}


def copy_of(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(record))


def changed(path: list[str | int], value: Any) -> dict[str, Any]:
    record = copy_of(RECORD)
    holder: Any = record
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return record


def without(path: list[str | int]) -> dict[str, Any]:
    record = copy_of(RECORD)
    holder: Any = record
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return record


def test_an_official_record_becomes_a_case():
    case = from_record(RECORD)
    assert (case.id, case.question, case.answer) == (RECORD["doc_id"], RECORD["question"], ORDER)
    assert (case.difficulty, case.has_tree, case.extra) == ("easy", True, {})
    assert [issue.id for issue in case.issues] == ["", "1", "1.1"]
    assert case.issues[1].claims == (Claim("원고", "빌려주었다."),)
    assert case.issues[1].relevant_law == ("민법 제598조",)
    assert case.issues[1].analysis == ("차용증이 있다.",)


def test_an_official_record_comes_back_as_it_was():
    record = RECORD | {"issue_id": "", "mini": {"kind": "loan", "decidable": [True, None]}}
    assert to_record(from_record(record)) == record


def test_what_may_be_left_out_is_empty():
    record = copy_of(RECORD)
    for issue in record["issues"]:
        del issue["relevant_law"]
        issue["analysis"] = None
    del record["difficulty"]
    case = from_record(record)
    assert case.issues[1].relevant_law == case.issues[1].analysis == ()
    assert case.difficulty is None
    assert "difficulty" not in to_record(case)


def test_a_case_without_a_tree_stays_one():
    case = from_record(RECORD | {"has_tree": False})
    assert not case.has_tree
    assert from_record(to_record(case)) == case


CLAIMS = st.lists(st.fixed_dictionaries({"claimer": st.text(), "content": st.text()}), max_size=3)
FILLED = st.text(min_size=1).filter(str.strip)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    ids = [""]
    for _ in range(draw(st.integers(1, 6))):
        parent = draw(st.sampled_from(ids))
        number = sum(id.rpartition(".")[0] == parent and id != "" for id in ids) + 1
        ids.append(f"{parent}.{number}".strip("."))
    issues = [
        {
            "id": id,
            "summary": draw(FILLED),
            "claim": draw(CLAIMS),
            "relevant_law": draw(st.lists(st.text(), max_size=2)),
            "analysis": draw(st.lists(st.text(), max_size=2)),
            "conclusion": draw(FILLED),
        }
        for id in ids
    ]
    record = {"doc_id": draw(FILLED), "question": draw(FILLED), "answer": issues[0]["conclusion"]}
    record["issues"] = draw(st.permutations(issues))
    record |= draw(st.fixed_dictionaries({}, optional={"difficulty": st.text(), "has_tree": st.just(False)}))
    return record | draw(st.dictionaries(st.text().map("x".__add__), st.integers() | st.text(), max_size=3))


@settings(deadline=None)
@given(record=records())
def test_every_valid_record_comes_back_as_it_was(record):
    assert to_record(from_record(record)) == record


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
PATHS = [
    ["doc_id"], ["question"], ["answer"], ["issues"], ["difficulty"], ["has_tree"], ["issues", 0], ["issues", 1],
    ["issues", 1, "id"], ["issues", 1, "summary"], ["issues", 1, "claim"], ["issues", 1, "claim", 0],
    ["issues", 1, "claim", 0, "claimer"], ["issues", 1, "relevant_law"], ["issues", 1, "analysis", 0],
    ["issues", 0, "conclusion"],
]  # fmt: skip


@settings(deadline=None)
@given(path=st.sampled_from(PATHS), value=JSON)
def test_whatever_stands_at_a_key_gives_a_case_or_a_case_error(path, value):
    record = changed(path, value)
    with suppress(CaseError):
        case = from_record(record)
        assert from_record(to_record(case)) == case


@pytest.mark.parametrize(
    ("record", "issue_id", "reason"),
    [
        pytest.param(without(["doc_id"]), None, "key 'doc_id' is missing; found: question, answer", id="no doc_id"),
        pytest.param(changed(["doc_id"], " "), None, "key 'doc_id' is empty", id="blank doc_id"),
        pytest.param(changed(["doc_id"], 7), None, "key 'doc_id' must be a string, but is a number", id="number"),
        pytest.param(without(["question"]), None, "key 'question' is missing", id="no question"),
        pytest.param(changed(["question"], None), None, "'question' must be a string, but is null", id="null"),
        pytest.param(changed(["question"], "\n"), None, "the question is empty", id="blank question"),
        pytest.param(changed(["question"], "가\ud83d"), None, "half a surrogate pair", id="half an emoji"),
        pytest.param(without(["answer"]), None, "key 'answer' is missing", id="no answer"),
        pytest.param(changed(["answer"], ["기각"]), None, "'answer' must be a string, but is a list", id="answer"),
        pytest.param(changed(["issues"], {}), None, "'issues' must be a list, but is an object", id="issues"),
        pytest.param(changed(["issues"], []), None, "no root", id="no issue at all"),
        pytest.param(
            changed(["issues", 2], "쟁점"), None, "'issues[2]' must be an object, but is a string", id="issue"
        ),
        pytest.param(changed(["issues"], RECORD["issues"][:1]), None, "no issue besides the root", id="root alone"),
        pytest.param(changed(["issues", 2, "id"], "2.1"), "2.1", "its parent '2' is missing", id="orphan"),
        pytest.param(changed(["issues", 2, "id"], "1"), "1", "the id occurs twice", id="duplicate id"),
        pytest.param(changed(["issues", 2, "id"], "1.a"), "1.a", "numbers joined by dots", id="id with a letter"),
        pytest.param(without(["issues", 2, "id"]), None, "'issues[2].id' is missing", id="no issue id"),
        pytest.param(changed(["issues", 2, "id"], [1]), None, "'issues[2].id' must be a string", id="list as issue id"),
        pytest.param(changed(["issues", 1, "id"], 1), None, "'issues[1].id' must be a string", id="number as issue id"),
        pytest.param(without(["issues", 1, "summary"]), "1", "key 'summary' is missing", id="no summary"),
        pytest.param(without(["issues", 1, "claim"]), "1", "key 'claim' is missing", id="no claim"),
        pytest.param(changed(["issues", 1, "claim"], "주장"), "1", "'claim' must be a list", id="claim as a text"),
        pytest.param(changed(["issues", 1, "claim"], ["주장"]), "1", "'claim[0]' must be an object", id="claim"),
        pytest.param(without(["issues", 1, "claim", 0, "claimer"]), "1", "'claim[0].claimer' is missing", id="claimer"),
        pytest.param(changed(["issues", 1, "claim", 0, "content"], 3), "1", "'claim[0].content' must", id="content"),
        pytest.param(changed(["issues", 1, "relevant_law"], "민법"), "1", "'relevant_law' must be a list", id="law"),
        pytest.param(
            changed(["issues", 1, "analysis"], ["가", 2]), "1", "'analysis[1]' must be a string", id="analysis"
        ),
        pytest.param(without(["issues", 1, "conclusion"]), "1", "key 'conclusion' is missing", id="no conclusion"),
        pytest.param(
            changed(["issues", 1, "conclusion"], " \n"), "1", "the conclusion is empty", id="empty conclusion"
        ),
        pytest.param(changed(["issues", 1], ISSUE | {"summary": "", "claim": []}), "1", "cannot be told", id="untold"),
        pytest.param(changed(["difficulty"], 3), None, "'difficulty' must be a string", id="difficulty"),
        pytest.param(changed(["has_tree"], "no"), None, "'has_tree' must be true or false", id="has_tree"),
    ],
)
def test_a_flaw_is_the_only_problem_and_is_named(record, issue_id, reason):
    with pytest.raises(CaseError) as caught:
        from_record(record)
    assert [(where, reason in what) for where, what in caught.value.problems] == [(issue_id, True)], str(caught.value)


def test_a_tree_without_a_root_is_no_case():
    with pytest.raises(CaseError, match='no root: one issue must have the id ""'):
        from_record(without(["issues", 0]))


def test_all_flaws_of_a_record_are_named_at_once():
    record = changed(["issues", 2, "id"], "3.1")
    record["issues"][1]["conclusion"] = ""
    record["issues"][1]["claim"][0]["claimer"] = None
    record["answer"] = 5
    with pytest.raises(CaseError) as caught:
        from_record(record)
    assert {where for where, _ in caught.value.problems} == {None, "1", "3.1"}
    assert len(caught.value.problems) == 4


def test_another_order_than_the_answer_is_shown_where_they_part():
    with pytest.raises(CaseError) as caught:
        from_record(changed(["answer"], ORDER.replace("3,000만", "2,000만")))
    ((issue_id, reason),) = caught.value.problems
    assert issue_id == ""
    assert "3,000만" in reason
    assert "2,000만" in reason


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param("1. 원고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다.", True, id="equal"),
        pytest.param("1.원고의  청구를 기각한다.\r\n\n2. 소송비용은 원고가 부담한다. ", True, id="white space"),
        pytest.param(normalize("NFD", "1. 원고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다."), True, id="NFD"),
        pytest.param("1. 원고의 청구를 기각한다\n2. 소송비용은, 원고가 부담한다", True, id="stops and commas"),
        pytest.param("1. 원고의 청구를 각하한다.\n2. 소송비용은 원고가 부담한다.", False, id="dismissed otherwise"),
        pytest.param("1. 피고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다.", False, id="other party"),
        pytest.param("1. 원고의 청구를 기각한다.", False, id="an item less"),
        pytest.param("", False, id="empty"),
    ],
)
def test_orders_are_compared_by_what_they_say(other, is_same):
    assert same_order("1. 원고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다.", other) is is_same


@pytest.mark.parametrize(("one", "other"), [("연 1.5%", "연 15%"), ("1,000원", "1,0000원"), ("1/2", "12"), ("A", "B")])
def test_figures_are_not_overlooked(one, other):
    assert not same_order(one, other)
