"""Numbered sections are found by their series, citations by their form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.legal_marks import find_citations, find_sections

SUPREME = ("대법원", "헌법재판소")


def numbers(text: str) -> list[str]:
    return [section.number for section in find_sections(text, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("1. 가\n가. 나\n1) 다\n가) 라\n(1) 마\n(가) 바\n① 사", 7, id="seven levels, as courts number"),
        pytest.param("I. 가\nA. 나\n1) 다\na) 라\nB. 마\nII. 바", 6, id="Roman and Latin"),
        pytest.param("Ⅰ. 가\nⅡ. 나", 2, id="Roman numerals of one character"),
        pytest.param("１. 가\n２. 나", 2, id="full-width digits"),
        pytest.param("1. 가\n가. 나\n나. 다\n2. 라\n가. 마", 5, id="a series begins again below the next section"),
        pytest.param("1. 가\n4. 9. 송달되었다.", 1, id="a date is no section"),
        pytest.param("1. 가\n② 제1항의 경우", 1, id="the second clause of a quotation is no section"),
        pytest.param("1. 가\n(가)부분 27㎡", 1, id="a mark needs a space behind it"),
        pytest.param("H. 가\nI. 나", 1, id="the letter I after no H is the numeral"),
    ],
)
def test_marks_count_where_they_go_on_a_series(text, found):
    assert len(numbers(text)) == found


def test_a_section_has_its_path_its_title_and_all_below_it():
    text = "1. 기초사실\n  가. 원고는 회사이다.\n  나. 계약\n2. 판단\n끝"
    sections = find_sections(text, 0, len(text))
    assert [(s.number, s.title, s.depth) for s in sections] == [
        ("1.", "기초사실", 1),
        ("1.가.", "", 2),
        ("1.나.", "계약", 2),
        ("2.", "판단", 1),
    ]
    assert text[sections[0].start : sections[0].end] == "1. 기초사실\n  가. 원고는 회사이다.\n  나. 계약\n"
    assert text[sections[3].start : sections[3].end] == "2. 판단\n끝"


@given(st.text(alphabet="12가나다(). ①②IVA\n", max_size=80))
def test_sections_nest(text):
    sections = find_sections(text, 0, len(text))
    for section in sections:
        assert 0 <= section.start < section.end <= len(text)
        inner = [other for other in sections if section.start < other.start < section.end]
        assert all(other.end <= section.end and other.depth > section.depth for other in inner)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("원고는 민법 제750조에 따라", ["민법"]),
        ("이는 약관의 규제에 관한 법률 제7조 제1호, 제2호에 어긋난다", ["약관의 규제에 관한 법률"]),
        ("공공기관의 정보공개에 관한 법률(이하 '정보공개법'이라 한다) 제9조", ["공공기관의 정보공개에 관한 법률"]),
        ("산재보험법 시행령 제35조 제2항", ["산재보험법 시행령"]),
        ("민사소송법 제208조 제3항 제2호, 제150조 제3항", ["민사소송법", "민사소송법"]),
        ("같은 법 제4조, 이 사건 규약 제3조", []),
        ("民法 第２７６條 第１項", ["民法"]),
        ("구 소득세법(2020. 12. 29. 법률 제17757호로 개정되기 전의 것) 제88조 제7호", ["구 소득세법"]),
        ("(대법원 2005. 9. 15. 선고 2004다44971 전원합의체 판결 참조)", ["대법원"]),
        ("대법원 2006. 6. 30. 선고 2006다19672, 19689 판결, 헌법재판소 2011. 3. 31. 선고 2008헌바141 결정", [*SUPREME]),
        ("서울고등법원 2019. 1. 2.자 2018라123 결정", ["서울고등법원"]),
    ],
)  # fmt: skip
def test_citations_are_named_by_statute_or_court(text, sources):
    assert [citation.source for citation in find_citations(text)] == sources


@given(st.text(alphabet="민법 제조항12대원선고다판결.,()관한률의", max_size=80))
def test_a_citation_is_where_it_says(text):
    for citation in find_citations(text):
        assert text[citation.start : citation.end] == citation.text
