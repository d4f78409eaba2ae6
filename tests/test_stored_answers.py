"""Stored verdicts are found again by what was asked, to the letter: a change here throws all paid ones away."""

import pytest

from data.cases import Case, Claim, Issue
from data.shapes import json_format
from data.store import Store
from rewards import grouping, likert, rubric

ISSUE = Issue("1", "쟁점", (Claim("원고", "주장"),), "인정한다.", analysis=("이유",))
CASE = Case("c", "질문", (Issue("", "", (), "기각한다."), ISSUE))


@pytest.mark.parametrize(
    ("version", "pinned"),
    [
        (rubric.prompt_version, "c1d52db21bbd"),
        (grouping.group_prompt_version, "64883794c724"),
        (likert.prompt_version, "080c29cda1bd"),
    ],
    ids=["one issue", "several issues", "Likert"],
)
def test_the_korean_prompts_have_their_versions(version, pinned):
    assert version() == pinned


@pytest.mark.parametrize(
    ("asked", "pinned"),
    [
        (lambda: (rubric.render(ISSUE, "답 {x}"), rubric.response_format(True)), "3786f363b05f8828"),
        (lambda: (rubric.render(CASE.root, "답", rationales=False), rubric.response_format(False)), "037a9219189d40aa"),
        (lambda: (grouping.render_group(CASE.issues, "답"), grouping.group_format(2, True)), "f75b109392dccdbf"),
        (lambda: (likert.render(CASE, "답"), json_format("grade", likert.grade_shape(True))), "92b95586066aefdf"),
    ],
    ids=["verdict", "without reason", "group", "Likert"],
)
def test_what_is_asked_stays_as_it_was(asked, pinned):
    assert Store.key(asked=asked())[:16] == pinned
