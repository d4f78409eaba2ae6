"""Command line options from config dataclasses, so that an option and its field cannot drift apart."""

import argparse
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from eval.results import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

JUDGE_HELP = "URL of an OpenAI-compatible judge up to and with /v1, or mini: the exact judge of the mini world"


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def add_case_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The options that say which cases: a file or hub id, its split, and how many of them."""
    parser.add_argument("--cases", required=required, help="case file (JSON Lines or Parquet) or hub id")
    parser.add_argument("--split", help="the split of a hub data set")
    parser.add_argument(
        "--on-invalid", default="error", choices=("error", "skip"), help="what to do with invalid cases"
    )
    parser.add_argument("--limit", type=positive, help="only the first so many cases")


def add_config_options(
    parser: argparse._ActionsContainer, config_class: "type[DataclassInstance]", skip: tuple[str, ...] = ()
) -> None:
    """One option per field, `--judge-model` for judge_model, with the field's help and default."""
    kinds = get_type_hints(config_class)
    for field in fields(config_class):
        if field.name in skip:
            continue
        default = "" if field.default in (None, MISSING) else f" (default: {field.default})"
        kind = _plain(kinds[field.name])
        how: dict[str, Any] = {"type": kind}
        if kind is bool:
            how = {"action": argparse.BooleanOptionalAction}
        elif get_origin(kind) is Literal:
            how = {"choices": get_args(kind)}
        parser.add_argument(
            "--" + field.name.replace("_", "-"),
            default=argparse.SUPPRESS,  # what was not given stays out, so that a run's own settings can stand behind
            help=(field.metadata.get("help", "") + default).replace("%", "%%"),
            **how,
        )


def config_from(config_class: type[T], settings: Mapping[str, Any], args: argparse.Namespace) -> T:
    """The config that the settings make where the command line does not say otherwise.

    Raises:
        InputError: a value that the config refuses.
    """
    given = {field.name: getattr(args, field.name) for field in fields(config_class) if field.name in args}
    try:
        return config_class(**{**settings, **given})
    except ValueError as error:
        raise InputError(str(error)) from error


def judge_options(value: str) -> dict[str, str]:
    """The config fields that `--judge VALUE` stands for.

    >>> judge_options("http://localhost:8000/v1")
    {'judge': 'endpoint', 'judge_base_url': 'http://localhost:8000/v1'}
    """
    if "://" in value:
        return {"judge": "endpoint", "judge_base_url": value}
    return {"judge": value}


def _plain(kind: Any) -> Any:
    """The type to parse text with: that of `str | None` is str."""
    if get_origin(kind) in (types.UnionType,):
        return next(part for part in get_args(kind) if part is not type(None))
    return kind
