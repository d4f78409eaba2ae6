"""The final order of an answer, and whether it orders two things at once: pure, decided without a judge."""

import re

_MARKS = re.compile(r"[*_`>\"'“”‘’「」]")
# Both for a stripped line; bounded, so that no line takes more than linear time.
_HEADING = re.compile(
    r"\W{0,12}(?:제?\w{1,4}[.)]\W{0,6})?(?:(?:예상|예비적|가정적|판결|최종|또는|제?\s?\d\s?안)\W{0,4}){0,4}"
    r"주\s{0,12}문(?:은|예시)?(?![가-힣]|\s{0,3}제?\d+항)"
)
_END = re.compile(
    r"#|-{3}|={3}|\W{0,6}(?:\d{1,2}\W{1,4})?(?:판결\s?)?"
    r"(?:이\s{0,12}유|청\s?구\s?취\s?지|근거|참고|참조|결론|요약|해설|설명|주요)"
)
_OR = re.compile(r"\W{0,6}(?:또는|혹은|아니면)")

_OUTCOME = "인용|기각|각하"
_CLAIM = r"(?:원고(?:들)?의\s*)?(?:이 사건\s*)?(?:청구|소)(?:를|는)\s*"
_WHOLE_CLAIM = re.compile(
    r"(?<!나머지 )원고(?:들)?의\s*(?:이 사건\s*)?(?:청구|소)(?:를|는)\s*(?:모두|전부)?\s*(?:일부\s*(?=인용))?"
    rf"({_OUTCOME})(?:한|된|합니|됩니)다"
)
_GRANT = re.compile(r"(?:지급|인도|이행|반환|철거|말소)하라(?!는|고)|취소한다|확인한다|불허한다")
_SEVERAL_CLAIMS = re.compile("반소|참가인|예비적|주위적")  # one may be granted in full and the other dismissed
_ALTERNATIVE = re.compile(
    rf"({_OUTCOME})(?:한다|함)?[.\s]{{0,3}}\(?\s?(?:/|\||·|또는|혹은|아니면)\s{{0,3}}"
    rf"(?:{_CLAIM})?(?:전부 )?({_OUTCOME})"
)
_EITHER_ORDER = re.compile(r"(?:하라|한다)[.\s]{0,3}\(?(?:또는|혹은|아니면)[^\n]{0,200}?(?:하라|한다)")
_EITHER_SUM = re.compile(r"\d원\s?\(?\s?(?:또는|혹은|내지)\s?(?:금 ?)?\d[\d,]{0,20}원")


def final_order(text: str) -> str:
    """The lines of the answer's last order, from its heading to the next part; "" where no heading names one.

    Orders that follow one upon another, with no reasons between, are one. The lines come without the marks of Markdown.

    >>> final_order("판단한다.\\n## 주문\\n원고의 청구를 기각한다.\\n## 참고\\n민법 제163조")
    '## 주문\\n원고의 청구를 기각한다.'
    """
    lines = [line.strip() for line in _MARKS.sub("", text).splitlines()]
    starts = [number for number, line in enumerate(lines) if _HEADING.match(line)]
    if not starts:
        return ""
    start = last = starts.pop()
    while starts and all(map(_continues, lines[starts[-1] + 1 : start])):
        start = starts.pop()
    end = next((number for number in range(last + 1, len(lines)) if _END.match(lines[number])), len(lines))
    return "\n".join(lines[start:end])


def is_hedged(order: str) -> bool:
    """Whether an order offers more than one outcome of the same claim, so that one of them may be right.

    That is: the whole claim granted and dismissed, dismissed both as unfounded (기각) and as inadmissible (각하), or an
    "or" between two outcomes, orders or sums. The rest of a claim that is granted in part may be dismissed.

    >>> is_hedged("피고는 원고에게 100원을 지급하라. 원고의 나머지 청구를 기각한다.")
    False
    >>> is_hedged("원고의 청구를 각하한다(또는 기각한다).")
    True
    """
    outcomes = set(_WHOLE_CLAIM.findall(order))
    if _GRANT.search(order) and not _SEVERAL_CLAIMS.search(order):
        outcomes.add("인용")
    return (
        len(outcomes) > 1
        or any(first != second for first, second in _ALTERNATIVE.findall(order))
        or _EITHER_ORDER.search(order) is not None
        or _EITHER_SUM.search(order) is not None
    )


def _continues(line: str) -> bool:
    """Whether a line between two orders leaves them one: an "or", or part of an order, not of reasons."""
    line = line.rstrip(" )")
    ends_sentence = line.endswith((".", "다", ":")) and not line.rstrip(".").endswith(("하라", "한다", "수 있다"))
    return _OR.match(line) is not None or not (ends_sentence or _END.match(line))
