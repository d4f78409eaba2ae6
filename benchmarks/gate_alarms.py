"""Which of many real responses the gates stop, each shown, so that false alarms can be counted by eye."""

import argparse
from collections import Counter
from pathlib import Path

from data.jsonl import read_jsonl
from data.loading import load_cases
from data.visible import visible
from rewards.answer import final_answer
from rewards.gates import GATE_REASONS, GateConfig, gate
from rewards.order import final_order

SHOWN = 200  # characters of each end


def main() -> None:
    """Prints every response that a gate stops, then how many each gate stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python -m benchmarks.gate_alarms responses/*.jsonl --cases cases.jsonl",
    )
    parser.add_argument("responses", nargs="+", type=Path, help="files of {doc_id, response}")
    parser.add_argument("--cases", help="their cases, for the gate that looks at the question")
    args = parser.parse_args()
    questions = {case.id: case.question for case in load_cases(args.cases)} if args.cases else {}
    stopped: Counter[str | None] = Counter()
    num_with_order = num_with_question = 0
    for path in args.responses:
        for _, row in read_jsonl(path):
            answer, question = final_answer(row["response"]), questions.get(row["doc_id"], "")
            reason = gate(answer, row.get("finish_reason"), GateConfig(), question)
            stopped[reason] += 1
            order = final_order(answer)
            num_with_order += bool(order)
            num_with_question += bool(question)
            if reason is not None:
                shown = order if reason == "hedged_order" else f"{answer[:SHOWN]} … {answer[-SHOWN:]}"
                print(f"{reason}: {row['doc_id']} of {path.name}, {len(answer)} characters\n  {visible(shown)!r}")
    print(
        f"\n{stopped.total()} responses, {num_with_order} with a marked order, {num_with_question} with their question"
    )
    for name in GATE_REASONS:
        print(f"{name:14}{stopped[name]:6}{stopped[name] / stopped.total():8.2%}")


if __name__ == "__main__":
    main()
