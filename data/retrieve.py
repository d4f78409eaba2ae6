"""The law at hand: make a law corpus and its indexes, search them for cases, measure what is found."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from data.cases import Case
from data.command import output_file, output_folder, positive, run_command
from data.contexts import QueryForm, RetrievalConfig, open_search, retrieved
from data.jsonl import write_json, write_text
from data.law import (
    Corpus,
    Document,
    LawError,
    case_print,
    check_no_leak,
    own_documents,
    read_corpus,
    write_corpus,
)
from data.law_file import law_file_passages
from data.loading import load_cases
from data.ranking import Ranked, figures
from data.retrieval import build_bm25, build_dense
from data.visible import visible

K_SHOWN = 10


def index(args: argparse.Namespace) -> None:
    """Write the corpus and its index by words, then each index by meaning; without cases and laws only the latter."""
    if args.cases or args.laws or args.include_test or not args.model:
        corpus = _new_corpus(args)
        build_bm25(corpus, args.out)
    else:
        corpus = read_corpus(args.out)
    for model in args.model:
        build_dense(corpus, args.out, model)


def _new_corpus(args: argparse.Namespace) -> Corpus:
    cases = [case for source in args.cases for case in load_cases(source, args.split)]
    test_cases = load_cases(args.include_test) if args.include_test else []
    prints = set(map(case_print, cases))
    if args.held_out and (shared := [case.id for case in load_cases(args.held_out) if case_print(case) in prints]):
        raise LawError(
            f"{len(shared)} of the cases are held out, {shared[0]!r} for one: their laws would leak into the test. "
            "Leave them out, or add them with --include-test, which marks the index as leaking"
        )
    laws = [passage for path in args.laws for passage in law_file_passages(path)]
    corpus, tally = write_corpus(args.out, cases, laws, test_cases=test_cases)
    counts = Counter(document.kind for document in corpus.documents) | tally
    leaking = ", LEAKING: laws of test cases are in it" if test_cases else ""
    print(f"{args.out}: {len(corpus.documents):,} documents, stamp {corpus.stamp}{leaking}")
    print(", ".join(f"{name.removeprefix('num_').replace('_', ' ')} {count:,}" for name, count in counts.items()))
    return corpus


def search(args: argparse.Namespace) -> None:
    """Write what is found for each case, one line a case."""
    cases, ranked, corpus = _ranked(args)
    lines = [
        {"doc_id": case.id, "stamp": corpus.stamp, "laws": [asdict(document) for document in ranked[case.id]]}
        for case in cases
    ]
    write_text(args.out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    print(f"{args.out}: {len(lines)} cases")


def evaluate(args: argparse.Namespace) -> None:
    """Print how many of the cases' own laws are found, and how high they stand."""
    from rich.console import Console
    from rich.table import Table

    cases, ranked, corpus = _ranked(args)
    check_no_leak(corpus, cases, args.index)
    own = own_documents(corpus, cases)
    rankings = {
        case.id: Ranked([document.id for document in ranked[case.id]], own[case.id][0], case.difficulty)
        for case in cases
    }
    told = figures(rankings, args.k)
    num_own = sum(num for _, num in own.values())
    told["in_corpus_frac"] = sum(len(ids) for ids, _ in own.values()) / num_own if num_own else 0.0
    if not told["num_cases"]:
        raise LawError("none of the cases' own laws is in the corpus: nothing could be found, so nothing is measured")
    names = (f"recall@{args.k}", f"ndcg@{args.k}", "mrr")
    table = Table(title=f"{args.retriever}, {args.query}", caption="means over cases [95% interval]")
    for heading in ("", *names, "cases"):
        table.add_column(heading, justify="right" if heading else "left")
    for prefix in ["", *(key.removesuffix("num_cases") for key in told if key.endswith("/num_cases"))]:
        keys = [prefix + name for name in names]
        cells = (f"{told[key]:.2f} [{told[f'{key}/low']:.2f},{told[f'{key}/high']:.2f}]" for key in keys)
        table.add_row(prefix.strip("/").rpartition("/")[2] or "all", *cells, f"{told[f'{prefix}num_cases']:g}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    none = f"{told['num_without_relevant']:g} cases have none there and are left out"
    print(f"{told['in_corpus_frac']:.1%} of the cases' own laws are in the corpus; {none}")
    if args.json:
        write_json(args.json, told)


def inspect(args: argparse.Namespace) -> None:
    """Print what one query finds."""
    config, corpus = _config(args), read_corpus(args.index)
    hits = open_search(config, corpus, args.index)([args.text], args.k)[0]
    for rank, (place, score) in enumerate(hits, start=1):
        document = corpus.documents[place]
        print(f"{rank:2}  {score:8.3f}  {document.kind:9}  {visible(document.shown)}")
    if not hits:
        print("nothing in the corpus has a word of this query")


def _ranked(args: argparse.Namespace) -> tuple[list[Case], dict[str, list[Document]], Corpus]:
    config, corpus = _config(args), read_corpus(args.index)
    cases = load_cases(args.cases, args.split)
    return cases, retrieved(cases, config, corpus, args.index), corpus


def _config(args: argparse.Namespace) -> RetrievalConfig:
    try:
        return RetrievalConfig(
            retriever=args.retriever,
            retriever_index=str(args.index),
            retriever_model=args.model,
            retriever_reranker=args.reranker,
            retriever_query=args.query,
            retriever_k=args.k,
        )
    except ValueError as error:
        raise LawError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Make a corpus of the laws that courts cited in training cases, or of your own files, index it by "
        "words and by meaning, and search it for cases: the law that eval/solve.py and train/grpo.py put before a "
        "question with --retriever. The laws of test cases never get in unless you say so.",
        epilog="example: python data/retrieve.py index --cases outputs/dataset/train.jsonl --held-out "
        "outputs/dataset/test.jsonl --out outputs/law && python data/retrieve.py evaluate --index outputs/law --cases "
        "outputs/dataset/test.jsonl",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)

    one = verbs.add_parser("index", help="make corpus and indexes")
    one.set_defaults(work=index)
    one.add_argument("--cases", nargs="*", default=[], help="training cases with relevant_law: files or hub ids")
    one.add_argument("--split", help="the split of a hub data set")
    one.add_argument("--laws", nargs="*", default=[], type=Path, help='JSON Lines of your own: {"citation", "text"}')
    one.add_argument("--held-out", help="test cases: an error if one of them is among --cases")
    one.add_argument("--include-test", help="test cases whose laws go in all the same; the index is marked as leaking")
    one.add_argument("--model", nargs="*", default=[], help="embedding models to index with, beside the words")
    one.add_argument("--out", required=True, type=output_folder, help="the folder of corpus and indexes")

    for name, work, told in (
        ("search", search, "write what is found for the cases of a file"),
        ("evaluate", evaluate, "measure what is found: recall, NDCG, MRR"),
        ("inspect", inspect, "show what one query finds"),
    ):
        one = verbs.add_parser(name, help=told)
        one.set_defaults(work=work)
        one.add_argument("--index", required=True, type=Path, help="the folder that index has written")
        one.add_argument("--retriever", default="bm25", choices=("bm25", "dense", "hybrid"))
        one.add_argument("--model", help="the embedding model of dense and hybrid")
        one.add_argument("--reranker", help="a cross-encoder that orders what was found")
        one.add_argument("--query", default="question", choices=get_args(QueryForm), help="one a case, or a claim")
        one.add_argument("-k", type=positive, default=K_SHOWN, help="documents per case")
        if name == "inspect":
            one.add_argument("text", help="the query")
            continue
        one.add_argument("--cases", required=True, help="case file or hub id")
        one.add_argument("--split", help="the split of a hub data set")
        if name == "search":
            one.add_argument("--out", required=True, type=output_file(), help="JSON Lines: doc_id and laws")
        else:
            one.add_argument("--json", type=output_file(), help="write the figures here too")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when done, 2 for wrong input."""
    return run_command(_parser(), lambda args: args.work(args), argv)


if __name__ == "__main__":
    sys.exit(main())
