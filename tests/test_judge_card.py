"""A judge card is found by what verdicts depend on, and its absence is told."""

import json
from dataclasses import replace

import pytest

from rewards.judge import JudgeConfig
from rewards.judge_card import (
    JudgeCard,
    JudgeCardError,
    card_notice,
    find_card,
    read_cards,
    verdict_settings,
    write_card,
)

CONFIG = JudgeConfig(judge_base_url="http://localhost:8000/v1", judge_model="google/gemma-3-27b-it")
CARD = JudgeCard(
    verdict_settings(CONFIG), "2030-01-02", ("rater-1", "rater-2"), ("It is fair.",), {"judge/alpha/score": 0.712}
)


def test_a_card_is_found_again_and_told_in_a_line(tmp_path):
    page = write_card(CARD, "# Judge card\n", tmp_path)
    assert page.read_text() == "# Judge card\n"
    assert page.name.startswith("google-gemma-3-27b-it-")
    assert read_cards(tmp_path) == [CARD]
    assert card_notice(CONFIG, {"ko"}, tmp_path) == "judge card of 2030-01-02: alpha 0.71 with 2 expert(s)"


@pytest.mark.parametrize(
    "change",
    [{"judge_model": "other"}, {"judge_temperature": 0.7}, {"judge_issues_per_call": "all"}, {"judge_verdict": "soft"}],
)
def test_a_judge_that_answers_otherwise_has_no_card(tmp_path, change):
    write_card(CARD, "", tmp_path)
    notice = card_notice(replace(CONFIG, **change), {"ko"}, tmp_path)
    assert notice.startswith("warning: the judge ")
    assert "has no judge card" in notice


@pytest.mark.parametrize(
    "change", [{"judge_base_url": "http://other/v1"}, {"judge_timeout_s": 5.0}, {"judge_quorum": 0.9}]
)
def test_where_and_how_patiently_a_judge_is_asked_makes_no_other_judge(tmp_path, change):
    write_card(CARD, "", tmp_path)
    assert not card_notice(replace(CONFIG, **change), {"ko"}, tmp_path).startswith("warning")


@pytest.mark.parametrize("per_call", [1, "all"])
def test_a_card_counts_for_the_languages_that_it_was_checked_in(tmp_path, per_call):
    config = replace(CONFIG, judge_issues_per_call=per_call)
    versions = {verdict_settings(config, [code])["prompt_version"] for code in ("ko", "en", "ja")}
    assert len(versions) == 3
    assert verdict_settings(config) == verdict_settings(config, ["ko"])  # as in cards of old
    write_card(replace(CARD, settings=verdict_settings(config, ["ko"])), "", tmp_path)
    assert card_notice(config, {"ko"}, tmp_path).startswith("judge card of 2030-01-02")
    assert card_notice(config, {"en"}, tmp_path).startswith("warning: the judge ")
    korean, japanese = card_notice(config, {"ja", "ko"}, tmp_path).splitlines()[::-1]
    assert korean == "judge card of 2030-01-02: alpha 0.71 with 2 expert(s), for cases in ko"
    assert f"has no judge card in {tmp_path} for cases in ja" in japanese
    both = replace(CARD, settings=verdict_settings(config, {"ja", "ko"}), date="2031-01-01")
    write_card(both, "", tmp_path)
    assert card_notice(config, {"ko", "ja"}, tmp_path) == "judge card of 2031-01-01: alpha 0.71 with 2 expert(s)"
    assert card_notice(config, {"ja"}, tmp_path).startswith("warning: the judge ")


def test_the_latest_card_counts(tmp_path):
    later = replace(CARD, date="2031-05-06")
    for card in (later, CARD):
        write_card(card, "", tmp_path)
    assert find_card(read_cards(tmp_path), CARD.settings) == later


def test_the_mini_judge_needs_no_card(tmp_path):
    assert card_notice(JudgeConfig(judge="mini"), {"ko"}, tmp_path) is None


def test_no_folder_is_no_card_and_a_broken_card_is_named(tmp_path):
    assert read_cards(tmp_path / "nowhere") == []
    (tmp_path / "broken.json").write_text(json.dumps({"date": 1}))
    with pytest.raises(JudgeCardError, match=r"broken\.json"):
        read_cards(tmp_path)
    assert card_notice(CONFIG, {"ko"}, tmp_path).startswith("warning: ")
