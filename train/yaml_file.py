"""A flat YAML file read strictly: what a typing mistake would turn into something else is an error with its line."""

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from data.command import InputError


class ConfigError(InputError):
    """The configuration cannot be run; one line per problem, each with where it is and what would be right."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class _Loader(yaml.SafeLoader):
    """YAML 1.2's idea of plain words: only true and false are booleans, and 1e-6 is a number.

    YAML 1.1, PyYAML's own, reads `eval_strategy: no` as false, 1e-6 as text, 010 as eight and 1:30 as ninety.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (as in the base class)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"keys are words, not {key!r}", key_node.start_mark)
            if key in lines:
                problem = f"{key!r} stands here a second time, first on line {lines[key]}: keep one of them"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            lines[key] = line
        return super().construct_mapping(node, deep)


_FLOAT = r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf)|\.(nan|NaN)"
_WORDS_OF_MEANING = {
    re.compile(rf"(?:{pattern})\Z"): (f"tag:yaml.org,2002:{tag}", list(first))
    for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
        ("float", _FLOAT, "-+.0123456789"),
    )
}
for _pattern, (_tag, _first) in _WORDS_OF_MEANING.items():
    _Loader.add_implicit_resolver(_tag, _pattern, _first)


def read_value(text: str) -> Any:
    """What `text` would mean as a value in a file, for values given on the command line.

    >>> read_value("1e-6"), read_value("no"), read_value("true"), read_value("{use_reentrant: false}")
    (1e-06, 'no', True, {'use_reentrant': False})

    Raises:
        ValueError: it is no YAML.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506  (derived from SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"cannot be read as YAML: {_reason(error)}") from None


def read_flat_yaml(path: str | Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The keys of a file with their values, and with their line numbers.

    Raises:
        ConfigError: no such file, not UTF-8, not YAML, a key twice, or anything but keys with values at the top.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError([f"{path}: no such file{_others(path)}"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8"]) from None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        values = loader.construct_document(node) if isinstance(node, yaml.MappingNode) else {}
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise ConfigError([f"{path}, line {line}: a control character stands here, {text[error.position]!r}"]) from None
    except yaml.MarkedYAMLError as error:
        where = f"{path}, line {error.problem_mark.line + 1}" if error.problem_mark else str(path)
        raise ConfigError([f"{where}: {_reason(error)}"]) from None
    except (ValueError, KeyError, AttributeError) as error:  # what yaml lets through when a tag and its value differ
        raise ConfigError(
            [f"{path}: a value is not of the type that its !! tag names: {error}; drop the tag"]
        ) from None
    except RecursionError:
        raise ConfigError(
            [f"{path}: nested too deep; a configuration is lines such as `learning_rate: 1e-6`"]
        ) from None
    if node is None:
        raise ConfigError([f"{path}: holds no keys; a configuration is lines such as `learning_rate: 1e-6`"])
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            [f"{path}, line {node.start_mark.line + 1}: must hold keys with values (`learning_rate: 1e-6`), "
             f"holds a {'list' if isinstance(node, yaml.SequenceNode) else 'single value'}"]
        )  # fmt: skip
    return values, {key.value: key.start_mark.line + 1 for key, _ in node.value}


def flat_yaml(values: Mapping[str, Any]) -> str:
    """The text of a file that `read_flat_yaml`, and any other reader of YAML, reads back as `values`."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


_OTHER_LINE_ENDS = re.compile("[\\x85\\u2028\\u2029]")  # a reader folds them into spaces unless they are escaped


class _Dumper(yaml.SafeDumper):
    pass


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = not any(pattern.match(text) for pattern in _WORDS_OF_MEANING) and not _OTHER_LINE_ENDS.search(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent_str)


def _reason(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        return ", ".join(part for part in (error.context, error.problem) if part)
    return str(error)


def _others(path: Path) -> str:
    found = sorted(str(other) for other in path.parent.glob("[!.]*.yaml"))
    return f"; there are {', '.join(found)}" if found else ""
