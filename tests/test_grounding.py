"""What the judgment tells is found where it stands; what it does not tell is not."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.grounding import MIN_SUPPORT, Source, bare, sentences
from data.judgment_text import parse_judgment
from data.records import from_record

KEPT = [
    path for path in sorted(Path(__file__).with_name("judgments").glob("*.txt")) if path.stem[:2] not in ("06", "12")
]
TEXTS = {path.stem: parse_judgment(path.read_text(encoding="utf-8")).text for path in KEPT}
CASES = {path.stem: from_record(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))) for path in KEPT}


def statements(name: str) -> list[str]:
    issues = CASES[name].sub_issues
    return [issue.conclusion for issue in issues] + [step for issue in issues for step in issue.analysis]


@pytest.mark.parametrize("name", TEXTS)
def test_conclusions_and_analysis_that_were_read_by_hand_are_supported(name):
    source = Source(TEXTS[name])
    for statement in statements(name):
        assert source.support(statement)[0] >= MIN_SUPPORT
        assert source.unknown_numbers(statement) == []


def test_few_statements_about_another_case_are_supported():
    names = list(TEXTS)
    foreign = [
        source.support(statement)[0] >= MIN_SUPPORT and not source.unknown_numbers(statement)
        for place, name in enumerate(names)
        for source in [Source(TEXTS[names[place - 1]])]
        for statement in statements(name)
    ]
    assert sum(foreign) / len(foreign) < 0.03


def test_spans_say_where_the_judgment_tells_it():
    text = "1. 원고는 2020. 1. 2. 피고에게\n 돈을 빌려주었다. 그 뒤의 일은 이러하다. 피고는 이를 갚지 않았다."
    score, spans = Source(text).support("피고에게 돈을 빌려주었다.")
    assert score == 100
    assert [text[span.start : span.end] for span in spans] == ["피고에게\n 돈을 빌려주었다."]


def test_a_sentence_that_joins_two_places_has_two_spans():
    text = (
        "가. 원고는 피고에게 토지를 매도하였다. 날씨와 기후와 계절에 관한 긴 이야기. 나. 피고는 잔금을 지급하지 않았다."
    )
    score, spans = Source(text).support("원고는 피고에게 토지를 매도하였고, 피고는 잔금을 지급하지 않았다.")
    assert score > 85
    assert len(spans) == 2
    assert "매도" in text[spans[0].start : spans[0].end]
    assert "잔금을 지급하지 않았다" in text[spans[1].start : spans[1].end]


def test_numbers_are_held_to_the_letter():
    source = Source("피고는 １,２００,０００원을 2020. 9. 11.까지 지급하라.")
    assert source.unknown_numbers("1,200,000원") == []
    assert source.unknown_numbers("1200000원, 2020. 9. 12.") == ["12"]


def test_brackets_end_no_sentence():
    assert sentences("원고의 규약(2010. 1. 2. 제정되었다. 이하 '규약'이라 한다)은 유효하다. 피고는 다툰다.") == [
        "원고의 규약(2010. 1. 2. 제정되었다. 이하 '규약'이라 한다)은 유효하다.",
        "피고는 다툰다.",
    ]


@given(st.text(alphabet="가나다 '12.,\n", max_size=60), st.text(alphabet="가나다 '12.,\n", max_size=30))
def test_spans_lie_in_the_text(text, statement):
    score, spans = Source(text).support(statement)
    assert 0 <= score <= 100
    assert all(0 <= span.start <= span.end <= len(text) for span in spans)


@given(st.text())
def test_a_text_supports_itself(text):
    if bare(text):
        assert Source(text).support(text)[0] == 100
