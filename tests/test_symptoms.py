"""What answers show on their surface, on hand-worked texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.symptoms import listed_frac, repeated_frac, symptoms

REASONED = "피고는 변제하였다고 주장하나 이를 인정할 증거가 없다.\n따라서 원고의 청구는 이유 있다."


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        (REASONED, 0),
        ("변제 여부\n상계 여부\n소멸시효 완성 여부", 1),
        ("변제\n없다.", 2 / 4),
        ("**결론: 기각한다.**", 0),
        ("당사자\n책임\n필요", 1),
        ("", 0),
    ],
    ids=["sentences", "names of issues", "half", "marks after the sentence", "nouns that end like verbs", "nothing"],
)
def test_lists_are_told_from_sentences(answer, share):
    assert listed_frac(answer) == share


def test_a_loop_is_told_from_sound_text():
    assert repeated_frac(REASONED) == 0
    assert repeated_frac(REASONED * 3) > 0.6
    assert repeated_frac("짧다.") == 0


@given(st.lists(st.text(max_size=80)))
def test_every_answer_has_every_figure_and_shares_are_shares(answers):
    found = symptoms(answers)
    assert list(found) == list(symptoms([]))
    assert {len(values) for values in found.values()} == {len(answers)}
    assert all(0 <= value <= 1 for name, values in found.items() if name.endswith("_frac") for value in values)
