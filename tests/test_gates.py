import random
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.gates import GATE_REASONS, WINDOW, GateConfig, gate, longest_loop, num_copied_letters, script_frac

MINI = "\n".join(
    [
        "대여: 인정",
        "변제기 도래: 인정",
        "변제 항변: 불인정",
        "시효 항변: 판단 불가",
        "주문: 피고는 원고에게 3,000,000원을 지급하라.",
    ]
)
ANSWER = """## 1. 대여 사실
원고는 2023. 3. 2. 피고에게 30,000,000원을 빌려주었다고 주장한다. 금전을 빌려준 사실은 원고가 증명하여야 한다.
차용증에 찍힌 인영이 피고의 인장에 의한 것이라는 점에 다툼이 없으므로 문서의 진정성립이 추정된다.
계좌이체 내역도 이와 들어맞는다. 따라서 원고가 피고에게 위 돈을 빌려준 사실이 인정된다.

### 1.1 변제 항변
피고는 2023. 12. 1. 현금으로 모두 갚았다고 항변한다. 변제는 채무를 면하려는 쪽이 증명하여야 한다.
피고는 영수증도 인출 내역도 내지 못하였으므로 항변을 받아들이지 않는다.

## 2. 지연손해금
변제기 다음 날부터 소장 부본 송달일까지는 민법이 정한 연 5%, 그다음 날부터는 특례법이 정한 연 12%에 따른다.

## 주문
1. 피고는 원고에게 30,000,000원 및 이에 대하여 2024. 3. 3.부터 2024. 8. 20.까지는 연 5%,
그다음 날부터 다 갚는 날까지는 연 12%의 각 비율로 계산한 돈을 지급하라.
2. 소송비용은 피고가 부담한다.
3. 제1항은 가집행할 수 있다."""
TABLE = "| 항목 | 금액 | 이율 |\n|:----------|----------:|-----|\n" + "\n".join(
    f"| {2022 + month // 12}. {month % 12 + 1}.분 임금 | {2_150_000 + 1_700 * month:,}원 | 연 {5 + month % 3}% |"
    for month in range(12)
)
ORDERS = "\n".join(
    f"{number}. 피고 {name}은 원고에게 {amount:,}원 및 이에 대하여 2023. 4. 5.부터 다 갚는 날까지 "
    "연 12%의 비율로 계산한 돈을 지급하라."
    for number, name, amount in [
        (1, "김갑동", 1_200_000),
        (2, "이을순", 900_000),
        (3, "박병길", 4_150_000),
        (4, "최정해", 70_000),
    ]
)
LOOPED = "원고의 주장은 이유 없으므로 받아들이지 아니한다. "
SOUND = {
    "a mini-world answer": MINI,
    "one word": "기각",
    "one line": "원고의 청구를 기각한다.",
    "a full answer": ANSWER,
    "a markdown table": ANSWER + "\n\n" + TABLE,
    "like orders against four defendants": ORDERS,
    "Hanja in brackets": "선의(善意)의 제3자와 악의[惡意]의 수익자(受益者)를 나눈다.",
    "abbreviations": "KBS, SK, LH, MOU, CCTV, B2B, IMF의 주장은 모두 이유 없다.",
    "a statute's Latin name": "근로기준법 제36조, FTA 부속서 II, TRIPS 협정에 따른다.",
    "figures": "| 1 | 2 |\n|---|---|\n| 3,000,000 | 12% |\n계산은 3,000,000 × 0.12 × 120 / 365 = 118,356원이다.",
    "rules between the parts": f"{'=' * 120}\n{ANSWER}\n{'-' * 180}\n",
    "letters taken apart": normalize("NFD", MINI),
    "a purpose of claim quoted three times": f"{ANSWER}\n" * 3,
    "five citations": ANSWER
    + "".join(f"\n- 대법원 201{n}. {n}. 1{n}. 선고 201{n}다{n}0{n}3 판결" for n in range(1, 6)),
}
BROKEN = {
    "nothing": ("", "empty"),
    "blanks": (" \n\t\u3000\u200b", "empty"),
    "signs": ("**…** — ||", "empty"),
    "one dash without end": ("-" * 5_000, "empty"),
    "a sentence": (LOOPED * 40, "repetition"),
    "a sentence at the end of a sound answer": (ANSWER + LOOPED * 15, "repetition"),
    "a sentence in the middle of a sound answer": (ANSWER + LOOPED * 15 + ANSWER, "repetition"),
    "a sentence that counts": ("".join(f"{n}. {LOOPED}" for n in range(1, 60)), "repetition"),
    "a sentence with changing blanks": ("".join(LOOPED + " \n" * (n % 3) for n in range(40)), "repetition"),
    "words": ("인정된다 " * 30, "repetition"),
    "two characters": (ANSWER + "다." * 200, "repetition"),
    "one character": (ANSWER + "아" * 400, "repetition"),
    "one sign": (ANSWER + "-" * 400, "repetition"),
    "table rows": (ANSWER + "\n" + "| 원고 | 1,000,000원 | 기각 |\n" * 15, "repetition"),
    "numbered table rows": ("".join(f"| {n} | 원고 | 청구 기각 |\n" for n in range(60)), "repetition"),
    "a paragraph": (ANSWER * 5, "repetition"),
    "a line of the mini world": ("변제기 도래: 인정\n" * 6, "repetition"),
    "English": ("The court is likely to dismiss the claim of the plaintiff for lack of proof.", "script"),
    "Chinese": ("法院很可能驳回原告的诉讼请求，因为原告没有证明借款事实。", "script"),
    "Chinese in brackets": (
        "기각(法院很可能驳回原告的诉讼请求因为原告没有证明借款事实所以应当驳回全部诉讼请求)",
        "script",
    ),
    "Japanese": ("原告の請求を棄却する。訴訟費用は原告の負担とする。", "script"),
    "English with a Korean word": ("The 원고 loses because the defendant has paid.", "script"),
    "figures alone": ("3,000,000 / 12", "script"),
}


