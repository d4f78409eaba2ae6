"""Language packs: all texts and words that depend on the language of a case, a folder of files for each language.

Which pack a case is asked and judged in, its key "language" says; how to add one: docs/languages.md.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from data.command import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

DEFAULT_LANGUAGE = "ko"
FOLDER = Path(__file__).with_name("languages")


class LanguageError(InputError):
    """A language pack is not complete; says which file, part and key, and what would be right."""


@cache
def languages() -> tuple[str, ...]:
    """The languages that there are packs of, by their codes."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/words.yaml")))


@cache
def read_text(name: str, language: str) -> str:
    """A prompt in that language, to the letter: the pack's file NAME.txt, or any file that is named in full."""
    path = FOLDER / language / (name if "." in name else f"{name}.txt")
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LanguageError(f"the language pack {language!r} lacks {path.name}; there are {languages()}") from None


def fill(template: str, fields: Mapping[str, str]) -> str:
    """The template with each {field} replaced, in one pass: what a field brings is not looked through again."""
    placeholder = re.compile(r"\{(" + "|".join(fields) + r")\}")
    return placeholder.sub(lambda match: fields[match[1]], template)


def read_words(part: str, language: str, kind: type[T]) -> T:
    """A part of a pack's words.yaml as the dataclass of its reader, which needs exactly these keys; patterns compiled.

    Raises:
        LanguageError: it lacks a key, has one that nobody reads, or a pattern is none.
    """
    told = _words(language).get(part) or {}
    kinds = get_type_hints(kind)
    if told.keys() != kinds.keys():
        names = [field.name for field in fields(kind)]
        raise LanguageError(f"{FOLDER / language}/words.yaml: {part} must have the keys {names}, has {list(told)}")
    try:
        return kind(**{name: _compiled(told[name], kinds[name]) for name in kinds})
    except re.error as error:
        raise LanguageError(f"{FOLDER / language}/words.yaml: {part} has a pattern that is none: {error}") from error


def purposes_heading(language: str) -> str:
    """The line of a question behind which the purposes of claim stand."""
    heading: str = _words(language)["purposes_heading"]
    return heading


def _compiled(value: Any, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        return tuple(_compiled(one, get_args(kind)[0]) for one in value)
    return re.compile(value) if get_origin(kind) is re.Pattern else value


@cache
def _words(language: str) -> dict[str, Any]:
    words: dict[str, Any] = yaml.safe_load(read_text("words.yaml", language))
    return words
