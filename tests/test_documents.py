"""Judgments are read from every kind of file that people keep them in; what holds no text is named and skipped."""

import csv
import json
import os
import subprocess
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.documents import Document, DocumentsError, Skipped, read_documents

TEXT = "주 문\n원고의 청구를 기각한다.\n이 유\n피고 □□푸드의 항변은 이유 있다."


def texts(*arguments) -> list[str]:
    return [document.text for document in read_documents(*map(str, arguments)) if isinstance(document, Document)]


def write_pdf(path, lines, *, pages=1):
    """A PDF whose font maps each two-byte code to the same Unicode character, as printers' subsets do."""
    shown = "".join(f"<{line.encode('utf-16-be').hex()}> Tj 0 -14 Td\n" for line in lines)
    content = zlib.compress(f"BT /F 10 Tf 50 800 Td\n{shown}ET".encode())
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def\n"
        b"1 begincodespacerange <0000> <FFFF> endcodespacerange\n1 beginbfrange <0000> <FFFF> <0000> endbfrange\n"
        b"endcmap end end"
    )
    kids = " ".join(f"{6 + page} 0 R" for page in range(pages))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 5 0 R /DescendantFonts "
        b"[<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        b"/Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /X /Flags 4 >> >>] >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap),
    ]
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 3 0 R >> >> >>"
    )
    body, places = b"%PDF-1.7\n", []
    for number, obj in enumerate([*objects, *[page] * pages], start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, obj)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, len(body))
    path.write_bytes(body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1) + table + trailer)


def test_rows_of_every_format_hold_one_judgment_each(tmp_path):
    rows = [{"id": 1, "판결문": TEXT}, {"id": 2, "판결문": "둘째 " * 50_000}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, ["id", "판결문"])
        writer.writeheader()
        writer.writerows(rows)
    for name in ("a.jsonl", "a.parquet", "a.csv"):
        assert texts(tmp_path / name) == [row["판결문"] for row in rows], name
        assert [document.source for document in read_documents(str(tmp_path / name))][1] == f"{tmp_path / name}:2"


def test_the_text_column_can_be_named(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "다른 글", "full": TEXT}), encoding="utf-8")
    assert texts(tmp_path / "a.jsonl", "full") == [TEXT]
    with pytest.raises(DocumentsError, match="row 1: no column 'ful'; there are: text, full"):
        texts(tmp_path / "a.jsonl", "ful")


def test_an_unknown_text_column_is_asked_for(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"case": "가"}', encoding="utf-8")
    with pytest.raises(DocumentsError, match="Name it with --text-column; there are: case"):
        texts(tmp_path / "a.jsonl")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
def test_text_files_of_korean_programs(tmp_path, encoding):
    (tmp_path / "a.txt").write_text(TEXT, encoding=encoding)
    assert texts(tmp_path / "a.txt") == [TEXT]


def test_a_page_shows_its_blocks_line_by_line(tmp_path):
    page = (
        "<html><head><title>법원</title><style>p {}</style><body><script>var 가;</script><!-- 비밀 --><h1>판 결</h1>"
        "<p>원고의 <b>청구</b>를\n   기각한다.</p>다음<br>줄&nbsp;끝<table><tr><td>갑</td><td>을</td></tr></table>"
        "<pre>1. 가\n  2. 나</pre>"
    )
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    (text,) = texts(tmp_path / "a.html")
    lines = [line for line in text.split("\n") if line]
    assert lines == ["판 결", "원고의 청구를 기각한다.", "다음", "줄\xa0끝", "갑 을", "1. 가", "2. 나"]


def test_a_word_document_is_read_with_its_tables(tmp_path):
    import docx

    document = docx.Document()
    document.add_paragraph("주 문")
    document.add_table(1, 2).rows[0].cells[0].text = "2월분"
    document.tables[0].rows[0].cells[1].text = "30,000,000원"
    document.add_paragraph("끝")
    document.save(tmp_path / "a.docx")
    assert texts(tmp_path / "a.docx") == ["주 문\n2월분 30,000,000원\n끝"]


def test_a_pdf_is_read_page_by_page(tmp_path):
    write_pdf(tmp_path / "a.pdf", ["주 문", "원고의 청구를 기각한다.", "가나다라마바사아자차카타파하" * 2], pages=2)
    (text,) = texts(tmp_path / "a.pdf")
    assert text.count("원고의 청구를 기각한다.") == 2
    assert text.count("\f") == 1


