"""The folder that a data set is built in: judgments dealt into blocks that workers claim, and what comes of them.

Which block a judgment belongs to follows from its text. A worker holds a block by a lock of the operating system,
which ends with the process, however that ends; only then does it read the block's paid answers. So workers may come
and go on one folder, and none pays for what another has paid.
"""

import fcntl
import hashlib
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from data.documents import Skipped, read_documents
from data.jsonl import Appender, read_jsonl, write_jsonl
from data.judgment_text import parse_judgment
from data.near_duplicates import near_duplicates
from data.selection import Rules, select

NUM_BLOCKS = 256
_GATHERING = NUM_BLOCKS  # the byte of the lock file that stands for the gathered files


@dataclass(frozen=True, slots=True)
class Entry:
    """A judgment to build: `key` is the hash of its text, `kind` civil or administrative; `borderline` says why a model
    must be asked first."""

    key: str
    source: str
    kind: str
    borderline: tuple[str, ...]
    place: tuple[int, int]  # of its text in the plan's file: bytes, from


class Plan:
    """What is to be built, and what was dropped before that, each with its reasons. The texts wait on disk.

    Args:
        with_borderline: whether borderline judgments stay in.
        limit: only the first so many judgments that are not dropped.
    """

    def __init__(
        self, sources: Sequence[str], text_column: str | None, rules: Rules, with_borderline: bool, limit: int | None
    ) -> None:
        self.blocks: dict[int, list[Entry]] = {}
        self.dropped: list[dict[str, Any]] = []
        self.num_kept = 0
        self._texts = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (lives as long as the plan)
        sources_by_key: dict[str, str] = {}
        for document in (document for source in sources for document in read_documents(source, text_column)):
            if self.num_kept == limit:
                break
            if isinstance(document, Skipped):
                self.dropped.append({"source": document.source, "reasons": [f"문서를 읽을 수 없다: {document.reason}"]})
                continue
            judgment = parse_judgment(document.text)
            text = judgment.text.encode("utf-8", "replace")
            key = hashlib.sha256(text).hexdigest()
            first = sources_by_key.get(key)
            sources_by_key.setdefault(key, document.source)
            verdict = select(judgment, rules)
            reasons = list(verdict.reasons) if first is None else [f"같은 글이 이미 있다: {first}"]
            if reasons and not (verdict.status == "borderline" and with_borderline and first is None):
                self.dropped.append({"source": document.source, "doc_id": judgment.doc_id, "reasons": reasons})
                continue
            entry = Entry(key, document.source, verdict.kind, verdict.reasons, (len(text), self._texts.tell()))
            self._texts.write(text)
            self.blocks.setdefault(int(key[:2], 16), []).append(entry)
            self.num_kept += 1

    def text(self, entry: Entry) -> str:
        """The cleaned text of a judgment."""
        return os.pread(self._texts.fileno(), *entry.place).decode("utf-8")


class Folder:
    """The output folder. `calls/BLOCK` keeps what models answered, `blocks/BLOCK-STAMP.jsonl` what came of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _lock(self) -> BinaryIO:
        """Whoever only looks into the folder makes neither this file nor the folder."""
        (self.path / "blocks").mkdir(parents=True, exist_ok=True)
        return (self.path / ".lock").open("ab")

    @contextmanager
    def claimed(self, block: int) -> Iterator[bool]:
        """Within it the block is this process's; False if it is another's."""
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, block)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, block)

    def calls(self, block: int) -> Path:
        """Where the answers to a block's questions are stored."""
        return self.path / "calls" / f"{block:02x}"

    def is_built(self, block: int, stamp: str) -> bool:
        """Whether nothing is left to do for a block; the stamp says what was to be done, and how."""
        return self._results(block, stamp).exists()

    def write(self, block: int, stamp: str, results: Sequence[dict[str, Any]], *, unfinished: bool) -> None:
        """Keeps a block's results in place of all earlier ones."""
        path = self._results(block, "unfinished" if unfinished else stamp)
        write_jsonl(path, results)
        for old in path.parent.glob(f"{block:02x}-*.jsonl"):
            if old != path:
                old.unlink(missing_ok=True)

    def gather(self, plan: Plan) -> Counter[str]:
        """Writes cases.jsonl, judgments.jsonl and rejected.jsonl from the results that are there, block by block.

        Of two cases with one doc_id, or with nearly the same judgment, the first stays. Returns how many judgments
        became "cases", how many were "rejected/CHECK" by the first check that failed, how many are "unfinished".
        """
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, _GATHERING)  # waits for another worker that is at it
        try:
            results = ((entry, result) for entry, result in self._found(plan) if not result["reasons"])
            sound = [(entry.key, entry.source, array("Q", r["signature"])) for entry, r in results]
            pairs = near_duplicates([own for _, _, own in sound])
            twins = {sound[later][0]: sound[earlier][1] for earlier, later in pairs}
            return self._gather(plan, twins)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _GATHERING)

    def _gather(self, plan: Plan, twins: dict[str, str]) -> Counter[str]:
        tally: Counter[str] = Counter()
        sources: dict[str, str] = {}  # by doc_id
        with ExitStack() as stack:
            names = ("cases.jsonl", "judgments.jsonl", "rejected.jsonl")
            cases, judgments, rejected = (stack.enter_context(_rewritten(self.path / name)) for name in names)
            for entry, result in self._found(plan):
                case, reasons = result["case"], result["reasons"]
                if not reasons and entry.key in twins:
                    reasons = [f"duplicate: nearly the same judgment as {twins[entry.key]}"]
                elif not reasons and (first := sources.setdefault(case["doc_id"], entry.source)) != entry.source:
                    reasons = [f"duplicate: the doc_id {case['doc_id']} is that of {first}"]
                tally["rejected/" + reasons[0].partition(":")[0] if reasons else "cases"] += 1
                if reasons:
                    rejected.append({"source": entry.source, "reasons": reasons, "case": case})
                else:
                    cases.append(case | {"kind": entry.kind, "source": entry.source})
                    judgments.append({"doc_id": case["doc_id"], "text": plan.text(entry)})
        tally["unfinished"] = plan.num_kept - tally.total()
        return tally

    def _found(self, plan: Plan) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """The results of the plan's judgments, as far as they are there."""
        for block, entries in sorted(plan.blocks.items()):
            by_key = {entry.key: entry for entry in entries}
            for path in (self.path / "blocks").glob(f"{block:02x}-*.jsonl"):
                with suppress(FileNotFoundError):  # replaced by another worker, which will gather in its turn
                    for _, result in read_jsonl(path):
                        if entry := by_key.pop(result["key"], None):
                            yield entry, result

    def _results(self, block: int, stamp: str) -> Path:
        return self.path / "blocks" / f"{block:02x}-{stamp[:16]}.jsonl"


@contextmanager
def _rewritten(path: Path) -> Iterator[Appender]:
    """A JSON Lines file that is written anew and takes its place when it is whole."""
    beside = path.with_name(f".{path.name}.tmp")
    beside.unlink(missing_ok=True)
    with Appender(beside) as file:
        yield file
    beside.replace(path)
