"""Twelve fictional judgments in every shape that courts and their publishers use, read into their parts."""

import json
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.judgment_text import parse_judgment

PATHS = {path.stem[:2]: path for path in Path(__file__).with_name("judgments").glob("*.txt")}
JUDGMENTS = {number: parse_judgment(path.read_text(encoding="utf-8")) for number, path in PATHS.items()}


def gold(number: str) -> dict:
    return json.loads(PATHS[number].with_suffix(".json").read_text(encoding="utf-8"))


KEPT = [number for number in sorted(PATHS) if "answer" in gold(number)]


@pytest.mark.parametrize("number", KEPT)
def test_the_order_is_the_one_that_was_read_by_hand(number):
    assert JUDGMENTS[number].order == gold(number)["answer"]


@pytest.mark.parametrize("number", KEPT)
def test_the_doc_id_is_court_and_case_number(number):
    assert JUDGMENTS[number].doc_id == gold(number)["doc_id"]


@pytest.mark.parametrize("number", [number for number in KEPT if number not in ("02", "03", "05")])
def test_the_purposes_of_claim_are_those_that_were_read_by_hand(number):
    told = gold(number)["issues"][0]["claim"]
    found = [(purpose.claimer, " ".join(purpose.text.split())) for purpose in JUDGMENTS[number].purposes]
    assert found == [(claim["claimer"], claim["content"]) for claim in told]


PARTIES = {
    "01": [("원고", "주식회사 A"), ("피고", "B손해보험 주식회사")],
    "02": [("원고(반소피고)", "A"), ("피고(반소원고)", "B")],
    "03": [("원고", "김OO"), ("피고", "이OO")],
    "04": [("원고", "주식회사 A"), ("피고", "B"), ("피고", "C"), ("피고", "주식회사 □□푸드시스템")],
    "05": [("원고", "□□○氏 △△公派 종중"), ("피고", "B"), ("피고", "C")],
    "06": [("원고", "A"), ("원고", "B"), ("원고", "C"), ("피고", "주식회사 D"), ("피고", "E")],
    "07": [("원고", "A"), ("피고", "근로복지공단")],
    "08": [("원고", "A"), ("피고", "○○세무서장")],
    "09": [("원고", "주식회사 A"), ("피고", "□□시장")],
    "10": [("원고", "□□시민모임"), ("피고", "○○시장")],
    "11": [("원고", "주식회사 A"), ("피고", "B 주식회사")],
    "12": [("원고", "김○○"), ("피고", "이○○"), ("피고", "◎◎공인중개사협회")],
}


@pytest.mark.parametrize("number", PARTIES)
def test_parties_have_role_and_name(number):
    assert [(party.role, party.name) for party in JUDGMENTS[number].parties] == PARTIES[number]


def test_what_belongs_to_a_party_stays_with_it():
    assert JUDGMENTS["04"].parties[3].details == (
        "대표이사 D",
        "피고 2, 3의 소송대리인 법무법인 ○○",
        "담당변호사 허○○",
    )
    assert JUDGMENTS["06"].parties[2].details[0] == "원고 3은 미성년자이므로 법정대리인 친권자 부 B, 모 A"
    assert JUDGMENTS["03"].parties[0].details == ("소송대리인 변호사 정OO",)


HEADERS = {
    "01": ("보험금", date(2022, 3, 17), date(2022, 4, 14)),
    "02": ("건물철거 및 토지인도 등", date(2022, 1, 13), date(2022, 2, 10)),
    "05": ("소유권이전등기", date(2021, 10, 28), date(2021, 11, 25)),
    "09": ("취득세부과처분취소 등", date(2022, 9, 22), date(2022, 10, 27)),
    "12": ("손해배상(기)", date(2023, 3, 24), date(2023, 4, 21)),
}


@pytest.mark.parametrize("number", HEADERS)
def test_case_name_and_dates(number):
    judgment = JUDGMENTS[number]
    assert (judgment.case_name, judgment.closed, judgment.decided) == HEADERS[number]


def test_claim_and_counterclaim():
    main, counter = JUDGMENTS["02"].purposes
    assert (main.kind, main.claimer, main.label) == ("main", "원고(반소피고)", "본소")
    assert (counter.kind, counter.claimer, counter.label) == ("counterclaim", "피고(반소원고)", "반소")
    assert counter.text.startswith("원고는 피고에게 별지 목록 기재 토지 중,")
    assert JUDGMENTS["02"].case_numbers == ("2021가합4002", "2021가합4016")


def test_primary_and_alternative_claim():
    primary, alternative = JUDGMENTS["03"].purposes
    assert (primary.rank, alternative.rank) == ("primary", "alternative")
    assert alternative.text.startswith("피고는 원고에게 467,960,000원")


def test_several_plaintiffs_claim_together():
    assert JUDGMENTS["06"].purposes[0].claimer == "원고들"


