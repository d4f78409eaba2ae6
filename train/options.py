"""The keys of a configuration, read off the source of the dataclasses that hold them, without importing those.

TRL's GRPOConfig has some 230 keys, and importing it loads torch, which takes ten seconds. Its source is parsed in a
twentieth of one, so that a misspelled key is told at once, whatever version is installed.
"""

import ast
import difflib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

UNKNOWN = object()  # a default that only running the code would tell

_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "list": "a list",
    "dict": "keys with values",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One key: the dataclass that reads it, the types it may have, its default and its legal values if listed.

    `types` are names out of bool, int, float, str, list, dict and null; `items` those of a list's members.
    """

    name: str
    owner: str
    types: frozenset[str]
    items: frozenset[str] = frozenset()
    choices: tuple[str, ...] = ()
    default: Any = UNKNOWN
    help: str = ""

    @property
    def legal(self) -> str:
        """What may stand here, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices) + (" or null" if "null" in self.types else "")
        told = self.types - {"int"} if "float" in self.types else self.types
        words = [text for name, text in _WORDS.items() if name in told]
        if self.items:
            members = " or ".join(text for name, text in _WORDS.items() if name in self.items)
            words[words.index("a list")] = f"a list, each member {members}"
        return " or ".join(words) or "a value"

    def accept(self, value: Any) -> Any:
        """The value as the dataclass wants it: whole numbers become floats where floats are meant.

        Raises:
            ValueError: the value is of no legal type, or none of the legal values.
        """
        accepted = _accept(value, self.types)
        if isinstance(accepted, list) and self.items:
            accepted = [_accept(member, self.items) for member in accepted]
        bad = accepted is UNKNOWN or (isinstance(accepted, list) and UNKNOWN in accepted)
        if bad or (self.choices and isinstance(accepted, str) and accepted not in self.choices):
            raise ValueError(f"must be {self.legal}, got {value!r}{_nearest(value, self.choices)}")
        return accepted


def suggest(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    """A question that names the key that was probably meant; nothing if none is near.

    >>> suggest("learning_rat", ("learning_rate", "num_generations"))
    ': did you mean learning_rate?'
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f": did you mean {near[0]}?" if near else ""


@cache
def options_of(path: Path, class_name: str, vocabulary: Path | None = None) -> Mapping[str, Option]:
    """The public fields of the dataclass `class_name` in the file `path`, without those that it inherits.

    Type aliases and enums are looked up in the same file, then in `vocabulary`.
    """
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in (path, vocabulary) if file]
    body = next(node for node in trees[0].body if isinstance(node, ast.ClassDef) and node.name == class_name).body
    names = {name: node for tree in reversed(trees) for name, node in _definitions(tree)}
    return {
        field.target.id: _option(field.target.id, class_name, field, names)
        for field in body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id[0] != "_"
    }


def keywords_of(path: Path, function_name: str) -> tuple[str, ...]:
    """The names that a function or method takes by keyword, those that it pops off its **kwargs included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function_name)
    named = [argument.arg for argument in function.args.args + function.args.kwonlyargs]
    popped = [
        call.args[0].value
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("kwargs.pop", "kwargs.get") and call.args
        and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    ]  # fmt: skip
    return tuple(name for name in named + popped if name[0] != "_")


def package_file(package: str, relative: str) -> Path | None:
    """A source file of an installed package, found without importing it; None where the package is not installed."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent / relative if spec and spec.origin else None


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.expr | ast.ClassDef]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _option(name: str, owner: str, field: ast.AnnAssign, names: Mapping[str, ast.expr | ast.ClassDef]) -> Option:
    types: set[str] = set()
    items: set[str] = set()
    choices: list[str] = []
    _read_type(field.annotation, names, types, items, choices)
    arguments: dict[str | None, Any] = {"default": _literal(field.value)}
    if isinstance(field.value, ast.Call):
        arguments = {argument.arg: _literal(argument.value) for argument in field.value.keywords}
    metadata = arguments.get("metadata", UNKNOWN)
    told = metadata if isinstance(metadata, dict) else {}
    default = arguments.get("default", UNKNOWN)
    if default is None:
        types.add("null")  # some annotations forget it
    legal = tuple(told.get("choices", choices))
    return Option(name, owner, frozenset(types), frozenset(items), legal, default, told.get("help", ""))


def _read_type(
    node: ast.expr,
    names: Mapping[str, ast.expr | ast.ClassDef],
    types: set[str],
    items: set[str],
    choices: list[str],
) -> None:
    """Adds what an annotation allows to the three collections."""
    match node:
        case ast.BinOp(left=left, right=right):
            for part in (left, right):
                _read_type(part, names, types, items, choices)
        case ast.Constant(value=None):
            types.add("null")
        case ast.Name(id=("bool" | "int" | "float" | "str" | "list" | "dict") as name):
            types.add(name)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
            literal = ast.literal_eval(values)
            listed = literal if isinstance(literal, tuple) else (literal,)
            choices += [value for value in listed if isinstance(value, str)]
            types.update(type(value).__name__ for value in listed)
        case ast.Subscript(value=ast.Name(id="list"), slice=member):
            types.add("list")
            _read_type(member, names, items, set(), [])
        case ast.Subscript(value=ast.Name(id="dict")):
            types.add("dict")
        case ast.Name(id=name) if name in names:
            definition = names[name]
            if isinstance(definition, ast.ClassDef):
                types.add("str")
                choices += [value for value in map(_literal, _assigned(definition)) if isinstance(value, str)]
            else:
                _read_type(definition, names, types, items, choices)
        case _:
            types.update(_WORDS)  # something that this reader does not know: its own class will check it


def _assigned(definition: ast.ClassDef) -> Iterator[ast.expr]:
    return (node.value for node in definition.body if isinstance(node, ast.Assign))


def _literal(node: ast.expr | None) -> Any:
    try:
        return UNKNOWN if node is None else ast.literal_eval(node)
    except ValueError:
        return UNKNOWN


def _accept(value: Any, types: frozenset[str]) -> Any:
    name = "null" if value is None else type(value).__name__
    if name in types:
        return value
    if name == "int" and "float" in types:
        return float(value)
    return UNKNOWN


def _nearest(value: Any, choices: tuple[str, ...]) -> str:
    return suggest(value, choices) if isinstance(value, str) and choices else ""
