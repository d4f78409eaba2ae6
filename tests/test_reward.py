"""From completions to rewards, with a real judge client on a scripted server and with the mini world's exact judge."""

import asyncio
import math

import pytest

from data.cases import Case, Issue
from data.endpoint import EndpointStats
from data.mini import generate, gold_answer
from data.records import from_record
from rewards.gates import GATE_REASONS, GateConfig
from rewards.judge import JudgeConfig, load_judge
from rewards.mini_judge import MiniJudge
from rewards.reward import FAILURE_KINDS, Graded, JudgeUnavailable, RewardColumns, batch_metrics, rubric_reward
from rewards.schemes import RewardConfig
from rewards.score import Judgment, Score
from tests.fake_llm_server import FakeLLM, error, verdict

END = 7
CASE = Case(
    "c",
    "질문",
    (Issue("", "", (), "뿌리의결론"), Issue("1", "쟁점", (), "하나의결론"), Issue("1.0", "쟁점", (), "둘의결론")),
)
ANSWER = "원고가 빌려준 돈을 피고가 갚지 않았으므로 피고는 원고에게 이를 지급하여야 한다."
OTHER = "원고의 청구는 이유 없으므로 이를 기각하고 소송비용은 원고가 부담한다."
MINI = from_record(generate(0, "train", 1)[0])
MINI_GOLD = gold_answer(MINI.answer, MINI.extra["mini"])
# Order right, issue 1 covered and wrong, issue 1.0 right without being covered: 5 + 2/2.
VERDICTS = {"하나의결론": verdict(True, False), "둘의결론": verdict(False, True), "뿌리의결론": verdict(True, True)}


class Log:
    """Stands where TRL's log_metric and log_extra do."""

    def __init__(self):
        self.metrics, self.columns = {}, {}

    def metric(self, name, value):
        self.metrics.setdefault(name, []).append(value)

    def extra(self, name, values):
        self.columns.setdefault(name, []).extend(values)


def rewards_of(judge, answers, **options):
    """The rewards that TRL makes of the columns of reward: legit; None where every column is None."""
    rows = columns_of(judge, answers, **options)
    return [row and 5 * row[0] + 2 * row[1] + 3 * row[2] for row in rows]


def columns_of(judge, answers, *, log=None, case=CASE, ids=None, config=None, judging=None):
    log = log or Log()
    return asyncio.run(
        rubric_reward(
            prompts=[[{"role": "user", "content": case.question}]] * len(answers),
            completions=[[{"role": "assistant", "content": answer}] for answer in answers],
            completion_ids=ids or [[1, END]] * len(answers),
            doc_id=[case.id] * len(answers),
            cases={case.id: case},
            judge=judge,
            reward=config or RewardConfig(),
            gates=GateConfig(),
            judging=judging or JudgeConfig(judge="mini"),
            end_token_ids=frozenset({END}),
            log_metric=log.metric,
            log_extra=log.extra,
            trainer_state=None,
        )
    )


def ask(script, answers, of=None, **options):
    """The rewards of answers whose judge is a server with that script, or what `of` gives in their place."""
    judging = {"judge_max_retries": 0, **options.pop("judging", {})}
    with FakeLLM(script) as server:
        config = JudgeConfig(judge_base_url=server.base_url, judge_model="fake", **judging)
        return (of or rewards_of)(load_judge(config), answers, judging=config, **options)


def verdicts(by_conclusion):
    """A script that answers each question by the conclusion it shows."""
    return lambda request: next(reply for conclusion, reply in by_conclusion.items() if conclusion in request.text)


def test_the_reward_is_the_score_and_its_parts_are_logged():
    log = Log()
    assert ask(verdicts(VERDICTS), [ANSWER], log=log) == [6.0]
    assert {name: log.metrics[f"score/{name}"] for name in ("total", "order", "coverage", "correctness")} == {
        "total": [6.0],
        "order": [1.0],
        "coverage": [0.5],
        "correctness": [0.0],
    }
    assert log.metrics["judge/correct_without_coverage_frac"] == [0.5]
    assert log.metrics["judge/calls"] == [3]
    assert log.columns == {"doc_id": ["c"], "gate": [""], "verdicts": ['{"":[1,1],"1":[1,0],"1.0":[0,1]}']}


