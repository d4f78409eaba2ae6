"""What a response says once its thinking and all that nobody sees is taken away."""

import re

from data.visible import visible

# Blanks are bounded so that a text of nothing but "<" and blanks still takes linear time. An attribute has its "=":
# "a < think and b > c" is no tag.
_TAG = re.compile(
    r"<\s{0,9}(?P<closing>/)?\s{0,9}think(?:ing)?(?:\s{1,9}[\w:-]{1,40}\s{0,9}=[^<>]*?)?\s{0,9}(?P<empty>/)?>",
    re.IGNORECASE,
)


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


def is_empty(answer: str) -> bool:
    """Whether a reader sees neither letter nor digit: then there is nothing to judge."""
    return not any(map(str.isalnum, visible(answer)))
