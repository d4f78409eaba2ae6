"""A judge server for jobs on a test machine: fixed verdicts by the text alone.

Where FOLDER/hang holds a number, whatever is asked after that step of the run gets no answer; the run's folder is
FOLDER without its ending. python -m tests.slurm.slow_judge FOLDER --host 0.0.0.0 --port 8001
"""

import argparse
import re
import signal
from pathlib import Path

from data.jsonl import read_jsonl
from tests.easy_judge import right_on_easy_questions
from tests.fake_llm_server import HANGING, FakeLLM, Reply, Request, verdict


def main() -> None:
    """Serve until a signal ends it; each request leaves a line in FOLDER/requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()

    def script(request: Request) -> Reply:
        is_hanging = is_to_hang(args.folder)
        with (args.folder / "requests").open("a") as file:
            file.write("hangs\n" if is_hanging else "answered\n")
        if is_hanging:
            return HANGING
        draw = sum(re.sub("[0-9a-f]{8,}", "", request.text).encode()) % 4  # but for the run's own marks around it
        return verdict(draw % 2 == 0, draw < 2)

    with FakeLLM(right_on_easy_questions(script), host=args.host, port=args.port):
        signal.pause()


def is_to_hang(folder: Path) -> bool:
    """Whether the run has come to the step after which the judge is to hang."""
    try:
        step = int((folder / "hang").read_text())
    except FileNotFoundError:
        return False
    metrics = folder.with_suffix("") / "metrics.jsonl"
    return metrics.exists() and any(row["step"] >= step for _, row in read_jsonl(metrics))


if __name__ == "__main__":
    main()
