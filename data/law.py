"""The law corpus: statutes, precedents and principles as documents, from what courts cited or from files of laws."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from data.cases import Case
from data.citations import find_laws, leading_laws, tidy
from data.command import InputError
from data.jsonl import read_jsonl, write_json, write_text
from data.near_duplicates import near_duplicates, signature

DocumentKind = Literal["statute", "precedent", "principle"]

MIN_CHARS = 20  # of a passage besides its citations (LEGIT, section 5): a bare list of articles tells no law
MIN_SIMILARITY = 0.65  # from which two passages are one, as in LEGIT
MAX_DOCUMENT_CHARS = 1200  # what the 512 tokens of the usual encoders hold; a much cited law has no end of wordings
CORPUS_NAME, ABOUT_NAME = "corpus.jsonl", "corpus.json"


class LawError(InputError):
    """A corpus, an index or a question to it is of no use; says which, and what would be right."""


@dataclass(frozen=True, slots=True)
class Document:
    """A law: `id` is the key of its citation (`data.citations`), `text` what courts say it says.

    A principle, which courts state without citing anything, has no citation; its id is made of its text.
    """

    id: str
    kind: DocumentKind
    citation: str
    text: str

    @property
    def shown(self) -> str:
        """The law as one reads it, its citation first."""
        if not self.citation or tidy(self.text).startswith(tidy(self.citation)):
            return self.text
        return f"{self.citation}: {self.text}"


@dataclass(frozen=True, slots=True)
class Passage:
    """What a court or a file says of a law; `key` is None for a principle."""

    key: str | None
    kind: DocumentKind
    citation: str
    text: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents, and `stamp`, a hash of their content that every index and every context of them carries.

    `case_prints` stand for the cases that its laws were taken from; `is_leaking` marks a corpus that was built from
    test cases on purpose.
    """

    documents: tuple[Document, ...]
    stamp: str
    case_prints: frozenset[str]
    is_leaking: bool


def case_passages(case: Case) -> Iterator[Passage]:
    """What the case's tree says of laws, one for each distinct entry of its relevant_law."""
    for text in dict.fromkeys(law.strip() for issue in case.issues for law in issue.relevant_law):
        if text:
            yield passage_of(text)


def passage_of(text: str) -> Passage:
    """The passage with the law that it states first.

    >>> passage_of("민법 제741조: 이익을 반환하여야 한다.").key
    '민법 제741조'
    """
    laws = leading_laws(text)
    if not laws:
        return Passage(None, "principle", "", text)
    return Passage(laws[0].key, laws[0].kind, laws[0].citation, text)


def to_documents(passages: Iterable[Passage]) -> tuple[tuple[Document, ...], dict[str, int]]:
    """One document for each law, and how many passages were short, near-duplicates, or left out of a full document.

    Passages about one law come together, the most frequent first, as far as they fit. A principle that is worded like
    the passage of a law belongs to it.
    """
    counts = Counter(passages)
    substances = {passage: _substance(passage.text) for passage in counts}
    long = [passage for passage, substance in substances.items() if len(substance) >= MIN_CHARS]
    weights = [counts[passage] for passage in long]
    owners = [passage.key for passage in long]
    dropped: set[int] = set()
    for earlier, later in near_duplicates([signature(substances[passage]) for passage in long], MIN_SIMILARITY):
        if owners[later] is None or owners[earlier] is None:
            owners[later] = owners[earlier] = owners[earlier] or owners[later]
        if owners[earlier] == owners[later] and earlier not in dropped:
            dropped.add(later)
            weights[earlier] += weights[later]
    by_law: dict[str, list[int]] = {}
    for place, owner in enumerate(owners):
        if place not in dropped:
            text = tidy(long[place].text)
            by_law.setdefault(owner or f"법리 {hashlib.sha256(text.encode()).hexdigest()[:12]}", []).append(place)
    documents, num_left_out = [], 0
    for id, places in by_law.items():
        ranked = sorted(places, key=lambda place: (-weights[place], place))
        texts = [long[ranked[0]].text]
        for place in ranked[1:]:
            if sum(map(len, texts)) + len(long[place].text) <= MAX_DOCUMENT_CHARS:
                texts.append(long[place].text)
            else:
                num_left_out += 1
        named = next((long[place] for place in ranked if long[place].key), long[ranked[0]])
        documents.append(Document(id, named.kind, named.citation, "\n".join(texts)))
    tally = {
        "num_passages": counts.total(),
        "num_short": counts.total() - sum(counts[passage] for passage in long),
        "num_near_duplicates": len(dropped),
        "num_left_out": num_left_out,
    }
    return tuple(documents), tally


