"""LEGIT grades of responses: verdicts issue by issue, of a judge or of the response file itself."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.cases import Case
from eval.flags import RECORDED
from eval.grading import Scheme, grade_by
from eval.results import Grade, Key, Response, ResponseFile, read_grades
from eval.verdicts import complete_verdicts
from rewards.answer import final_answer
from rewards.gates import GateConfig, gate
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.judge_card import verdict_settings
from rewards.mini_judge import count_extra_issues
from rewards.score import Judgment, nothing_found, score_case

if TYPE_CHECKING:
    from rewards.mini_judge import MiniJudge

Verdicts = Mapping[str, Judgment | None]


def grade_response(
    case: Case,
    response: Response,
    judge: str,
    judgments: Mapping[str, Judgment | None],
    gates: GateConfig,
    quorum: float,
) -> Grade:
    """The grade that verdicts make of a response; the gate's reason is told and costs nothing here."""
    answer = final_answer(response.text)
    num_extra_issues = count_extra_issues(case, answer) if "mini" in case.extra else None
    reason = gate(answer, response.finish_reason, gates, case.question, case.language)
    return Grade(response, judge, judgments, score_case(case, judgments, quorum), reason, num_extra_issues)


def grade_file(
    cases: Mapping[str, Case],
    responses: ResponseFile,
    out: Path,
    config: JudgeConfig | None,
    gates: GateConfig,
    title: str = "grades",
) -> dict[Key, Grade]:
    """LEGIT grades of the responses, kept in `out`/grades.jsonl (see `eval.grading.grade_by`).

    Without a judge's config, the verdicts are those that the response file itself brings.
    """
    quorum = 1.0 if config is None else config.judge_quorum
    name = ", ".join(responses.evaluators) if config is None else config.judge_model or config.judge
    scheme: Scheme[Verdicts, Grade] = Scheme(
        name="grades",
        settings=partial(judge_settings, config),
        read=lambda path: read_grades(path, cases, quorum),
        grade=lambda case, response, verdicts: grade_response(case, response, name, verdicts, gates, quorum),
        nothing=nothing_found,
        load=_load_judge,
        recorded=None
        if config
        else lambda case, response: complete_verdicts(case, responses.verdicts.get(response.key, {})),
    )
    return grade_by(scheme, cases, responses, out, config, title)


def _load_judge(config: JudgeConfig, cases: Sequence[Case]) -> "Judge | MiniJudge":
    """The configured judge; what it cannot judge, or nobody could grade, is told before a verdict is paid."""
    for case in cases:
        if config.judge == "mini" or "mini" in case.extra:
            count_extra_issues(case, "")
    return load_judge(config)


def judge_settings(config: JudgeConfig | None, language: str) -> dict[str, Any]:
    """What verdicts on cases in a language depend on: not where the judge runs, nor how patiently it is asked."""
    if config is None:
        return {"judge": RECORDED}
    if config.judge == "mini":
        return {"judge": "mini"}
    names = ("judge_max_tokens", "judge_quorum")
    return verdict_settings(config, [language]) | {name: getattr(config, name) for name in names}
