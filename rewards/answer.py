"""What a response says once its thinking and all that nobody sees is taken away."""

import re
import unicodedata

# Blanks are bounded so that a text of nothing but "<" and blanks still takes linear time. An attribute has its "=":
# "a < think and b > c" is no tag.
_TAG = re.compile(
    r"<\s{0,9}(?P<closing>/)?\s{0,9}think(?:ing)?(?:\s{1,9}[\w:-]{1,40}\s{0,9}=[^<>]*?)?\s{0,9}(?P<empty>/)?>",
    re.IGNORECASE,
)
# Letters and marks that leave no ink, besides the categories of control and format characters: joiner, Hangul
# fillers, Mongolian and other variation selectors, the blank Braille cell, and what Unicode keeps free for more of
# them. Text can hide in them.
_INKLESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co"}
_NEWLINE = re.compile("\r\n?|[\u0085\u2028\u2029]")


def final_answer(text: str) -> str:
    """The response without its thinking, "" where the thinking never ends and no answer follows.

    A closing tag that nothing opened ends a thinking that began with the text (or behind the tag before it), as
    models write whose chat template has already opened it. A tag opened within a thinking opens nothing new. Upper
    case, blanks and attributes do not matter.

    >>> final_answer("<think>어느 쪽일까</think>\\n청구를 기각한다.")
    '청구를 기각한다.'
    >>> final_answer("어느 쪽일까</think>청구를 기각한다.")
    '청구를 기각한다.'
    >>> final_answer("<think>어느 쪽일까")
    ''
    """
    said: list[str] = []
    is_thinking = False
    end = 0
    for tag in _TAG.finditer(text):
        if not is_thinking and not tag["closing"]:
            said.append(text[end : tag.start()])
        is_thinking = not tag["closing"] and (is_thinking or not tag["empty"])
        end = tag.end()
    return "" if is_thinking else "".join([*said, text[end:]]).strip()


def visible(text: str) -> str:
    """The text as a reader sees it: NFC, newlines as \\n, without control, format and inkless characters.

    >>> visible("기\\u200b각\\u202e\\r\\n한다\\x07")
    '기각\\n한다'
    """
    text = _NEWLINE.sub("\n", text)
    unseen = {ord(char) for char in set(text) if unicodedata.category(char) in _UNSEEN_CATEGORIES}
    unseen -= {ord("\n"), ord("\t")}
    return unicodedata.normalize("NFC", _INKLESS.sub("", text.translate(dict.fromkeys(unseen))))


def is_empty(answer: str) -> bool:
    """Whether a reader sees neither letter nor digit: then there is nothing to judge."""
    return not any(map(str.isalnum, visible(answer)))
