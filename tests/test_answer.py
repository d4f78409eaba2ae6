import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.answer import final_answer, is_empty
from rewards.gates import GateConfig, gate


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("청구를 기각한다.", "청구를 기각한다.", id="no thinking"),
        pytest.param("<think>생각</think>기각한다.", "기각한다.", id="paired"),
        pytest.param("<think>\n생각\n\n</think>\n\n기각한다.\n", "기각한다.", id="paired over lines"),
        pytest.param("<think></think>기각한다.", "기각한다.", id="empty thinking"),
        pytest.param("<think>가</think>쟁점 <think>나</think>주문", "쟁점 주문", id="several"),
        pytest.param("쟁점 <think>가</think>주문", "쟁점 주문", id="thinking in the middle"),
        pytest.param("주문<think>가</think>", "주문", id="thinking at the end"),
        pytest.param("생각</think>기각한다.", "기각한다.", id="only closing"),
        pytest.param("가</think>나</think>주문", "주문", id="only closing, twice"),
        pytest.param("생각</think>", "", id="only closing, nothing behind"),
        pytest.param("<think>생각", "", id="only opening"),
        pytest.param("기각한다.<think>생각", "", id="only opening, late"),
        pytest.param("<think>가</think>주문<think>나", "", id="paired, then only opening"),
        pytest.param("<think>가<think>나</think>다</think>주문", "주문", id="nested"),
        pytest.param("쟁점 <think>가<think>나</think>다</think>주문", "쟁점 주문", id="nested behind an answer"),
        pytest.param("<think>가<think>나</think>주문", "주문", id="nested, closed once"),
        pytest.param("</think><think>가</think>주문", "주문", id="closing first"),
        pytest.param("<THINK>생각</Think>주문", "주문", id="upper case"),
        pytest.param('<think mode="deep" n=1>생각</think >주문', "주문", id="attributes"),
        pytest.param("< think >생각< / think>주문", "주문", id="blanks"),
        pytest.param("<think\n>생각</\nthink>주문", "주문", id="line breaks"),
        pytest.param("<thinking>생각</thinking>주문", "주문", id="thinking"),
        pytest.param("<think/>주문", "주문", id="closed in itself"),
        pytest.param('<think a="b" />주문', "주문", id="closed in itself with attributes"),
        pytest.param("<thinker>주문</thinker>", "<thinker>주문</thinker>", id="another tag"),
        pytest.param("a < think and b > c", "a < think and b > c", id="no tag"),
        pytest.param("  <think>", "", id="tag alone"),
    ],
)
def test_thinking_is_taken_away(text, answer):
    assert final_answer(text) == answer


PIECES = st.lists(st.sampled_from(["<think>", "</think>", "<THINK >", "</ think>", "가", "나 ", "\n", "<", ">"]))


@settings(deadline=None)
@given(pieces=PIECES)
def test_an_answer_holds_no_tag_and_is_final(pieces):
    answer = final_answer("".join(pieces))
    assert "think>" not in answer.lower().replace(" ", "") or "<" not in answer
    assert final_answer(answer) == answer


@settings(deadline=None)
@given(text=st.text(alphabet=st.characters(exclude_characters="<")))
def test_a_text_without_tags_is_its_own_answer(text):
    assert final_answer(text) == text.strip()


@settings(deadline=None)
@given(
    thinking=st.text(alphabet=st.characters(exclude_characters="<")),
    answer=st.text(st.characters(exclude_characters="<")),
)
def test_thinking_never_reaches_the_answer(thinking, answer):
    assert final_answer(f"<think>{thinking}</think>{answer}") == answer.strip()
    assert final_answer(f"{thinking}</think>{answer}") == answer.strip()
    assert final_answer(f"<think>{thinking}") == ""


@pytest.mark.parametrize("piece", ["<", "< ", "<think ", "</think>", "<think>", "< /", "<think a=", "가"])
def test_a_long_text_of_nothing_but_beginnings_of_tags_is_read(piece):
    """Hangs where a pattern backtracks."""
    assert final_answer(f"<think>{piece * 100_000}</think>기각") == "기각"


@pytest.mark.parametrize("answer", ["", " \n", "…", "\u3164\u200b\ufeff", "\uffa0\u115f"], ids=ascii)
def test_what_nobody_sees_is_empty(answer):
    assert is_empty(answer)
    assert gate(answer, "stop", GateConfig()) == "empty"


def test_a_letter_is_something():
    assert not is_empty("\u3164각하\u200b")
