import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.jsonl import Appender, JsonlError, read_jsonl, scan_jsonl, write_json, write_text

KOREAN = {"doc_id": "가상지방법원-2023가단1", "response": "피고는 원고에게 돈을 지급하라.\n1. 주문"}
TEXT = st.text(st.characters(exclude_categories=()))  # every code point, halves of surrogate pairs too
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3))
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)


def file_of(folder: Path, content: bytes) -> Path:
    path = folder / "lines.jsonl"
    path.write_bytes(content)
    return path


@settings(deadline=None)
@given(objects=st.lists(OBJECTS, max_size=5))
def test_what_is_appended_is_read_back(tmp_path_factory, objects):
    path = tmp_path_factory.mktemp("jsonl") / "new folder" / "lines.jsonl"
    with Appender(path) as lines:
        for obj in objects:
            lines.append(obj)
    # Two halves of one surrogate pair come back joined: JSON itself knows no other reading of them.
    assert [obj for _, obj in read_jsonl(path)] == [json.loads(json.dumps(obj)) for obj in objects]
    assert [line for line, _ in read_jsonl(path)] == list(range(1, len(objects) + 1))


@settings(deadline=None)
@given(objects=st.lists(OBJECTS, min_size=1, max_size=4), data=st.data())
def test_a_file_cut_at_any_byte_keeps_its_whole_lines_and_goes_on(tmp_path_factory, objects, data):
    path = tmp_path_factory.mktemp("cut") / "lines.jsonl"
    with Appender(path) as lines:
        for obj in objects:
            lines.append(obj)
    content = path.read_bytes()
    cut = content[: data.draw(st.integers(0, len(content)))]
    path.write_bytes(cut)
    num_whole = (cut + b"\n" if content[len(cut) :].startswith(b"\n") else cut).count(b"\n")
    whole = [json.loads(json.dumps(obj)) for obj in objects[:num_whole]]
    assert [obj for _, obj in read_jsonl(path)] == whole
    with Appender(path) as lines:
        lines.append(KOREAN)
    assert [obj for _, obj in read_jsonl(path)] == [*whole, KOREAN]


@pytest.mark.parametrize(
    ("content", "objects"),
    [
        pytest.param(b"", [], id="empty file"),
        pytest.param(b"\xef\xbb\xbf", [], id="byte order mark alone"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}\n', [(1, {"a": 1})], id="byte order mark"),
        pytest.param(b'{"a": 1}\r\n{"a": 2}\r\n', [(1, {"a": 1}), (2, {"a": 2})], id="CRLF"),
        pytest.param(b'\n{"a": 1}\n  \n\n{"a": 2}\n\n', [(2, {"a": 1}), (5, {"a": 2})], id="blank lines are counted"),
        pytest.param(b'{"a": 1}', [(1, {"a": 1})], id="only the last newline is missing"),
        pytest.param(b'{"a": 1}\n{"a', [(1, {"a": 1})], id="interrupted"),
        pytest.param(b'{"a": 1}\n{"a": "\xed\x94', [(1, {"a": 1})], id="interrupted within a letter"),
        pytest.param(b'{"a": 1}\n\0\0\0', [(1, {"a": 1})], id="zeros after a crash"),
        pytest.param('{"a": "b\u2028c\u0085d"}\n'.encode(), [(1, {"a": "b\u2028c\u0085d"})], id="unicode line ends"),
    ],
)
def test_reads(tmp_path, content, objects):
    assert list(read_jsonl(file_of(tmp_path, content))) == objects


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        pytest.param(b'{"a": 1}\n{"a\n{"a": 2}\n', 2, "not JSON", id="bad line in the middle"),
        pytest.param(b'{"a": 1}\n{"a\n', 2, "not JSON", id="bad last line that has its newline"),
        pytest.param(b'{"a": 1}\n[1]\n', 2, "JSON list", id="not an object"),
        pytest.param(b"3", 1, "JSON int", id="last line parses, but is no object"),
        pytest.param(b'{"a": 1}\n{"a": "\xb0\xa1"}\n', 2, "0xb0 at offset 16 of the file", id="CP949"),
        pytest.param(b'\xef\xbb\xbf{"a": "\xff"}\n', 1, "0xff at offset 10 of the file", id="offset counts the mark"),
        pytest.param('{"a": 1}\n'.encode("utf-16"), 1, "not UTF-8", id="UTF-16"),
        pytest.param(b'{"a": 1} {"a": 2}\n', 1, "Extra data at character 10", id="two objects in a line"),
        pytest.param(b'{"a":' + b"[" * 200_000 + b"\n", 1, "not readable as JSON", id="brackets without end"),
        pytest.param(b'{"a":' + b"9" * 5_000 + b"}\n", 1, "not readable as JSON", id="number without end"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content, line, reason):
    path = file_of(tmp_path, content)
    with pytest.raises(JsonlError, match=reason) as caught:
        list(read_jsonl(path))
    assert caught.value.line == line
    assert str(path) in str(caught.value)
    assert f"line {line}:" in str(caught.value)