@pytest.mark.parametrize("answer", SOUND.values(), ids=SOUND)
@pytest.mark.parametrize("finish_reason", ["stop", None])
def test_a_sound_answer_passes(answer, finish_reason):
    assert gate(answer, finish_reason, GateConfig()) is None


@pytest.mark.parametrize(("answer", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_stopped_with_its_reason(answer, reason):
    assert gate(answer, "stop", GateConfig()) == reason


@pytest.mark.parametrize("answer", [MINI, "", LOOPED * 40, "The claim is"], ids=["sound", "empty", "loop", "English"])
def test_an_answer_cut_off_is_truncated_whatever_it_says(answer):
    assert gate(answer, "length", GateConfig()) == "truncated"


@settings(deadline=None)
@given(
    answer=st.text() | st.text(alphabet="가나 .\n1a").map(lambda text: text * 9),
    finish_reason=st.sampled_from(["stop", "length", None]),
)
def test_any_text_is_judged(answer, finish_reason):
    assert gate(answer, finish_reason, GateConfig()) in (None, *GATE_REASONS)


@settings(deadline=None)
@given(
    unit=st.text(alphabet="가나다라마 .,", min_size=1, max_size=30).filter(str.strip),
    before=st.text("사아자차카타파하", max_size=60),
)
def test_whatever_goes_round_for_long_is_caught(unit, before):
    looped = before + unit * (400 // len(unit) + 4)
    assert gate(looped, "stop", GateConfig()) in ("repetition", "empty") or len(" ".join(looped.split())) < 300


@settings(deadline=None)
@given(seed=st.integers(), num_words=st.integers(1, 600))
def test_random_words_are_no_loop(seed, num_words):
    words = [
        "".join(random.Random(f"{seed} {i} {j}").choice("가나다라마바사아자차") for j in range(4))
        for i in range(num_words)
    ]
    assert longest_loop(" ".join(words)) == 0


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("가" * 22, 0),
        ("가" * 23, 23),
        ("가나다라" * 8 + "가나다", 35),
        ("처음부터 끝까지 다른 말로 적힌 스무 글자가 넘는 한 문장이다.", 0),
    ],
    ids=["empty", "three windows", "four windows", "each window four times", "no loop"],
)
def test_a_loop_is_measured(text, length):
    assert longest_loop(text) == length


@pytest.mark.parametrize(
    ("text", "frac"),
    [
        ("", 0),
        ("12.", 0),
        ("원고", 1),
        ("원고 wins", 2 / 6),
        ("갑(甲)", 1),
        ("갑甲", 1 / 2),
        ("SK하이닉스", 1),
        ("Sk하", 1 / 3),
    ],
)
def test_hangul_is_counted_among_letters(text, frac):
    assert script_frac(text) == pytest.approx(frac)


@pytest.mark.parametrize(
    "unit", ["가", LOOPED, "<", "(善", "| 1 | 가 |\n", "1", "- ", "A", "(", "가 ", "주문\n", "또는 기각한다 "]
)
def test_a_long_answer_of_one_piece_over_and_over_is_stopped(unit):
    """Hangs where a pattern backtracks or windows are counted in squares."""
    text = unit * (100_000 // len(unit))
    assert gate(text, "stop", GateConfig(), text) is not None
    gate(text[:-2] + "가나", "stop", GateConfig(gate_max_loop_chars=10**6, gate_max_loop_frac=1.0))


def test_each_gate_has_its_setting():
    assert gate("The claim is dismissed.", "stop", GateConfig(gate_min_hangul_frac=0)) is None
    assert gate(LOOPED * 9, "stop", GateConfig(gate_max_loop_chars=10_000, gate_max_loop_frac=1)) is None
    assert gate("원고의 claim을 기각", "stop", GateConfig(gate_min_hangul_frac=0.9)) == "script"


@pytest.mark.parametrize(
    "setting",
    [
        {"gate_min_hangul_frac": 1.5},
        {"gate_min_hangul_frac": -0.1},
        {"gate_max_loop_frac": 2},
        {"gate_max_copied_frac": -1},
        {"gate_max_loop_chars": 3},
    ],
)
def test_an_impossible_setting_is_refused_by_name(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        GateConfig(**setting)


QUESTION = f"[사실관계]\n{ANSWER}\n\n[청구취지]\n- 원고: {ORDERS}\n\n위 재판의 결과를 예측하시오."
FACTS = ANSWER.split("## 주문")[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (FACTS, "parroting"),
        (FACTS.replace("\n", " ").replace("#", "**"), "parroting"),
        (FACTS + "\n## 주문\n원고의 청구를 기각한다.", "parroting"),
        (FACTS[:150] + "\n위 사실만으로는 부족하다.", None),
        (
            FACTS[:260]
            + MINI
            + "그러나 이는 다음과 같은 까닭으로 받아들일 수 없다. 영수증이 없고 증인도 없다. 인출한 내역도 "
            "없으며, 갚았다는 날에 피고는 나라 밖에 있었다. 그 뒤에 이자를 보낸 것도 갚지 않았음을 보여 준다.",
            None,
        ),
        (f"원고의 청구는 모두 이유 있다.\n\n주문\n{ORDERS}", None),
        (MINI, None),
    ],
    ids=["facts", "new layout", "facts and an order", "one quotation", "quotation and reasons", "order", "other words"],
)
def test_the_question_told_back_is_no_answer(answer, reason):
    assert gate(answer, "stop", GateConfig(), QUESTION) == reason
    assert gate(answer, "stop", GateConfig(gate_max_copied_frac=1), QUESTION) is None
    assert gate(answer, "stop", GateConfig()) is None


@given(st.text(alphabet="가나다라마바사 .,\n1", max_size=300), st.text(alphabet="가나다라마바사 .,\n1", max_size=300))
def test_copied_letters_are_letters_of_the_text(text, source):
    assert 0 <= num_copied_letters(text, source) <= sum(map(str.isalnum, text))
    num_letters = sum(map(str.isalnum, text))
    assert num_copied_letters(text, text + source) == (num_letters if num_letters >= WINDOW else 0)


def test_a_hedged_order_may_be_left_to_the_judge():
    hedged = ANSWER + "\n또는\n주문\n원고의 청구를 기각한다."
    assert gate(hedged, "stop", GateConfig()) == "hedged_order"
    assert gate(hedged, "stop", GateConfig(gate_hedged_order=False)) is None


def test_the_reasons_are_named_in_one_place():
    assert GATE_REASONS == (
        "empty",
        "truncated",
        "repetition",
        "script",
        "hedged_order",
        "parroting",
        "unknown_precedent",
    )


def test_a_run_may_have_cut_off_answers_judged():
    assert gate("원고의 청구를 기각한다.", "length", GateConfig(gate_truncated=False)) is None
    assert gate("", "length", GateConfig(gate_truncated=False)) == "empty"
