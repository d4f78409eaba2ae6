"""A scripted judge that passes the preflight: right on the built-in easy questions, and by another script otherwise."""

import json
import re

from rewards.preflight import EasyQuestion, easy_questions
from tests.fake_llm_server import Reply, Request, Script, completion, verdict

QUESTIONS = easy_questions()


def asked(request: Request) -> EasyQuestion | None:
    """The easy question that a request for one issue asks, if it is one."""
    answer = request.text[request.text.index("# 채점할 답안") :]
    return next((one for one in QUESTIONS if one.answer in answer and one.issue.conclusion in answer), None)


def right_on_easy_questions(otherwise: Script) -> Script:
    """A script that passes the preflight, one issue a call or several, with or without reasons."""

    def script(request: Request) -> Reply:
        properties = request.body["response_format"]["json_schema"]["schema"]["properties"]
        if (one := asked(request)) is None:
            return otherwise(request)
        if "1" in properties:
            return grouped(request)
        reason = "근거" if "rationales" in properties else None
        return verdict(one.contains_issue, one.correct_conclusion, reason)

    return script


def grouped(request: Request, contains: bool = True, correct: bool = True) -> Reply:
    """The same verdict on each issue of a request that asks about several."""
    schema = request.body["response_format"]["json_schema"]["schema"]["properties"]
    one = {"rationales": "근거", "contains_issue": contains, "correct_conclusion": correct}
    verdicts = {n: {key: one[key] for key in schema[n]["properties"]} for n in schema}
    return completion(json.dumps(verdicts, ensure_ascii=False))


def num_issues(request: Request) -> int:
    """How many issues a request asks about."""
    return len(re.findall(r"^법원의 결론: ", request.text[request.text.index("# 판정할 쟁점") :], re.MULTILINE))
