"""JSON Lines that survive a killed process, and files that are either whole or absent."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from data.command import InputError

BOM = b"\xef\xbb\xbf"


class JsonlError(InputError):
    """A line is no JSON object; says which line of which file, and what is wrong with it.

    `interrupted` marks a last line that a killed writer left unfinished: no newline, and it does not parse.
    """

    def __init__(self, path: str | Path, line: int, reason: str, *, interrupted: bool = False) -> None:
        self.path = Path(path)
        self.line = line
        self.reason = reason
        self.interrupted = interrupted
        super().__init__(f"{path}, line {line}: {reason}")


def scan_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any] | JsonlError]]:
    """Every line that is not blank, as (line number from 1, the object or what is wrong with the line).

    Lines end at a newline byte and nowhere else, so U+2028 inside a text does no harm; a byte order mark at the
    start and carriage returns at the ends are no part of a line.
    """
    offset = 0
    with Path(path).open("rb") as file:
        for line, raw in enumerate(file, start=1):
            start = offset
            offset += len(raw)
            if line == 1 and raw.startswith(BOM):
                raw, start = raw[len(BOM) :], start + len(BOM)
            if raw.strip():
                yield line, _parse(path, line, raw, start)


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with their line numbers; an unfinished last line is left out as if never written.

    Raises:
        JsonlError: at the first other line that is no JSON object.
    """
    for line, parsed in scan_jsonl(path):
        if not isinstance(parsed, JsonlError):
            yield line, parsed
        elif not parsed.interrupted:
            raise parsed


class Appender:
    """Adds objects to a JSON Lines file, one flushed line each: a killed process loses at most the line it was writing.

    On entering, the folder is made, a line that an earlier process left unfinished is cut off, and a whole one
    that lacks only its newline gets it. One process at a time may write a file. Entering raises ValueError where the
    file ends in something that no writer of JSON Lines leaves, so that a wrong path ruins nothing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "grades.jsonl"
    >>> _ = path.write_bytes(b'{"doc_id": "a"}\\n{"doc_i')
    >>> with Appender(path) as grades:
    ...     grades.append({"doc_id": "b"})
    >>> [grade["doc_id"] for _, grade in read_jsonl(path)]
    ['a', 'b']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _mend_last_line(self.path)
        self._file = self.path.open("ab")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def append(self, obj: dict[str, Any]) -> None:
        """Write one object as one line, out of this process before the call returns.

        Raises:
            ValueError: the object holds NaN or infinity, which JSON cannot say; nothing is written.
        """
        self._file.write(_encode(json.dumps(obj, ensure_ascii=False, allow_nan=False)) + b"\n")
        self._file.flush()


def write_json(path: str | Path, obj: Any) -> None:
    """Write one readable JSON file, whole or not at all."""
    write_text(path, json.dumps(obj, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def write_jsonl(path: str | Path, objects: Iterable[Any]) -> None:
    """Write one JSON Lines file, whole or not at all."""
    write_text(path, "".join(json.dumps(obj, ensure_ascii=False) + "\n" for obj in objects))


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all: written beside, forced to disk, then renamed over the old one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(_encode(text))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _parse(path: str | Path, line: int, raw: bytes, start: int) -> dict[str, Any] | JsonlError:
    unfinished = not raw.endswith(b"\n")
    try:
        obj = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        reason = (
            f"not UTF-8: byte 0x{raw[error.start]:02x} at offset {start + error.start} of the file "
            f"({error.reason}); save the file as UTF-8 (Korean Windows programs may write CP949)"
        )
    except json.JSONDecodeError as error:
        reason = f"not JSON: {error.msg} at character {error.pos + 1} of the line"
    except (ValueError, RecursionError) as error:  # a number of over 4,300 digits, brackets in brackets without end
        reason = f"not readable as JSON: {error}"
    else:
        if isinstance(obj, dict):
            return obj
        return JsonlError(path, line, f"holds a JSON {type(obj).__name__}, must hold one object {{...}}")
    if unfinished:
        reason += "; the file ends within this line, as after an interrupted write or download"
    return JsonlError(path, line, reason, interrupted=unfinished)


def _mend_last_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("r+b") as file:
        start, tail = _last_line(file.seek(0, os.SEEK_END), file)
        if not tail:
            return
        parsed = _parse(path, 0, tail.removeprefix(BOM) if start == 0 else tail, start)
        if not isinstance(parsed, JsonlError):
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
        elif not tail.strip(b"\0 \t\r") or tail.startswith(b"{"):  # zeros: what some file systems leave after a crash
            file.truncate(start)
        else:
            raise ValueError(f"{path} is no JSON Lines file: it ends in {tail[:40]!r}; nothing was added to it")


def _last_line(size: int, file: BinaryIO, block: int = 1 << 16) -> tuple[int, bytes]:
    """Offset and bytes of what follows the last newline, read from the end: logs can be large."""
    tail = b""
    while size > 0:
        step = min(block, size)
        size -= step
        file.seek(size)
        chunk = file.read(step)
        newline = chunk.rfind(b"\n")
        tail = chunk[newline + 1 :] + tail
        if newline >= 0:
            return size + newline + 1, tail
    return 0, tail


def _encode(text: str) -> bytes:
    # A model cut off within an emoji leaves half a surrogate pair, which UTF-8 cannot hold: it is written as the
    # escape \udXXX, which JSON reads back as the same half.
    return text.encode("utf-8", "backslashreplace")
