"""Raw judgments, wherever they lie: files of rows, folders of documents, hub data sets."""

import csv
import importlib
import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.command import InputError
from data.jsonl import JsonlError, read_jsonl

TEXT_COLUMNS = ("text", "judgment", "content", "body", "판결문", "전문", "본문")
MIN_CHARS_A_PAGE = 40  # a PDF with less has pictures of pages
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_BLOCK_TAGS = {"p", "div", "br", "tr", "li", "table", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre"}


class DocumentsError(InputError):
    """A source as a whole is of no use; says which, and what would be right."""


@dataclass(frozen=True, slots=True)
class Document:
    """A judgment as its source tells it; `source` is its file, with the row where there are several."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that tells no text, and why."""

    source: str
    reason: str


def read_documents(source: str, text_column: str | None = None) -> Iterator[Document | Skipped]:
    """The documents of a file, of a folder with all below it, or of a hub data set, in a fixed order.

    Rows come from .jsonl, .parquet, .csv and the hub: one column holds the text. A .txt, .html, .pdf or .docx file is
    one document; files of other kinds in a folder are passed over.

    Raises:
        DocumentsError: there is no such source, it is damaged, or there is no record or no column of text in it.
    """
    is_empty = True
    for document in _documents(source, text_column):
        is_empty = False
        yield document
    if is_empty:
        raise DocumentsError(f"{source}: holds no record; it must have at least one row with a judgment's text")


def _documents(source: str, text_column: str | None) -> Iterator[Document | Skipped]:
    path = Path(source).expanduser()
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.suffix.lower() in _ROWS.keys() | _TEXTS.keys() and p.is_file())
        if not paths:
            raise DocumentsError(f"{source}: no {', '.join([*_ROWS, *_TEXTS])} file in this folder")
        for inner in paths:
            yield from _read_file(inner, text_column)
    elif path.is_file():
        if path.suffix.lower() not in _ROWS.keys() | _TEXTS.keys():
            raise DocumentsError(f"{source}: of what kind is it? Known are {', '.join([*_ROWS, *_TEXTS])}")
        yield from _read_file(path, text_column)
    elif _HUB_ID.fullmatch(source):
        yield from _rows(source, _hub_rows(source), text_column)
    else:
        raise DocumentsError(f"{source}: no such file or folder, nor a hub id like owner/name")


def _read_file(path: Path, text_column: str | None) -> Iterator[Document | Skipped]:
    suffix = path.suffix.lower()
    if suffix in _ROWS:
        yield from _rows(str(path), _file_rows(path, suffix), text_column)
        return
    try:
        text = _TEXTS[suffix](path)
    except DocumentsError:
        raise
    except Exception as error:  # whatever the readers of foreign formats raise at a damaged file
        yield Skipped(str(path), f"cannot be read: {type(error).__name__}: {error}")
        return
    yield text if isinstance(text, Skipped) else Document(str(path), text) if text.strip() else _blank(str(path))


