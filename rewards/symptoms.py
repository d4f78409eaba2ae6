"""What an answer shows on its surface when a policy pleases the judge instead of reasoning: pure, without a call."""

from collections.abc import Sequence

from rewards.gates import WINDOW

_ENDINGS = (
    "다",
    "라",
    "까",
    "음",
    "함",
    "됨",
    "것임",
)  # of verbs; not 자, 요 or 임, in which 당사자, 필요 and 책임 end
_MARKS = " \t.?!\"'”’)]*_"


def symptoms(answers: Sequence[str]) -> dict[str, list[float]]:
    """By the name under which training logs it, one value for each answer: always the same names.

    >>> symptoms(["변제하였다고 본다.\\n소멸시효 완성 여부"])
    {'answer/num_chars': [21.0], 'answer/repeated_frac': [0.0], 'answer/listed_frac': [0.5]}
    """
    return {
        "answer/num_chars": [float(len(answer)) for answer in answers],
        "answer/repeated_frac": [repeated_frac(answer) for answer in answers],
        "answer/listed_frac": [listed_frac(answer) for answer in answers],
    }


def repeated_frac(answer: str) -> float:
    """Share of the windows of 20 characters that stood in the answer before; 0 of one that has no such window.

    >>> repeated_frac("가나다라" * 10)  # 21 windows, 4 of them different
    0.8095238095238095
    """
    text = " ".join(answer.split())
    windows = [text[start : start + WINDOW] for start in range(len(text) - WINDOW + 1)]
    return 1 - len(set(windows)) / len(windows) if windows else 0.0


def listed_frac(answer: str) -> float:
    """Share of the letters that stand in lines without a sentence: headings, names of issues, cells of a table.

    A line has a sentence if it ends as Korean sentences do, in a verb's ending (다, 라, 까, 음, 함, 됨, 것임).
    """
    lines = [(sum(map(str.isalpha, line)), line.rstrip(_MARKS).endswith(_ENDINGS)) for line in answer.splitlines()]
    total = sum(num_letters for num_letters, _ in lines)
    return sum(num_letters for num_letters, is_sentence in lines if not is_sentence) / total if total else 0.0
