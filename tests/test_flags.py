"""Options that mirror a config: same names, same defaults, same checks."""

import argparse
from dataclasses import fields

import pytest

from data.command import InputError
from eval.flags import NOT_OFFERED, add_config_options, add_judge_options, config_from, judge_options
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


def test_no_command_offers_what_training_alone_heeds_or_takes_what_is_no_url(capsys):
    parser = argparse.ArgumentParser()
    add_judge_options(parser)
    assert not any("--" + name.replace("_", "-") + " " in parser.format_help() for name in NOT_OFFERED[1:])
    for wrong, told in (("--judge-preflight", "unrecognized"), ("--judge=ftp://a/v1", "--judge: no URL of an")):
        with pytest.raises(SystemExit):
            parser.parse_args([wrong])
        assert told in capsys.readouterr().err
    assert parser.parse_args(["--judge", "mini"]).judged_by == "mini"
