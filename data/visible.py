"""What of a text is seen: for judges, terminals, sheets and search, which text of unknown origin may want to fool."""

import re
import unicodedata

# Letters and marks that leave no ink, besides the categories of control and format characters: joiner, Hangul
# fillers, Mongolian and other variation selectors, the blank Braille cell, and what Unicode keeps free for more of
# them. Text can hide in them.
_INKLESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co"}
_NEWLINE = re.compile("\r\n?|[\u0085\u2028\u2029]")


def visible(text: str) -> str:
    """The text as a reader sees it: NFC, newlines as \\n, without control, format and inkless characters.

    >>> visible("기\\u200b각\\u202e\\r\\n한다\\x07")
    '기각\\n한다'
    """
    text = _NEWLINE.sub("\n", text)
    unseen = {ord(char) for char in set(text) if unicodedata.category(char) in _UNSEEN_CATEGORIES}
    unseen -= {ord("\n"), ord("\t")}
    return unicodedata.normalize("NFC", _INKLESS.sub("", text.translate(dict.fromkeys(unseen))))
