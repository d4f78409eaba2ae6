"""A graded set in figures, and the figures as a table; pure."""

from collections import Counter
from collections.abc import Mapping
from statistics import fmean

from data.cases import Case
from eval.metrics import PARTS, Figures, Scores, summarize
from eval.results import Grade, Key
from eval.tables import Cell, Sheet, share
from eval.tallies import estimate
from rewards.gates import GATE_REASONS
from rewards.score import Score


def scores_by_case(grades: Mapping[Key, Grade]) -> Scores:
    """The scores of each case's samples, in the shape that `eval.metrics` resamples."""
    scores: dict[str, list[Score | None]] = {}
    for grade in grades.values():
        scores.setdefault(grade.response.case_id, []).append(grade.score)
    return scores


def summarize_grades(grades: Mapping[Key, Grade], cases: Mapping[str, Case]) -> dict[str, float | None]:
    """The means of `eval.metrics.summarize`, and what must be known beside them.

    `gate/<reason>_frac`: responses that training would have turned away; `judge/missing_frac`: verdicts that the judge
    failed to give; `judge/correct_without_coverage_frac`: as in the score. In the mini world also `extra_issues/mean`:
    issues per response that the court did not treat, and `extra_issues/frac`: their share of all issues named.
    """
    figures = summarize(scores_by_case(grades), {case.id: case.difficulty for case in cases.values()})
    if not grades:
        return figures
    gates = Counter(grade.gate for grade in grades.values())
    figures |= {f"gate/{reason}_frac": gates[reason] / len(grades) for reason in GATE_REASONS}
    num_verdicts = sum(len(grade.judgments) for grade in grades.values())
    figures["judge/missing_frac"] = sum(grade.num_missing for grade in grades.values()) / num_verdicts
    scored = [(grade, grade.score) for grade in grades.values() if grade.score is not None]
    if scored:
        figures["judge/correct_without_coverage_frac"] = fmean(score.correct_without_coverage for _, score in scored)
    extra = [(grade.num_extra_issues, score) for grade, score in scored if grade.num_extra_issues is not None]
    if extra:
        num_extra = sum(num for num, _ in extra)
        num_named = num_extra + sum(score.coverage * (score.num_issues - 1) for _, score in extra)
        figures["extra_issues/mean"] = num_extra / len(extra)
        figures["extra_issues/frac"] = num_extra / num_named if num_named else 0.0
    return figures


def summary_sheet(title: str, figures: Figures) -> Sheet:
    """Every part with its interval: over all cases, by difficulty, and the mean of the difficulties."""
    difficulties = [
        name.split("/")[1] for name in figures if name.startswith("difficulty/") and name.endswith("/num_cases")
    ]
    groups = {"all": "mean"} | {name: f"difficulty/{name}/mean" for name in difficulties}
    if "macro/score" in figures:
        groups["macro"] = "macro"
    rows: list[tuple[Cell, ...]] = [
        (part, *(estimate(figures, f"{prefix}/{part}") for prefix in groups.values())) for part in PARTS
    ]
    prefixes = ("", *(f"difficulty/{difficulty}/" for difficulty in difficulties))
    rows.append(("cases", *(figures[f"{prefix}num_cases"] for prefix in prefixes)))
    rows.append(("unscored", *(share(figures[f"{prefix}unscored_frac"]) for prefix in prefixes)))
    return Sheet("summary", title, ("", *groups), tuple(rows), Sheet.INTERVALS)
