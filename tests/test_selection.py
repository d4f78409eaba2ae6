"""Judgments whose outcome the court's discretion decides are dropped, each with a reason that a lawyer can check."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from data.judgment_text import parse_judgment
from data.selection import RULES_PATH, RulesError, load_rules, select

PATHS = sorted(Path(__file__).with_name("judgments").glob("*.txt"))
RULES = load_rules()
FIRE_INSURANCE = parse_judgment(PATHS[0].read_text(encoding="utf-8"))


def with_reasons(reasons: str, **changes):
    text = FIRE_INSURANCE.text[: FIRE_INSURANCE.reasons_start] + "\n" + reasons + "가" * 1000
    changed = replace(FIRE_INSURANCE, text=text, reasons_end=len(text))
    return replace(changed, **changes)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_two_discretionary_judgments_are_dropped_and_the_others_kept(path):
    verdict = select(parse_judgment(path.read_text(encoding="utf-8")), RULES)
    is_discretionary = path.stem in ("06_climbing_fall", "12_broker_damages")
    assert verdict.status == ("drop" if is_discretionary else "keep")
    assert bool(verdict.reasons) == is_discretionary


def test_a_drop_quotes_the_words_that_speak_for_it():
    verdict = select(parse_judgment(PATHS[11].read_text(encoding="utf-8")), RULES)
    assert "책임을 비율로 제한하였다: '책임을60%로제한'" in verdict.reasons


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"case_numbers": ("2021드합12",)}, "민사나 행정의 판결이 아니다: 드합"),
        ({"case_numbers": ("2021고단12",)}, "민사나 행정의 판결이 아니다: 고단"),
        ({"case_numbers": ()}, "법원과 사건번호를 알 수 없다"),
        ({"order": ""}, "주문이 없다"),
        ({"reasons_end": FIRE_INSURANCE.reasons_start}, "이유가 없다"),
        ({"reasons_end": FIRE_INSURANCE.reasons_start + 300}, "이유가 너무 짧다: 297자"),
        ({"purposes": ()}, "청구취지가 없다"),
        ({"parties": ()}, "당사자를 알 수 없다"),
        ({"case_name": "위자료 청구"}, "위자료의 액수는 법원의 재량이다: '위자료'"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_case_is_dropped(changes, reason):
    verdict = select(replace(FIRE_INSURANCE, **changes), RULES)
    assert verdict.status == "drop"
    assert reason in verdict.reasons


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ("위자료를 5,000,000원으로 정한다.", "drop"),
        ("피고의 책 임을 이 사건 손해의 ７０％로 제한함이 타당하다.", "drop"),
        ("피고는 과실상계를 주장하나 받아들이지 않는다.", "borderline"),
        ("원고는 위자료도 구하나 이를 인정할 증거가 없다.", "borderline"),
        ("이 사건 처분은 재량권을 일탈·남용한 것이 아니다.", "borderline"),
        ("과실이 없다고 할 수 없다.", "keep"),
    ],
)
def test_discretion_exercised_is_not_discretion_mentioned(reasons, status):
    assert select(with_reasons(reasons), RULES).status == status


def test_the_rules_are_a_file_that_can_be_edited(tmp_path):
    rules = yaml.safe_load(RULES_PATH.read_text(encoding="utf-8"))
    rules["drop_terms"] = [{"pattern": "샌드위치 패널", "reason": "시험"}]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rules, allow_unicode=True), encoding="utf-8")
    assert select(FIRE_INSURANCE, load_rules(path)).reasons == ("시험: '샌드위치패널'",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("case_kinds: {civil: [가합]}", "lacks the key 'drop_case_names'"),
        ("[", "cannot be read"),
        ("case_kinds: 3", "cannot be read"),
    ],
)
def test_wrong_rules_say_what_is_wrong(tmp_path, text, complaint):
    path = tmp_path / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RulesError, match=complaint):
        load_rules(path)


def test_a_term_needs_a_reason(tmp_path):
    rules = yaml.safe_load(RULES_PATH.read_text(encoding="utf-8"))
    rules["drop_terms"] = [{"pattern": "가"}]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rules), encoding="utf-8")
    with pytest.raises(RulesError, match="drop_terms: each entry needs a pattern and a reason"):
        load_rules(path)
