"""What the report shows, as plain values: figures of every set, and every case with its answers; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data.cases import Case, Issue
from eval.comparison import CaseChange, Comparison, compare_sets
from eval.graded import GradedSet, Inputs
from eval.metrics import PARTS, Figures
from eval.outcomes import ErrorAnalysis, Outcome, analyse_errors
from eval.phases import PHASES, Span, windows
from eval.results import Grade
from eval.slices import Slice, case_kind, length_edges, slice_grades
from eval.summary import summarize_grades
from eval.tallies import Estimate, estimate
from rewards.answer import final_answer

SHOWN_CHANGES = 8


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that is computed of the sets, in their order; `comparisons` of each but the first with the first.

    `spans` are the steps of the run that they are checkpoints of, with their seconds; none if no such log is known.
    """

    inputs: Inputs
    means: tuple[Figures, ...]
    comparisons: tuple[Comparison, ...]
    slices: tuple[tuple[Slice, ...], ...]
    errors: tuple[ErrorAnalysis, ...]
    spans: tuple[Span, ...]

    @property
    def sets(self) -> tuple[GradedSet, ...]:
        """The graded sets."""
        return self.inputs.sets


def analyse(inputs: Inputs, spans: Sequence[Span] = ()) -> Analysis:
    """Means, differences from the first set, slices and errors of every set; lengths are cut alike in all."""
    sets, cases = inputs.sets, inputs.cases
    means = tuple(summarize_grades(graded.grades, cases) for graded in sets)
    edges = length_edges(grade for graded in sets for grade in graded.grades.values())
    return Analysis(
        inputs,
        means,
        tuple(compare_sets(sets[0], graded) for graded in sets[1:]),
        tuple(
            tuple(slice_grades(graded.grades, cases, figures, edges))
            for graded, figures in zip(sets, means, strict=True)
        ),
        tuple(analyse_errors(graded.grades, cases) for graded in sets),
        tuple(spans),
    )


def most_changed(comparison: Comparison) -> tuple[list[CaseChange], list[CaseChange]]:
    """The cases that gained most and those that lost most, the largest change first."""
    by_change = sorted(comparison.changes, key=lambda change: change.change)
    lost = [change for change in by_change[:SHOWN_CHANGES] if change.change < 0]
    gained = [change for change in by_change[::-1][:SHOWN_CHANGES] if change.change > 0]
    return gained, lost


def page_data(analysis: Analysis) -> dict[str, Any]:
    """What the page's script works on; `answers[case][set]` is the list of a case's samples.

    Verdicts stand in the order of the case's issues.
    """
    sets, cases = analysis.sets, analysis.inputs.cases
    answers: dict[str, list[list[dict[str, Any]]]] = {case_id: [[] for _ in sets] for case_id in cases}
    for place, graded in enumerate(sets):
        for (case_id, _), grade in sorted(graded.grades.items()):
            answers[case_id][place].append(_answer(cases[case_id], grade))
    return {
        "parts": PARTS,
        "outcomes": list(Outcome),
        "sets": [
            {
                "name": graded.name,
                "step": graded.step,
                "parts": {part: _triple(estimate(figures, f"mean/{part}")) for part in PARTS},
                "outcomes": [_triple(errors.outcomes[kind].estimate) for kind in Outcome],
                "slices": [
                    {"by": cut.by, "name": cut.name, "parts": {part: _triple(e) for part, e in cut.parts.items()}}
                    for cut in slices
                ],
            }
            for graded, figures, errors, slices in zip(
                sets, analysis.means, analysis.errors, analysis.slices, strict=True
            )
        ],
        "cases": [_case(case) for case in cases.values()],
        "answers": list(answers.values()),
        "phases": PHASES,
        "bars": [
            {"first": bar.first, "last": bar.last, "seconds": [round(seconds, 4) for seconds in bar.of_a_step]}
            for bar in windows(analysis.spans)
        ],
    }


def _case(case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "question": case.question,
        "difficulty": case.difficulty,
        "kind": case_kind(case),
        "has_tree": case.has_tree,
        "issues": [_issue(issue) for issue in case.issues],
    }


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "id": issue.id,
        "parent": issue.parent_id,
        "summary": issue.summary,
        "claims": [[claim.claimer, claim.content] for claim in issue.claims],
        "law": issue.relevant_law,
        "conclusion": issue.conclusion,
    }


def _answer(case: Case, grade: Grade) -> dict[str, Any]:
    response, score = grade.response, grade.score
    answer = final_answer(response.text)
    whole = response.text.strip()
    thinking = whole.removesuffix(answer).strip() if whole != answer else ""
    verdicts = []
    for issue in case.issues:
        judgment = grade.judgments[issue.id]
        verdicts.append(
            judgment and [float(judgment.contains_issue), float(judgment.correct_conclusion), judgment.rationales]
        )
    return {
        "sample": response.sample,
        "text": answer,
        "thinking": "\n\n".join(filter(None, (response.reasoning, thinking))),
        "finish": response.finish_reason,
        "gate": grade.gate,
        "score": score and [score.total, score.order, score.coverage, score.correctness],
        "verdicts": verdicts,
        "extra": grade.num_extra_issues,
    }


def _triple(value: Estimate | None) -> list[float] | None:
    return None if value is None else [round(figure, 4) for figure in (value.centre, value.low, value.high)]
