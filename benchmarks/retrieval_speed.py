"""Seconds to index a law corpus by its words, and to search it.

example: python -m benchmarks.retrieval_speed --documents 100000 --queries 300
"""

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

from data.command import positive
from data.law import Corpus, Document, case_passages, to_documents
from data.loading import load_cases
from data.retrieval import build_bm25, morphemes, open_bm25

SAMPLES = [Path("data/samples") / f"{name}.jsonl" for name in ("easy", "medium", "hard")]


def main() -> None:
    """Print the seconds of each part. The aim on two cores: 100,000 documents within 180 s, 300 queries within 3 s."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=positive, default=100_000)
    parser.add_argument("--queries", type=positive, default=300)
    args = parser.parse_args()
    cases = [case for path in SAMPLES for case in load_cases(path)]
    documents, _ = to_documents(passage for case in cases for passage in case_passages(case))
    corpus = made_up_corpus([document.text for document in documents], args.documents)
    questions = [cases[number % len(cases)].question[-400:] + f" 사건 {number}" for number in range(args.queries)]
    mean_chars = sum(len(document.text) for document in corpus.documents) / args.documents
    print(f"{args.documents:,} documents of {mean_chars:.0f} characters, load {os.getloadavg()[0]:.1f} before")
    morphemes(["준비"])
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        build_bm25(corpus, Path(folder))
        print(f"indexed in {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        search = open_bm25(corpus, Path(folder))
        print(f"opened in {time.perf_counter() - start:.2f} s")
        start = time.perf_counter()
        hits = search(questions, 10)
        print(f"{len(hits)} queries in {time.perf_counter() - start:.2f} s, load {os.getloadavg()[0]:.1f} after")


def made_up_corpus(texts: list[str], size: int) -> Corpus:
    """Documents put together of clauses of real length, no two alike."""
    rng = random.Random(0)
    words = [word for text in texts for word in text.split()]
    mean_words = len(words) // len(texts)
    documents = tuple(
        Document(str(number), "statute", f"법 제{number}조", " ".join(_clauses(rng, words, mean_words)))
        for number in range(size)
    )
    return Corpus(documents, "made up", frozenset(), is_leaking=False)


def _clauses(rng: random.Random, words: list[str], num_words: int) -> list[str]:
    """Runs of four words, as they stand in the texts, up to about so many."""
    starts = [rng.randrange(len(words) - 4) for _ in range(max(1, round(num_words * rng.uniform(0.5, 1.5) / 4)))]
    return [word for start in starts for word in words[start : start + 4]]


if __name__ == "__main__":
    main()
