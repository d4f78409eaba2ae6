"""The final order of an answer, and whether it orders two things at once: pure, decided without a judge."""

import re
from dataclasses import dataclass
from functools import cache

from data.language import DEFAULT_LANGUAGE, read_words

_MARKS = re.compile(r"[*_`>\"'“”‘’「」]")


@dataclass(frozen=True, slots=True)
class OrderWords:
    """How a language tells a final order. Patterns of lines are for stripped ones and bounded, so that none takes more
    than linear time; {outcome} stands for any of the three outcomes."""

    heading: re.Pattern[str]  # the line that an order begins with
    end: re.Pattern[str]  # the line that the part behind it begins with
    or_line: re.Pattern[str]  # a line that begins with "or"
    sentence: re.Pattern[str]  # a line that ends a sentence
    order_sentence: re.Pattern[str]  # one that ends a sentence of an order
    granted: str
    dismissed: str
    inadmissible: str
    whole_claim: str  # an outcome of the claim as a whole
    grant: re.Pattern[str]  # the words that grant something
    several_claims: re.Pattern[str]
    alternative: str  # two outcomes with an "or" between them
    either: tuple[re.Pattern[str], ...]  # two orders, or two sums, with an "or" between them


def final_order(text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """The lines of the answer's last order, from its heading to the next part; "" where no heading names one.

    Orders that follow one upon another, with no reasons between, are one. The lines come without the marks of Markdown.

    >>> final_order("판단한다.\\n## 주문\\n원고의 청구를 기각한다.\\n## 참고\\n민법 제163조")
    '## 주문\\n원고의 청구를 기각한다.'
    """
    words = _words(language)
    lines = [line.strip() for line in _MARKS.sub("", text).splitlines()]
    starts = [number for number, line in enumerate(lines) if words.heading.match(line)]
    if not starts:
        return ""
    start = last = starts.pop()
    while starts and all(_continues(line, words) for line in lines[starts[-1] + 1 : start]):
        start = starts.pop()
    end = next((number for number in range(last + 1, len(lines)) if words.end.match(lines[number])), len(lines))
    return "\n".join(lines[start:end])


def is_hedged(order: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Whether an order offers more than one outcome of the same claim, so that one of them may be right.

    That is: the whole claim granted and dismissed, dismissed both as unfounded (기각) and as inadmissible (각하), or an
    "or" between two outcomes, orders or sums. The rest of a claim that is granted in part may be dismissed.

    >>> is_hedged("피고는 원고에게 100원을 지급하라. 원고의 나머지 청구를 기각한다.")
    False
    >>> is_hedged("원고의 청구를 각하한다(또는 기각한다).")
    True
    """
    words = _words(language)
    whole_claim, alternative = _outcome_patterns(language)
    outcomes = {_name(outcome, words) for outcome in whole_claim.findall(order)}
    if words.grant.search(order) and not words.several_claims.search(order):
        outcomes.add("granted")
    return (
        len(outcomes) > 1
        or any(_name(first, words) != _name(second, words) for first, second in alternative.findall(order))
        or any(either.search(order) for either in words.either)
    )


def _continues(line: str, words: OrderWords) -> bool:
    """Whether a line between two orders leaves them one: an "or", or part of an order, not of reasons."""
    line = line.rstrip(" )")
    ends_sentence = words.sentence.search(line) and not words.order_sentence.search(line)
    return words.or_line.match(line) is not None or not (ends_sentence or words.end.match(line))


def _name(outcome: str, words: OrderWords) -> str:
    return next(
        name for name in ("granted", "dismissed", "inadmissible") if re.fullmatch(getattr(words, name), outcome)
    )


@cache
def _words(language: str) -> OrderWords:
    return read_words("order", language, OrderWords)


@cache
def _outcome_patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = _words(language)
    outcome = f"({words.granted}|{words.dismissed}|{words.inadmissible})"
    whole_claim, alternative = (text.replace("{outcome}", outcome) for text in (words.whole_claim, words.alternative))
    return re.compile(whole_claim), re.compile(alternative)
