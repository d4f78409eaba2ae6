import pytest

from data.cases import Case, Issue
from data.law import Document
from data.prompts import build_prompt

QUESTION = "원고는 {question}을 빌려주었다.\n\n위 재판의 결과를 예측하시오."
CASE = Case("가-1", QUESTION, (Issue("", "", (), "비밀 주문"), Issue("1", "비밀 쟁점", (), "비밀 결론")))


def test_a_court_is_asked_for_issues_and_then_the_order():
    system, user = build_prompt(CASE)
    assert (system["role"], user["role"]) == ("system", "user")
    for asked in ("쟁점", "주장", "법리", "판단", "결론", "하위 쟁점", "주문"):
        assert asked in system["content"]
    assert system["content"].rindex("주문을 쓴다") > system["content"].rindex("쟁점마다")
    assert user["content"].startswith(QUESTION)


def test_bare_is_the_question_alone():
    assert build_prompt(CASE, "bare") == [{"role": "user", "content": QUESTION}]


LAWS = (
    Document("민법 제598조", "statute", "민법 제598조", "민법 제598조: 빌린 것은 {question} 돌려준다."),
    Document("대법원 99다1", "precedent", "대법원 99다1 판결", "빌린 사람은 갚은 것을 증명한다."),
    Document("법리 1", "principle", "", "의심스러우면 빌린 사람에게 유리하게 한다."),
)
LISTED = (
    "1. 민법 제598조: 빌린 것은 {question} 돌려준다.\n2. 대법원 99다1 판결: 빌린 사람은 갚은 것을 증명한다.\n"
    "3. 의심스러우면 빌린 사람에게 유리하게 한다.\n"
)


def test_retrieved_law_stands_numbered_and_cited_before_the_question():
    assert build_prompt(CASE, "bare", LAWS)[0]["content"] == LISTED + QUESTION
    without, (system, user) = build_prompt(CASE), build_prompt(CASE, "court", LAWS)
    assert system == without[0]
    assert user["content"].endswith(without[1]["content"])
    assert LISTED in user["content"]
    assert "들어맞는 것만" in user["content"].removesuffix(without[1]["content"])


@pytest.mark.parametrize("style", ["court", "bare"])
def test_no_prompt_tells_the_judgment_or_speaks_of_scores(style):
    text = "".join(message["content"] for message in build_prompt(CASE, style))
    for word in ("비밀", "점수", "채점", "평가", "배점", "{question}\n"):
        assert word not in text


def test_another_style_is_refused():
    with pytest.raises(ValueError, match="court, bare"):
        build_prompt(CASE, "poem")
