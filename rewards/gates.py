"""Reasons not to ask the judge at all: pure looks at an answer that no court could have written."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Literal, get_args

from data.language import DEFAULT_LANGUAGE, purposes_heading, read_words
from data.law import known_laws
from data.visible import visible
from rewards.citations import unknown_precedents
from rewards.order import final_order, is_hedged

GateReason = Literal["empty", "truncated", "repetition", "script", "hedged_order", "parroting", "unknown_precedent"]
GATE_REASONS: tuple[GateReason, ...] = get_args(GateReason)

WINDOW = 20  # letters: longer than "대법원 2020. 1. 2. 선고", which answers may well repeat
COPIED_LETTERS = 200  # a purpose of claim may be quoted in full
NUM_LOOPS = 4  # a purpose of claim is quoted twice or three times without any loop

_RULE = re.compile(r"([-=_*~─━])\1{2,}")


@dataclass(frozen=True, slots=True)
class GateWords:
    """The letters of a language: `script` matches runs of them; what matches `no_letters` is of no language."""

    script: re.Pattern[str]
    no_letters: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, kw_only=True)
class GateConfig:
    """What an answer must not be.

    The defaults lie in wide gaps: of 900 real responses of three models they stop 19 loops of 3,900 characters and
    more and 9 answers written mostly in English or Chinese; of the others none loops over more than 228 characters
    or 4 % of its length, and none is less than 64 % Hangul. 4 answers order "각하한다(또는 기각한다)". No more than a
    tenth of an answer stands in another model's answer to the same case, the question's own words included.
    """

    gate_truncated: bool = field(
        default=True,
        metadata={"help": "Stop what ran into max_completion_length; false has the judge read what there is of it."},
    )
    gate_min_hangul_frac: float = field(
        default=0.5,
        metadata={
            "help": "Share of the letters of an answer that must be of its case's language, Hangul for Korean; 0 "
            "switches this off."
        },
    )
    gate_max_loop_chars: int = field(
        default=300, metadata={"help": "Longest unbroken stretch of text that may go round and round."}
    )
    gate_max_loop_frac: float = field(
        default=0.4, metadata={"help": "The same as a share of the answer, digits taken as alike; for short answers."}
    )
    gate_hedged_order: bool = field(
        default=True, metadata={"help": "Stop a final order that offers several outcomes of one claim."}
    )
    gate_max_copied_frac: float = field(
        default=0.6,
        metadata={"help": "Share of an answer that may be copied from the facts of the question; 1 switches this off."},
    )
    gate_precedents: str | None = field(
        default=None,
        metadata={"help": "A law index (data/retrieve.py): stop what cites a precedent that it does not know."},
    )

    def __post_init__(self) -> None:
        for name in ("gate_min_hangul_frac", "gate_max_loop_frac", "gate_max_copied_frac"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)!r}")
        if self.gate_max_loop_chars < WINDOW:
            raise ValueError(f"gate_max_loop_chars must be at least {WINDOW}, got {self.gate_max_loop_chars!r}")


def gate(
    answer: str,
    finish_reason: str | None,
    config: GateConfig,
    question: str = "",
    language: str = DEFAULT_LANGUAGE,
) -> GateReason | None:
    """Why the answer is not worth a judge's call, None if it is.

    - "truncated": the generation stopped at its limit of tokens (`finish_reason` "length"), whatever it has said,
      unless `gate_truncated` is off.
    - "empty": no letter and no digit.
    - "repetition": a long unbroken stretch, or most of the answer, goes round in a loop.
    - "script": too few of the letters are of the case's language, Hangul for Korean. Abbreviations in Latin capitals
      and Hanja in brackets, as statutes and parties' names have them, are no letters here; nor are digits and signs.
    - "hedged_order": the final order offers several outcomes of one claim (`rewards.order.is_hedged`).
    - "parroting": most of the answer is the question's facts, word for word.
    - "unknown_precedent": it cites a precedent that the corpus of `gate_precedents`, read once, does not know.

    Args:
        answer: without its thinking (`final_answer`).
        finish_reason: as an endpoint tells it; None where nobody knows, which gates nothing.
        question: what the policy was asked, without the instructions; "" where it is not at hand, which gates nothing.
        language: of the case.

    >>> gate("변제기 도래: 인정\\n주문: 피고는 원고에게 3,000,000원을 지급하라.", "stop", GateConfig())
    >>> gate("원고의 청구를 기각한다. " * 9, "stop", GateConfig())
    'repetition'
    >>> gate("The claim is dismissed.", "stop", GateConfig())
    'script'
    """
    if config.gate_truncated and finish_reason == "length":
        return "truncated"
    text = visible(answer)
    if not any(map(str.isalnum, text)):
        return "empty"
    if _loops(text, config):
        return "repetition"
    if script_frac(text, language) < config.gate_min_hangul_frac:
        return "script"
    if config.gate_hedged_order and is_hedged(final_order(text, language), language):
        return "hedged_order"
    facts = (
        question.rpartition(purposes_heading(language))[0] or question
    )  # an order may repeat the purpose of claim to the letter
    num_copied = num_copied_letters(text, facts)
    if num_copied >= COPIED_LETTERS and num_copied > config.gate_max_copied_frac * len(_letters(text)):
        return "parroting"
    if config.gate_precedents and unknown_precedents(text, known_laws(config.gate_precedents)):
        return "unknown_precedent"
    return None


def script_frac(text: str, language: str = DEFAULT_LANGUAGE) -> float:
    """Share of the letters that are of the language, 0 where there are none.

    >>> script_frac("선의(善意)의 KBS")  # 선, 의, 의
    1.0
    >>> script_frac("원고 wins")
    0.3333333333333333
    """
    words = _words(language)
    for pattern in words.no_letters:
        text = pattern.sub("", text)
    num_letters = sum(map(str.isalpha, text))
    return sum(map(str.isalpha, "".join(words.script.findall(text)))) / num_letters if num_letters else 0.0


def longest_loop(text: str) -> int:
    """Length of the longest unbroken stretch of which every window of 20 characters occurs 4 times or more.

    A loop is such a stretch as soon as it has gone round four times and a window more, be it one character or a
    paragraph that goes round. Sound text repeats a phrase here and there, but something new soon breaks the stretch.
    Takes linear time.

    >>> longest_loop("가나다라" * 10)
    40
    >>> longest_loop("가나다라" * 5)  # one window, once
    0
    """
    windows = [text[start : start + WINDOW] for start in range(len(text) - WINDOW + 1)]
    counts = Counter(windows)
    longest = run = 0
    for window in windows:
        run = run + 1 if counts[window] >= NUM_LOOPS else 0
        longest = max(longest, run)
    return longest + WINDOW - 1 if longest else 0


def num_copied_letters(text: str, source: str) -> int:
    """How many letters and digits of the text stand in runs of 20 or more that the source has, too.

    Blanks, marks and punctuation do not count, so that a new layout hides nothing.

    >>> source = "피고는 2020. 3. 2. 책상 마흔 개를 인도받고 대금을 내지 않았다."
    >>> num_copied_letters("**피고는 2020. 3. 2.** 책상\\n마흔 개를 인도받고 대금을 냈다.", source)
    22
    >>> num_copied_letters("책상 마흔 개를 인도받고 대금을", source)
    0
    """
    letters, passages = _letters(text), _passages(source)
    num_copied = end = 0
    for start in range(len(letters) - WINDOW + 1):
        if letters[start : start + WINDOW] in passages:
            num_copied += start + WINDOW - max(start, end)
            end = start + WINDOW
    return num_copied


@lru_cache(maxsize=32)  # a question has several completions; a long one takes 1 MB
def _passages(source: str) -> frozenset[str]:
    letters = _letters(source)
    return frozenset(letters[start : start + WINDOW] for start in range(len(letters) - WINDOW + 1))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFC", text)))


def _loops(text: str, config: GateConfig) -> bool:
    text = " ".join(text.split())
    text = _RULE.sub(lambda rule: rule[1] * 3 if len(rule[0]) <= 200 else rule[0], text)  # a line drawn with dashes
    if longest_loop(text) > config.gate_max_loop_chars:
        return True
    # "1. 기각한다. 2. 기각한다. 3. …" loops too; but so does a table of monthly wages, hence by share alone.
    alike = re.sub(r"\d+", "0", text)
    return longest_loop(alike) > config.gate_max_loop_frac * len(alike)


@cache
def _words(language: str) -> GateWords:
    return read_words("gate", language, GateWords)