@pytest.mark.parametrize("number", ["04", "07"])
def test_a_claim_as_ordered_is_told_in_the_order_s_words_without_costs(number):
    (purpose,) = JUDGMENTS[number].purposes
    assert "주문" not in purpose.text
    assert "소송비용" not in purpose.text
    assert purpose.text in JUDGMENTS[number].order


SECTIONS = {
    "01": ("1.나.3)", "3.나.2)나)", "3.라.", "4."),
    "02": ("3.가.2)가)(2)(나)", "4.다.3)", "5."),
    "03": ("2.나.(3)", "4.가.(2)(나)", "5."),
    "04": ("1.아.", "3.나.(3)", "4.나.(3)", "6."),
    "05": ("2.다.(2)④", "2.라.", "3."),
    "07": ("2.라.1)다)(4)", "2.라.3)", "3."),
    "08": ("I.D.", "II.D.3)b)", "II.F.", "III."),
    "09": ("2.(2)(다)", "4.(1)(나)②", "5."),
    "10": ("2.다.3)", "3.마.2)", "3.바.", "4."),
    "11": ("2.나.(3)(다)", "3.나.(4)", "4."),
    "12": ("3.가.⑤", "4.나.③", "5."),
}


@pytest.mark.parametrize("number", SECTIONS)
def test_sections_are_numbered_as_the_court_numbers_them(number):
    found = [section.number for section in JUDGMENTS[number].sections]
    assert set(SECTIONS[number]) <= set(found)
    assert found[-1] == SECTIONS[number][-1]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("number", sorted(JUDGMENTS))
def test_reasons_end_before_the_judges_names(number):
    reasons = JUDGMENTS[number].reasons.strip()
    assert re.search(r"(판결한다|기각한다)\.$", reasons)
    assert not re.search(r"^\s*(재판장|판사)", reasons, re.MULTILINE)


APPENDICES = {"02": 3, "04": 1, "05": 1, "06": 1, "07": 1, "08": 1, "09": 1, "10": 3, "12": 1, "01": 0, "11": 0}


@pytest.mark.parametrize("number", APPENDICES)
def test_appendices_are_apart(number):
    assert len(JUDGMENTS[number].appendices) == APPENDICES[number]


@pytest.mark.parametrize("number", ["01", "02", "07", "08", "10"])
def test_facts_are_the_sections_that_are_headed_so(number):
    facts = JUDGMENTS[number].facts
    assert 1000 < len(facts) < 0.6 * len(JUDGMENTS[number].reasons)
    assert "받아들이지 않는다" not in facts


def test_anonymised_names_survive():
    assert "김OO는 두 질문에 모두 '아니오'라고" in JUDGMENTS["01"].text
    assert "'□□푸드'라는 상호의 사업자등록을" in JUDGMENTS["04"].text


def test_a_judgment_as_publishers_print_it():
    judgment = parse_judgment(
        "【예제지방법원 2020. 1. 10. 선고 2019나12345 판결】\n【원고, 항소인】\n가나다 (소송대리인 변호사 라)\n"
        "【피고, 피항소인】\n1. 마바사 2. 주식회사 아자\n【제1심판결】 예제지방법원 2019. 3. 4. 선고 2018가단123 판결\n"
        "【변론종결】\n2019. 12. 20.\n【주 문】\n1. 원고의 항소를 기각한다.\n2. 항소비용은 원고가 부담한다.\n"
        "【청구취지 및 항소취지】\n1. 청구취지\n피고들은 원고에게 돈을 지급하라.\n2. 항소취지\n제1심판결을 취소한다.\n"
        "【이 유】\n1. 판단\n원고의 주장은 이유 없다.\n\n판사 차카타(재판장)\n"
    )
    assert judgment.doc_id == "예제지방법원-2019나12345"
    assert judgment.lower_cases == ("2018가단123",)
    assert [party.name for party in judgment.parties] == ["가나다", "마바사", "주식회사 아자"]
    assert (judgment.closed, judgment.decided) == (date(2019, 12, 20), date(2020, 1, 10))
    assert [purpose.text for purpose in judgment.purposes] == ["피고들은 원고에게 돈을 지급하라."]
    assert judgment.reasons.strip() == "1. 판단\n원고의 주장은 이유 없다."


def test_single_items_of_an_order_are_claimed():
    judgment = parse_judgment(
        "주문\n1. 가를 취소한다.\n2. 나를 지급하라.\n3. 소송비용은 피고의 부담.\n청구취지\n주문 제2항과 같다.\n이유\n"
    )
    assert judgment.purposes[0].text == "나를 지급하라."


@given(st.text(alphabet="주문이유청구취지원고피 :1.가\n【】(),2021년월일합-판사별", max_size=200))
def test_whatever_the_text_parsing_ends_in_a_judgment(raw):
    judgment = parse_judgment(raw)
    assert judgment.reasons in judgment.text
    assert all(part in judgment.text for part in judgment.order.split("\n"))
