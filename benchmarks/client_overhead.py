"""What our judge client costs beside a bare loop of the same requests, against a server that answers at once."""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from data.cases import Case, Claim, Issue
from data.command import positive
from rewards.grouping import render_group
from rewards.judge import JudgeConfig, judge_batch, load_judge
from rewards.rubric import response_format

NUM_ISSUES = 10
CONCURRENCY = 64
VERDICT = json.dumps({"rationales": "답안도 그렇게 판단하였다.", "contains_issue": True, "correct_conclusion": True})
COMPLETION = {
    "choices": [{"message": {"role": "assistant", "content": VERDICT}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3000, "completion_tokens": 40},
}
CASE = Case(
    "c",
    "질문",
    tuple(Issue(str(n) if n else "", f"쟁점 {n}", (Claim("원고", "주장"),), f"결론 {n}") for n in range(NUM_ISSUES)),
)


class AtOnce(asyncio.Protocol):
    """Answers each whole request at once with the body that `answer` makes of its own; runs in a process of its own."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end:
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(body) >= length:
                self._received = body[length:]
                reply = self._answer(body[:length])
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(reply)}\r\n\r\n"
                self._transport.write(head.encode() + reply)


async def serve(answer: Callable[[bytes], bytes]) -> None:
    """Prints the port and serves until stdin closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: AtOnce(answer), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until the benchmark ends


def answers(start: int, num: int) -> list[str]:
    return [f"{n} " + "피고는 원고에게 이를 지급할 의무가 있다. " * 100 for n in range(start, start + num)]


async def timed(num_calls: int, work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """(calls a second, milliseconds of our CPU a call)."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return num_calls / (time.perf_counter() - wall), 1000 * (time.process_time() - cpu) / num_calls


async def ours(url: str, start: int, num_responses: int) -> None:
    judge = load_judge(
        JudgeConfig(judge_base_url=url, judge_model="m", judge_max_concurrency=CONCURRENCY, judge_repeat_frac=0.0)
    )
    for batch in range(0, num_responses, 100):
        items = [(CASE, answer) for answer in answers(start + batch, min(100, num_responses - batch))]
        found = await judge_batch(judge, items, 3600)
        if any(None in one.values() for one in found):
            raise RuntimeError(f"verdicts are missing: {judge.stats.most_frequent_failure()}")
        judge.stats.take()
    await judge.endpoint.close()  # type: ignore[union-attr]


def bodies(start: int, num_responses: int) -> list[bytes]:
    sampling = {"temperature": 0.0, "max_tokens": 512, "response_format": response_format(True)}
    return [
        json.dumps({"model": "m", "messages": render_group([issue], answer), **sampling}, ensure_ascii=False).encode()
        for answer in answers(start, num_responses)
        for issue in CASE.issues
    ]


async def bare_httpx(url: str, requests: list[bytes]) -> None:
    import httpx2

    limits = httpx2.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    slots = asyncio.Semaphore(CONCURRENCY)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def one(body: bytes) -> None:
            async with slots:
                json.loads((await client.post(f"{url}/chat/completions", content=body)).content)

        await asyncio.gather(*map(one, requests))


async def bare_aiohttp(url: str, requests: list[bytes]) -> None:
    import aiohttp

    slots = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as client:

        async def one(body: bytes) -> None:
            async with slots, client.post(f"{url}/chat/completions", data=body) as response:
                json.loads(await response.read())

        await asyncio.gather(*map(one, requests))


def memory_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def measure(url: str, num_verdicts: int) -> None:
    num_responses, rounds = num_verdicts // NUM_ISSUES, 4
    part = num_responses // rounds
    await ours(url, 10**6, 10)  # imports, connections
    memory, shown = [], {"ours": [], "bare httpx": [], "bare aiohttp": []}
    for n in range(rounds):  # in turns, so that what else the machine does strikes all alike
        shown["ours"].append(await timed(part * NUM_ISSUES, lambda n=n: ours(url, n * part, part)))
        memory.append(memory_mib())
        requests = bodies(n * part, part)
        for name, bare in (("bare httpx", bare_httpx), ("bare aiohttp", bare_aiohttp)):
            shown[name].append(await timed(len(requests), lambda bare=bare, requests=requests: bare(url, requests)))
    print(f"{num_verdicts} verdicts, {CONCURRENCY} at a time; medians of {rounds} turns")
    print(f"{'':16}{'calls/s':>10}{'ms CPU a call':>16}{'ours: more':>12}")
    middle = {
        name: [sorted(column)[rounds // 2] for column in zip(*found, strict=True)] for name, found in shown.items()
    }
    for name, (rate, cpu) in middle.items():
        print(f"{name:16}{rate:>10.0f}{cpu:>16.2f}{middle['ours'][1] / cpu - 1:>+12.0%}")
    print("our memory after each turn:", ", ".join(f"{mib:.0f}" for mib in memory), "MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: python -m benchmarks.client_overhead")
    parser.add_argument("--verdicts", type=positive, default=10_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        verdict = json.dumps(COMPLETION).encode()
        asyncio.run(serve(lambda _: verdict))
        return
    command = [sys.executable, "-m", "benchmarks.client_overhead", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None  # noqa: S101
        assert server.stdin is not None  # noqa: S101
        asyncio.run(measure(f"http://127.0.0.1:{server.stdout.readline().strip()}/v1", args.verdicts))
        server.stdin.close()


if __name__ == "__main__":
    main()
