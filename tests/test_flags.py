"""Options that mirror a config: same names, same defaults, same checks."""

import argparse
from dataclasses import fields

import pytest

from data.command import InputError
from eval.flags import add_config_options, config_from, judge_options
from rewards.judge import JudgeConfig


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    add_config_options(parser, JudgeConfig, skip=("judge", "judge_base_url"))
    return parser


def test_every_field_has_its_option_with_the_fields_type(parser):
    arguments = [
        "--judge-model",
        "m",
        "--judge-temperature",
        "0.5",
        "--judge-max-retries",
        "2",
        "--no-judge-rationales",
        "--judge-verdict",
        "soft",
        "--judge-issues-per-call",
        "all",
    ]
    config = config_from(JudgeConfig, judge_options("http://localhost:1/v1"), parser.parse_args(arguments))
    assert config == JudgeConfig(
        judge="endpoint",
        judge_base_url="http://localhost:1/v1",
        judge_model="m",
        judge_temperature=0.5,
        judge_max_retries=2,
        judge_rationales=False,
        judge_verdict="soft",
        judge_issues_per_call="all",
    )
    shown = parser.format_help()
    assert all("--" + field.name.replace("_", "-") in shown for field in fields(JudgeConfig)[2:])


def test_what_is_not_given_leaves_the_settings_as_they_are(parser):
    settings = {"judge": "mini", "judge_max_concurrency": 7}
    config = config_from(JudgeConfig, settings, parser.parse_args(["--judge-quorum", "0.5"]))
    assert (config.judge_max_concurrency, config.judge_quorum) == (7, 0.5)


def test_what_the_config_refuses_is_the_users_error(parser):
    with pytest.raises(InputError, match="judge_quorum"):
        config_from(JudgeConfig, {"judge": "mini"}, parser.parse_args(["--judge-quorum", "0"]))
