"""Answers that were paid for, kept by what was asked: several processes may share one folder of them."""

import hashlib
import json
import os
import secrets
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from data.command import InputError, folder_to_write
from data.jsonl import Appender, JsonlError, read_jsonl


class Store:
    """A folder of answers, read whole when it is opened and only ever added to; the first answer makes it.

    Each process writes one file of its own, named after host, process and chance, so that a shared file system
    needs no locks. An answer has left the process before `put` returns: kill -9 loses none, and a line that was being
    written is ignored later. Where two processes stored the same key, either answer serves. All values are held in
    memory, about 1 KB each.

    Raises:
        InputError: no folder can be there, which is better told now than after the first paid call; JsonlError: a
            damaged line of a file, by name and number.
        OSError: the folder cannot be read.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> key = Store.key(model="judge", messages=["a question"])
    >>> with Store(folder) as store:
    ...     store.put(key, {"verdict": True})
    >>> Store(folder).get(key)
    {'verdict': True}
    """

    def __init__(self, path_dir: str | Path) -> None:
        try:
            self.path_dir = folder_to_write(str(path_dir))
        except InputError as error:
            raise InputError(f"the store of answers {error}") from error
        self._values: dict[str, dict[str, Any]] = {}
        self._read_sizes: dict[Path, int] = {}
        self._writer: Appender | None = None
        self._writer_pid = 0
        self.refresh()

    @staticmethod
    def key(**parts: Any) -> str:
        """Content address of a question: SHA-256 over its parts as canonical JSON.

        >>> Store.key(a=1, b=[2]) == Store.key(b=[2], a=1) != Store.key(a=1, b=[3])
        True
        """
        canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer to that question, None if nobody has stored one."""
        return self._values.get(key)

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keeps an answer; a key that has one keeps it."""
        if key in self._values:
            return
        self._own_writer().append({"key": key, "value": value})
        self._values[key] = value

    def refresh(self) -> None:
        """Reads what other processes have added since the folder was opened or last refreshed."""
        for path in sorted(self.path_dir.glob("*.jsonl")):
            size = path.stat().st_size
            if self._read_sizes.get(path) == size or (self._writer is not None and path == self._writer.path):
                continue
            for number, line in read_jsonl(path):
                if line.keys() != {"key", "value"}:
                    raise JsonlError(path, number, 'no answer of a store: it must hold "key" and "value", nothing else')
                self._values.setdefault(line["key"], line["value"])
            self._read_sizes[path] = size

    def close(self) -> None:
        """Closes this process's file; a later `put` opens another."""
        if self._writer is not None and self._writer_pid == os.getpid():
            self._writer.__exit__(None, None, None)
        self._writer = None

    def __len__(self) -> int:
        return len(self._values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _own_writer(self) -> Appender:
        if self._writer is None or self._writer_pid != os.getpid():  # a forked child must not write its parent's file
            name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
            self._writer = Appender(self.path_dir / name).__enter__()
            self._writer_pid = os.getpid()
        return self._writer
