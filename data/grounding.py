"""Whether a text is told by a judgment, and where: fuzzy matching of clauses, exact matching of numbers. Pure."""

import re
from dataclasses import dataclass

from data.page_text import fold

# All claims, analysis and conclusions of ten hand-made cases reach 55 and all sentences of their statements 45. Held
# against the other nine judgments, and with their numbers looked up, 0.8 % of the claims, 0.6 % of the analysis and
# 2.2 % of the conclusions (courts' formulas) reach 55 as well, and 8.6 % of the sentences 45.
MIN_SUPPORT = 55.0  # in 0..100, of facts, claims, analysis and conclusions
MIN_STATEMENT_SUPPORT = 45.0  # of the sentences of the one statement of facts, which retells in its own words
_MIN_CLAUSE_CHARS = 12

_IGNORED = re.compile(r"[\s'\"‘’“”「」]")
_CLAUSE_END = re.compile(r"(?<=[고며여서나만데로면]),?\s+|,\s+|:\s+|(?<=다)\.\s+")
_SENTENCE_END = re.compile(r"(?<=[가-힣][.?!])(?![^()]*\))\s+|\n+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Span:
    """A clause's best match: `text[start:end]` of the judgment, alike to `score` in 0..100."""

    start: int
    end: int
    score: float


class Source:
    """A text that others are held against, without its spaces and quotation marks, which mean nothing here."""

    def __init__(self, text: str) -> None:
        folded = fold(text)
        self._places = [i for i, char in enumerate(folded) if not _IGNORED.match(char)]
        self.bare = "".join(folded[i] for i in self._places)
        self._numbers = numbers(text)

    def support(self, statement: str) -> tuple[float, tuple[Span, ...]]:
        """How well the text tells the statement, in 0..100, and where: as a whole, or clause by clause.

        The score of several clauses is their mean, weighted by length: a sentence may put together what the
        judgment tells in several places.
        """
        whole = self._best(bare(statement))
        if whole.score == 100:
            return whole.score, (whole,)
        parts = [bare(clause) for clause in _clauses(statement)]
        spans = [self._best(part) for part in parts]
        length = sum(map(len, parts))
        mean = sum(span.score * len(part) for span, part in zip(spans, parts, strict=True)) / max(length, 1)
        return (whole.score, (whole,)) if whole.score >= mean else (mean, tuple(spans))

    def unknown_numbers(self, statement: str) -> list[str]:
        """The numbers of the statement that the text does not have; thousands are compared without commas."""
        return sorted(numbers(statement) - self._numbers)

    def _best(self, part: str) -> Span:
        from rapidfuzz import fuzz

        if part and (start := self.bare.find(part)) >= 0:  # told to the letter, as most is
            return Span(self._places[start], self._places[start + len(part) - 1] + 1, 100.0)
        match = fuzz.partial_ratio_alignment(part, self.bare) if part and self.bare else None
        if match is None:
            return Span(0, 0, 0.0)
        last = max(match.dest_start, match.dest_end - 1)
        return Span(self._places[match.dest_start], self._places[last] + 1, round(match.score, 1))


def bare(text: str) -> str:
    """The text as it is compared.

    >>> bare("‘가’ 第 ２ 條")
    '가제2조'
    """
    return _IGNORED.sub("", fold(text))


def numbers(text: str) -> set[str]:
    """Every number of a text.

    >>> sorted(numbers("2020. 9. 11.부터 240,000,000원, 연 1.5%"))
    ['1.5', '11', '2020', '240000000', '9']
    """
    return set(_NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3})", "", fold(text))))


def sentences(text: str) -> list[str]:
    """The sentences of a text; what stands within brackets ends none."""
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _clauses(statement: str) -> list[str]:
    """The clauses, each long enough to tell something: short ones are joined to the next, or at the end to the last."""
    clauses: list[str] = []
    for part in _CLAUSE_END.split(statement):
        if clauses and len(bare(clauses[-1])) < _MIN_CLAUSE_CHARS:
            clauses[-1] += " " + part
        else:
            clauses.append(part)
    if len(clauses) > 1 and len(bare(clauses[-1])) < _MIN_CLAUSE_CHARS:
        clauses[-2:] = [" ".join(clauses[-2:])]
    return clauses
