"""What all commands do alike: exit statuses, one message for wrong input, types of options that name what is legal."""

import argparse

import pytest

from data.command import InputError, NoAnswerError, json_object, number, positive, run_command


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
    ],
)
def test_other_values_are_refused_with_what_is_legal(read, text, legal):
    with pytest.raises(argparse.ArgumentTypeError, match=legal):
        read(text)
