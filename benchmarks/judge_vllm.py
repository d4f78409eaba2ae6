"""Seconds per 100 verdicts and prefix cache hits of a real vLLM server: `python -m benchmarks.judge_vllm`."""

import argparse
import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.judge_step import Written, ask_as_reference, write_batch
from data.command import positive
from data.jsonl import write_json
from rewards.judge import Judge, JudgeConfig, judge_batch, load_judge

WAYS: tuple[tuple[str, dict[str, Any] | None], ...] = (
    ("reference: all at once, fluency on top", None),
    ("ours", {}),
    ("ours, prefix warmed first", {"judge_warm_prefix": True}),
    ("ours, 4 issues a call", {"judge_issues_per_call": 4}),
    ("ours, all issues in a call", {"judge_issues_per_call": "all"}),
)
COUNTERS = ("prefix_cache_queries", "prefix_cache_hits")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Judges the same synthetic responses in several ways on one real vLLM server, and reads the hits "
        "of the prefix cache off its /metrics. Without --judge it starts a server of a tiny random model on this CPU: "
        "real scheduling, caching and structured output, and seconds that say nothing of a large model. Replies "
        "have the two verdicts and no reasons.",
        epilog="example: python -m benchmarks.judge_vllm --responses 4 --json judge_vllm.json",
    )
    parser.add_argument("--judge", metavar="URL", help="A vLLM server that runs already, up to and with /v1.")
    parser.add_argument("--model", default="judge", help="The model's name there (judge).")
    parser.add_argument(
        "--responses",
        type=positive,
        default=4,
        help="Responses of 600 tokens in the mean, one of 1,600, 4 to 12 issues each (4).",
    )
    parser.add_argument("--rounds", type=positive, default=2, help="Times that all ways are gone through (2).")
    parser.add_argument("--json", type=Path, help="Write the figures here too.")
    args = parser.parse_args()
    batch = write_batch(args.responses, 1, seed=0, mean_tokens=600, max_tokens=1600)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name, _ in WAYS}
    with nullcontext(args.judge) if args.judge else tiny_server(args.model) as url:
        asyncio.run(judge(url, args.model, [batch[0]], {}))  # the rules are in the cache for everyone
        for round in range(args.rounds):
            for number, (name, keys) in enumerate(WAYS):
                # New to the cache from the first letter on, and as long as before.
                fresh = [replace(one, text=f"{round}{number} {one.text}") for one in batch]
                measured = asyncio.run(measure(url, args.model, fresh, keys))
                rounds[name].append(measured)
                print(f"{name}: {measured['s_per_100_verdicts']:.2f} s per 100 verdicts", file=sys.stderr)
    num_verdicts = sum(len(one.case.issues) for one in batch)
    table = Table(title=f"{len(batch)} responses, {num_verdicts} verdicts, {args.rounds} rounds")
    for column in ("way", "s / 100 verdicts: least", "most", "prompt tokens", "prefix cache hits"):
        table.add_column(column, justify="left" if column == "way" else "right")
    figures: dict[str, float] = {}
    for name, of_way in rounds.items():
        seconds = [one["s_per_100_verdicts"] for one in of_way]
        last = of_way[-1]  # tokens and hits are those of every round
        row = f"{min(seconds):.2f}", f"{max(seconds):.2f}", f"{last['prompt_tokens']:,.0f}"
        table.add_row(name, *row, f"{last['prefix_cache_hit_frac']:.1%}")
        figures |= {f"{name}/{key}": value for key, value in last.items()}
        figures |= {f"{name}/s_per_100_verdicts/low": min(seconds), f"{name}/s_per_100_verdicts/high": max(seconds)}
    Console().print(table)
    print("ways whose ranges overlap have not been told apart", file=sys.stderr)
    if args.json:
        write_json(args.json, figures)


async def measure(url: str, model: str, batch: list[Written], keys: dict[str, Any] | None) -> dict[str, float]:
    """What judging the batch took, and what the server's cache had of it."""
    before, started = counters(url), time.perf_counter()
    await judge(url, model, batch, keys)
    seconds = time.perf_counter() - started
    asked, hit = (after - earlier for after, earlier in zip(counters(url), before, strict=True))
    num_verdicts = sum(len(one.case.issues) for one in batch)
    return {
        "s_per_100_verdicts": 100 * seconds / num_verdicts,
        "prompt_tokens": asked,
        "prefix_cache_hit_frac": hit / asked,
    }


async def judge(url: str, model: str, batch: list[Written], keys: dict[str, Any] | None) -> None:
    """Judges all of the batch, by the reference's rules where there are no keys of ours."""
    config = JudgeConfig(
        judge_base_url=url,
        judge_model=model,
        judge_rationales=False,
        judge_repeat_frac=0.0,
        judge_max_concurrency=256,
        judge_timeout_s=600,
        **(keys or {}),
    )
    client = load_judge(config)
    if not isinstance(client, Judge):
        raise TypeError("this benchmark is about judges behind an endpoint")
    async with client.endpoint:
        if keys is None:
            await ask_as_reference(client.endpoint, batch, rationales=False)
            return
        verdicts = await judge_batch(client, [(one.case, one.text) for one in batch], 600)
    if any(None in by_issue.values() for by_issue in verdicts):
        raise RuntimeError(f"verdicts are missing: {client.stats.most_frequent_failure()}")


def counters(url: str) -> tuple[float, ...]:
    """Prompt tokens that the server has looked up in its prefix cache so far, and those that it found."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/metrics") as page:  # noqa: S310  (the user's own server)
        text = page.read().decode()
    return tuple(sum(map(float, re.findall(rf"^vllm:{name}_total\S* (\S+)$", text, re.MULTILINE))) for name in COUNTERS)


@contextmanager
def tiny_server(name: str) -> Iterator[str]:
    """The URL of a vLLM server whose model is tiny and random, and whose prompts may be long."""
    from eval.engine import prepare_environment
    from tests.tiny_policy import write_policy

    prepare_environment()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or it would leave its server behind
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "server.log").open("w+") as log:
        model = write_policy(Path(folder) / "judge")
        command = [
            sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model),
            "--served-model-name", name, "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "32768",
            "--hf-overrides", '{"max_position_embeddings": 32768}', "--enforce-eager", "--structured-outputs-config",
            '{"backend": "guidance", "disable_any_whitespace": true}',
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=log, stderr=log, env=os.environ) as server:
            try:
                while not _is_up(port):
                    if server.poll() is not None:
                        log.seek(0)
                        raise RuntimeError(f"vLLM did not start:\n{log.read()[-4000:]}")
                    time.sleep(0.5)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                server.terminate()


def _is_up(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    main()
