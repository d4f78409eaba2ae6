"""Seconds and peak memory of loading a large file of cases: `python benchmarks/load_cases.py`."""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from data.command import positive
from data.jsonl import Appender
from data.loading import load_cases

SENTENCE = "피고는 약정한 날이 지나도록 원고에게 대여금을 갚지 아니하였고, 갚았다는 점을 인정할 증거도 없다. "


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Writes cases as long as real ones into a temporary file, loads it, and prints how long that took "
        "and the most memory that the process held. Asked for: 24,000 cases of 10 issues in under 10 s and 1 GB.",
        epilog="example: python benchmarks/load_cases.py --num_cases 24000 --num_issues 10",
    )
    parser.add_argument("--num_cases", type=positive, default=24_000)
    parser.add_argument("--num_issues", type=positive, default=10, help="issues of a case, the root counted")
    parser.add_argument("--num_letters", type=positive, default=5_000, help="of a case; official ones have about 5,000")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.jsonl"
        with Appender(path) as records:
            for number in range(args.num_cases):
                records.append(record(number, args.num_issues, args.num_letters))
        start, start_cpu = time.perf_counter(), time.process_time()
        cases = load_cases(path)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
        megabytes = path.stat().st_size / 1e6
    peak_megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{len(cases)} cases, {megabytes:.0f} MB on disk")
    print(f"loaded in {seconds:.1f} s ({cpu_seconds:.1f} s of CPU), peak memory {peak_megabytes:.0f} MB")


def record(number: int, num_issues: int, num_letters: int) -> dict[str, Any]:
    """An official record; half of its letters are facts, the others are spread over the issues."""
    order = f"1. 피고는 원고에게 {number + 1},000,000원을 지급하라.\n2. 소송비용은 피고가 부담한다."
    law = SENTENCE * max(1, num_letters // 4 // num_issues // len(SENTENCE))
    ids = ["", "1", *(f"1.{place}" for place in range(1, num_issues - 1))]
    return {
        "doc_id": f"가상지방법원-2024가단{number}",
        "question": f"[사실관계]\n사건 {number}. {SENTENCE * (num_letters // 2 // len(SENTENCE))}",
        "answer": order,
        "issues": [
            {
                "id": id,
                "summary": f"사건 {number}의 쟁점 {id}",
                "claim": [{"claimer": "원고", "content": f"사건 {number}: {law}"}],
                "relevant_law": [],
                "analysis": [f"쟁점 {id}: {law}"],
                "conclusion": order if id == "" else f"사건 {number}의 주장 {id}은 이유 있다.",
            }
            for id in ids[:num_issues]
        ],
        "difficulty": "hard",
    }


if __name__ == "__main__":
    main()
