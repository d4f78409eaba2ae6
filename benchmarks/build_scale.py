"""Judgments a second and memory of the builder, all stages, at 24,000 of them: `python -m benchmarks.build_scale`."""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.client_overhead import serve
from data.command import positive
from data.jsonl import Appender, write_json
from data.loading import load_cases
from data.mini import generate

ROOT = Path(__file__).parents[1]
NUM_FACTS = 16  # as many as the hand-made cases of tests/judgments have, with judgments as long as theirs
MARKS = "가나다라마바사아자차카타파하"
_NUMBER = re.compile(r"주식회사 (\d+)호상사")
_KEPT = re.compile(r"[가-힣]{2,5}")
_AVOIDED = re.compile(
    r"위자|과실|재량|형평|공평|책임|사정|감액|예정|비율|참작|이유|주장|항변|청구|판단|인정|별지|판사|[은는이가]$"
)


def render(number: int, record: dict[str, Any]) -> str:
    """A mini case as a judgment of some 4,500 characters: what its facts tell amid prose that no other judgment has."""
    facts = facts_of(number, record)
    lines = [
        f"예제지방법원\n판결\n\n사건  2024가합{number}  {record['mini']['kind']}",
        f"원고  주식회사 {number}호상사\n피고  을OO\n변론종결  2024. 9. 1.\n판결선고  2024. 10. 1.",
        f"주문\n\n{record['answer']}\n소송비용은 각자 부담한다.",
        f"청구취지\n\n{_purpose(record)}",
        "이유\n\n1. 기초사실\n",
        *(f"{mark}. {fact}" for mark, fact in zip(MARKS, facts[: len(MARKS)], strict=False)),
        *facts[len(MARKS) :],
        "2. 판단\n",
    ]
    for mark, issue in zip(MARKS, issues_of(number, record), strict=False):
        claims = " ".join(f"{claim['claimer']}의 주장: {claim['content']}" for claim in issue["claims"])
        lines += [
            f"{mark}. {issue['summary']}",
            claims,
            *issue["relevant_law"],
            *issue["analysis"],
            issue["conclusion"],
        ]
    if number % 10 == 0:
        lines.append("원고는 위자료도 언급하나 그 액수를 밝히지 않았다.")  # borderline: a model is asked
    return "\n".join([*lines, "3. 결론\n", "그러므로 주문과 같이 판결한다."])


def facts_of(number: int, record: dict[str, Any]) -> list[str]:
    """What the facts of a rendered judgment are, one by one."""
    told = [issue["analysis"][0] for issue in record["issues"][1:]]
    return [*told, *_prose(number, NUM_FACTS, 120)]


def issues_of(number: int, record: dict[str, Any]) -> list[dict[str, Any]]:
    """The tree of a rendered judgment as the builder asks for it; every fifth has a claim of two sentences."""
    issues = [{key: value for key, value in issue.items() if key != "claim"} for issue in record["issues"][1:]]
    prose = iter(_prose(-number - 1, 3 * len(issues), 140))
    for issue, original in zip(issues, record["issues"][1:], strict=True):
        claims = [dict(claim) for claim in original["claim"]]
        if number % 5 == 0 and issue is issues[-1]:
            claims[0]["content"] += f" {next(prose)}"
        issue |= {"claims": claims, "analysis": [*issue["analysis"], next(prose), next(prose)]}
    return issues


def reply(number: int, record: dict[str, Any], stage: str) -> dict[str, Any]:
    """What a faultless model answers to a stage's question about a rendered judgment."""
    if stage == "opinion":
        return {"deterministic": "yes"}
    if stage == "facts":
        return {"facts": facts_of(number, record)}
    if stage == "statement":
        return {"statement": " ".join(facts_of(number, record))}
    return {"issues": [] if stage == "split" else issues_of(number, record)}


def answer(records: list[dict[str, Any]], body: bytes) -> bytes:
    """The body of the reply to any question of the builder."""
    request = json.loads(body)
    stage = request["response_format"]["json_schema"]["name"].removeprefix("legit_")
    told = _NUMBER.search(request["messages"][0]["content"])
    number = int(told[1]) if told else 0
    content = json.dumps(reply(number, records[number], stage), ensure_ascii=False)
    return json.dumps(
        {
            "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": len(body) // 3, "completion_tokens": len(content)},
        }
    ).encode()