def _file_rows(path: Path, suffix: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        yield from _ROWS[suffix](path)
    except JsonlError:
        raise
    except Exception as error:  # whatever the readers of foreign formats raise at a damaged file
        told = f"{type(error).__name__}: {error}"
        raise DocumentsError(f"{path}: cannot be read as {suffix}, is it whole? {told}") from error


def _rows(source: str, rows: Iterator[tuple[int, dict[str, Any]]], column: str | None) -> Iterator[Document | Skipped]:
    for number, row in rows:
        name = column or next((name for name in TEXT_COLUMNS if isinstance(row.get(name), str)), None)
        if name is None and (known := next((name for name in TEXT_COLUMNS if name in row), None)):
            raise DocumentsError(
                f"{source}, row {number}: the value of {known!r} is no text but {type(row[known]).__name__}: "
                f"{str(row[known])[:40]}. Which column holds the text? Name it with --text-column; there are: "
                f"{', '.join(map(str, row))} (with --text-column {known}, rows without text are skipped)"
            )
        if name is None or name not in row:
            told = f"no column {column!r}" if column else "which column holds the text? Name it with --text-column"
            raise DocumentsError(f"{source}, row {number}: {told}; there are: {', '.join(map(str, row))}")
        place = f"{source}:{number}"
        is_text = isinstance(row[name], str) and row[name].strip()
        yield Document(place, row[name]) if is_text else _blank(place)


def _blank(source: str) -> Skipped:
    return Skipped(source, "holds no text")


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(1 << 27)  # a judgment in a cell is longer than Python's default of 128 KB
    yield from enumerate(csv.DictReader(_read_text(path).splitlines(keepends=True)), start=1)


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    pq: Any = importlib.import_module("pyarrow.parquet")
    with pq.ParquetFile(path) as file:
        rows = (row for batch in file.iter_batches(batch_size=128) for row in batch.to_pylist())
        yield from enumerate(rows, start=1)


def _hub_rows(name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    load_dataset = _needed("datasets", "train", name).load_dataset
    try:
        for split, rows in load_dataset(name, streaming=True).items():
            for number, row in enumerate(rows, start=1):
                yield number, row | {"split": split}
    except Exception as error:  # whatever its builders, the hub's client and the HTTP library below it raise
        raise DocumentsError(f"{name}: cannot be loaded from the hub: {type(error).__name__}: {error}") from error


def _read_text(path: Path) -> str:
    """A file as text: UTF-8, UTF-16 with its mark, or else CP949, which Korean Windows programs write."""
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp949")


def _read_pdf(path: Path) -> str | Skipped:
    with _remarks("pypdf", path):
        reader = _needed("pypdf", "build", str(path)).PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return Skipped(str(path), "is locked with a password")
        pages = [page.extract_text() for page in reader.pages]
    if sum(len("".join(page.split())) for page in pages) < MIN_CHARS_A_PAGE * len(pages):
        return Skipped(str(path), f"is scanned: {len(pages)} pages and hardly any text; run it through OCR first")
    return "\f".join(pages)


def _read_docx(path: Path) -> str:
    lines: list[str] = []
    for block in _needed("docx", "build", str(path)).Document(str(path)).iter_inner_content():
        rows = getattr(block, "rows", None)  # a table, where a paragraph has text
        lines += [block.text] if rows is None else [" ".join(cell.text for cell in row.cells) for row in rows]
    return "\n".join(lines)


def _read_html(path: Path) -> str:
    """The text that a page shows, a line for each block."""
    page = _needed("lxml.html", "build", str(path)).document_fromstring(_read_text(path))
    for hidden in page.xpath("//script | //style | //title | //comment()"):
        hidden.drop_tree()
    for node in page.iter():
        if node.tag not in ("pre", "br"):  # of which white space is a part
            node.text = node.text and re.sub(r"\s*\n\s*", " ", node.text)
        node.tail = node.tail and re.sub(r"\s*\n\s*", " ", node.tail)
        if node.tag in _BLOCK_TAGS:
            node.text, node.tail = f"\n{node.text or ''}", f"\n{node.tail or ''}"
        elif node.tag in ("td", "th"):
            node.tail = f" {node.tail or ''}"
    return "\n".join(line.strip() for line in page.text_content().split("\n"))


@contextmanager
def _remarks(package: str, path: Path) -> Iterator[None]:
    """What a package logs about a file, which may be a line for each of its letters, is told once, with its name."""
    said: Counter[str] = Counter()
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.update([record.getMessage()])  # type: ignore[method-assign]
    logger = logging.getLogger(package)
    logger.addHandler(handler)
    logger.propagate, before = False, logger.propagate
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
        if said:
            more = f" (and {said.total() - 1} more remarks)" if said.total() > 1 else ""
            print(f"{path}: {package} remarks: {next(iter(said))}{more}", file=sys.stderr)


def _needed(package: str, extra: str, source: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise DocumentsError(f'{source}: reading it needs {package}: pip install "legit-rl[{extra}]"') from error


_ROWS: dict[str, Callable[[Path], Iterator[tuple[int, dict[str, Any]]]]] = {
    ".jsonl": read_jsonl,
    ".parquet": _parquet_rows,
    ".csv": _csv_rows,
}
_TEXTS: dict[str, Callable[[Path], str | Skipped]] = {
    ".txt": _read_text,
    ".html": _read_html,
    ".htm": _read_html,
    ".pdf": _read_pdf,
    ".docx": _read_docx,
}
