"""Flat YAML, read strictly and written so that it reads back the same."""

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from train.yaml_file import ConfigError, flat_yaml, read_flat_yaml, read_value

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("5.0e-4", 5e-4),
        (".5", 0.5),
        ("-5", -5),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("null", None),
        ("", None),
        ("'1e-6'", "1e-6"),
        ("[1, 2e-3, x]", [1, 2e-3, "x"]),
        ("{use_reentrant: false}", {"use_reentrant": False}),
        (".inf", float("inf")),
    ],
)
def test_words_mean_what_they_look_like(text, value):
    read = read_value(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no keys"),
        (b"# a comment\n", "holds no keys"),
        (b"- a\n- b\n", "line 1: must hold keys with values .* holds a list"),
        (b"\n\nhello", "line 3: must hold keys"),
        (b"a: 1\nb: 2\na: 3\n", "line 3: 'a' stands here a second time, first on line 1"),
        (b"a:\n  b: 1\n  b: 2\n", "line 3: 'b' stands here a second time, first on line 2"),
        (b"a: \xb0\xa1\n", "not UTF-8 at byte 3"),
        (b"a: 1\nb: [1\n", "line 3: .*expected ',' or '\\]'"),
        (b"a: 1\n---\nb: 2\n", "line 2: .*another document"),
        (b"7: seven\n", "line 1: keys are words, not 7"),
        (b"a: 1\n\tb: 2\n", "line 2: .*cannot start any token"),
        (b"a: 1\nb: \x07\n", "line 2: a control character"),
        (b"a: !!python/object:os.system x\n", "line 1: could not determine a constructor"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "run.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as raised:
        read_flat_yaml(path)
    assert str(raised.value).startswith(str(path))
    assert "drop the tag" not in str(raised.value)


def test_a_missing_file_names_those_that_are_there(tmp_path):
    for name in ("mini.yaml", ".pre-commit-config.yaml"):
        (tmp_path / name).write_text("a: 1")
    with pytest.raises(ConfigError) as caught:
        read_flat_yaml(tmp_path / "nini.yaml")
    assert str(caught.value) == f"{tmp_path}/nini.yaml: no such file; there are {tmp_path}/mini.yaml"


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_flat_yaml(tmp_path)


def test_a_file_from_windows_reads_as_any_other(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: x\r\n")
    assert read_flat_yaml(path) == ({"a": 1, "b": "x"}, {"a": 1, "b": 2})


@example({"a": "\x85", "b": "원고\u2028피고"})
@given(
    st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), SCALARS | st.lists(SCALARS, max_size=3), max_size=4)
)
def test_what_is_written_reads_back_the_same_here_and_elsewhere(values):
    text = flat_yaml(values)
    assert (read_value(text) or {}) == values
    assert (yaml.safe_load(text) or {}) == values


@pytest.mark.parametrize(
    "text",
    ["seed: !!int abc", "temperature: !!float x", "bf16: !!bool xx", "run_name: !!timestamp abc", "a: " + "[" * 3000],
    ids=["int", "float", "bool", "timestamp", "deep"],
)
def test_a_tag_that_does_not_fit_and_a_bottomless_list_are_told(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        read_flat_yaml(path)
