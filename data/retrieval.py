"""Search in a law corpus behind one function: by words (BM25), by meaning (dense), by both, reranked.

An index lies in its corpus's folder and carries the corpus's stamp; it is memory-mapped, so many processes share it.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from data.jsonl import write_json
from data.law import Corpus, LawError
from data.visible import visible

Hit = tuple[int, float]
"""A document's place in the corpus, and its score; scores of different retrievers are on different scales."""

Search = Callable[[Sequence[str], int], list[list[Hit]]]
"""search(queries, k): for each query at most k hits, the best first; words find only what has one in common."""

K1, B = 1.5, 0.75  # LEGIT, section 5
TAGS = ("NNG", "NNP", "NNB", "NR", "NP", "VV", "VV-R", "VV-I", "SL", "SN")  # nouns, numerals, verbs, foreign, digits
RRF_K = 60  # Cormack et al. 2009: a document earns 1 / (60 + rank) from each list that it is in
DEPTH = 100  # hits of each list that are fused, or reranked
MAX_TOKENS = 512
_BLOCK = 1 << 16  # documents compared at one time

# What models want besides the text; any other name is taken as one of cosine similarity without prefixes.
_PREFIXES = {"e5": ("query: ", "passage: ")}
_UNNORMALIZED = ("contriever",)


def morphemes(texts: Sequence[str]) -> list[list[str]]:
    """Each text's nouns, numerals, verb stems, foreign words and digits, as Kiwi finds them."""
    return [
        [token.form for token in tokens if token.tag in TAGS]
        for tokens in _kiwi().tokenize([visible(text) for text in texts])
    ]


def build_bm25(corpus: Corpus, folder: Path) -> None:
    """Index the corpus by its words."""
    bm25 = _bm25s().BM25(k1=K1, b=B)
    bm25.index(morphemes([doc.shown for doc in corpus.documents]), show_progress=False)
    bm25.save(folder / "bm25")
    write_json(folder / "bm25" / "about.json", {"stamp": corpus.stamp})


def open_bm25(corpus: Corpus, folder: Path) -> Search:
    """Search by words.

    Raises:
        LawError: the folder has no such index, or one of another corpus.
    """
    _about(corpus, folder / "bm25")
    try:
        bm25 = _bm25s().BM25.load(folder / "bm25", mmap=True)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:  # numpy's and json's words for a broken file
        raise LawError(_damaged(folder / "bm25", error)) from error
    if bm25.scores["num_docs"] != len(corpus.documents):
        raise LawError(_damaged(folder / "bm25", f"{bm25.scores['num_docs']} documents, not {len(corpus.documents)}"))

    def search(queries: Sequence[str], k: int) -> list[list[Hit]]:
        words = morphemes(queries)
        asked = [place for place, query in enumerate(words) if any(word in bm25.vocab_dict for word in query)]
        hits: list[list[Hit]] = [[] for _ in queries]
        if asked:
            places, scores = bm25.retrieve(
                [words[place] for place in asked], k=min(k, len(corpus.documents)), show_progress=False
            )
            for place, found, values in zip(asked, places.tolist(), scores.tolist(), strict=True):
                hits[place] = [hit for hit in zip(found, values, strict=True) if hit[1] > 0]
        return hits

    return search


def build_dense(corpus: Corpus, folder: Path, model: str) -> None:
    """Index the corpus by meaning: one vector a document in half precision, of its first 512 tokens."""
    vectors = _encode(_encoder(model), model, [doc.shown for doc in corpus.documents], is_query=False)
    target = folder / dense_name(model)
    target.mkdir(parents=True, exist_ok=True)
    vectors = vectors.astype(np.float16)
    np.save(target / "vectors.npy", vectors)
    own_stamp = hashlib.sha256(vectors.tobytes()).hexdigest()[:16]
    write_json(target / "about.json", {"stamp": corpus.stamp, "model": model, "vectors": own_stamp})


def dense_stamp(corpus: Corpus, folder: Path, model: str) -> str:
    """What tells a dense index from another: a model of the same name may have learned since."""
    return str(_about(corpus, folder / dense_name(model), "vectors")["vectors"])


def open_dense(corpus: Corpus, folder: Path, model: str) -> Search:
    """Search by meaning.

    Raises:
        LawError: the folder has no index by this model, or one of another corpus.
    """
    target = folder / dense_name(model)
    about = _about(corpus, target, "model", "vectors")
    if about["model"] != model:
        raise LawError(f"{target} was made with {about['model']}, not with {model}: index again with --model {model}")
    try:
        vectors = np.load(target / "vectors.npy", mmap_mode="r")
    except (OSError, EOFError, ValueError) as error:
        raise LawError(_damaged(target, error)) from error
    encoder = _encoder(model)

    def search(queries: Sequence[str], k: int) -> list[list[Hit]]:
        if not queries:
            return []
        asked = _encode(encoder, model, queries, is_query=True).astype(np.float32)
        blocks = range(0, len(vectors), _BLOCK)
        scores = np.concatenate([asked @ vectors[at : at + _BLOCK].astype(np.float32).T for at in blocks], axis=1)
        return [best(row, k) for row in scores]

    return search


