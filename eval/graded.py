"""Graded sets as the user names them: a run with its checkpoints, an output folder of eval/grade.py, a grades file."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.cases import Case
from data.command import InputError, check_distinct
from data.jsonl import read_jsonl
from data.loading import load_cases
from eval.pins import check_cases, read_settings, sampling_of
from eval.results import Grade, Key, read_grades
from eval.runs import BASE, read_run

GRADES_NAME = "grades.jsonl"
META_NAME = "grades.meta.json"


@dataclass(frozen=True, slots=True)
class GradedSet:
    """The graded responses of one model: `step` where it is a checkpoint of a run, `judge` what its verdicts depend on.

    `num_foreign` grades of the file answer none of the cases and are left out. `has_meta` is False where no file beside
    the grades tells how they were judged, so that `judge` is only what stands in the grades themselves. `sampling` is
    how the responses were drawn (temperature, top_p ...), None where that is not known.
    """

    name: str
    path: Path
    step: int | None
    grades: Mapping[Key, Grade]
    judge: Mapping[str, Any]
    num_foreign: int = 0
    has_meta: bool = True
    sampling: Mapping[str, Any] | None = None

    @property
    def case_ids(self) -> set[str]:
        """The cases that were answered, however often."""
        return {case_id for case_id, _ in self.grades}

    def limited_to(self, case_ids: set[str]) -> "GradedSet":
        """The same set without the other cases."""
        return replace(self, grades={key: grade for key, grade in self.grades.items() if key[0] in case_ids})


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a command works on: the sets in their order, the cases that any of them answers, the source of these."""

    sets: tuple[GradedSet, ...]
    cases: Mapping[str, Case]
    source: str


def read_inputs(
    arguments: Sequence[str],
    cases_source: str | None,
    split: str | None = None,
    sampling: str | None = None,
    last_only: bool = False,
) -> Inputs:
    """The sets that the arguments name, with their cases: those of `cases_source`, else of the run they belong to.

    Args:
        sampling: which of a run's ways of sampling; greedy, or the only one there is, where it is not said.
        last_only: a run stands for its last checkpoint, not for all of them.

    Raises:
        InputError: nothing there, one set given twice, grades of no case, or no cases known.
    """
    found: list[tuple[str | None, int | None, Path]] = []
    for argument in arguments:
        name, path = named(argument)
        here = _grades_files(path, sampling)
        for step, file in here[-1:] if last_only else here:
            # A set with a name of the user's own stands for itself and is no point of a curve.
            found.append((name, None, file) if name and (len(here) == 1 or last_only) else (None, step, file))
    check_distinct([path for _, _, path in found])
    if cases_source is None:
        cases_source, split = _cases_of_run([path for _, _, path in found])
    cases = {case.id: case for case in load_cases(cases_source, split)}
    sets = [_read_set(name, step, path, cases, cases_source) for name, step, path in found]
    names = Counter(graded.name for graded in sets)
    sets = [graded if names[graded.name] == 1 else replace(graded, name=str(graded.path.parent)) for graded in sets]
    answered = set().union(*(graded.case_ids for graded in sets))
    return Inputs(tuple(sets), {id: case for id, case in cases.items() if id in answered}, cases_source)


def named(argument: str) -> tuple[str | None, Path]:
    """A name of the user's own, if any, and the path: "+RAG=outputs/rag" is both, an existing path is only that."""
    name, equals, path = argument.partition("=")
    if not (path if equals else name):
        raise InputError(f"{argument!r} names no path; write PATH or NAME=PATH (an unset variable?)")
    if equals and not Path(argument).exists():
        return name, Path(path)
    return None, Path(argument)


def _grades_files(path: Path, sampling: str | None) -> list[tuple[int | None, Path]]:
    """The grades files that a path stands for, each with its training step, by step; "final" and others come last."""
    if path.is_file():
        return [(None, path)]
    if (path / GRADES_NAME).is_file():
        return [(_step(path.parent.name), path / GRADES_NAME)]
    evaluations = path / "eval" if (path / "eval").is_dir() else path
    by_sampling: dict[str, list[tuple[int | None, Path]]] = {}
    for file in sorted(evaluations.glob(f"*/*/{GRADES_NAME}")):
        if not re.search(r"\.old-\d+$", file.parent.name):  # what other weights gave, set aside
            by_sampling.setdefault(file.parent.name, []).append((_step(file.parents[1].name), file))
    if not by_sampling:
        raise InputError(
            f"{path}: no grades there. Looked for {path / GRADES_NAME} (eval/grade.py writes it) and for "
            f"{evaluations}/<checkpoint>/<sampling>/{GRADES_NAME} (eval/checkpoints.py)."
        )
    chosen = sampling or ("greedy" if "greedy" in by_sampling else min(by_sampling))
    if chosen not in by_sampling:
        raise InputError(f"{path}: nothing graded with sampling {chosen!r}; there is {', '.join(by_sampling)}")
    return sorted(by_sampling[chosen], key=lambda item: (item[0] is None, item[0] or 0, item[1]))


def _step(checkpoint: str) -> int | None:
    match = re.fullmatch(r"checkpoint-(\d+)", checkpoint)
    return 0 if checkpoint == BASE else int(match[1]) if match else None


def _cases_of_run(paths: Sequence[Path]) -> tuple[str, str | None]:
    """The held-out cases of the run under whose folder the first grades lie."""
    for directory in paths[0].absolute().parents[:5]:
        if (directory / "config.yaml").is_file():
            run = read_run(directory)
            if run.eval_cases is not None:
                return run.eval_cases, run.eval_split
    raise InputError(f"{paths[0]} lies in no run that names its eval_cases: say with --cases which cases were answered")


def _read_set(name: str | None, step: int | None, path: Path, cases: Mapping[str, Case], source: str) -> GradedSet:
    meta = path.with_name(META_NAME)
    has_meta = meta.is_file()
    judge = read_settings(meta) if has_meta else {}
    quorum = judge.get("judge_quorum", 1.0)
    if type(quorum) not in (int, float) or not 0 < quorum <= 1:
        raise InputError(f'{meta}: "judge_quorum" must be a number in (0, 1], got {quorum!r}')
    grades = read_grades(path, cases, quorum)
    num_foreign = sum(record["doc_id"] not in cases for _, record in read_jsonl(path))
    if not grades and not num_foreign:
        raise InputError(f"{path} holds no grade; eval/grade.py writes them, or has yet to")
    if not grades:
        raise InputError(f"{path}: none of its grades is of a case of {source}; --cases must name the cases answered")
    if all(grade.is_unjudged for grade in grades.values()):
        raise InputError(f"{path}: none of its {len(grades)} grades holds a verdict; eval/grade.py asks for them again")
    check_cases(path.with_suffix(".cases.json"), [cases[case_id] for case_id, _ in grades])
    judge |= {"judged by": ", ".join(sorted({grade.judge for grade in grades.values()}))}
    models = {grade.response.model for grade in grades.values()}
    own_name = models.pop() if len(models) == 1 else path.parent.name
    # Folders that were graded before the sampling was kept have it with their responses alone.
    told = (path.with_suffix(".sampling.json"), path.with_name("responses.meta.json"))
    sampling = next(filter(None, map(sampling_of, told)), None)
    return GradedSet(name or own_name, path, step, grades, judge, num_foreign, has_meta, sampling)
