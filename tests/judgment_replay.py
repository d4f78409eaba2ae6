"""A model that knows the twelve fictional judgments by heart: its replies are made of their hand-made cases."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fake_llm_server import Reply, Request, completion

from data.grounding import sentences
from data.judgment_text import Judgment, parse_judgment

JUDGMENTS = Path(__file__).with_name("judgments")
DROPPED = ("06_climbing_fall", "12_broker_damages")


@dataclass(frozen=True)
class Known:
    """A judgment that is kept, its hand-made case, and the replies that lead there, by stage."""

    judgment: Judgment
    case: dict[str, Any]
    replies: dict[str, Any]


@cache
def known() -> dict[str, Known]:
    """All judgments that are kept, by file name."""
    by_name = {}
    for path in sorted(JUDGMENTS.glob("*.txt")):
        if path.stem not in DROPPED:
            case = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            by_name[path.stem] = make_known(parse_judgment(path.read_text(encoding="utf-8")), case)
    return by_name


def make_known(judgment: Judgment, case: dict[str, Any]) -> Known:
    statement = case["question"].split("\n\n[청구취지]")[0].removeprefix("[사실관계]\n")
    issues = [{"claims" if key == "claim" else key: value for key, value in issue.items()} for issue in case["issues"]]
    replies = {
        "facts": {"facts": [sentence for sentence in sentences(judgment.facts) if len(sentence) > 20]},
        "statement": {"statement": statement},
        "tree": {"issues": issues[1:]},
        "refine": {"issues": issues[1:]},
        "split": {"issues": []},
        "opinion": {"deterministic": "yes"},
    }
    return Known(judgment, case, replies)


def stage_of(request: Request) -> str:
    return request.body["response_format"]["json_schema"]["name"].removeprefix("legit_")


def known_in(request: Request) -> Known:
    """The judgment that the request is about."""
    for one in known().values():
        if one.replies["facts"]["facts"][2] in request.text or one.judgment.reasons.strip() in request.text:
            return one
    raise LookupError(request.text[:200])


def replay(request: Request) -> Reply:
    """The reply to any question of the builder about one of the judgments."""
    reply = json.dumps(known_in(request).replies[stage_of(request)], ensure_ascii=False)
    return completion(reply, tokens_in=len(request.text) // 2, tokens_out=len(reply) // 2)
