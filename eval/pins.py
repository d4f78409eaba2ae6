"""What is kept beside the files of an evaluation, so that two that do not belong together are never mixed."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from data.cases import Case
from data.command import InputError
from data.jsonl import read_jsonl, write_json
from data.language import DEFAULT_LANGUAGE

# How responses are drawn, of the settings that eval/solve.py and eval/checkpoints.py keep.
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("repetition_penalty", "presence_penalty", "frequency_penalty"),
)


PROMPTS = ("prompt_version", "group_prompt")  # the settings that each language has of its own


class SettingsError(InputError):
    """A file was begun with other settings than it is now to be continued with; says which differ."""


def holds(path: Path, is_one: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> bool:
    """Whether a JSON Lines file is there and has a record, or one that `is_one`."""
    return path.is_file() and any(is_one(record) for _, record in read_jsonl(path))


def pin_settings(path: str | Path, settings: Mapping[str, Any], *, is_begun: bool = True) -> None:
    """Keep the settings that a file is made with beside it; later runs must have the same.

    Args:
        is_begun: whether anything was made with those that are there; what an attempt got nothing with binds nobody.

    Raises:
        SettingsError: settings that differ from those of the first run.
        InputError: the file is damaged.
    """
    path = Path(path)
    if not (path.exists() and is_begun):
        write_json(path, settings)
        return
    first = read_settings(path)
    if names := differing(first, settings):
        told = "".join(f"  {name}: {first.get(name)!r} then, {settings.get(name)!r} now\n" for name in names)
        raise SettingsError(
            f"{path.parent} was begun with other settings:\n{told}"
            "Use the same settings to continue it, or another output to begin anew."
        )
    if settings.keys() - first.keys():
        write_json(path, {**first, **settings})


def by_language(settings_of: Callable[[str], Mapping[str, Any]], languages: Iterable[str]) -> dict[str, Any]:
    """The settings of cases in these languages: each has prompts of its own, their versions named prompt_version_en.

    Those of the default language have their plain names, as in files of old.
    """
    return {
        name if language == DEFAULT_LANGUAGE or name not in PROMPTS else f"{name}_{language}": value
        for language in sorted(languages) or [DEFAULT_LANGUAGE]
        for name, value in settings_of(language).items()
    }


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The names of settings that differ; the prompts of a language only where both have cases in it."""
    return [
        name
        for name in [*first, *(second.keys() - first.keys())]
        if first.get(name) != second.get(name) and (not name.startswith(PROMPTS) or (name in first and name in second))
    ]


def read_settings(path: Path) -> dict[str, Any]:
    """The settings that `pin_settings` kept.

    Raises:
        InputError: the file holds something else.
    """
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        reason = f"it holds a JSON {type(settings).__name__}"
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, brackets in brackets without end
        settings, reason = None, f"it is no JSON ({error})"
    if not isinstance(settings, dict):
        raise InputError(
            f"{path} is damaged: {reason}, must hold one object {{...}} of the settings that the file beside it was "
            "made with. Restore it from a copy, or make both anew in another output."
        )
    return settings


def sampling_of(path: Path) -> dict[str, Any] | None:
    """How the responses were drawn that the settings in a file are of, None where it does not tell.

    Raises:
        InputError: the file is damaged.
    """
    settings = read_settings(path) if path.is_file() else {}
    request = settings.get("request")
    asked = settings | (request if isinstance(request, dict) else {})
    sampling = {name: asked[name] for name in SAMPLING if asked.get(name) is not None}
    return sampling if "temperature" in sampling else None


def pin_cases(path: Path, cases: Iterable[Case]) -> None:
    """Keep, case by case, a fingerprint of what is judged.

    Raises:
        SettingsError: as `check_cases` does.
    """
    write_json(path, check_cases(path, cases))


def check_cases(path: Path, cases: Iterable[Case]) -> dict[str, str]:
    """The fingerprints of cases, those that `pin_cases` kept in the file included; none where there is no file.

    Raises:
        SettingsError: a case has other issues, claims or conclusions than when its responses were graded.
    """
    known = read_settings(path) if path.is_file() else {}
    now = {case.id: hashlib.sha256(repr(case.issues).encode("utf-8", "surrogatepass")).hexdigest() for case in cases}
    if changed := sorted(id for id, print in now.items() if known.get(id, print) != print):
        raise SettingsError(
            f"{path.parent}: holds grades of {len(changed)} cases that have changed since, such as {changed[0]!r}: "
            "give the cases of that time, or another output, or grade these anew with eval/grade.py --rejudge all"
        )
    return known | now


def set_aside(path: Path) -> Path:
    """Rename a file or folder to the first free NAME.old-1, NAME.old-2 ...; returns where it is."""
    number = 1
    while (aside := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    return path.rename(aside)
