"""A case as a tree in the terminal, with what its judgment says where the case was taken from."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.tree import Tree

from data.cases import Case, Issue
from data.command import InputError, output_file, positive, run_command
from data.jsonl import JsonlError, read_jsonl, write_text
from data.loading import load_cases
from data.side_by_side import page
from data.visible import visible

QUOTE_CHARS = 160
_KINDS = ("claim", "analysis", "conclusion")


def case_tree(case: Case, judgment: str = "") -> Tree:
    """The issues below one another; with the judgment's text, each statement with the words that support it."""
    spans = {(span["issue"], span["kind"], span["place"]): span for span in case.extra.get("spans", ())}

    def grow(branch: Tree, issue: Issue) -> None:
        texts = {
            "claim": [f"{claim.claimer}: {claim.content}" for claim in issue.claims],
            "analysis": list(issue.analysis),
            "conclusion": [issue.conclusion],
        }
        for law in issue.relevant_law:
            branch.add(f"[blue]law[/] {_plain(law)}")
        for kind in _KINDS:
            for place, text in enumerate(texts[kind]):
                leaf = branch.add(f"[{'bold green' if kind == 'conclusion' else 'cyan'}]{kind}[/] {_plain(text)}")
                if span := spans.get((issue.id, kind, place)):
                    _quote(leaf, span, judgment)
        for child in case.children(issue):
            grow(branch.add(f"[bold]{child.id}[/] {_plain(child.summary)}"), child)

    tree = Tree(f"[bold]{_plain(case.id)}[/]  {case.difficulty or ''}  {len(case.sub_issues)} issues and the order")
    grow(tree, case.root)
    return tree


def _plain(text: str) -> str:
    """For a terminal: neither markup nor control characters, a model or a court may have written it."""
    return escape(visible(text))


def _quote(leaf: Tree, span: Mapping[str, Any], judgment: str) -> None:
    score, places = span["score"], span["at"]
    if not judgment:
        leaf.add(f"[dim]support {score:.0f}[/]")
        return
    for start, end in places:
        words = " ".join(judgment[start:end].split())
        shown = words if len(words) <= QUOTE_CHARS else words[:QUOTE_CHARS] + " …"
        leaf.add(f"[dim]support {score:.0f}, at {start}: {_plain(shown)}[/]")


def show(args: argparse.Namespace) -> None:
    """Print the cases that were asked for, or write their page."""
    cases = [case for case in load_cases(args.cases) if args.doc_id in (None, case.id)]
    if not cases:
        raise InputError(f"{args.cases}: no case with the doc_id {args.doc_id!r}")
    beside = Path(args.cases).with_name("judgments.jsonl")
    texts = {}
    for line, record in read_jsonl(beside) if beside.exists() else ():
        if not (isinstance(record.get("doc_id"), str) and isinstance(record.get("text"), str)):
            raise JsonlError(beside, line, 'no judgment of data/build.py: it must hold the texts "doc_id" and "text"')
        texts[record["doc_id"]] = record["text"]
    if args.html is not None:
        write_text(args.html, page(cases[: args.limit], texts))
        print(f"{args.html}: {len(cases[: args.limit])} cases", file=sys.stderr)
        return
    console = Console()
    for case in cases[: args.limit]:
        console.print(Panel(_plain(case.question), title="question"), case_tree(case, texts.get(case.id, "")))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 for wrong input."""
    parser = argparse.ArgumentParser(
        description="Show cases as trees. Where judgments.jsonl lies beside them, as data/build.py leaves it, each "
        "statement stands above the words of the judgment that support it; --html puts both side by side on a page.",
        epilog="example: python data/view.py outputs/cases/cases.jsonl --doc-id 예제지방법원-2021가합4001",
    )
    parser.add_argument("cases", help="case file, folder or hub id")
    parser.add_argument("--doc-id", help="only this case")
    parser.add_argument("--limit", type=positive, default=1, help="so many cases, where none is named")
    parser.add_argument(
        "--html", type=output_file(), metavar="OUT", help="write one static page instead, words highlighted"
    )
    return run_command(parser, show, argv)


if __name__ == "__main__":
    sys.exit(main())
