"""Seconds of a training step under different ways of judging, simulated: `python -m benchmarks.judge_step`."""

import argparse
import asyncio
import math
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.simulated_judge import CHARS_PER_TOKEN, Hardware, SimulatedJudge, Totals, run_simulated
from data.cases import Case, Claim, Issue
from data.command import positive
from data.endpoint import Endpoint
from data.jsonl import write_json
from rewards.early import EarlyJudge
from rewards.gates import GateConfig
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.reward import rubric_reward
from rewards.rubric import parse, render, response_format
from rewards.schemes import RewardConfig

MAX_TOKENS = 4096
TOKEN_S = 27 / MAX_TOKENS  # simulated; the longest completion takes 27 s
TRAINING_S = 40.0  # simulated
END = 0
FLUENCY = "다음 글이 문법에 맞고 자연스러운 한국어인지 판정하라.\n\n"
SYLLABLES = [chr(code) for code in range(ord("가"), ord("힣"), 11)]
ONE = Hardware()
HALF = ONE.half()


@dataclass(frozen=True, slots=True)
class Written:
    """A completion of the simulated policy, finished `TOKEN_S` * tokens after the start of generation."""

    case: Case
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Way:
    """A way of judging: each server's replicas, how the client asks them, and the way whose barrier is its bound."""

    name: str
    judge: Callable[["Way", list[str], list[Written]], Awaitable[None]]
    servers: tuple[tuple[Hardware, int], ...] = ((ONE, 1),)
    issues_per_call: str | int = 1
    barrier: str = ""
    fluency: bool = True


async def reference_barrier(way: Way, urls: list[str], batch: list[Written]) -> None:
    """Every call at once, without a limit."""
    endpoint = Endpoint(
        urls[0], "simulated", api_key_env="SIMULATED_KEY", timeout_s=36_000, max_retries=0, max_concurrency=100_000
    )
    async with endpoint:
        await ask_as_reference(endpoint, batch, fluency=way.fluency)


async def ask_as_reference(
    endpoint: Endpoint, batch: list[Written], *, rationales: bool = True, fluency: bool = True
) -> None:
    """One call for each issue of each response, and one about fluency for each response, all at once."""
    prompts = [render(issue, written.text, rationales=rationales) for written in batch for issue in written.case.issues]
    if fluency:
        prompts += [[{"role": "user", "content": FLUENCY + written.text}] for written in batch]
    sampling = {"response_format": response_format(rationales), "max_tokens": 512}
    read = partial(parse, rationales=rationales)
    await asyncio.gather(*(endpoint.ask(prompt, read, **sampling) for prompt in prompts))


async def barrier(way: Way, urls: list[str], batch: list[Written]) -> None:
    """The reward, asked when all completions are there."""
    judge, config = judge_of(way, urls)
    async with judge.endpoint:
        await reward(judge, config, batch)


async def overlap(way: Way, urls: list[str], batch: list[Written]) -> None:
    """The reward after generation, with each completion's judging begun when it was written."""
    judge, config = judge_of(way, urls)
    early = EarlyJudge(judge, config.judge_deadline_s)

    async def write(written: Written) -> None:
        await asyncio.sleep(written.tokens * TOKEN_S)
        early.begin(written.case, written.text)

    async with judge.endpoint:
        await asyncio.gather(*map(write, batch))
        await reward(early, config, batch)