def test_the_columns_are_the_parts_of_the_score():
    assert ask(verdicts(VERDICTS), [ANSWER], of=columns_of) == [(1.0, 0.5, 0.0)]
    wrong = {**VERDICTS, "뿌리의결론": verdict(True, False)}
    assert ask(verdicts(wrong), [ANSWER], of=columns_of) == [(0.0, 0.5, 0.0)]


def test_three_columns_come_of_one_pass_of_the_judge_and_are_none_together():
    passes = []

    async def rubric(completions, **_):
        passes.append(completions)
        await asyncio.sleep(0)
        return [(1.0, 0.5, 0.25), None, (-0.5, -0.5, -0.5)]

    async def as_trl_does(columns, completions):
        batch = {"prompts": [], "completions": completions, "doc_id": []}
        return await asyncio.gather(*(function(**batch) for function in columns.functions))

    async def two_batches():
        columns = RewardColumns(rubric)
        return [await as_trl_does(columns, completions) for completions in (["a"], ["a"])]

    for order, coverage, correctness in asyncio.run(two_batches()):
        assert (order, coverage, correctness) == ([1.0, None, -0.5], [0.5, None, -0.5], [0.25, None, -0.5])
    assert passes == [["a"], ["a"]]  # one for each batch, though the two are equal
    assert [function.__name__ for function in RewardColumns(rubric).functions] == ["order", "coverage", "correctness"]


def test_a_judge_that_is_gone_fails_all_columns():
    async def rubric(**_):
        raise JudgeUnavailable("gone")

    async def ask_all():
        functions = RewardColumns(rubric).functions
        return await asyncio.gather(*(one(completions=[]) for one in functions), return_exceptions=True)

    assert [str(error) for error in asyncio.run(ask_all())] == ["gone"] * 3


def test_a_missing_verdict_is_none_and_leaves_the_means_alone():
    def script(request):
        is_broken = OTHER in request.text and "하나의결론" in request.text
        return error(500) if is_broken else verdicts(VERDICTS)(request)

    log = Log()
    assert ask(script, [ANSWER, OTHER], log=log) == [6.0, None]
    assert log.metrics["score/total"] == [6.0]
    assert log.metrics["judge/unscored_frac"] == [0.0, 1.0]
    assert log.metrics["judge/failures/http_5xx"] == [1]
    assert log.columns["verdicts"][1] == '{"":[1,1],"1":null,"1.0":[0,1]}'


def test_a_quorum_lets_the_observed_issues_stand_for_all():
    script = verdicts({**VERDICTS, "둘의결론": error(500)})
    assert ask(script, [ANSWER], judging={"judge_quorum": 0.5}) == [7.0]  # 5 + 2 of the one issue that was judged


def test_gates_come_first_and_spend_no_call():
    log = Log()
    rewards = rewards_of(
        MiniJudge(),
        ["", MINI_GOLD, MINI_GOLD, "The claim is dismissed."],
        case=MINI,
        ids=[[END], [1, 2], [1, END], [1, END]],
        config=RewardConfig(gate_penalty=-2.0),
        log=log,
    )
    assert rewards == [-2.0, -2.0, 10.0, -2.0]
    assert log.columns["gate"] == ["empty", "truncated", "", "script"]
    assert log.metrics["gate/truncated_frac"] == [0.0, 1.0, 0.0, 0.0]
    assert log.metrics["score/total"] == [10.0]
    assert log.columns["verdicts"][0] == "{}"


def test_thinking_is_no_part_of_the_answer():
    assert rewards_of(MiniJudge(), [f"<think>{MINI_GOLD}</think>{MINI_GOLD}"], case=MINI) == [10.0]
    assert rewards_of(MiniJudge(), [f"<think>{MINI_GOLD}"], case=MINI) == [-5.0]


