"""Means with intervals over cases, and the difference between two graded sets; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.bootstrap import NUM_RESAMPLES, bootstrap_means, interval
from data.cases import by_level
from rewards.score import Score

PARTS = ("score", "order", "coverage", "correctness")

Figures = Mapping[str, float | None]
"""Flat figures by name, slashes between; None where there is nothing to tell."""

Scores = Mapping[str, Sequence[Score | None]]
"""The scores of a graded set: case id -> the score of each of its samples, None where unscored."""


@dataclass(frozen=True, slots=True)
class CaseMeans:
    """Each case's mean over its scored samples: one row of `values` per case id, one column per PARTS."""

    case_ids: tuple[str, ...]
    values: NDArray[np.float64]


def case_means(scores: Scores) -> CaseMeans:
    """Mean of every part within each case; a case without a scored sample has no row.

    Several samples of one case are no independent evidence: they are averaged first, and only cases are resampled.
    """
    scored = {case_id: [score for score in samples if score is not None] for case_id, samples in scores.items()}
    case_ids = tuple(case_id for case_id, samples in scored.items() if samples)
    rows = [np.mean([_parts(score) for score in scored[case_id]], axis=0) for case_id in case_ids]
    return CaseMeans(case_ids, np.array(rows, dtype=np.float64).reshape(len(rows), len(PARTS)))


def summarize(
    scores: Scores,
    difficulties: Mapping[str, str | None] | None = None,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> dict[str, float | None]:
    """Flat figures of a graded set: `mean/score`, `mean/score/low`, `mean/score/high` and so on for every part.

    An unscored response counts as nothing, never as 0: `unscored_frac` is its share of all responses, `num_cases`
    the number of cases behind the means, `num_responses` that of responses, `num_unscored_cases` that of the cases
    without any score. Where nothing was scored the means are None.

    With `difficulties` (case id -> difficulty), the same under `difficulty/easy/...` for each one, and
    `macro/...`: the mean of the difficulties' means, however many cases each has; its interval resamples within
    every difficulty.
    """
    figures = _figures("mean", case_means(scores), num_resamples, seed) | _counts(scores)
    groups: dict[str, dict[str, Sequence[Score | None]]] = {}
    for case_id, samples in scores.items():
        difficulty = difficulties.get(case_id) if difficulties else None
        if difficulty is not None:
            groups.setdefault(difficulty, {})[case_id] = samples
    if len(groups) < 2:
        return figures

    means = {difficulty: case_means(groups[difficulty]) for difficulty in sorted(groups, key=by_level)}
    for difficulty, rows in means.items():
        prefix = f"difficulty/{difficulty}"
        figures |= _figures(f"{prefix}/mean", rows, num_resamples, seed)
        figures |= {f"{prefix}/{name}": value for name, value in _counts(groups[difficulty]).items()}
    if all(len(rows.case_ids) for rows in means.values()):
        # Each group has draws of its own: with one seed for all, equally large groups would be resampled in step.
        resampled = [bootstrap_means(rows.values, num_resamples, seed + 1 + i) for i, rows in enumerate(means.values())]
        centre = np.mean([rows.values.mean(axis=0) for rows in means.values()], axis=0)
        figures |= _flat("macro", centre, np.mean(resampled, axis=0))
    return figures


def paired_difference(
    first: Scores, second: Scores, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> dict[str, float | None]:
    """How much higher `second` is than `first` on the cases that both have a score for.

    `diff/score` with `/low` and `/high`, and so on for every part: the mean of the cases' differences and its
    interval over resampled cases. `num_pairs` cases stand behind it; `num_unpaired` were scored in one set only.

    >>> right, wrong = Score(1, 1, 1, 0, 2, 2), Score(0, 0, 0, 0, 2, 2)
    >>> paired_difference({"a": [wrong], "b": [right]}, {"a": [right], "b": [right]})["diff/score"]
    5.0
    """
    before, after = case_means(first), case_means(second)
    row_of = {case_id: row for row, case_id in enumerate(after.case_ids)}
    pairs = [(row, row_of[case_id]) for row, case_id in enumerate(before.case_ids) if case_id in row_of]
    rows = np.array(pairs, dtype=np.intp).reshape(len(pairs), 2)
    differences = after.values[rows[:, 1]] - before.values[rows[:, 0]]
    paired = CaseMeans(tuple(before.case_ids[row] for row in rows[:, 0]), differences)
    num_unpaired = len(before.case_ids) + len(after.case_ids) - 2 * len(pairs)
    counts = {"num_pairs": len(pairs), "num_unpaired": num_unpaired}
    return _figures("diff", paired, num_resamples, seed) | counts


def _parts(score: Score) -> tuple[float, float, float, float]:
    return score.total, score.order, score.coverage, score.correctness


def _figures(prefix: str, rows: CaseMeans, num_resamples: int, seed: int) -> dict[str, float | None]:
    if not rows.case_ids:
        return {f"{prefix}/{part}{end}": None for part in PARTS for end in ("", "/low", "/high")}
    return _flat(prefix, rows.values.mean(axis=0), bootstrap_means(rows.values, num_resamples, seed))


def _flat(prefix: str, centre: NDArray[np.float64], resampled: NDArray[np.float64]) -> dict[str, float | None]:
    low, high = interval(resampled)
    figures: dict[str, float | None] = {}
    for column, part in enumerate(PARTS):
        figures[f"{prefix}/{part}"] = float(centre[column])
        figures[f"{prefix}/{part}/low"] = float(low[column])
        figures[f"{prefix}/{part}/high"] = float(high[column])
    return figures


def _counts(scores: Scores) -> dict[str, float | None]:
    num_responses = sum(len(samples) for samples in scores.values())
    num_unscored = sum(score is None for samples in scores.values() for score in samples)
    num_cases = sum(any(score is not None for score in samples) for samples in scores.values())
    return {
        "num_cases": num_cases,
        "num_unscored_cases": sum(bool(samples) for samples in scores.values()) - num_cases,
        "num_responses": num_responses,
        "unscored_frac": num_unscored / num_responses if num_responses else None,
    }
