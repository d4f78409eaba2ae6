"""What all commands do alike: exit statuses, one message for wrong input, types of options that name what is legal."""

import argparse

import pytest

from data.command import (
    InputError,
    NoAnswerError,
    json_object,
    number,
    option,
    output_file,
    output_folder,
    positive,
    run_command,
    seconds,
)


def outcome(work, kept=""):
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="there")
    return run_command(parser, work, [], kept)


def raising(error):
    def work(_):
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "status", "said"),
    [
        (lambda _: None, 0, ""),
        (lambda _: 0, 0, ""),
        (lambda _: 7, 1, ""),
        (raising(InputError("that is no file")), 2, "that is no file\n"),
        (raising(FileNotFoundError("gone")), 2, "gone\n"),
        (raising(NoAnswerError("dead")), 1, "dead\nIt is in there; the same command goes on from there.\n"),
        (raising(KeyboardInterrupt()), 130, "\nStopped. It is in there; the same command goes on from there.\n"),
    ],
    ids=["done", "nothing undone", "some undone", "wrong input", "no file", "nobody answers", "interrupted"],
)
def test_each_way_to_end_has_its_status_and_its_message(capsys, work, status, said):
    assert outcome(work, kept="It is in {out}") == status
    assert capsys.readouterr() == ("", said)


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        outcome(lambda _: 1 // 0)


def test_an_interrupted_command_that_keeps_nothing_says_no_more_than_that(capsys):
    assert outcome(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "\nStopped.\n"


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (positive, "12", 12),
        (number(0), "2.5", 2.5),
        (number(0, 1), "1", 1.0),
        (json_object, '{"a": null}', {"a": None}),
        (option(seconds), "0.5", 0.5),
    ],
)
def test_legal_values_are_read(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "legal"),
    [
        (positive, "0", "at least 1"),
        (positive, "1.5", "at least 1"),
        (number(0), "-1", "at least 0"),
        (number(0), "inf", "at least 0"),
        (number(0), "nan", "at least 0"),
        (number(0, 2), "2.1", r"in \[0, 2\]"),
        (number(0, 2), "x", r"in \[0, 2\]"),
        (json_object, "[]", "JSON object"),
        (json_object, "{", "JSON object"),
        *((option(seconds), text, "seconds above 0, and not infinite") for text in ("0", "-1", "inf", "nan", "x")),
    ],
)
def test_other_values_are_refused_with_what_is_legal(read, text, legal):
    with pytest.raises(argparse.ArgumentTypeError, match=legal):
        read(text)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder with a file and a folder in it, to be in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (output_file(), "file"),
        (output_file(), "new/deep/file.json"),
        (output_file(".png", ".svg"), "folder/map.PNG"),
        (output_folder, "folder"),
        (output_folder, "new/deep"),
    ],
)
def test_a_path_that_can_be_written_is_taken(places, read, text):
    assert str(read(text)) == text


@pytest.mark.parametrize(
    ("read", "text", "reason"),
    [
        (output_file(), "folder", "must be a file, and folder is a folder"),
        (output_file(), ".", "must be a file"),
        (output_file(), "file/figures.json", "would lie in file, which is a file"),
        (output_file(), "file/deep/figures.json", "would lie in file, which is a file"),
        (output_file(), "", "names no path"),
        (output_file(), "x" * 5000, "name too long"),
        (output_file(".png", ".svg"), "x.gifx", "ends in .png or .svg, got 'x.gifx'"),
        (output_file(".png", ".svg"), "png", "ends in .png or .svg"),
        (output_folder, "file", "must be a folder, and file is a file"),
        (output_folder, "file/out", "would lie in file, which is a file"),
        (output_folder, " ", "names no path"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(places, read, text, reason):
    with pytest.raises(argparse.ArgumentTypeError, match=reason):
        read(text)


@pytest.mark.parametrize(
    ("read", "written", "is_refused"),
    [
        ("cases.jsonl", "cases.jsonl", True),
        ("new=set/../cases.jsonl", "cases.jsonl", True),
        ("set", "set/grades.jsonl", True),
        ("set", "set/summary.json", False),
        ("set", "set/new.jsonl", False),
        ("cases.jsonl", "figures.json", False),
    ],
)
def test_what_is_read_is_not_overwritten(tmp_path, monkeypatch, capsys, read, written, is_refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    for name in ("cases.jsonl", "figures.json", "set/grades.jsonl", "set/summary.json"):
        (tmp_path / name).write_text("kept")
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--json", type=output_file())
    assert run_command(parser, lambda args: args.json.write_text("new") and 0, [read, "--json", written]) == (
        2 if is_refused else 0
    )
    assert (f"{written} holds what is read" in capsys.readouterr().err) == is_refused
    assert (tmp_path / written).read_text() == ("kept" if is_refused else "new")
