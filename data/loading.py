"""From a file, a folder or a hub id to validated cases: the border that every record crosses once."""

import difflib
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from data.cases import Case, CaseError
from data.command import InputError
from data.jsonl import JsonlError, scan_jsonl
from data.records import from_record, to_record
from data.verl import verl_record

__all__ = ["InvalidCasesError", "Problem", "from_record", "load_cases", "to_record"]

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_FILE_SUFFIXES = (".jsonl", ".json", ".parquet", ".txt", ".gz", ".zip")
_PARQUET_MAGIC = b"PAR1"
MAX_LISTED = 200  # problems in a message: a file of the wrong kind has one a line


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a record, or all of a source (then `line` is None), is of no use.

    `line` counts from 1: the line of a JSON Lines file, else the row of the table.
    """

    line: int | None
    doc_id: str | None
    issue_id: str | None
    reason: str

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line is not None else []
        place += [f"doc_id {self.doc_id!r}"] if self.doc_id is not None else []
        place += [f"issue {self.issue_id!r}"] if self.issue_id is not None else []
        return f"{', '.join(place)}: {self.reason}" if place else self.reason


class InvalidCasesError(InputError):
    """A source is unreadable or holds invalid records; `problems` has every one, in the source's order.

    The message lists them, the first 200 where there are more.
    """

    def __init__(self, source: str, problems: Sequence[Problem], num_records: int = 0) -> None:
        self.source = source
        self.problems = tuple(problems)
        if num_records == 0:
            super().__init__(f"{source}: {'; '.join(map(str, problems))}")
        else:
            super().__init__(
                f"{source}: {_tally(problems, num_records)}\n{_listing(problems)}\n"
                'Mend them, or set on_invalid to "skip" to go on without these records.'
            )


def load_cases(
    source: str | Path, split: str | None = None, on_invalid: Literal["error", "skip"] = "error"
) -> list[Case]:
    """All cases of a source, in its order, each validated, no doc_id twice.

    Args:
        source: a JSON Lines or Parquet file, a folder that holds a data set as the hub stores it, or a hub id such
            as "jinulee-v/legit_ko_verl". A record has the official keys (see `from_record`) or is a row of the
            official verl set (see `verl_record`). What exists on disk is never looked for on the hub.
        split: which split of a folder or hub id; may be left out where there is only one.
        on_invalid: "skip" goes on without invalid records and lists them on stderr. A source that cannot be read,
            or of which no case is left, is an error all the same.

    Raises:
        InvalidCasesError: with all problems of the source.
    """
    if on_invalid not in ("error", "skip"):
        raise ValueError(f'on_invalid must be "error" or "skip", got {on_invalid!r}')
    source = str(source)
    cases: list[Case] = []
    problems: list[Problem] = []
    num_records = num_unparsed = 0
    lines_by_doc_id: dict[str, int] = {}
    for line, row in _rows(source, split):
        num_records += 1
        if isinstance(row, str):
            num_unparsed += 1
            problems.append(Problem(line, None, None, row))
            continue
        doc_id, case, found = _read(row)
        if doc_id is not None:
            first = lines_by_doc_id.setdefault(unicodedata.normalize("NFC", doc_id), line)
            if first != line:
                found.append((None, f"the doc_id occurs twice, first in line {first}"))
        problems += (Problem(line, doc_id, issue_id, reason) for issue_id, reason in found)
        if case is not None and not found:
            cases.append(case)

    if num_records == 0:
        raise _unreadable(source, "holds no record; it is empty")
    if num_unparsed == num_records > 20:  # some other kind of file: its every line need not be named
        reason = f"none of its {num_records} lines is a JSON object, as the lines of JSON Lines are; {problems[0]}"
        raise _unreadable(source, reason)
    if problems and (on_invalid == "error" or not cases):
        raise InvalidCasesError(source, problems, num_records)
    if problems:
        print(f"{source}: left out. {_tally(problems, num_records)}\n{_listing(problems)}", file=sys.stderr)
    return cases


def _read(row: dict[str, Any]) -> tuple[str | None, Case | None, list[tuple[str | None, str]]]:
    """The row's doc_id where it can be told, its case where it is valid, else every reason why not."""
    record = row
    problems: list[tuple[str | None, str]] = []
    if "issues" not in row and isinstance(row.get("extra_info"), dict):
        record, problems = verl_record(row)
    doc_id = record.get("doc_id")
    case = None
    if not problems:
        try:
            case = from_record(record)
        except CaseError as error:
            problems = error.problems
    return doc_id if isinstance(doc_id, str) else None, case, problems


