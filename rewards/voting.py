"""Verdicts asked for more than once, and verdicts read as probabilities. Pure."""

import hashlib
import math
import re
from collections.abc import Sequence
from itertools import accumulate
from statistics import fmean

from data.endpoint import Reply, Unusable
from rewards.score import Judgment

FIELDS = ("contains_issue", "correct_conclusion")
NUM_LOGPROBS = 10  # of a token: true and false are among the first few wherever a schema is enforced


def vote(votes: Sequence[Judgment | None], *, soft: bool = False) -> Judgment | None:
    """The verdict that comes of several on one issue: of hard ones the majority, field by field, of soft ones the mean.

    A vote that the judge failed to give is None and decides nothing: without a majority of all votes, given or not,
    there is no verdict.

    >>> yes, no = Judgment(True, True), Judgment(True, False)
    >>> vote([yes, no, no])
    Judgment(contains_issue=True, correct_conclusion=False, rationales='')
    >>> vote([yes, no, None]) is None
    True
    """
    given = [judgment for judgment in votes if judgment is not None]
    if len(votes) == 1 or len(given) <= len(votes) / 2:
        return votes[0] if len(votes) == 1 else None
    if soft:
        contains, correct = (fmean(getattr(judgment, name) for judgment in given) for name in FIELDS)
        return Judgment(contains, correct, given[0].rationales)
    decided: list[bool] = []
    for name in FIELDS:
        num_yes = sum(bool(getattr(judgment, name)) for judgment in given)
        if max(num_yes, len(given) - num_yes) <= len(votes) / 2:
            return None
        decided.append(num_yes > len(votes) / 2)
    agreeing = next((judgment for judgment in given if _decisions(judgment) == tuple(decided)), given[0])
    return Judgment(decided[0], decided[1], agreeing.rationales)


def disagree(votes: Sequence[Judgment]) -> bool:
    """Whether the votes decide a field differently, a probability from one half on counting as yes."""
    return len({_decisions(judgment) for judgment in votes}) > 1


def is_drawn(text: str, frac: float) -> bool:
    """Whether the text is among the `frac` of all texts that a hash draws: always the same ones.

    >>> sum(is_drawn(str(n), 0.02) for n in range(10_000))
    202
    """
    drawn = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    return drawn < frac * 2**64


def soften(judgments: Sequence[Judgment], reply: Reply) -> list[Judgment]:
    """The verdicts with the judge's probability of true in place of each yes or no.

    That is P(true) / (P(true) + P(false)) at the token in which the value begins.

    Raises:
        Unusable: of kind logprobs, where the endpoint has given none of the verdicts' tokens.
    """
    text = "".join(token for token, _ in reply.logprobs)
    starts = [0, *accumulate(len(token) for token, _ in reply.logprobs)][:-1]
    found: list[list[float]] = []
    for name in FIELDS:
        # A quotation mark inside a reason is escaped; and a thinking judge may write the keys before it answers.
        values = list(re.finditer(rf'"{name}"\s*:\s*(true|false)', text))[-len(judgments) :]
        if len(values) < len(judgments):
            if not reply.logprobs:
                reason = "the endpoint gives no logprobs: judge_verdict: hard, or a server that gives them"
                raise Unusable(reason, "logprobs", is_final=True)
            raise Unusable(f"no logprobs of {name} in the reply of {len(reply.logprobs)} of them", "logprobs")
        found.append([_probability(reply, starts, value.start(1)) for value in values])
    return [
        Judgment(contains, correct, judgment.rationales)
        for judgment, contains, correct in zip(judgments, *found, strict=True)
    ]


def _probability(reply: Reply, starts: Sequence[int], at: int) -> float:
    place = max(n for n, start in enumerate(starts) if start <= at)
    mass = {"true": 0.0, "false": 0.0}
    for token, logprob in reply.logprobs[place][1].items():
        said = token.strip(' \t\n:"')
        for value in mass:
            if said and (value.startswith(said) or said.startswith(value)):
                mass[value] += math.exp(logprob)
    total = sum(mass.values())
    if not total:
        raise Unusable("neither true nor false is among the likely tokens of the verdict", "logprobs")
    return mass["true"] / total


def _decisions(judgment: Judgment) -> tuple[bool, bool]:
    return judgment.contains_issue >= 0.5, judgment.correct_conclusion >= 0.5