def test_scanning_goes_on_behind_a_bad_line(tmp_path):
    scanned = list(scan_jsonl(file_of(tmp_path, b'{"a"\n{"a": 1}\nnull\n{"a')))
    assert [line for line, _ in scanned] == [1, 2, 3, 4]
    bad = {line: parsed.interrupted for line, parsed in scanned if isinstance(parsed, JsonlError)}
    assert bad == {1: False, 3: False, 4: True}


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.jsonl"):
        list(read_jsonl(tmp_path / "absent.jsonl"))


@pytest.mark.parametrize("num_letters", [1, 65_535, 65_536, 200_000])
def test_an_unfinished_line_of_any_length_is_cut_off(tmp_path, num_letters):
    path = file_of(tmp_path, b'{"a": 1}\n{"a": "' + b"x" * num_letters)
    with Appender(path) as lines:
        lines.append({"a": 2})
    assert path.read_bytes() == b'{"a": 1}\n{"a": 2}\n'


@pytest.mark.parametrize("content", [b"[\n  {}\n]", b'[{"a": 1}]', b"# notes", b'{\n  "a": 1\n}'])
def test_appending_to_another_kind_of_file_ruins_nothing(tmp_path, content):
    path = file_of(tmp_path, content)
    with pytest.raises(ValueError, match="no JSON Lines file"):
        Appender(path).__enter__()
    assert path.read_bytes() == content


def test_what_json_cannot_say_is_refused_before_a_byte_is_written(tmp_path):
    path = tmp_path / "lines.jsonl"
    with Appender(path) as lines:
        with pytest.raises(ValueError, match="JSON compliant"):
            lines.append({"score": float("nan")})
        lines.append({"score": 1.0})
    assert list(read_jsonl(path)) == [(1, {"score": 1.0})]


def test_a_killed_writer_leaves_every_line_it_appended(tmp_path):
    path = tmp_path / "lines.jsonl"
    program = (
        "import sys; from data.jsonl import Appender\n"
        "with Appender(sys.argv[1]) as lines:\n"
        "    for number in range(10**9):\n"
        "        lines.append({'number': number}); print(number, flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    reported = [int(writer.stdout.readline()) for _ in range(50)]
    os.kill(writer.pid, signal.SIGKILL)
    reported += [int(number) for number in writer.stdout.read().split()]
    writer.wait()
    numbers = [obj["number"] for _, obj in read_jsonl(path)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= len(reported)


def test_files_are_written_whole_and_replace_the_old_one(tmp_path):
    path = tmp_path / "deep" / "summary.json"
    write_json(path, {"old": True})
    write_json(path, KOREAN)
    assert json.loads(path.read_text(encoding="utf-8")) == KOREAN
    assert "가상지방법원" in path.read_text(encoding="utf-8")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("obj", [{"score": float("inf")}, {"score": object()}], ids=["infinity", "no JSON type"])
def test_a_failed_write_leaves_the_old_file(tmp_path, obj):
    path = tmp_path / "summary.json"
    write_json(path, {"old": True})
    with pytest.raises((ValueError, TypeError)):
        write_json(path, obj)
    assert json.loads(path.read_text(encoding="utf-8")) == {"old": True}
    assert list(tmp_path.iterdir()) == [path]


def test_text_keeps_its_line_ends(tmp_path):
    write_text(tmp_path / "a.txt", "가\r\n나\n")
    assert (tmp_path / "a.txt").read_bytes() == "가\r\n나\n".encode()
