"""Cases and grades written down in a few letters, for tests on hand-worked numbers."""

from data.cases import Case, Claim, Issue
from eval.results import Grade, Key, Response
from rewards.score import Judgment, score_case

VERDICTS = {
    "r": Judgment(True, True, "맞다"),  # right
    "w": Judgment(True, False, "틀리다"),  # covered, wrongly decided
    "n": Judgment(False, False, "없다"),  # not covered
    "?": None,
}


def make_case(case_id: str, *issue_ids: str, difficulty: str | None = None, **extra) -> Case:
    """A case with a root and these issues."""
    issues = tuple(Issue(id, f"쟁점 {id}", (Claim("원고", f"주장 {id}"),), f"결론 {id}") for id in ("", *issue_ids))
    return Case(case_id, f"사실관계 {case_id}", issues, difficulty, extra=extra)


def make_grade(
    case: Case, verdicts: str, *, text: str = "답", sample: int = 0, finish_reason: str | None = "stop"
) -> Grade:
    """A grade with one letter per issue, the root first: "rwn?"."""
    judgments = {issue.id: VERDICTS[letter] for issue, letter in zip(case.issues, verdicts, strict=True)}
    response = Response(case.id, text, "model", finish_reason, sample)
    return Grade(response, "judge", judgments, score_case(case, judgments))


def by_key(*grades: Grade) -> dict[Key, Grade]:
    """The grades as a graded set holds them."""
    return {grade.response.key: grade for grade in grades}