def write_corpus(
    folder: Path, cases: Sequence[Case], laws: Iterable[Passage] = (), *, test_cases: Sequence[Case] = ()
) -> tuple[Corpus, dict[str, int]]:
    """Make the corpus of the cases' laws and of `laws`, and write it; also says how many passages became what.

    With `test_cases`, whose laws a fair test may not have at hand, it is marked as leaking.

    Raises:
        LawError: nothing tells a law.
    """
    everything = [*cases, *test_cases]
    passages = [passage for case in everything for passage in case_passages(case)]
    documents, tally = to_documents([*passages, *laws])
    if not documents:
        raise LawError(
            f"the corpus would be empty: {len(everything)} cases state {len(passages)} laws, none with a text of "
            f"{MIN_CHARS} characters or more. Records need relevant_law (rows of the verl set have none); or give laws "
            'of your own, {"citation", "text"} a line'
        )
    corpus = Corpus(documents, _stamp(documents), frozenset(map(case_print, everything)), bool(test_cases))
    lines = (json.dumps(asdict(document), ensure_ascii=False) + "\n" for document in documents)
    write_text(folder / CORPUS_NAME, "".join(lines))
    about = {"stamp": corpus.stamp, "is_leaking": corpus.is_leaking, "num_documents": len(documents), **tally}
    write_json(folder / ABOUT_NAME, about | {"case_prints": sorted(corpus.case_prints)})
    return corpus, tally


def read_corpus(folder: str | Path) -> Corpus:
    """The corpus of an index folder.

    Raises:
        LawError: there is none, or its documents are not those that it was stamped with.
    """
    path = Path(folder) / CORPUS_NAME
    try:
        about = json.loads((Path(folder) / ABOUT_NAME).read_text(encoding="utf-8"))
        documents = tuple(Document(**row) for _, row in read_jsonl(path))
        corpus = Corpus(documents, about["stamp"], frozenset(about["case_prints"]), about["is_leaking"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LawError(f"{folder} holds no law corpus ({error}): make one with data/retrieve.py index") from error
    if _stamp(documents) != corpus.stamp:
        raise LawError(f"{path} is not what it was when {ABOUT_NAME} was written: make the index anew")
    return corpus


@lru_cache(maxsize=4)
def known_laws(folder: str) -> frozenset[str]:
    """The keys of all laws that a corpus knows: those of its documents, and those that their texts name."""
    documents = read_corpus(folder).documents
    return frozenset(doc.id for doc in documents) | {law.key for doc in documents for law in find_laws(doc.text)}


def check_no_leak(corpus: Corpus, held_out: Iterable[Case], folder: str | Path) -> None:
    """That no held-out case's own laws went into the corpus, unless it is marked as leaking.

    Raises:
        LawError: naming a case.
    """
    if corpus.is_leaking:
        return
    if shared := [case.id for case in held_out if case_print(case) in corpus.case_prints]:
        raise LawError(
            f"{folder} holds the laws of {len(shared)} held-out cases, {shared[0]!r} for one: a court's own citations "
            "would leak into the test. Index the training cases alone; to measure with the leak, index these cases "
            "with --include-test, which marks it"
        )


def case_print(case: Case) -> str:
    """What tells a case whatever its id: a hash of its question, blanks left out."""
    return hashlib.sha256(re.sub(r"\s", "", case.question).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def own_documents(corpus: Corpus, cases: Sequence[Case]) -> dict[str, tuple[frozenset[str], int]]:
    """Case id -> the documents that are its own laws, and how many laws it states, in the corpus or not.

    A statute or precedent is found by its key, a principle by a text that is nearly the same.
    """
    keys: dict[str, set[str]] = {}
    principles: list[tuple[str, str]] = []
    for case in cases:
        stated = [(text, leading_laws(text)) for text in (passage.text for passage in case_passages(case))]
        keys[case.id] = {law.key for _, laws in stated for law in laws}
        principles += [(case.id, text) for text, laws in stated if not laws and len(text) >= MIN_CHARS]
    found = {case_id: own & {document.id for document in corpus.documents} for case_id, own in keys.items()}
    if principles:
        texts = [*(document.text for document in corpus.documents), *(text for _, text in principles)]
        for earlier, later in near_duplicates([signature(_substance(text)) for text in texts], MIN_SIMILARITY):
            if earlier < len(corpus.documents) <= later:
                found[principles[later - len(corpus.documents)][0]].add(corpus.documents[earlier].id)
    num_principles = Counter(case_id for case_id, _ in principles)
    return {id: (frozenset(found[id]), len(keys[id]) + num_principles[id]) for id in keys}


def _substance(text: str) -> str:
    """The text without citations and quotation marks: what two wordings of one law have in common."""
    text = tidy(text)
    for law in reversed(find_laws(text)):
        text = text[: law.start] + text[law.end :]
    return re.sub(r"['\"‘’“”「」]", "", text).strip(" :,.()")


def _stamp(documents: Sequence[Document]) -> str:
    content = json.dumps([asdict(document) for document in documents], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