def _purpose(record: dict[str, Any]) -> str:
    return str(record["issues"][0]["claim"][0]["content"])


def _prose(seed: int, num_sentences: int, num_chars: int) -> list[str]:
    """Sentences of words in no order, alike in no two judgments."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(_words(), k=num_chars // 4)) + " 하였다." for _ in range(num_sentences)]


@cache
def _words() -> list[str]:
    told = (word for case in load_cases(ROOT / "data/samples/hard.jsonl") for word in case.question.split())
    return sorted({word for word in told if _KEPT.fullmatch(word) and not _AVOIDED.search(word)})


def watch(processes: list["subprocess.Popen[bytes]"], out: Path) -> Iterator[tuple[int, float, int]]:
    """(blocks done, seconds, most KiB that one process holds) about once a second, until all have ended."""
    start = time.perf_counter()
    while any(process.poll() is None for process in processes):
        time.sleep(1)
        held = [_resident_kib(process.pid) for process in processes]
        yield sum(1 for _ in (out / "blocks").glob("*.jsonl")), time.perf_counter() - start, max(held)


def _resident_kib(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int((re.search(r"VmRSS:\s*(\d+)", status) or ["", "0"])[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Renders mini cases as judgments of a real length and builds them with data/build.py against a "
        "local server that answers at once, so that what is measured is ours: reading, selecting, asking, storing, "
        "checking, gathering. Asked for: 24,000 judgments in under 30 minutes on 2 cores, memory flat.",
        epilog="example: python -m benchmarks.build_scale --judgments 1000",
    )
    parser.add_argument("--judgments", type=positive, default=24_000)
    parser.add_argument("--workers", type=positive, default=1, help="processes on the one folder")
    parser.add_argument("--keep", type=Path, help="folder to build in and keep (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        records = [json.loads(line) for line in args.serve.read_text(encoding="utf-8").splitlines()]
        asyncio.run(serve(lambda body: answer(records, body)))
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(args.keep or Path(folder), args.judgments, args.workers, args.json)


def measure(folder: Path, num_judgments: int, num_workers: int, json_path: Path | None) -> None:
    """Writes the judgments, builds them, prints what each quarter took."""
    folder.mkdir(parents=True, exist_ok=True)
    records, source, out = folder / "mini.jsonl", folder / "judgments.jsonl", folder / "out"
    if not source.exists():
        with Appender(records) as record_file, Appender(source) as file:
            for number, record in enumerate(generate(0, "train", num_judgments)):
                record_file.append(record)
                file.append({"text": render(number, record)})
    command = [sys.executable, "-m", "benchmarks.build_scale", "--serve", str(records)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None  # noqa: S101
        assert server.stdin is not None  # noqa: S101
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        build = [sys.executable, str(ROOT / "data" / "build.py"), str(source), "--out", str(out), "--second-opinion"]
        build += ["--base-url", url, "--model", "instant"]
        start = time.perf_counter()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes = [subprocess.Popen(build, cwd=ROOT, **quiet) for _ in range(num_workers)]  # type: ignore[call-overload]
        seen = list(watch(processes, out))
        quarters = [next(one for one in seen if one[0] >= part * seen[-1][0] / 4) for part in (1, 2, 3, 4)]
        seconds = time.perf_counter() - start
        server.stdin.close()
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    cpu = os.times()
    table = Table(title=f"{num_judgments:,} judgments, {num_workers} worker(s)")
    for column in ("blocks done", "seconds", "MiB of a worker"):
        table.add_column(column, justify="right")
    for done, at, kib in quarters:
        table.add_row(f"{done}", f"{at:.0f}", f"{kib / 1024:.0f}")
    Console().print(table)
    figures = {name: value for name, value in report.items() if not name.startswith("tokens")}
    figures |= {"seconds": round(seconds, 1), "per_second": round(num_judgments / seconds, 2)}
    figures |= {"cpu_s_all_processes": round(cpu.children_user + cpu.children_system, 1)}
    for part, (_, at, kib) in enumerate(quarters, start=1):
        figures |= {f"quarter_{part}/seconds": round(at), f"quarter_{part}/mib": round(kib / 1024)}
    Console().print(figures)
    if json_path is not None:
        write_json(json_path, figures)


if __name__ == "__main__":
    main()
