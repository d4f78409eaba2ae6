"""Options that several commands of eval/ take: graded sets, and what mirrors a config dataclass, field by field."""

import argparse
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from data.command import InputError, option, output_file
from data.jsonl import write_json, write_text
from data.replicas import split_urls
from eval.tables import Sheet, to_latex
from rewards.judge_config import JudgeConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

RECORDED = "recorded"  # in place of a judge: the verdicts that the response file holds
JUDGE_HELP = "URL of an OpenAI-compatible judge up to and with /v1, or mini: the exact judge of the mini world"
SETS_HELP = (
    "a run's output_dir (its checkpoints, as eval/checkpoints.py graded them), a folder or file of grades "
    "(eval/grade.py); NAME=PATH gives it a name of its own"
)
# --judge says the first two; a command waits for all verdicts; the trial before a run is training's
NOT_OFFERED = ("judge", "judge_base_url", "judge_deadline_s", "judge_preflight")


def add_set_options(parser: argparse.ArgumentParser, also: str = "") -> None:
    """The options that say which graded sets, with which cases, and where their figures and tables go too."""
    parser.add_argument("sets", nargs="+", metavar="SET", help=SETS_HELP + also)
    parser.add_argument("--cases", help="case file or hub id (default: the run's eval_cases)")
    parser.add_argument("--split", help="the split of a hub data set")
    parser.add_argument("--sampling", help="which of a run's ways of sampling (default: greedy)")
    parser.add_argument("--json", type=output_file(), help="write the figures here too")
    parser.add_argument("--latex", type=output_file(), help="write the tables here, for a paper")


def write_also(args: argparse.Namespace, figures: Mapping[str, Any], sheets: Sequence[Sheet]) -> None:
    """Write what --json and --latex ask for."""
    if args.json:
        write_json(args.json, figures)
    if args.latex:
        write_text(args.latex, to_latex(sheets))


def add_judge_options(parser: argparse._ActionsContainer, also: str = "", *, required: bool = False) -> None:
    """`--judge`, and an option for each field of JudgeConfig that is for a command to say."""
    parser.add_argument("--judge", dest="judged_by", type=option(_judged_by), required=required, help=JUDGE_HELP + also)
    add_config_options(parser, JudgeConfig, skip=NOT_OFFERED)


def judge_if_any(args: argparse.Namespace, out: Path) -> JudgeConfig | None:
    """The judge of the command line as `judge_config` has it; None where none is asked: no --judge, or `RECORDED`.

    Raises:
        InputError: options for a judge that is not asked, or as `judge_config` does.
    """
    if args.judged_by not in (None, RECORDED):
        return judge_config(args, out)
    _refuse_judge_options(args, f"--judge {args.judged_by}" if args.judged_by else "no --judge")
    return None


def judge_config(args: argparse.Namespace, out: Path, settings: Mapping[str, Any] | None = None) -> JudgeConfig:
    """The judge of the command line, with a store in `out`, and the settings where it does not say otherwise.

    Raises:
        InputError: a value that the config refuses, or options that the mini world's judge does not heed.
    """
    named = judge_options(args.judged_by) if args.judged_by else {}
    settings = {"judge_store": str(out / "judge_store"), **(settings or {}), **named}
    config = config_from(JudgeConfig, settings, args)
    if config.judge == "mini":
        _refuse_judge_options(args, "the judge mini")
    return config


def _refuse_judge_options(args: argparse.Namespace, judge: str) -> None:
    for field in fields(JudgeConfig):
        if field.name in args:
            option = "--" + field.name.replace("_", "-")
            raise InputError(f"{option} has no effect with {judge}: leave it out, or name a judge's URL with --judge")


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


def _judged_by(value: str) -> str:
    if "://" in value:
        split_urls(value)
    return value


def _plain(kind: Any) -> Any:
    """The type to parse text with: that of `str | None` is str."""
    if get_origin(kind) in (types.UnionType,):
        return next(part for part in get_args(kind) if part is not type(None))
    return kind