IN_TURN, BY_RESPONSE = ((HALF, 2),), ((HALF, 1), (HALF, 1))
WAYS = (
    Way("reference barrier, no prefix cache", reference_barrier, ((replace(ONE, cache_tokens=0), 1),)),
    Way("reference barrier", reference_barrier),
    Way("reference barrier, no fluency call", reference_barrier, fluency=False),
    Way("barrier", barrier),
    Way("overlap", overlap, barrier="barrier"),
    Way("barrier, grouped", barrier, issues_per_call="all"),
    Way("overlap, grouped", overlap, issues_per_call="all", barrier="barrier, grouped"),
    Way("2 replicas in turn, barrier", barrier, IN_TURN),
    Way("2 replicas in turn, overlap", overlap, IN_TURN, barrier="2 replicas in turn, barrier"),
    Way("2 replicas by response, barrier", barrier, BY_RESPONSE),
    Way("2 replicas by response, overlap", overlap, BY_RESPONSE, barrier="2 replicas by response, barrier"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="SIMULATED: a policy that only waits, and a judge server that computes nothing and keeps the time "
        "of a 27B model on 4 H100 (tokens per second, batching, slots, prefix cache: benchmarks/simulated_judge.py), "
        "asked by the real client over real HTTP. One batch, all completions there at once, and one step: generation "
        "(27 s), judging, training (40 s). Half of the servers' hardware where there are two replicas. Grouped: all "
        "issues of a response in a call. Reference: every call of the batch at once when all is written, and one about "
        "fluency for each response on top.",
        epilog="example: python -m benchmarks.judge_step --json judge_step.json",
    )
    parser.add_argument("--prompts", type=positive, default=32, help="Different cases of 4 to 12 issues (32).")
    parser.add_argument("--generations", type=positive, default=8, help="Completions of 1,500 tokens to each (8).")
    parser.add_argument("--seed", type=int, default=0, help="Of cases and lengths (0).")
    parser.add_argument("--json", type=Path, help="Write the figures here too.")
    args = parser.parse_args()
    batch = write_batch(args.prompts, args.generations, args.seed)
    figures = compare(batch)
    num_verdicts = sum(len(written.case.issues) for written in batch)
    table = Table(title=f"SIMULATED: {len(batch)} completions, {num_verdicts:,} verdicts")
    table.add_column("way", no_wrap=True)
    for column in ("judging s", "step s", "step / bound", "calls", "cached", "busy s"):
        table.add_column(column, justify="right")
    for way in WAYS:
        of = {name.removeprefix(f"{way.name}/"): value for name, value in figures.items()}
        ratio = f"{of['step_s'] / of['bound_s']:.3f}" if way.barrier else ""
        table.add_row(
            way.name, f"{of['judging_s']:.1f}", f"{of['step_s']:.1f}", ratio, f"{of['calls']:,.0f}",
            f"{of['cached_frac']:.1%}", f"{of['busy_s']:.1f}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        "judging: after the last completion. bound: max(generation, judging of a batch that is all there) + training, "
        "with the same calls and servers. cached: share of prompt tokens out of the prefix cache. busy: of the busiest "
        f"replica. A reply about one issue is taken to have {ONE.verdict_tokens} tokens, of a grouped one "
        f"{ONE.grouped_verdict_tokens} for each issue."
    )
    if args.json:
        write_json(args.json, figures)


def compare(batch: list[Written]) -> dict[str, float]:
    """Simulated figures, `<way>/<name>`, of each way on the same batch."""
    generation_s = max(written.tokens for written in batch) * TOKEN_S
    figures: dict[str, float] = {"simulated": 1.0, "generation_s": generation_s, "training_s": TRAINING_S}
    for way in WAYS:
        print(way.name, file=sys.stderr)
        seconds, totals = run_simulated(measure(way, batch))
        judging_s = seconds - generation_s if way.barrier else seconds
        of_barrier_s = figures[f"{way.barrier}/judging_s"] if way.barrier else judging_s
        figures |= {
            f"{way.name}/judging_s": judging_s,
            f"{way.name}/step_s": generation_s + judging_s + TRAINING_S,
            f"{way.name}/bound_s": max(generation_s, of_barrier_s) + TRAINING_S,
            f"{way.name}/calls": sum(one.requests for one in totals),
            f"{way.name}/cached_frac": sum(t.cached_tokens for t in totals) / sum(t.prompt_tokens for t in totals),
            f"{way.name}/busy_s": max(one.busy_s for one in totals),
        }
    return figures


async def measure(way: Way, batch: list[Written]) -> tuple[float, list[Totals]]:
    """Simulated seconds to the last verdict, generation included where judging overlaps it; each replica's work."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(SimulatedJudge(*server)) for server in way.servers]
        started = asyncio.get_running_loop().time()
        await way.judge(way, [server.base_url for server in servers], batch)
        seconds = asyncio.get_running_loop().time() - started
        return seconds, [one for server in servers for one in server.totals]


def judge_of(way: Way, urls: list[str]) -> tuple[Judge, JudgeConfig]:
    """The client, with a few more requests under way than the servers have slots, so that none stands empty."""
    hardware, num_replicas = way.servers[0]
    config = JudgeConfig(
        judge_base_url=urls,
        judge_model="simulated",
        judge_issues_per_call=way.issues_per_call,
        judge_max_concurrency=int(1.25 * hardware.max_num_seqs * num_replicas),
        judge_timeout_s=36_000,
        judge_deadline_s=36_000,
    )
    judge = load_judge(config)
    if not isinstance(judge, Judge):
        raise TypeError("this benchmark is about judges behind an endpoint")
    return judge, config


async def reward(judge: Judge | EarlyJudge, config: JudgeConfig, batch: list[Written]) -> None:
    """The reward function of training, on the batch; all must be scored, or the figures would be of something else."""
    rewards = await rubric_reward(
        completions=[[{"role": "assistant", "content": written.text}] for written in batch],
        completion_ids=[[END]] * len(batch),
        doc_id=[written.case.id for written in batch],
        cases={written.case.id: written.case for written in batch},
        judge=judge,
        reward=RewardConfig(),
        gates=GateConfig(),
        judging=config,
        end_token_ids=frozenset({END}),
        log_metric=lambda *_: None,
        log_extra=lambda *_: None,
    )
    if set(rewards) != {(1.0, 1.0, 1.0)}:  # the simulated judge says yes to everything
        raise RuntimeError(f"some completions were gated or not judged: rewards {set(rewards)}")


def write_batch(
    num_prompts: int, num_generations: int, seed: int, mean_tokens: int = 1500, max_tokens: int = MAX_TOKENS
) -> list[Written]:
    """The completions of a step: log-normal lengths around `mean_tokens`, one of them as long as is allowed."""
    draw = random.Random(seed)
    cases = [_case(f"case {n}", draw.randint(4, 12), draw) for n in range(num_prompts)]
    copies = [case for case in cases for _ in range(num_generations)]
    lengths = [min(max_tokens, int(draw.lognormvariate(math.log(mean_tokens) - 0.45**2 / 2, 0.45))) for _ in copies]
    lengths[lengths.index(max(lengths))] = max_tokens  # the straggler that every large batch has
    return [
        Written(case, _text(int(tokens * CHARS_PER_TOKEN), draw), tokens)
        for case, tokens in zip(copies, lengths, strict=True)
    ]


def _case(id: str, num_issues: int, draw: random.Random) -> Case:
    issues = [Issue("", "", (), _text(80, draw))]
    for n in range(1, num_issues):
        claims = (Claim("원고", _text(80, draw)), Claim("피고", _text(80, draw)))
        issues.append(Issue(str(n), _text(60, draw), claims, _text(100, draw)))
    return Case(id, _text(900, draw), tuple(issues))


def _text(num_chars: int, draw: random.Random) -> str:
    words = "".join(draw.choices(SYLLABLES, k=num_chars * 4 // 5))
    return " ".join(words[start : start + 4] for start in range(0, len(words), 4))


if __name__ == "__main__":
    main()
