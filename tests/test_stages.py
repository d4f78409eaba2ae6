"""Each stage puts its reply into the draft; what can be done without a model is done by rules."""

import json

import pytest
from judgment_replay import known

from data.cases import Claim, Issue
from data.reply import Unusable
from data.stages import (
    OPINION,
    STAGES,
    Draft,
    case_record,
    compound_leaves,
    fill,
    merge_claims,
    messages,
    root_claims,
    separate_laws,
)

BY_NAME = {stage.name: stage for stage in (OPINION, *STAGES)}
COUNTERCLAIM = known()["02_boundary_counterclaim"]


def told(id: str, **changes) -> dict:
    issue = {"id": id, "summary": "여부", "claims": [], "relevant_law": [], "analysis": [], "conclusion": "그렇다."}
    return issue | changes


def draft_of(*issues: dict) -> Draft:
    return BY_NAME["tree"].put(Draft(COUNTERCLAIM.judgment), {"issues": list(issues)})


def test_a_judgment_with_its_replies_becomes_its_case():
    draft = Draft(COUNTERCLAIM.judgment)
    for stage in STAGES:
        if stage.asks(draft):
            draft = stage.put(draft, COUNTERCLAIM.replies[stage.name])
    record = case_record(draft, "ko")
    gold = COUNTERCLAIM.case
    assert (record["doc_id"], record["answer"], record["difficulty"]) == (gold["doc_id"], gold["answer"], "hard")
    assert record["issues"][1:] == gold["issues"][1:]
    assert record["question"].startswith(gold["question"].split("\n\n[청구취지]")[0])
    assert record["question"].endswith("선고될 주문을 예측하여 쓰시오.")
    assert record["case_numbers"] == ["2021가합4002", "2021가합4016"]


def test_the_root_tells_each_side_s_purpose_under_the_court_s_heading():
    main, counter = root_claims(COUNTERCLAIM.judgment.purposes)
    assert main.claimer == "원고(반소피고)"
    assert main.content.startswith("(본소) 피고(반소원고, 이하 '피고'라 한다)는")
    assert counter.content.startswith("(반소) 원고는 피고에게")
    (both,) = root_claims(known()["03_title_trust"].judgment.purposes)
    assert "(주위적 청구취지) 피고는" in both.content
    assert "(예비적 청구취지) 피고는" in both.content


def test_the_statement_is_asked_for_without_the_judgment():
    draft = BY_NAME["facts"].put(Draft(COUNTERCLAIM.judgment), COUNTERCLAIM.replies["facts"])
    (message,) = messages(BY_NAME["statement"], draft, "ko")
    assert "1999. 8. 20. 피고가 입회한 가운데" in message["content"]
    assert "자주점유의 추정은 깨어졌고" not in message["content"]


@pytest.mark.parametrize("name", ["opinion", "facts", "tree", "refine", "split"])
def test_questions_about_one_judgment_begin_alike(name):
    (message,) = messages(BY_NAME[name], Draft(COUNTERCLAIM.judgment), "ko")
    (other,) = messages(BY_NAME["facts"], Draft(COUNTERCLAIM.judgment), "ko")
    place = other["content"].index("# 할 일")
    assert message["content"][: place - 1] == other["content"][: place - 1]
    assert "{" + "judgment}" not in message["content"]


def test_a_field_s_braces_are_text():
    assert fill("{a} {b} {c}", {"a": "{b}", "b": "나"}) == "{b} 나 {c}"


def test_claims_of_one_side_are_one_claim():
    claims = [
        Claim("원고", "갚았다."),
        Claim("피고", "아니다."),
        Claim("원고", "면제받았다."),
        Claim("원고", "갚았다."),
    ]
    assert merge_claims(claims) == (Claim("원고", "갚았다. 면제받았다."), Claim("피고", "아니다."))


@pytest.mark.parametrize(
    ("law", "separated"),
    [
        ("민법 제750조: 불법행위로 손해를 가한 자는 배상한다.", 1),
        ("민법 제213조, 제214조", 2),
        ("대법원 1993. 5. 25. 선고 92다51280 판결, 대법원 1997. 8. 21. 선고 95다28625 판결 참조", 2),
        ("시효는 중단된다(민법 제168조). 승인의 상대방은 채권자이다(대법원 1993. 5. 25. 선고 92다51280 판결 참조).", 2),
        ("행정소송은 행정소송법 제18조 제1항에도 불구하고 지방세기본법 제91조의 심판을 거쳐야 한다.", 1),
        ("확립된 법리이다(대법원 1993. 5. 25. 선고 92다51280 판결, 대법원 1997. 8. 21. 선고 95다28625 판결).", 1),
        ("근거 없는 법리이다.", 1),
        (" ", 0),
    ],
)  # fmt: skip
def test_laws_are_separated_where_each_part_has_its_source(law, separated):
    parts = separate_laws([law])
    assert len(parts) == separated
    assert separate_laws(parts) == parts


def test_issues_are_put_in_the_order_of_their_ids_and_without_a_root():
    draft = draft_of(told("10"), told("2.1"), told(""), told("2"), told("1."))
    assert [issue.id for issue in draft.issues] == ["1", "2", "2.1", "10"]


TWO_SENTENCES = [{"claimer": "원고", "content": "갚았다. 면제도 받았다."}]


def test_only_leaves_with_several_sentences_are_asked_about():
    draft = draft_of(told("1", claims=TWO_SENTENCES), told("1.1"), told("2", claims=TWO_SENTENCES))
    assert [leaf.id for leaf in compound_leaves(draft.issues)] == ["2"]
    assert BY_NAME["split"].asks(draft)
    assert '"id": "1.1"' not in messages(BY_NAME["split"], draft, "ko")[0]["content"].split("# 쟁점")[1]
    assert not BY_NAME["split"].asks(draft_of(told("1"), told("2")))


def test_parts_hang_below_their_leaf_and_one_part_is_none():
    draft = draft_of(told("1", claims=TWO_SENTENCES), told("2", claims=TWO_SENTENCES))
    after = BY_NAME["split"].put(draft, {"issues": [told("1.1"), told("1.2"), told("2.1")]})
    assert [issue.id for issue in after.issues] == ["1", "1.1", "1.2", "2"]
    with pytest.raises(Unusable, match=r"issues 3\.1 hang below none of 1, 2"):
        BY_NAME["split"].put(draft, {"issues": [told("3.1")]})


def test_replies_are_trimmed():
    draft = draft_of(told("1", summary=" 여부 ", analysis=["", " 근거이다. "]))
    assert draft.issues == (Issue("1", "여부", (), "그렇다.", (), ("근거이다.",)),)
    assert BY_NAME["facts"].put(draft, {"facts": [" 가 ", " "]}).facts == ("가",)


def test_every_stage_s_prompt_shows_its_own_keys():
    for name, stage in BY_NAME.items():
        text = messages(stage, draft_of(told("1")), "ko")[0]["content"]
        assert all(json.dumps(key) in text for key in stage.shape), name
