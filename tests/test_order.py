"""The final order is found where an answer names it, and told to be hedged only when it is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.order import final_order, is_hedged

GRANTED = "1. 피고는 원고에게 17,000,000원 및 이에 대하여 2020. 5. 1.부터 연 12%의 비율로 계산한 돈을 지급하라."
DISMISSED = "원고의 청구를 기각한다."


@pytest.mark.parametrize(
    "heading",
    ["주문", "## 주문", "**주 문**", "【주    문】", "[예상 판결 주문]", "> **주문:**", "4. **주문(예상):**", "Ⅲ. 주문",
     "가. 주문", "### 7. 판결 주문(예시)", "- 판결 주문은", "최종 주문"],
)  # fmt: skip
def test_an_order_is_found_under_its_heading(heading):
    order = final_order(f"원고의 주장은 이유 없다.\n{heading}\n{DISMISSED}\n\n## 참고\n민법 제163조")
    assert order.rstrip().endswith(DISMISSED)
    assert "이유 없다" not in order


@pytest.mark.parametrize(
    "line", ["주문 제1항은 가집행할 수 있다.", "주문자는 피고이다.", "따라서 주문과 같이 판결한다.", ""]
)
def test_other_words_are_no_heading(line):
    assert final_order(f"{line}\n{DISMISSED}") == ""


@pytest.mark.parametrize("end", ["이유", "## 5. 관련 법령", "---", "**결론:** 기각", "[이 유]", "청구취지", "근거"])
def test_an_order_ends_where_the_next_part_begins(end):
    assert final_order(f"주문\n{DISMISSED}\n{end}\n{GRANTED}") == f"주문\n{DISMISSED}"


def test_the_last_order_counts_and_orders_without_reasons_between_are_one():
    apart = f"- 주문: {GRANTED}\n- 사실관계 요약:\n 원고는 책상을 팔았다.\n주문\n{DISMISSED}"
    assert final_order(apart) == f"주문\n{DISMISSED}"
    together = f"주문\n{GRANTED}\n\n또는\n\n주문 (제2안)\n{DISMISSED}"
    assert final_order(together) == together


SINGLE = {
    "dismissed": DISMISSED + " 소송비용은 원고가 부담한다.",
    "inadmissible": "이 사건 소를 각하한다.",
    "granted in part": f"{GRANTED}\n2. 원고의 나머지 청구를 기각한다.\n3. 제1항은 가집행할 수 있다.",
    "the rest first": f"{GRANTED}\n2. 나머지 원고의 청구는 기각한다.",
    "one defendant only": f"{GRANTED}\n2. 원고의 피고 을에 대한 청구를 기각한다.",
    "counterclaim": "피고(반소원고)는 원고(반소피고)에게 10원을 지급하라. 원고의 청구를 기각한다. 반소를 인용한다.",
    "second claim": "1. 원고의 주위적 청구를 기각한다. 2. 피고는 원고에게 1,000원을 지급하라.",
    "part inadmissible": "1. 이 사건 소 중 확인청구 부분을 각하한다. 2. 원고의 나머지 청구를 기각한다.",
    "annulled": "피고가 2022. 3. 8. 원고에 대하여 한 요양불승인처분을 취소한다.",
    "a claim told": "원고의 '1,000원을 지급하라'는 청구를 기각한다.",
    "said twice": f"{DISMISSED}\n(원고의 청구를 모두 기각한다.)",
    "in short": "일부 인용, 일부 기각",
    "nothing": "",
}
HEDGED = {
    "or": "원고의 청구를 각하한다(또는 기각한다).",
    "or, in short": "원고의 청구를 기각(또는 각하)한다.",
    "two objects": "이 사건 소를 각하한다(또는 청구를 기각한다).",
    "list": "1. 원고의 청구를 인용한다.\n2. 원고의 청구를 기각한다.",
    "granted and dismissed": f"{GRANTED}\n2. {DISMISSED}",
    "dismissed twice over": "원고들의 청구를 모두 기각한다. 이 사건 청구가 부적법하면 원고들의 청구를 각하한다.",
    "words": "전부 인용 / 일부 인용 / 기각 / 각하",
    "two sums": "피고는 원고에게 17,000,000원(또는 20,000,000원)을 지급하라.",
    "a range": "피고는 원고에게 금 100원 내지 200원을 지급하라.",
    "two orders": "피고는 토지를 인도하라. 또는 피고는 원고에게 1,000원을 지급하라.",
}


@pytest.mark.parametrize("order", SINGLE.values(), ids=SINGLE)
def test_one_outcome_is_no_hedge(order):
    assert not is_hedged(order)


@pytest.mark.parametrize("order", HEDGED.values(), ids=HEDGED)
def test_two_outcomes_of_one_claim_are_a_hedge(order):
    assert is_hedged(order)


@given(st.lists(st.sampled_from(["주문", "\n", DISMISSED, GRANTED, "또는", "이유", "#", " ", "1."])).map("".join))
def test_the_order_is_lines_of_the_answer(answer):
    assert final_order(answer) in "\n".join(line.strip() for line in answer.splitlines())


@pytest.mark.parametrize(
    "unit", ["주문\n", "주", " ", "-", "또는 ", "하라.", "1원 ", "원고의 청구를 ", "예상 ", "제1안 주문\n기각한다\n"]
)
def test_long_orders_take_linear_time(unit):
    text = "주문\n" + unit * (100_000 // len(unit))
    start = time.process_time()
    is_hedged(final_order(text))
    assert time.process_time() - start < 3
