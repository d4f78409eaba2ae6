"""Keys, types, choices and defaults, read off source code that is never imported."""

import textwrap

import pytest

from train.options import UNKNOWN, Option, keywords_of, options_of, suggest

SOURCE = '''
from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["court", "bare"]


class Strategy(str):
    NO = "no"
    STEPS = "steps"


@dataclass
class Config:
    """Documented."""

    rate: float = field(default=1e-6, metadata={"help": "How fast " "it learns."})
    count: int = 8
    name: str = None
    flag: bool | None = None
    style: Style = "court"
    strategy: Strategy | str = field(default="no")
    kind: str = field(default="a", metadata={"choices": ["a", "b"]})
    weights: list[float] | None = field(default=None)
    kwargs: dict[str, Any] | str | None = None
    made: list[str] = field(default_factory=list)
    odd: Widget = None
    _hidden: int = 0

    def method(self, first, *, second=1, **kwargs):
        third = kwargs.pop("third", None)
        kwargs.pop("_private", None)
'''


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(textwrap.dedent(SOURCE))
    return path


@pytest.fixture
def options(source):
    return options_of(source, "Config")


def test_public_fields_are_keys(options):
    assert list(options) == (
        ["rate", "count", "name", "flag", "style", "strategy", "kind", "weights", "kwargs", "made", "odd"]
    )
    assert options["rate"].help == "How fast it learns."
    assert options["rate"].default == 1e-6
    assert options["made"].default is UNKNOWN
    assert options["count"].owner == "Config"


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("rate", 1, 1.0),
        ("rate", 0.5, 0.5),
        ("count", 3, 3),
        ("name", None, None),
        ("flag", True, True),
        ("style", "bare", "bare"),
        ("strategy", "steps", "steps"),
        ("weights", [1, 2.5], [1.0, 2.5]),
        ("kwargs", {"a": 1}, {"a": 1}),
        ("odd", object, object),
    ],
)
def test_legal_values_pass(options, name, value, accepted):
    if name == "odd":
        value = accepted = {"anything": 1}
    taken = options[name].accept(value)
    assert taken == accepted
    assert type(taken) is type(accepted)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate", "fast", "must be a number, got 'fast'"),
        ("rate", True, "must be a number, got True"),
        ("count", 2.5, "must be a whole number, got 2.5"),
        ("count", True, "must be a whole number"),
        ("flag", "yes", "must be true or false or null"),
        ("style", "cuort", "one of court, bare, got 'cuort': did you mean court?"),
        ("strategy", "step", "one of no, steps, got 'step': did you mean steps?"),
        ("kind", "c", "one of a, b"),
        ("weights", [1, "x"], "a list, each member a number or null"),
        ("weights", 1, "must be a list"),
        ("count", None, "must be a whole number, got None"),
    ],
)
def test_illegal_values_are_told_what_is_legal(options, name, value, message):
    with pytest.raises(ValueError, match="must be") as raised:
        options[name].accept(value)
    assert message in str(raised.value)


def test_names_of_another_file_are_looked_up_there(tmp_path, source):
    other = tmp_path / "other.py"
    other.write_text("class Later:\n    when: Strategy = 'no'\n")
    assert options_of(other, "Later", source)["when"].choices == ("no", "steps")


def test_keywords_of_a_function_include_what_it_pops(source):
    assert keywords_of(source, "method") == ("self", "first", "second", "third")


@pytest.mark.parametrize(("name", "hint"), [("coutn", ": did you mean count?"), ("zzzz", "")])
def test_suggestions_name_the_nearest_or_nothing(name, hint):
    assert suggest(name, {"count": Option("count", "Config", frozenset({"int"}))}) == hint
