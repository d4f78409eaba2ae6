"""However a text writes a citation, it names the same law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.citations import find_laws, key_of, leading_laws, tidy

COMMERCIAL_LEASE = "상가건물임대차보호법"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("민법 제741조", ["민법 제741조"], id="an article"),
        pytest.param("민법  제 741 조는 이렇다", ["민법 제741조"], id="blanks"),
        pytest.param("民法 第７４１條", ["민법 제741조"], id="Hanja and wide digits"),
        pytest.param("민법 제548조 제1항 본문", ["민법 제548조"], id="a clause is of its article"),
        pytest.param("주택임대차보호법 제6조의2", ["주택임대차보호법 제6조의2"], id="a branch article is its own"),
        pytest.param("「민법」 제741조", ["민법 제741조"], id="brackets"),
        pytest.param("민법 제544조, 제548조 및 제549조", ["민법 제544조", "민법 제548조", "민법 제549조"], id="a list"),
        pytest.param(
            "민법 제398조 제1항, 제4항, 제565조 제1항, 제551조",
            ["민법 제398조", "민법 제565조", "민법 제551조"],
            id="a list with clauses between",
        ),
        pytest.param(
            "구 소득세법(2015. 7. 24. 법률 제13426호로 개정되기 전의 것) 제95조 제1항, 제97조, "
            "같은 시행령(2016. 2. 17. 대통령령 제26982호로 개정되기 전의 것) 제163조 제5항",
            ["구 소득세법 제95조", "구 소득세법 제97조", "구 소득세법시행령 제163조"],
            id="an act before its amendment, and its decree",
        ),
        pytest.param(
            "근로기준법 제37조 제1항, 같은 법 시행령 제17조",
            ["근로기준법 제37조", "근로기준법시행령 제17조"],
            id="the same act's decree",
        ),
        pytest.param("민법 제5조. 동법 제7조", ["민법 제5조", "민법 제7조"], id="the same act"),
        pytest.param("같은 법 제7조, 이 사건 규약 제3조", [], id="nothing that the text itself names"),
        pytest.param("도로교통법 부칙(법률 제16037호, 2018. 12. 24.) 제2조", [], id="a supplementary provision"),
        pytest.param("상가건물 임대차보호법 제10조의4", [f"{COMMERCIAL_LEASE} 제10조의4"], id="a name of two words"),
        pytest.param("상가임대차법 제10조의4", [f"{COMMERCIAL_LEASE} 제10조의4"], id="its short form"),
        pytest.param(
            "구 상가건물 임대차보호법 제9조", [f"구 {COMMERCIAL_LEASE} 제9조"], id="two words, before amendment"
        ),
        pytest.param(
            "민법 제618조, 상가건물 임대차보호법 제9조 제2항, 제10조",
            ["민법 제618조", f"{COMMERCIAL_LEASE} 제9조", f"{COMMERCIAL_LEASE} 제10조"],
            id="two words within a list",
        ),
        pytest.param(
            "집합건물의 소유 및 관리에 관한 법률 제18조",
            ["집합건물의소유및관리에관한법률 제18조"],
            id="a long name",
        ),
        pytest.param(
            "집합건물법 제18조", ["집합건물의소유및관리에관한법률 제18조"], id="the short form of a long name"
        ),
        pytest.param("소송촉진 등에 관한 특례법 제3조", ["소송촉진등에관한특례법 제3조"], id="a special act"),
        pytest.param("산재보험법 시행령 제35조", ["산업재해보상보험법시행령 제35조"], id="a short form's decree"),
        pytest.param("서울특별시 도시계획 조례 제3조", ["서울특별시도시계획조례 제3조"], id="an ordinance"),
        pytest.param("대법원 2018. 1. 24. 선고 2017다37324 판결 등 참조", ["대법원 2017다37324"], id="a precedent"),
        pytest.param("대법원 2018.1.24.선고 2017다37324판결", ["대법원 2017다37324"], id="without blanks"),
        pytest.param("대법원 2017다37324", ["대법원 2017다37324"], id="by its number alone"),
        pytest.param("대법원 2005. 9. 28. 선고 2005다8323, 8330 판결", ["대법원 2005다8323"], id="joined cases"),
        pytest.param("대법원 2001. 9. 20. 선고 2001다8677 전원합의체 판결", ["대법원 2001다8677"], id="the full bench"),
        pytest.param(
            "대법원 1990. 11. 27. 선고 90다카27662 판결, 2006. 7. 28. 선고 2004다54633 판결",
            ["대법원 90다카27662", "대법원 2004다54633"],
            id="the court is named once",
        ),
        pytest.param("헌법재판소 2011. 3. 31. 선고 2008헌바141 결정", ["헌법재판소 2008헌바141"], id="the other court"),
        pytest.param("서울고등법원 2019. 1. 2.자 2018라123 결정", ["서울고등법원 2018라123"], id="a lower court"),
        pytest.param("대법원 2019년1월에 선고된", [], id="a month is no case"),
        pytest.param("2018. 1. 24. 선고 2017다37324 판결", [], id="of no court"),
        pytest.param(
            "민법 제536조에 따라 동시이행 관계에 있다(대법원 2000. 11. 28. 선고 2000다8533 판결 참조).",
            ["민법 제536조", "대법원 2000다8533"],
            id="both kinds",
        ),
    ],
)
def test_the_laws_of_a_text(text, keys):
    assert [law.key for law in find_laws(text)] == keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("민법 제741조는 “이익을 반환하여야 한다.”라고 정한다.", ["민법 제741조"], id="an article's text"),
        pytest.param(
            "이자는 지체로 인한 것이 아니다. 민법 제548조 제2항 참조(대법원 2000다9123 판결).",
            ["대법원 2000다9123"],
            id="a precedent goes before a statute that it reads",
        ),
        pytest.param("보증금은 민법 제618조의 차임을 담보한다.", [], id="a principle that mentions a statute"),
        pytest.param(
            "민법 제664조, 제492조 제1항, 제493조", ["민법 제664조", "민법 제492조", "민법 제493조"], id="a list"
        ),
    ],
)
def test_the_laws_that_a_passage_states(text, keys):
    assert [law.key for law in leading_laws(text)] == keys


def test_a_citation_can_be_printed():
    text = "대법원 2018.1.24. 선고 2017다37324판결, 상가건물 임대차보호법  제10조의4 제1항"
    precedent, statute = find_laws(text)
    assert precedent.citation == "대법원 2018. 1. 24. 선고 2017다37324 판결"
    assert statute.citation == "상가건물 임대차보호법 제10조의4"


def test_what_is_no_known_form_is_its_own_key():
    assert key_of("내부  지침 7") == "내부지침7"


@given(st.text(alphabet="민법 제같은동시행령조항12대원선고다판결.,()구관한률의", max_size=80))
def test_a_law_is_where_it_says_and_is_found_again_by_its_citation(text):
    for law in find_laws(text):
        assert 0 <= law.start < law.end <= len(tidy(text))
        assert key_of(law.citation) == law.key
