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
        ("warn if eval_scor < 1", "no metric is named eval_scor: did you mean eval_score?"),
        ("warn if kl > 1e999", "1e999 is too large, the limit must be a finite number"),
        ("stop if kl < -1e999 * first", "-1e999 is too large"),
        ("warn if kl > 1 for 99999999999 logs", "at most 9999 logs in a row, got 99999999999"),
        (f"warn if kl > 1 for {'9' * 5000} logs", "at most 9999 logs in a row"),
    ],
)
def test_a_sentence_that_means_nothing_is_refused_with_what_would_be_right(sentence, message):
    with pytest.raises(ValueError, match="alerts: ") as raised:
        AlertConfig(alerts=["warn if reward < 0", sentence])
    assert message in str(raised.value)
    assert sentence in str(raised.value)


def test_a_metric_that_the_first_log_has_not_is_told_with_the_nearest_name():
    sentences = ["warn if entrpy < 1", "warn if entropy < 1", "warn if eval_score < 1", "stop if memory > 3"]
    rules = Rules([read_rule(sentence) for sentence in sentences])
    assert rules.unknown({"loss": 0.1, "entropy": None, "kl": 0.0}) == [
        "alerts: 'warn if entrpy < 1': the run's first log has no entrpy: did you mean entropy?",
        "alerts: 'stop if memory > 3': the run's first log has no memory",
    ]


@pytest.mark.parametrize("evaluates", [False, True])
@pytest.mark.parametrize("has_two_judges", [False, True])
def test_rules_on_evaluations_need_some(evaluates, has_two_judges):
    config = AlertConfig(alerts=["warn if eval_score < 5", "warn if eval_exploitation > 0.3", "warn if kl > 1"])
    assert len(list(config.idle(evaluates=evaluates, has_two_judges=has_two_judges))) == (
        0 if evaluates and has_two_judges else 1 if evaluates else 2
    )
    assert list(AlertConfig().idle(evaluates=False, has_two_judges=False)) == []


@pytest.mark.slow
def test_a_run_tells_of_unknown_metrics_once_at_its_first_log_of_training(tmp_path, capsys):
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from train.alerts import Alerts
    from train.stopping import Stopping

    alerts = Alerts(AlertConfig(alerts=["warn if rewrd < 1"]), tmp_path, Stopping())
    args = TrainingArguments(output_dir=str(tmp_path), report_to=[], use_cpu=True)
    for step, logs, told in ((0, {"eval_score": 1.0}, 0), (1, {"loss": 0.1, "reward": 5.0}, 1), (2, {"loss": 0.1}, 0)):
        state = TrainerState(global_step=step, is_world_process_zero=True)
        alerts.on_log(args, state, TrainerControl(), logs=logs)
        assert capsys.readouterr().err.count("the run's first log has no rewrd: did you mean reward?") == told, step


def test_without_a_setting_every_run_is_watched_and_only_warned():
    assert [rule.sentence for rule in AlertConfig().rules()] == list(WATCH)
    assert not any(rule.stops for rule in AlertConfig().rules())
    assert AlertConfig(alerts=[]).rules() == []
