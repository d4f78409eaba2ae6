from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.records import from_record
from data.verl import parse_claims, verl_record

RUBRIC = """글을 읽고 쟁점이 다루어졌는지 답하시오.

<EXAMPLE>
<ISSUE>
summary: 보기로 든 쟁점
claims:
원고: 보기로 든 주장
conclusion:
보기로 든 결론
</ISSUE>
</EXAMPLE>

<TEXT>
{response}
</TEXT>
"""


def tagged(summary: str, claims: str, conclusion: str) -> str:
    issue = f"summary: {summary}\nclaims:\n{claims}\nconclusion:\n{conclusion}"
    return f"{RUBRIC}<ISSUE>\n{issue}\n</ISSUE>\n</INPUT>\n<OUTPUT>"


def row_of(*rubrics: str, **others: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "재판장이다."}, {"role": "user", "content": "결과를 예측하시오."}]
    return {"prompt": messages, "extra_info": {"rubrics": list(rubrics)}} | others


ROOT = tagged("", "원고: 3,000만 원을 지급하라.", "1. 원고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다.")
LOAN = tagged("대여 여부", "원고: 빌려주었다.\n피고: 받은 적이 없다.", "대여한 사실이 인정된다.")


def test_a_row_tells_a_case_without_a_tree():
    record, problems = verl_record(row_of(ROOT, LOAN, tagged("변제", "피고: 갚았다.", "이유 없다."), ability="law"))
    assert problems == []
    case = from_record(record)
    assert not case.has_tree
    assert [issue.id for issue in case.issues] == ["", "1", "2"]
    assert case.question == "결과를 예측하시오."
    assert case.answer == "1. 원고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다."
    assert [(c.claimer, c.content) for c in case.issues[1].claims] == [
        ("원고", "빌려주었다."),
        ("피고", "받은 적이 없다."),
    ]
    assert [issue.summary for issue in case.issues] == ["", "대여 여부", "변제"]
    assert case.extra == {"ability": "law"}


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("<ISSUE>\n{}\n</ISSUE>\n</INPUT>\n<OUTPUT>", id="tags"),
        pytest.param("<ISSUE>\n{}\n</ISSUE>", id="tags, nothing behind"),
        pytest.param("ISSUE\n{}", id="bare heading"),
        pytest.param("## ISSUE:\n{}\n", id="markdown heading"),
        pytest.param("[ISSUE]\n\n{}\n\n", id="brackets"),
        pytest.param("**Issue**\n```\n{}\n```\n", id="fenced"),
    ],
)
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("summary: 대여\nclaims:\n원고: 빌려주었다.\nconclusion:\n인정된다.", id="values below"),
        pytest.param("summary: 대여\nclaims: 원고: 빌려주었다.\nconclusion: 인정된다.", id="values beside"),
        pytest.param("summary:\n대여\n\nclaims:\n- 원고: 빌려주었다.\n\nconclusion:\n\n인정된다.\n", id="blank lines"),
        pytest.param("- summary: 대여\n- claims:\n  1. 원고: 빌려주었다.\n- conclusion: 인정된다.", id="list"),
        pytest.param("**Summary:** 대여\n**Claims**:\n원고： 빌려주었다.\n**Conclusion:** 인정된다.", id="bold"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_an_issue_block_is_read_in_any_dress(block, lines, line_end):
    rubric = (RUBRIC + block.replace("{}", lines)).replace("\n", line_end)
    record, problems = verl_record(row_of(ROOT, rubric))
    assert problems == []
    issue = record["issues"][1]
    assert issue["summary"] == "대여"
    assert issue["claim"] == [{"claimer": "원고", "content": "빌려주었다."}]
    assert issue["conclusion"] == "인정된다."


def test_values_of_several_lines_stay_whole():
    conclusion = "1. 지급하라.\n\n2. 나머지를 기각한다.\nISSUE\nsummary: 라고 적힌 줄"
    record, problems = verl_record(
        row_of(ROOT, tagged("첫 줄\n둘째 줄", "원고: 첫째.\n둘째.\n피고: 셋째.", conclusion))
    )
    assert problems == []
    issue = record["issues"][1]
    assert issue["summary"] == "첫 줄\n둘째 줄"
    assert issue["claim"] == [{"claimer": "원고", "content": "첫째.\n둘째."}, {"claimer": "피고", "content": "셋째."}]
    assert issue["conclusion"] == conclusion


VALUES = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=30).map(str.strip)
CLAIMERS = st.sampled_from(["원고", "피고", "피고(반소원고)", "원고들", "피고 A", "원고승계참가인", "원고 및 피고 B"])


@settings(deadline=None)
@given(summary=VALUES, claims=st.lists(st.tuples(CLAIMERS, VALUES), max_size=4), conclusion=VALUES)
def test_what_is_written_into_a_rubric_is_read_out_of_it(summary, claims, conclusion):
    lines = "\n".join(f"{claimer}: {content}" for claimer, content in claims)
    record, problems = verl_record(row_of(tagged(summary, lines, conclusion)))
    assert problems == []
    (issue,) = record["issues"]
    assert (issue["summary"], issue["conclusion"]) == (summary, conclusion)
    assert len(issue["claim"]) == len(claims)
    for claim, (claimer, content) in zip(issue["claim"], claims, strict=True):
        assert f"{claim['claimer']}: {claim['content']}".replace(" ", "") == f"{claimer}: {content}".replace(" ", "")