def best(scores: "np.ndarray[Any, np.dtype[Any]]", k: int) -> list[Hit]:
    """The k highest scores with their places; of equal ones the earlier place.

    >>> best(np.array([0.1, 0.9, 0.9]), 2)
    [(1, 0.9), (2, 0.9)]
    """
    k = min(k, len(scores))
    kept = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    order = kept[np.lexsort((kept, -scores[kept]))][:k]
    return [(int(place), float(scores[place])) for place in order]


def fuse(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Several rankings as one, by reciprocal ranks: what stands high in many of them comes first.

    >>> [place for place, _ in fuse([[(7, 9.0), (3, 8.0)], [(3, 0.5), (1, 0.4)]], 2)]
    [3, 7]
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, (place, _) in enumerate(ranking, start=1):
            scores[place] = scores.get(place, 0.0) + 1 / (RRF_K + rank)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:k]


def hybrid(searches: Sequence[Search]) -> Search:
    """The searches' rankings fused."""

    def search(queries: Sequence[str], k: int) -> list[list[Hit]]:
        rankings = [one(queries, max(k, DEPTH)) for one in searches]
        return [fuse(of_query, k) for of_query in zip(*rankings, strict=True)]

    return search


def reranked(first: Search, corpus: Corpus, model: str) -> Search:
    """The first search's best, put into a new order by a cross-encoder that reads query and document together."""
    encoder = _loaded("CrossEncoder", model, max_length=MAX_TOKENS)

    def search(queries: Sequence[str], k: int) -> list[list[Hit]]:
        hits: list[list[Hit]] = []
        for query, found in zip(queries, first(queries, max(k, DEPTH)), strict=True):
            places = [place for place, _ in found]
            pairs = [(query, corpus.documents[place].text) for place in places]
            scores = encoder.predict(pairs, show_progress_bar=False).tolist() if pairs else []
            hits.append(sorted(zip(places, scores, strict=True), key=lambda hit: (-hit[1], hit[0]))[:k])
        return hits

    return search


def dense_name(model: str) -> str:
    """The folder of a model's vectors within an index: its name, as far as a folder can have it."""
    return "dense-" + re.sub(r"[^\w.-]+", "_", model.strip("/"))[-100:]


def prefixes(model: str) -> tuple[str, str]:
    """What a model wants before a query, and before a document."""
    return next((pair for name, pair in _PREFIXES.items() if name in model.lower()), ("", ""))


def _encode(encoder: Any, model: str, texts: Sequence[str], *, is_query: bool) -> Any:
    prefix = prefixes(model)[0 if is_query else 1]
    return encoder.encode(
        [prefix + text for text in texts],
        normalize_embeddings=not any(name in model.lower() for name in _UNNORMALIZED),
        show_progress_bar=not is_query,
        convert_to_numpy=True,
    )


def _encoder(model: str) -> Any:
    encoder = _loaded("SentenceTransformer", model)
    encoder.max_seq_length = min(encoder.max_seq_length or MAX_TOKENS, MAX_TOKENS)
    return encoder.half() if encoder.device.type == "cuda" else encoder


def _loaded(kind: str, model: str, **options: Any) -> Any:
    try:
        return getattr(_needed("sentence_transformers"), kind)(model, **options)
    except (OSError, ValueError) as error:
        raise LawError(f"the model {model} cannot be loaded: {str(error).strip().splitlines()[0]}") from error


def _about(corpus: Corpus, folder: Path, *keys: str) -> dict[str, Any]:
    path = folder / "about.json"
    if not path.is_file():
        raise LawError(f"{folder} is no index: make it with data/retrieve.py index")
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in ("stamp", *keys):
            about[key]
    except (ValueError, KeyError, TypeError) as error:
        raise LawError(_damaged(folder, error)) from error
    if about["stamp"] != corpus.stamp:
        raise LawError(
            f"{folder} is an index of another corpus ({about['stamp']}, not {corpus.stamp}): index this one anew"
        )
    return about


def _damaged(folder: Path, what: object) -> str:
    return f"{folder} is damaged ({what}): index again with data/retrieve.py index"


@cache
def _kiwi() -> Any:
    return _needed("kiwipiepy").Kiwi()


@cache
def _bm25s() -> Any:
    """bm25s without numba, which it can do without: where llvmlite is loaded, vLLM 0.31 cannot start its engine."""
    if "numba" in sys.modules:
        return _needed("bm25s")
    sys.modules["numba"] = None  # type: ignore[assignment]  # for `import`: not to be had
    try:
        return _needed("bm25s")
    finally:
        del sys.modules["numba"]


def _needed(package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise LawError(f'retrieval needs {package}: pip install -e ".[retrieval]"') from error
