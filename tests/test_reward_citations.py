"""What an answer cites, against the corpus and against the court; the gate against invented precedents."""

import pytest
from graded_cases import by_key, make_case, make_grade

from data.cases import Case, Issue
from data.law import LawError, passage_of, write_corpus
from eval.citing import citation_figures, citation_sheet
from rewards.citations import citations_of, unknown_precedents
from rewards.gates import GateConfig, gate

LAW = "임차인은 임대차가 끝나면 민법 제654조에 따라 목적물을 원상으로 돌려주어야 한다(대법원 2017다1 판결 참조)."
CASE = Case(
    "사건",
    "질문",
    (
        Issue("", "", (), "기각한다."),
        Issue("1", "쟁점", (), "이유 없다.", ("구 민법(2010. 1. 1. 법률 제1호로 개정되기 전의 것) 제618조", LAW)),
    ),
)
ANSWER = "민법 제618조와 상법 제3조, 대법원 2017다1 판결에 따르면 원고의 청구는 이유 없다. 민법 제618조를 다시 본다."


def test_cited_laws_are_counted_once_and_a_former_act_is_the_act():
    told = citations_of(CASE, ANSWER)
    assert told.cited == {"민법 제618조", "상법 제3조", "대법원 2017다1"}
    assert told.own == {"민법 제618조", "민법 제654조", "대법원 2017다1"}
    assert told.num_own == 2
    assert told.num_known({"구 민법 제618조", "상법 제3조"}) == 2
    assert citations_of(CASE, "청구를 기각한다.").cited == frozenset()


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        ("대법원 2017다1 판결", []),
        ("민법 제9999조", []),  # statutes are no precedents, and no corpus has all of them
        ("대법원 2099. 1. 1. 선고 2098다7 판결, 대법원 2098다7 판결", ["대법원 2098다7"]),
    ],
)
def test_only_precedents_can_be_invented(answer, unknown):
    assert unknown_precedents(answer, {"대법원 2017다1"}) == unknown


def test_the_gate_is_off_unless_it_is_given_a_corpus(tmp_path):
    write_corpus(tmp_path, [], [passage_of(LAW)])
    invented = "대법원 2098다7 판결에 따라 원고의 청구를 기각한다."
    on = GateConfig(gate_precedents=str(tmp_path))
    assert gate(invented, "stop", GateConfig()) is None
    assert gate(invented, "stop", on) == "unknown_precedent"
    assert gate(ANSWER, "stop", on) is None
    with pytest.raises(LawError, match="holds no law corpus"):
        gate(invented, "stop", GateConfig(gate_precedents=str(tmp_path / "nothing")))


def test_rates_over_all_responses():
    grades = by_key(make_grade(CASE, "rr", text=ANSWER), make_grade(CASE, "rr", text="대법원 2098다7", sample=1))
    figures = citation_figures(grades, {CASE.id: CASE}, {"민법 제618조", "대법원 2017다1"})
    assert figures["citations/per_response"] == 2  # 3 and 1
    assert figures["citations/precision"] == 2 / 4
    assert figures["citations/recall"] == 2 / 6
    assert figures["citations/existing"] == 2 / 4
    assert [label for label, _ in citation_sheet(figures).rows] == [
        "laws cited per response",
        "of them in the corpus",
        "of them the case's own",
        "of the case's own cited",
    ]


def test_without_laws_there_are_no_rates():
    case = make_case("a", "1")
    assert citation_figures(by_key(make_grade(case, "rr")), {"a": case}, None).keys() == {
        "citations/per_response",
        "citations/per_response/low",
        "citations/per_response/high",
    }


def test_of_cases_in_other_languages_no_citation_is_counted():
    case = Case("a", "Question", CASE.issues, extra={"language": "en"})
    assert citation_figures(by_key(make_grade(case, "rr")), {"a": case}, None) == {}
