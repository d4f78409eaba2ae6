"""What a judge's faults do to the reward: 1,000 responses judged with and without them, by our rules and by others."""

import argparse
import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev

from data.cases import ROOT_ID, Case, Issue
from data.command import number, option, positive, seconds
from data.endpoint import Endpoint
from rewards.judge import Judge, JudgeConfig, judge_batch
from rewards.score import Judgment, score_case
from tests.fake_llm_server import (
    DROPPED,
    TORN,
    FakeLLM,
    Reply,
    Request,
    Script,
    completion,
    error,
    html_page,
    payload,
    verdict,
)

Judgments = Mapping[str, Judgment | None]
Rule = Callable[[Case, Judgments], float | None]

FAULTS: Mapping[str, Reply] = {
    "timeout": completion("too late", delay_s=3600.0),
    "429": error(429),
    "500": error(500),
    "dropped": DROPPED,
    "torn body": TORN,
    "half a body": Reply(verdict(True, True).body[:-30]),
    "HTML": html_page(),
    "no choices": payload({"choices": []}),
    "half a JSON": completion('{"rationales": "가", "contains_issue": true, "corr'),
    "wrong types": completion('{"rationales": "", "contains_issue": "true", "correct_conclusion": 1}'),
    "foreign schema": completion('{"found": true, "correct": true}'),
    "prose": completion("쟁점을 정확히 다루었다."),
    "white space": completion("\n" * 99, finish_reason="length"),
    "cut off": verdict(True, True, finish_reason="length"),
}


def make_cases(num_responses: int, seed: int = 0) -> list[tuple[Case, str]]:
    """A case of 4 to 12 issues for each response; how good a response is differs, and its length with it."""
    random_ = random.Random(seed)
    items = []
    for n in range(num_responses):
        ids = [ROOT_ID, *(str(place) for place in range(1, random_.randint(4, 12)))]
        issues = tuple(Issue(id, "쟁점", (), f"<{n}/{id or 'root'}>의 결론") for id in ids)
        quality = random_.random()
        items.append((Case(f"case {n}", "질문", issues), f"답안 {n} {quality:.3f} " + "이유 " * int(60 * quality)))
    return items


def true_verdicts(items: Sequence[tuple[Case, str]], seed: int = 0) -> dict[str, tuple[bool, bool]]:
    """What a judge without faults says of each issue, by the mark that its conclusion bears."""
    random_ = random.Random(seed)
    truth = {}
    for case, answer in items:
        quality = float(answer.split()[2])
        for issue in case.issues:
            contains = random_.random() < 0.3 + 0.6 * quality
            truth[issue.conclusion] = (contains, contains and random_.random() < quality)
    return truth


def judge_script(truth: Mapping[str, tuple[bool, bool]], fault_frac: float, seed: int = 0) -> Script:
    """A judge that says the truth, but for a share of faults of every kind that strike whatever is asked."""
    random_ = random.Random(seed)
    kinds = list(FAULTS.values())

    def script(request: Request) -> Reply:
        if random_.random() < fault_frac:
            return random_.choice(kinds)
        start = request.text.rindex("법원의 결론: ") + len("법원의 결론: ")
        return verdict(*truth[request.text[start : request.text.index("\n", start)]])

    return script


def ours(case: Case, judgments: Judgments) -> float | None:
    """A missing verdict leaves the response unscored."""
    score = score_case(case, judgments)
    return None if score is None else score.total


def left_out(_: Case, judgments: Judgments) -> float:
    """A failed call leaves the denominator, and a failed root its five points."""
    given = [judgment for id, judgment in judgments.items() if id and judgment is not None]
    root = judgments[ROOT_ID]
    rest = sum(2 * j.contains_issue + 3 * j.contains_issue * j.correct_conclusion for j in given)
    points = 5 * (root.correct_conclusion if root else 0) + (rest / len(given) if given else 0)
    most = (5 if root else 0) + (5 if given else 0)
    return 10 * points / most if most else 0.0


