"""Pages become text again: what printers add goes, and no word goes with it."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.page_text import clean, fold

JUDGMENTS = sorted(Path(__file__).with_name("judgments").glob("*.txt"))


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("path", JUDGMENTS, ids=lambda path: path.stem)
def test_a_judgment_keeps_every_word_and_loses_its_page_numbers(path):
    raw = path.read_text(encoding="utf-8")
    kept = [
        line
        for line in raw.split("\n")
        if not re.fullmatch(r"[\s\f]*(- \d+ -|\d+ / \d+|예제행정법원 2022구합5004)\s*", line)
    ]
    assert bare(clean(raw)) == bare("".join(kept))
    assert "\f" not in clean(raw)


@pytest.mark.parametrize("path", JUDGMENTS, ids=lambda path: path.stem)
def test_a_clean_text_is_not_changed_again(path):
    text = clean(path.read_text(encoding="utf-8"))
    assert clean(text) == text


def test_what_nobody_sees_is_taken_out():
    assert clean("주\u200b 문\n\u2060원\u00ad고의 청\u200d구를 기각한다.\ufeff") == "주 문\n원고의 청구를 기각한다."


def test_lines_cut_in_mid_word_are_put_together_again():
    text = clean((JUDGMENTS[3]).read_text(encoding="utf-8"))
    assert "피고 B는 2018. 1.경 피고 C의 승낙을 받아" in text
    assert "2020. 9. 11.부터 2021. 4. 14.까지는 연 6%의, 그다음 날부터 다 갚는 날까지는 연 12%의 각 비율로" in text
    assert "2021. 4. 9. 피고 회사에, 2021. 4. 12. 피고 B에게, 2021. 4. 14. 피고 C에게 각 송달되었다." in text
    assert "\n2020. 3.     48,200,000\n" in text  # a table is no paragraph


def test_words_moved_to_the_next_line_are_put_together_over_a_page_break():
    text = clean((JUDGMENTS[9]).read_text(encoding="utf-8"))
    assert "(이하 '이 사건 시설'이라 한다)의 관리와 운영을 맡을 수탁기관을 공개모집한다고" in text
    assert "녹음파일이나 그 복사본이 발견되지 않은 사실을 인정할 수 있다." in text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param("가\n- 1 -\n나\n- 2 -\n", "가\n나", id="dashed page numbers"),
        pytest.param("가\n1 / 2\n머리말\n나\n2 / 2", "가\n머리말\n나", id="a running head must come twice"),
        pytest.param("상속분\n1/3\n1/3\n1/3", "상속분\n1/3\n1/3\n1/3", id="fractions in a table stay"),
        pytest.param("2018\n\n3\n", "2018\n\n3", id="a number alone stays"),
        pytest.param("가\n3\n\f나", "가\n나", id="a number before a page break goes"),
        pytest.param("가\r\n나\ufeff\r다", "가\n나\n다", id="line ends"),
        pytest.param("가\n\n\n\n나", "가\n\n나", id="blank lines"),
        pytest.param(unicodedata.normalize("NFD", "원고"), "원고", id="decomposed Hangul"),
    ],
)
def test_what_is_no_text_goes(raw, text):
    assert clean(raw) == text


@given(st.lists(st.text(alphabet="가나다는을 ABC○□12.,'()", max_size=45), max_size=40))
def test_a_text_without_page_numbers_loses_no_character(lines):
    raw = "\n".join(lines)
    assert bare(clean(raw)) == bare(raw)


@given(st.text())
def test_folding_keeps_places(text):
    assert len(fold(text)) == len(text)


def test_folding_reads_full_width_and_hanja():
    assert fold("第２３條　（原告）主文") == "제23조 (원고)주문"