def test_what_holds_no_text_is_named_with_the_reason(tmp_path):
    write_pdf(tmp_path / "a_scan.pdf", ["1"])
    (tmp_path / "b_damaged.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / "c_damaged.docx").write_bytes(b"PK")
    (tmp_path / "d_empty.txt").write_text(" \n")
    (tmp_path / "e_note.xyz").write_text("passed over")
    found = list(read_documents(str(tmp_path)))
    assert all(isinstance(document, Skipped) for document in found)
    assert [document.source.rpartition("/")[2] for document in found] == [
        "a_scan.pdf",
        "b_damaged.pdf",
        "c_damaged.docx",
        "d_empty.txt",
    ]
    assert "is scanned: 1 pages" in found[0].reason
    assert "cannot be read" in found[1].reason


def test_what_the_pdf_reader_logs_is_told_once_with_the_files_name(tmp_path, capfd):
    write_pdf(tmp_path / "whole.pdf", ["원고의 청구를 기각한다."] * 9)
    content = (tmp_path / "whole.pdf").read_bytes()
    (tmp_path / "bad.pdf").write_bytes(content.replace(b"startxref\n", b"startxref\n1"))  # points to nowhere
    assert "기각한다" in texts(tmp_path / "bad.pdf")[0]
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path}/bad.pdf: pypdf remarks: ")
    assert line.endswith("(and 1 more remarks)")


def test_a_folder_is_read_with_all_below_it_in_order(tmp_path):
    for name in ("b/2.txt", "a/1.txt", "3.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert texts(tmp_path) == ["3.txt", "a/1.txt", "b/2.txt"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("nowhere.txt/x/y", "no such file or folder"), ("", "no .jsonl, .parquet, .csv"), ("a.hwp", "of what kind is it")],
)
def test_a_source_that_is_none_says_what_would_be(tmp_path, name, complaint):
    if name.endswith("hwp"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DocumentsError, match=complaint):
        list(read_documents(str(tmp_path / name)))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.parquet", b"PAR1xx", "a.parquet: cannot be read as .parquet"),
        ("a.csv", b"text\n\x81\x20\xff\n", "a.csv: cannot be read as .csv"),
        ("a.jsonl", b'{"text": 7}', "row 1: the value of 'text' is no text but int: 7"),
        ("a.csv", b"", "a.csv: holds no record"),
        ("a.csv", b"text\n", "a.csv: holds no record"),
        ("a.jsonl", b"\n", "a.jsonl: holds no record"),
    ],
    ids=["damaged Parquet", "damaged CSV", "a number", "empty CSV", "only a header", "empty JSON Lines"],
)
def test_rows_that_cannot_be_used_are_named(tmp_path, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentsError, match=complaint):
        texts(tmp_path / name)


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a download of one file needs."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        rows = json.dumps({"text": TEXT}).encode() + b"\n"
        file = {"type": "file", "oid": "b" * 40, "size": len(rows), "path": "train.jsonl"}
        repository = {"id": "me/judgments", "sha": "a" * 40, "siblings": [{"rfilename": "train.jsonl"}]}
        replies = {"/tree/": [file], "/api/datasets/me/judgments": repository}
        reply = next((json.dumps(value).encode() for part, value in replies.items() if part in path), None)
        reply = rows if path.endswith("/train.jsonl") else reply
        headers = {"ETag": '"b"'} if reply else {"X-Error-Code": "EntryNotFound"}
        self.send_response(200 if reply else 404)
        for name, value in (headers | {"X-Repo-Commit": "a" * 40, "Content-Length": str(len(reply or b""))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply or b"")

    do_GET = do_HEAD = do_POST = answer  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_rows_of_a_hub_data_set_are_read(tmp_path):
    """In a process of its own, for the hub's client reads its settings when it is imported."""
    pytest.importorskip("datasets")
    program = "from data.documents import read_documents\nfor one in read_documents('me/judgments'): print(one)"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    environment |= {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(tmp_path)}
    environment |= {"NO_PROXY": "127.0.0.1", "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    server.shutdown()
    assert done.stdout.splitlines() == [str(Document("me/judgments:1", TEXT))], done.stderr