@settings(deadline=None)
@given(rubric=st.text() | st.text().map(lambda text: RUBRIC + "<ISSUE>\nsummary:" + text))
def test_any_text_as_a_rubric_is_read_or_reported(rubric):
    record, problems = verl_record(row_of(rubric))
    assert len(record["issues"]) + len(problems) == 1


@pytest.mark.parametrize(
    ("line", "claimer"),
    [
        ("원고: 빌려주었다.", "원고"),
        ("- 피고(반소원고): 갚았다.", "피고(반소원고)"),
        ("2) 원고들 : 빌려주었다.", "원고들"),
        ("원고 김가상: 빌려주었다.", "원고 김가상"),
        ("피고 주식회사 가상: 갚았다.", "피고 주식회사 가상"),
        ("피고 A, 피고 B: 갚았다.", "피고 A, 피고 B"),
        ("원고 및 피고: 다툰다.", "원고 및 피고"),
        ("원고보조참가인: 빌려주었다.", "원고보조참가인"),
        ("피고 보조참가인: 갚았다.", "피고 보조참가인"),
        ("독립당사자참가인: 내 것이다.", "독립당사자참가인"),
        ("원고와 피고 사이에 다음과 같은 약정이 있었다: 갚는다.", None),
        ("원고가 다투는 점은 이것이다: 갚았다.", None),
        ("이자: 연 5%", None),
        ("2024. 1. 1. 10:30에 빌려주었다.", None),
    ],
)
def test_a_claimer_is_told_by_being_a_party(line, claimer):
    told = parse_claims(f"원고: 앞선 주장\n{line}")
    assert (told[1]["claimer"] if len(told) == 2 else None) == claimer


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        pytest.param("", [], id="none"),
        pytest.param("빌려준 돈을 갚지 않았다.", [("", "빌려준 돈을 갚지 않았다.")], id="no claimer"),
        pytest.param("소외 갑: 내 땅이다.", [("소외 갑", "내 땅이다.")], id="first line with a rare party"),
        pytest.param("\n\n원고: 가.\n\n\n피고: 나.\n", [("원고", "가."), ("피고", "나.")], id="blank lines"),
        pytest.param("원고:\n긴 주장", [("원고", "긴 주장")], id="content below"),
    ],
)
def test_claims(text, claims):
    assert [(claim["claimer"], claim["content"]) for claim in parse_claims(text)] == claims


@pytest.mark.parametrize(
    ("row", "issue_id", "reason"),
    [
        pytest.param(row_of(ROOT, RUBRIC), "1", "rubric 2 of 2 has no ISSUE block behind {response}", id="no block"),
        pytest.param(row_of("", LOAN), "", "rubric 1 of 2 has no ISSUE block", id="empty rubric"),
        pytest.param(row_of(ROOT, LOAN.replace("claims:", "주장:")), "1", "no line 'claims:'", id="no claims"),
        pytest.param(
            row_of(ROOT, RUBRIC + "<ISSUE>\nconclusion: 가\nsummary: 나\nclaims: 다"), "1", "'conclusion:'", id="order"
        ),
        pytest.param(row_of() | {"extra_info": {"index": 1}}, None, "'extra_info.rubrics' is missing", id="no rubrics"),
        pytest.param(row_of() | {"extra_info": {"rubrics": ROOT}}, None, "must be a list of strings", id="one string"),
        pytest.param(row_of() | {"extra_info": {"rubrics": [1]}}, None, "must be a list of strings", id="numbers"),
        pytest.param(row_of(ROOT, LOAN, prompt=None), None, "key 'prompt' must be", id="no prompt"),
        pytest.param(row_of(ROOT, LOAN, prompt=[{"role": "system", "content": "가"}]), None, "'user'", id="no user"),
        pytest.param(row_of(ROOT, LOAN, prompt=[{"role": "user", "content": None}]), None, "'user'", id="null content"),
    ],
)
def test_what_cannot_be_read_is_named(row, issue_id, reason):
    _, problems = verl_record(row)
    assert [(where, reason in what) for where, what in problems] == [(issue_id, True)], problems


def test_a_prompt_may_be_plain_text():
    assert verl_record(row_of(ROOT, LOAN, prompt="결과는?"))[0]["question"] == "결과는?"


@pytest.mark.parametrize(
    ("row", "doc_id"),
    [
        (row_of(ROOT, LOAN, doc_id="가-1"), "가-1"),
        (row_of(ROOT, LOAN) | {"extra_info": {"rubrics": [ROOT, LOAN], "doc_id": "가-2"}}, "가-2"),
    ],
)
def test_a_told_doc_id_is_kept(row, doc_id):
    assert verl_record(row)[0]["doc_id"] == doc_id


def test_without_a_doc_id_the_content_makes_one():
    one, again = (verl_record(row_of(ROOT, LOAN, index=index))[0]["doc_id"] for index in (1, 2))
    other = verl_record(row_of(ROOT, LOAN, prompt="다른 물음"))[0]["doc_id"]
    assert one == again != other
    assert one.startswith("verl-")
