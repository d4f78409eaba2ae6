"""The law that a policy is given with a case: retrieved once, kept with the index, fitted to a token budget."""

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from data.cases import Case
from data.kept_contexts import read_contexts, write_contexts
from data.law import Corpus, Document, LawError, case_passages, case_print, check_no_leak, read_corpus
from data.retrieval import Search, dense_stamp, fuse, hybrid, open_bm25, open_dense, reranked
from data.store import Store

RetrieverName = Literal["none", "bm25", "dense", "hybrid", "gold"]
QueryForm = Literal["question", "claims"]
Contexts = Mapping[str, Sequence[Document]]
"""Case id -> the laws to be put before its question, the best first; a case that is not in it gets none."""

_ROOM = ("retriever_max_tokens", "retriever_tokenizer")
_SEARCH = ("retriever_index", "retriever_reranker", "retriever_query", "retriever_k", *_ROOM)
_HEEDED: Mapping[str, tuple[str, ...]] = {  # what each retriever depends on
    "none": (),
    "gold": _ROOM,
    "bm25": _SEARCH,
    "dense": ("retriever_model", *_SEARCH),
    "hybrid": ("retriever_model", *_SEARCH),
}

TOKENS_PER_CHAR = 0.75  # of Korean law, where no tokenizer is named: see docs/retrieval.md


