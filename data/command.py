"""What commands have in common: their exit statuses, the types of their options, the options that say which cases."""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from data.endpoint import Endpoint

T = TypeVar("T")


class InputError(ValueError):
    """What the user gave cannot be worked with; says what it is and what would be right."""


class OutputFile(PosixPath):
    """A file that is to be written."""


class NoAnswerError(Exception):
    """Whoever is asked, a judge or an endpoint, has ceased to answer; says what came instead."""


def run_command(
    parser: argparse.ArgumentParser,
    work: Callable[[argparse.Namespace], int | None],
    argv: Sequence[str] | None = None,
    kept: str = "",
) -> int:
    """Does a command's work and returns its exit status.

    0 when all is done; 1 when `work` returns how many things are left undone, or nobody answers any more; 2 with one
    message for wrong input; 130 when interrupted. Any other exception is a bug and keeps its traceback.

    Args:
        kept: of a command that can go on, where that is which it has got so far; {out} stands for its option --out.
    """
    args = parser.parse_args(argv)
    goes_on = f"{kept.format_map(vars(args))}; the same command goes on from there." if kept else ""
    try:
        _check_outputs(args)
        return 1 if work(args) else 0
    except KeyboardInterrupt:
        print(f"\nStopped. {goes_on}".rstrip(" "), file=sys.stderr)
        return 130
    except NoAnswerError as error:
        print(f"{error}\n{goes_on}".rstrip("\n"), file=sys.stderr)
        return 1
    except IsADirectoryError as error:  # of a file that is renamed, the second name is its own
        print(f"{error.filename2 or error.filename} is a folder, and must be a file", file=sys.stderr)
        return 2
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2


def _check_outputs(args: argparse.Namespace) -> None:
    """Nothing, if no file to be written is one to be read, or one of records in a folder to be read.

    Raises:
        InputError: it would be lost.
    """
    values = [one for value in vars(args).values() for one in (value if isinstance(value, list) else [value])]
    texts = [str(one) for one in values if isinstance(one, str | Path) and not isinstance(one, OutputFile)]
    read = [Path(name) for text in texts for name in (text, text.partition("=")[2]) if name]  # a set may be NAME=PATH
    for path in (one for one in values if isinstance(one, OutputFile) and one.exists()):
        for source in filter(os.path.exists, read):
            is_inside = path.suffix == ".jsonl" and path.resolve().is_relative_to(source.resolve())
            if is_inside or path.samefile(source):
                raise InputError(f"{path} holds what is read, and would be overwritten: name another file to write")


def whole(low: int) -> Callable[[str], int]:
    """The type of an option that takes whole numbers from `low` on, which is 0 or more."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {low}, got {text!r}")
        return int(text)

    return read


positive = whole(1)


def number(low: float, high: float = math.inf) -> Callable[[str], float]:
    """The type of an option that takes numbers of this range, its ends included, but for infinity.

    >>> number(0, 1)("0.5")
    0.5
    """
    legal = f"of at least {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (low <= value <= high and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"must be a number {legal}, got {text!r}")
        return value

    return read


def seconds(value: str | float) -> float:
    """A time to wait for something: above 0, and not for ever.

    Raises:
        InputError: it is none.
    """
    try:
        time_s = float(value)
    except ValueError:
        time_s = math.nan
    if not 0 < time_s < math.inf:
        raise InputError(f"must be a number of seconds above 0, and not infinite, got {value!r}")
    return time_s


def option(read: Callable[[str], T]) -> Callable[[str], T]:
    """The type of an option whose text `read` reads; what that says of wrong text is told as the option's."""

    def told(text: str) -> T:
        try:
            return read(text)
        except (InputError, OSError) as error:  # the latter: a path that is too long, or may not be looked at
            raise argparse.ArgumentTypeError(str(error)) from error

    return told


def output_file(*endings: str) -> Callable[[str], Path]:
    """The type of an option that names a file to write: none that is a folder or that cannot be in one.

    Args:
        endings: where its ending says what is written, those that it may have.
    """

    def read(text: str) -> Path:
        path = _writable(text)
        if path.is_dir():
            raise InputError(f"must be a file, and {text} is a folder")
        if endings and path.suffix.lower() not in endings:
            raise InputError(f"must be a file that ends in {' or '.join(endings)}, got {text!r}")
        return OutputFile(path)

    return option(read)


def folder_to_write(text: str) -> Path:
    """A folder that is there, or can be made; nothing is made yet.

    Raises:
        InputError: it is a file, or would lie where it cannot be.
    """
    path = _writable(text)
    if path.exists() and not path.is_dir():
        raise InputError(f"must be a folder, and {text} is a file")
    return path


output_folder = option(folder_to_write)  # the type of an option that names one


def _writable(text: str) -> Path:
    path = Path(text)
    if not text.strip():
        raise InputError("names no path (an unset variable?)")
    there = next((one for one in path.parents if one.exists()), None)
    if there is not None and not there.is_dir():
        raise InputError(f"{text} would lie in {there}, which is a file and no folder")
    if there is not None and not path.exists() and not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{text} would lie in {there}, which may not be written to")
    return path


def check_distinct(paths: Sequence[str | Path]) -> None:
    """Nothing, if no two of them are one file or folder.

    Raises:
        InputError: some are: what is given twice would count twice.
    """
    first: dict[Path, str | Path] = {}
    for path in paths:
        place = Path(path).resolve()
        if place in first:
            same = str(path) == str(first[place])
            raise InputError(f"{path} is given twice{'' if same else f', before as {first[place]}'}: give each once")
        first[place] = path


def json_object(text: str) -> dict[str, Any]:
    """An object written as JSON, as `--request` takes it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'must be a JSON object such as {{"top_p": 0.9}}, got {text!r}')
    return value


def add_endpoint_options(parser: argparse._ActionsContainer, base_url_help: str) -> None:
    """The options that say which OpenAI-compatible endpoint is asked, and how patiently."""
    from data.replicas import split_urls

    parser.add_argument("--base-url", type=option(split_urls), help=base_url_help)
    parser.add_argument("--api-key-env", default="OPENAI_API_KEY", help="environment variable that holds its key")
    parser.add_argument("--concurrency", type=positive, default=32, help="requests under way at one time")
    parser.add_argument("--timeout-s", type=option(seconds), default=600.0, help="for one try at one reply")
    parser.add_argument("--max-retries", type=whole(0), default=4, help="further tries after a failed one")


def endpoint_of(args: argparse.Namespace) -> "Endpoint":
    """The endpoint that the options name.

    Raises:
        InputError: no such URL, or no key for it.
    """
    from data.endpoint import Endpoint

    return Endpoint(
        args.base_url,
        args.model,
        api_key_env=args.api_key_env,
        timeout_s=args.timeout_s,
        max_retries=args.max_retries,
        max_concurrency=args.concurrency,
    )


def request_of(args: argparse.Namespace) -> dict[str, Any]:
    """What goes into each request besides the messages; null in --request takes a key out."""
    request = {"temperature": args.temperature, "max_tokens": args.max_tokens} | args.request
    return {name: value for name, value in request.items() if value is not None}


def add_case_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The options that say which cases: a file or hub id, its split, and how many of them."""
    parser.add_argument("--cases", required=required, help="case file (JSON Lines or Parquet) or hub id")
    parser.add_argument("--split", help="the split of a hub data set")
    parser.add_argument(
        "--on-invalid", default="error", choices=("error", "skip"), help="what to do with invalid cases"
    )
    parser.add_argument("--limit", type=positive, help="only the first so many cases")