def test_extra_issues_are_counted_in_the_mini_world_and_only_there():
    log = Log()
    rewards_of(MiniJudge(), [MINI_GOLD, "없는 쟁점: 인정\n" + MINI_GOLD], case=MINI, log=log)
    assert log.metrics["mini/extra_issues"] == [0.0, 1.0]
    ask(verdicts(VERDICTS), [ANSWER], log=(log := Log()))
    assert "mini/extra_issues" not in log.metrics


@pytest.mark.parametrize("answers", [[MINI_GOLD], [""], ["", MINI_GOLD]], ids=["scored", "all gated", "mixed"])
def test_the_same_names_are_logged_whatever_happens(answers):
    log, full = Log(), Log()
    rewards_of(MiniJudge(), answers, case=MINI, log=log)
    rewards_of(MiniJudge(), [MINI_GOLD] * 3, case=MINI, log=full)
    assert log.metrics.keys() == full.metrics.keys()
    assert all(len(column) == len(answers) for column in log.columns.values())


def test_what_nothing_is_known_of_is_nan():
    metrics = batch_metrics([Graded(gate_reason="empty")], EndpointStats())
    assert metrics["score/total"] == []
    log = Log()
    rewards_of(MiniJudge(), [""], case=MINI, log=log)
    assert math.isnan(log.metrics["score/total"][0])
    assert math.isnan(log.metrics["judge/latency_p95_s"][0])


def test_a_dead_judge_stops_the_run_and_says_what_to_do():
    with pytest.raises(JudgeUnavailable) as stopped:
        ask(lambda _: error(503, "no capacity"), [ANSWER, OTHER])
    for word in ("none of the 2", "http_5xx", "no capacity", "6 of 6", "--dry_run true", "--resume_from_checkpoint"):
        assert word in str(stopped.value)


def test_a_judge_that_is_too_slow_for_its_deadline_says_so():
    slow = verdict(True, True, delay_s=5)
    with pytest.raises(JudgeUnavailable, match=r"judge_deadline_s = 0\.2"):
        ask(lambda _: slow, [ANSWER], judging={"judge_deadline_s": 0.2})


def test_a_batch_that_is_gated_whole_is_no_failure_of_the_judge():
    assert rewards_of(MiniJudge(), ["", ""], case=MINI) == [-5.0, -5.0]


def test_metrics_tell_the_judges_work():
    stats = EndpointStats(calls=4, retries=2, reused=1, tokens_in=400, tokens_out=40)
    stats.failures.update({"timeout": 2, "brand new kind": 1})
    stats.latencies_s = [float(n) for n in range(1, 21)]
    metrics = batch_metrics([Graded(judgments={"": None})], stats)
    assert metrics["judge/calls"] == [4]
    assert metrics["judge/failures/timeout"] == [2]
    assert metrics["judge/failures/other"] == [1]
    assert metrics["judge/latency_p50_s"] == [10.0]
    assert metrics["judge/latency_p95_s"] == [19.0]
    assert metrics["judge/unscored_frac"] == [1.0]
    assert {f"gate/{reason}_frac" for reason in GATE_REASONS} <= metrics.keys()
    assert {f"judge/failures/{kind}" for kind in FAILURE_KINDS} <= metrics.keys()


def test_soft_verdicts_are_shown_as_they_are():
    graded = Graded(judgments={"": Judgment(0.25, 1.0), "1.0": Judgment(2 / 3, 0.05)}, score=Score(1, 0, 0, 0, 2, 2))
    assert graded.verdicts == '{"":[0.25,1],"1.0":[0.667,0.05]}'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "legal"}, "legit, order_only, decoupled, coverage_floor"),
        ({"gate_penalty": 1.0}, "0 or below"),
        ({"reward": "coverage_floor", "gate_penalty": 0.0}, "below 0"),
        ({"coverage_floor": 1.5}, r"in \[0, 1\]"),
        ({"coverage_floor_rate": 0.0}, "above 0"),
    ],
    ids=["unknown reward", "a reward for being gated", "no telling what is gated", "a floor out of reach", "no rate"],
)
def test_impossible_rewards_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RewardConfig(**options)