@dataclass(frozen=True, kw_only=True)
class RetrievalConfig:
    """Which law a policy has at hand, in evaluation and in training alike."""

    retriever: RetrieverName = field(
        default="none",
        metadata={
            "help": "How law is found for a case: bm25, dense, hybrid, gold (the case's own, the upper bound), none."
        },
    )
    retriever_index: str | None = field(
        default=None, metadata={"help": "The folder that data/retrieve.py index has written."}
    )
    retriever_model: str | None = field(
        default=None, metadata={"help": "The embedding model of dense and hybrid: a folder or hub id."}
    )
    retriever_reranker: str | None = field(
        default=None, metadata={"help": "A cross-encoder that orders what was found: a folder or hub id."}
    )
    retriever_query: QueryForm = field(
        default="question",
        metadata={
            "help": "What is searched for: the question, or each claim of the tree, which the policy is not told."
        },
    )
    retriever_k: int = field(default=10, metadata={"help": "Laws to retrieve for a case."})
    retriever_max_tokens: int = field(
        default=2048, metadata={"help": "Room for them in the prompt; what does not fit as a whole is left out."}
    )
    retriever_tokenizer: str | None = field(
        default=None,
        metadata={"help": f"Whose tokens are counted: a folder or hub id; without it {TOKENS_PER_CHAR} a character."},
    )

    def __post_init__(self) -> None:
        if self.retriever not in get_args(RetrieverName):
            raise ValueError(f"retriever must be one of {', '.join(get_args(RetrieverName))}, got {self.retriever!r}")
        if self.retriever_query not in get_args(QueryForm):
            raise ValueError(
                f"retriever_query must be one of {', '.join(get_args(QueryForm))}, got {self.retriever_query!r}"
            )
        if self.retriever not in ("none", "gold") and not self.retriever_index:
            raise ValueError(f"retriever_index must be set for {self.retriever}: data/retrieve.py index writes one")
        if self.retriever in ("dense", "hybrid") and not self.retriever_model:
            raise ValueError(f"retriever_model must be set for {self.retriever}: the one that the index was made with")
        for name in ("retriever_k", "retriever_max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if idle := self.without_effect():
            others = f", nor has {', nor has '.join(idle[1:])}" if idle[1:] else ""
            legal = " or ".join(name for name in get_args(RetrieverName) if idle[0] in _HEEDED[name])
            raise ValueError(
                f"{idle[0]} has no effect with retriever {self.retriever}{others}: take retriever {legal}, or leave it "
                "out (null)"
            )

    def without_effect(self) -> list[str]:
        """The fields that are set, and that the retriever does not heed."""
        heeded = {"retriever", *_HEEDED[self.retriever]}
        return [f.name for f in fields(self) if f.name not in heeded and getattr(self, f.name) != f.default]


def heeded(settings: Mapping[str, Any], retriever: str | None = None) -> dict[str, Any]:
    """Of a run's fields of RetrievalConfig, those that have an effect with another retriever, or with its own.

    >>> heeded({"retriever": "dense", "retriever_model": "m", "retriever_k": 5}, "bm25")
    {'retriever': 'bm25', 'retriever_k': 5}
    """
    retriever = retriever or settings.get("retriever", "none")
    names = _HEEDED.get(str(retriever), settings)
    return {"retriever": retriever} | {name: value for name, value in settings.items() if name in names}


def contexts_for(cases: Sequence[Case], config: RetrievalConfig, *, held_out: bool) -> Contexts:
    """The laws that each case's prompt gets.

    What was retrieved is kept in the index's folder under what it depends on, so that training, its evaluations and
    every rank read the same; the file carries the corpus's stamp.

    Args:
        held_out: whether the cases are to be tested on, so that their own laws must not be in the corpus.

    Raises:
        LawError: no index, one of another corpus, a leak, or a case without the claims that are to be searched for.
    """
    if config.retriever == "none" or not cases:
        return {}
    if config.retriever == "gold":
        found = {case.id: gold_documents(case) for case in cases}
    else:
        folder = Path(config.retriever_index or "")
        corpus = read_corpus(folder)
        if held_out:
            check_no_leak(corpus, cases, folder)
        found = retrieved(cases, config, corpus, folder)
    count = token_counter(config.retriever_tokenizer)
    fitted = {id: fit(documents, config.retriever_max_tokens, count) for id, documents in found.items()}
    num_out = sum(map(len, found.values())) - sum(map(len, fitted.values()))
    if num_out and os.environ.get("RANK", "0") == "0":
        room = f"retriever_max_tokens {config.retriever_max_tokens}"
        print(f"{num_out} of {sum(map(len, found.values()))} laws are left out: no room ({room})", file=sys.stderr)
    return fitted


def retrieval_settings(config: RetrievalConfig) -> dict[str, Any] | None:
    """What prompts depend on besides the cases, None without retrieval: the index by its corpus, wherever it lies."""
    if config.retriever == "none":
        return None
    settings = {name: value for name, value in asdict(config).items() if value is not None}
    if folder := settings.pop("retriever_index", None):
        corpus = read_corpus(folder)
        settings |= {"stamp": corpus.stamp, "is_leaking": corpus.is_leaking}
    return settings


def gold_documents(case: Case) -> list[Document]:
    """The case's own laws, in the order of its tree."""
    return [
        Document(passage.key or f"{case.id} {place}", passage.kind, passage.citation, passage.text)
        for place, passage in enumerate(case_passages(case))
    ]


def fit(documents: Sequence[Document], max_tokens: int, count: Callable[[str], int]) -> tuple[Document, ...]:
    """The best documents that there is room for, each whole: one that is too long makes way for the next."""
    kept: list[Document] = []
    for document in documents:
        num_tokens = count(f"{len(kept) + 1}. {document.shown}\n")  # as the prompt has it
        if num_tokens <= max_tokens:
            kept.append(document)
            max_tokens -= num_tokens
    return tuple(kept)


@cache
def token_counter(tokenizer: str | None) -> Callable[[str], int]:
    """Counts a text's tokens: as the tokenizer has them, else from its length."""
    if tokenizer is None:
        return lambda text: round(TOKENS_PER_CHAR * len(text)) + 1
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise LawError(f"retriever_tokenizer: no tokenizer can be loaded from {tokenizer}: {reason}") from error
    return lambda text: len(loaded(text, add_special_tokens=False)["input_ids"])


def drop_some(contexts: Contexts, share: float, seed: int) -> Contexts:
    """The contexts, emptied for that share of the cases: the same ones for the same seed, however many others."""
    return {
        id: () if random.Random(f"retriever dropout, {seed}, {id}").random() < share else documents
        for id, documents in contexts.items()
    }


def open_search(config: RetrievalConfig, corpus: Corpus, folder: Path) -> Search:
    """The search that a configuration describes, over the indexes of a folder.

    Raises:
        LawError: one of them is missing, or of another corpus or model.
    """
    searches: list[Search] = []
    if config.retriever in ("bm25", "hybrid"):
        searches.append(open_bm25(corpus, folder))
    if config.retriever in ("dense", "hybrid"):
        searches.append(open_dense(corpus, folder, config.retriever_model or ""))
    search = searches[0] if len(searches) == 1 else hybrid(searches)
    return reranked(search, corpus, config.retriever_reranker) if config.retriever_reranker else search


def rank_documents(
    cases: Sequence[Case], config: RetrievalConfig, search: Search, corpus: Corpus
) -> dict[str, list[Document]]:
    """Each case's documents, the best first; what several claims find is fused by reciprocal ranks.

    Raises:
        LawError: a case has no claim to search for.
    """
    queries = {case.id: _queries(case, config.retriever_query) for case in cases}
    hits = iter(search([query for of_case in queries.values() for query in of_case], config.retriever_k))
    fused = {id: fuse([next(hits) for _ in of_case], config.retriever_k) for id, of_case in queries.items()}
    return {id: [corpus.documents[place] for place, _ in ranking] for id, ranking in fused.items()}


def _queries(case: Case, form: QueryForm) -> list[str]:
    if form == "question":
        return [case.question]
    claims = list(dict.fromkeys(claim.content for issue in case.sub_issues for claim in issue.claims))
    if not claims:
        raise LawError(
            f"case {case.id!r} has no claim to search for: take retriever_query question, or cases whose issues tell "
            "their claims"
        )
    return claims


def retrieved(
    cases: Sequence[Case], config: RetrievalConfig, corpus: Corpus, folder: Path
) -> dict[str, list[Document]]:
    """As `rank_documents`, from the file of an earlier call where there is one.

    Raises:
        LawError: as there, or an index is missing or of another corpus.
    """
    names = ("retriever", "retriever_model", "retriever_reranker", "retriever_query", "retriever_k")
    about = {name: value for name, value in asdict(config).items() if name in names} | {"stamp": corpus.stamp}
    if config.retriever_model:
        about["vectors"] = dense_stamp(corpus, folder, config.retriever_model)
    prints = [(case.id, case_print(case)) for case in cases]
    claims = [_queries(case, "claims") for case in cases] if config.retriever_query == "claims" else None
    path = folder / "contexts" / f"{Store.key(about=about, cases=prints, claims=claims)[:24]}.jsonl"
    if not path.is_file():
        write_contexts(path, about, rank_documents(cases, config, open_search(config, corpus, folder), corpus))
    return read_contexts(path, corpus, [case.id for case in cases])
