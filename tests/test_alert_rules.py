"""Thresholds on what a run logs: when they come true, and what is told of a sentence that means nothing."""

import pytest

from train.alert_rules import WATCH, AlertConfig, Rules, read_rule


def alerts_of(sentence, *values, metric="score/coverage"):
    """The steps at which the rule comes true, when these values are logged one after the other."""
    rules = Rules([read_rule(sentence)])
    return [step for step, value in enumerate(values) if rules.see(step, {metric: value})]


@pytest.mark.parametrize(
    ("sentence", "values", "steps"),
    [
        ("warn if score/coverage < 0.3", (0.4, 0.3, 0.2), [2]),
        ("warn if score/coverage > 0.3", (0.4, 0.3, 0.2), [0]),
        ("warn if score/coverage < 0.3", (0.2, 0.2, 0.4, 0.2), [0, 3]),
        ("warn if score/coverage < 0.3 for 2 logs", (0.2, 0.4, 0.2, 0.2, 0.2), [3]),
        ("warn if score/coverage < 0.3 for 2 logs", (0.2, None, float("nan"), 0.2), [3]),
        ("warn if score/coverage < 0.5 * first", (0.8, 0.5, 0.3), [2]),
        ("warn if score/coverage < 0.5*first", (None, 0.4, 0.3, 0.1), [3]),
    ],
    ids=["below", "above", "once until it recovers", "in a row", "a gap changes nothing", "of first", "first logged"],
)
def test_a_rule_comes_true(sentence, values, steps):
    assert alerts_of(sentence, *values) == steps


def test_an_alert_says_why():
    rules = Rules([read_rule("stop if kl > 2 * first")])
    assert rules.see(7, {"kl": 1.0}) == []
    (alert,) = rules.see(8, {"kl": 2.5})
    assert (alert.step, alert.value, alert.threshold) == (8, 2.5, 2.0)
    assert alert.why == "kl is 2.5, above 2: stop if kl > 2 * first"


def test_metrics_that_nothing_was_logged_of_are_told():
    rules = Rules([read_rule("warn if kl > 1"), read_rule("warn if entropy < 1")])
    rules.see(1, {"entropy": 2.0, "kl": None})
    assert rules.unseen() == ["kl"]


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("kl > 10", "must have the form"),
        ("warn if kl", "must have the form"),
        ("warn if kl > 10 for 0 logs", "must have the form"),
        ("warn if kl > 10 * last", "must have the form"),
        ("shout if kl > 10", "must have the form 'warn|stop if"),
        ("warn if kl >= 10", "METRIC <|> NUMBER"),
        ("warn if kl > much", "METRIC <|> NUMBER"),
        ("warn if kl > nan", "METRIC <|> NUMBER"),
        ("warn if score/coverag < 1", "no metric is named score/coverag: did you mean score/coverage?"),
        ("warn if gate/hedged_frac > 1", "did you mean gate/hedged_order_frac?"),
    ],
)
def test_a_sentence_that_means_nothing_is_refused_with_what_would_be_right(sentence, message):
    with pytest.raises(ValueError, match="alerts: ") as raised:
        AlertConfig(alerts=["warn if reward < 0", sentence])
    assert message in str(raised.value)
    assert sentence in str(raised.value)


def test_without_a_setting_every_run_is_watched_and_only_warned():
    assert [rule.sentence for rule in AlertConfig().rules()] == list(WATCH)
    assert not any(rule.stops for rule in AlertConfig().rules())
    assert AlertConfig(alerts=[]).rules() == []