def uncovered(case: Case, judgments: Judgments) -> float:
    """A failed call counts as an issue that is neither contained nor right."""
    absent = Judgment(False, False)
    score = score_case(case, {id: judgment or absent for id, judgment in judgments.items()})
    assert score is not None  # noqa: S101  (nothing is missing)
    return score.total


def minus_five(case: Case, judgments: Judgments) -> float:
    """A response with a failed call gets what a gated one gets."""
    return -5.0 if None in judgments.values() else uncovered(case, judgments)


RULES: Mapping[str, Rule] = {
    "ours: unscored": ours,
    "left out of the denominator": left_out,
    "counted as uncovered": uncovered,
    "-5 for the response": minus_five,
}


def judge_all(
    script: Script, items: Sequence[tuple[Case, str]], max_retries: int, timeout_s: float
) -> tuple[list[Judgments], float]:
    """The judgments of every response, and the share of tries that failed."""
    with FakeLLM(script) as server:
        config = JudgeConfig(judge_base_url=server.base_url, judge_model="fake", judge_repeat_frac=0.0)
        endpoint = Endpoint(
            server.base_url,
            "fake",
            api_key_env=config.judge_api_key_env,
            timeout_s=timeout_s,
            max_retries=max_retries,
            backoff_s=0.02,
        )
        judgments = asyncio.run(judge_batch(Judge(config, endpoint), items, 3600))
    stats = endpoint.stats
    return list(judgments), stats.failures.total() / (stats.calls + stats.retries)


def biases(
    items: Sequence[tuple[Case, str]], faultless: Sequence[Judgments], judgments: Sequence[Judgments]
) -> dict[str, tuple[float, float, float]]:
    """Of each rule: mean reward less that without faults, that shift of the better half less the worse, unscored share.

    The second is what a fault costs more where the response is good: 0 if no fault's cost depends on the response.
    """
    found = {}
    truth = [uncovered(case, one) for (case, _), one in zip(items, faultless, strict=True)]
    middle = sorted(truth)[len(truth) // 2]
    for name, rule in RULES.items():
        given = [rule(case, one) for (case, _), one in zip(items, judgments, strict=True)]
        scored = [(reward, real) for reward, real in zip(given, truth, strict=True) if reward is not None]
        shift = {
            is_better: fmean([reward - real for reward, real in scored if (real >= middle) is is_better] or [0.0])
            for is_better in (True, False)
        }
        mean = fmean(reward for reward, _ in scored) - fmean(truth)
        found[name] = (mean, shift[True] - shift[False], 1 - len(scored) / len(given))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="example: python -m benchmarks.fault_bias --responses 1000 --faults 0.2"
    )
    parser.add_argument("--responses", type=positive, default=1000)
    parser.add_argument("--faults", type=number(0, 1), default=0.2, help="share of requests that go wrong")
    parser.add_argument("--timeout-s", type=option(seconds), default=8.0, help="patience with a request that hangs")
    args = parser.parse_args()
    items = make_cases(args.responses)
    truth = true_verdicts(items)
    started = time.perf_counter()
    faultless = [{issue.id: Judgment(*truth[issue.conclusion]) for issue in case.issues} for case, _ in items]
    rewards = [uncovered(case, one) for (case, _), one in zip(items, faultless, strict=True)]
    print(f"{args.responses} responses, {sum(len(case.issues) for case, _ in items)} verdicts; without faults: mean "
          f"{fmean(rewards):.3f}, standard deviation {stdev(rewards):.2f}")  # fmt: skip
    print(f"{'':36}{'mean reward':>13}{'good - bad':>12}{'unscored':>10}")
    for max_retries in (JudgeConfig(judge="mini").judge_max_retries, 0):
        judgments, failed_frac = judge_all(judge_script(truth, args.faults), items, max_retries, args.timeout_s)
        print(f"with {max_retries} retries, {failed_frac:.1%} of tries failed:")
        for name, (mean, slope, unscored) in biases(items, faultless, judgments).items():
            print(f"  {name:34}{mean:>+13.3f}{slope:>+12.3f}{unscored:>10.1%}")
    print(f"({time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
