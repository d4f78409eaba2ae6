"""A user's own laws: JSON Lines of citation and text."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from data.citations import key_of
from data.jsonl import JsonlError, read_jsonl
from data.law import DocumentKind, Passage, passage_of
from data.records import is_unicode

MAX_CHARS = {"text": 100_000, "citation": 1_000}  # a longer text is no law but a book of them


def law_file_passages(path: str | Path) -> Iterator[Passage]:
    """The laws of a user's JSON Lines file: objects with `text` and, unless the text begins with it, `citation`.

    Raises:
        JsonlError: a line that is no such object; names line and key.
    """
    for line, row in read_jsonl(path):
        text, citation, kind = row.get("text", ""), row.get("citation", ""), row.get("kind")
        for name, value in (("text", text), ("citation", citation)):
            if flaw := _flaw(value, MAX_CHARS[name]):
                raise JsonlError(path, line, f"no law: key {name!r} {flaw}")
        if not text.strip():
            raise JsonlError(path, line, "no law: key 'text' is missing or empty")
        if kind not in (None, *get_args(DocumentKind)):
            legal = ", ".join(get_args(DocumentKind))
            raise JsonlError(path, line, f"no law: key 'kind' must be one of {legal}, got {str(kind)[:40]!r}")
        found = passage_of(citation or text)
        key, told = (key_of(citation), citation) if citation else (found.key, found.citation)
        yield Passage(key, kind or (found.kind if found.key or not key else "statute"), told, text.strip())


def _flaw(value: object, max_chars: int) -> str | None:
    """What keeps a value from being a law's text or citation."""
    if not isinstance(value, str):
        return f"must be a string, got {str(value)[:40]!r}"
    if len(value) > max_chars:
        return f"has {len(value):,} characters, the most are {max_chars:,}: give each article a line of its own"
    if "\0" in value:
        return "holds a NUL character, as damaged files do"
    return None if is_unicode(value) else "holds half a surrogate pair, which no UTF-8 text can"