def _rows(source: str, split: str | None) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The source's records with their lines; a string in a record's place says why there is none."""
    path = _find(source)
    if path is None or path.is_dir():
        yield from _data_set_rows(source if path is None else str(path), split)
        return
    if split is not None:
        raise _unreadable(source, f"is one file, it has no split {split!r}; leave split out")
    try:
        if _is_parquet(path):
            yield from _parquet_rows(source, path)
        else:
            for line, parsed in scan_jsonl(path):
                yield line, parsed.reason if isinstance(parsed, JsonlError) else parsed
    except OSError as error:
        raise _unreadable(source, f"cannot be read: {error}") from error


def _find(source: str) -> Path | None:
    """The file or folder that is meant, None for a hub id."""
    path = Path(source).expanduser()
    slashed = Path(source.replace("\\", "/"))  # a relative path that was written down on Windows
    try:
        if source.strip() and path.exists():
            return path
        if "\\" in source and slashed.exists():
            return slashed
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise _unreadable(source, f"is no usable path: {error}") from error
    if _HUB_ID.fullmatch(source) and path.suffix.lower() not in _FILE_SUFFIXES and not path.parent.is_dir():
        return None
    hint = ""
    if "\\" in source or re.match("[A-Za-z]:", source):
        hint = "; it looks like a path of Windows, this machine wants its own path with /"
    elif path.parent.is_dir() and (
        near := difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir()])
    ):
        hint = f"; there is {', '.join(str(path.parent / name) for name in near)}"
    raise _unreadable(source, f"no such file or folder, nor a hub id like owner/name{hint}")


def _is_parquet(path: Path) -> bool:
    if not path.is_file():
        return False  # a pipe gives its bytes once
    with path.open("rb") as file:
        return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _parquet_rows(source: str, path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            row_number = 0
            for batch in file.iter_batches(batch_size=128):  # small: a row as Python objects is ten times its size
                for row in batch.to_pylist():
                    row_number += 1
                    yield row_number, _without_nulls(row)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(source, f"is a damaged Parquet file: {error}") from error


def _data_set_rows(name: str, split: str | None) -> Iterator[tuple[int, dict[str, Any] | str]]:
    try:
        from datasets import Dataset, load_dataset
        from datasets.exceptions import DatasetGenerationError
    except ImportError as error:
        raise _unreadable(name, 'reading it needs the package datasets: pip install "legit-rl[train]"') from error
    try:
        loaded = load_dataset(name, split=split)
    except Exception as error:  # whatever its builders, the hub's client and the HTTP library below it raise
        if split == "valid" and "'validation'" in str(error):  # what it calls the split of a file valid.parquet
            yield from _data_set_rows(name, "validation")
            return
        where = "the folder" if Path(name).is_dir() else "the hub"
        cause = error.__cause__ or error if isinstance(error, DatasetGenerationError) else error  # that says nothing
        reason = f"{type(cause).__name__}: {cause}"
        if type(cause).__name__ in ("CastError", "TypeError"):  # of files that are no one table
            reason = "its records have not all the same keys; name one of its files, whose records may differ"
        raise _unreadable(name, f"cannot be loaded from {where}: {reason}") from error
    if not isinstance(loaded, Dataset):
        if len(loaded) != 1:
            raise _unreadable(name, f"has several splits, name one: {', '.join(loaded)}")
        (loaded,) = loaded.values()
    for row_number, row in enumerate(loaded, start=1):
        yield row_number, _without_nulls(row)


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}  # a table's way to say: no such key


def _unreadable(source: str, reason: str) -> InvalidCasesError:
    return InvalidCasesError(source, [Problem(None, None, None, reason)])


def _tally(problems: Sequence[Problem], num_records: int) -> str:
    num_invalid = len({problem.line for problem in problems})
    return f"{len(problems)} problem{'s'[: len(problems) != 1]} in {num_invalid} of {num_records} records:"


def _listing(problems: Sequence[Problem]) -> str:
    lines = [f"  {problem}" for problem in problems[:MAX_LISTED]]
    if len(problems) > MAX_LISTED:
        lines.append(f"  and {len(problems) - MAX_LISTED} more")
    return "\n".join(lines)
