"""Who annotates what, and what the filled-in workbooks say; pure but for reading them."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.cases import Case, Issue
from data.command import InputError
from eval.results import Response, response_of
from eval.workbook import CONTAINS, CORRECT, EXPORT_CELL, GUIDE, NO, RATER_CELL, YES, Returned, label, read_workbook
from rewards.score import Judgment

KEY_NAME = "key.json"
_VERDICTS = {YES: True, NO: False}
_EXPORT_ID = re.compile("[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Key:
    """What the workbooks hide: which response stands behind a sheet's name, and which issues its case has."""

    export: str
    raters: tuple[str, ...]
    responses: Mapping[str, Response]
    issue_ids: Mapping[str, tuple[str, ...]]

    def case(self, sheet: str) -> Case:
        """The sheet's case, with as much of it as a score needs."""
        issues = tuple(Issue(id, "-", (), "-") for id in self.issue_ids[sheet])
        return Case(self.responses[sheet].case_id, "-", issues)

    def to_record(self) -> dict[str, object]:
        """The content of key.json."""
        responses = {
            name: response.to_record() | {"issue_ids": self.issue_ids[name]}
            for name, response in self.responses.items()
        }
        return {"export": self.export, "raters": self.raters, "responses": responses}


def read_key(path: Path) -> Key:
    """The key of an export.

    Raises:
        InputError: it is not there, or is no key.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Key(
            content["export"],
            tuple(content["raters"]),
            {name: response_of(path, 1, record) for name, record in content["responses"].items()},
            {name: tuple(record["issue_ids"]) for name, record in content["responses"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not the key that eval/annotate.py export wrote ({error}); give it by --key"
        ) from error


def choose(pairs: Sequence[tuple[Case, Response]], num: int, seed: int) -> list[tuple[Case, Response]]:
    """So many of the responses, in a random order in which every start is balanced.

    Difficulties and generators take turns; within one the response of the case that came up least is next.
    """
    rng = random.Random(seed)
    strata: dict[tuple[str, str], list[tuple[Case, Response]]] = {}
    for case, response in sorted(pairs, key=lambda pair: (pair[1].model, pair[1].key)):
        strata.setdefault((case.difficulty or "", response.model), []).append((case, response))
    queues = [rng.sample(members, len(members)) for members in strata.values()]
    rng.shuffle(queues)
    times: Counter[str] = Counter()
    chosen: list[tuple[Case, Response]] = []
    while len(chosen) < num and any(queues):
        for queue in queues:
            if queue and len(chosen) < num:
                place = min(range(len(queue)), key=lambda n: times[queue[n][0].id])
                chosen.append(queue.pop(place))
                times[chosen[-1][0].id] += 1
    return chosen


def assign(chosen: Sequence[tuple[Case, Response]], num_raters: int, overlap: float, seed: int) -> list[list[int]]:
    """For each rater the places in `chosen` of what it marks, in an order of its own.

    The first `overlap` of them go to all raters; each of the others to the one that has fewest of its difficulty and
    generator, and fewest in all.
    """
    num_shared = round(overlap * len(chosen))
    shares: list[list[int]] = [list(range(num_shared)) for _ in range(num_raters)]
    counts: list[Counter[tuple[str, str]]] = [Counter() for _ in range(num_raters)]
    for place, (case, response) in enumerate(chosen[num_shared:], start=num_shared):
        stratum = (case.difficulty or "", response.model)
        rater = min(range(num_raters), key=lambda n: (counts[n][stratum], len(shares[n]), n))
        shares[rater].append(place)
        counts[rater][stratum] += 1
    return [random.Random(f"{seed}, {n}").sample(share, len(share)) for n, share in enumerate(shares)]


def marks_of(returned: Returned, key: Key) -> tuple[dict[str, dict[str, Judgment | None]], list[str]]:
    """The marks on each sheet by issue id, None where there is none, and what is wrong, by sheet and cell.

    Raises:
        InputError: the workbook is of another export, or its front sheet no longer tells of which.
    """
    raters = ", ".join(key.raters)
    if returned.export != key.export and _EXPORT_ID.fullmatch(returned.export):
        raise InputError(
            f"{returned.path}: the workbook is of export {returned.export!r}, the key of export {key.export!r} with "
            f"{raters}: give the key beside which it was exported (--key)"
        )
    if returned.export != key.export or returned.rater not in key.raters:
        raise InputError(
            f"{returned.path}: the sheet {GUIDE} was changed: {RATER_CELL} says {returned.rater!r}, it must name the "
            f"rater ({raters}), and {EXPORT_CELL} says {returned.export!r}, it must be {key.export!r}. Copy the sheet "
            "from the workbook that was exported, or mend the two cells; the marks stay"
        )
    marks: dict[str, dict[str, Judgment | None]] = {}
    problems: list[str] = []
    for sheet, rows in returned.sheets.items():
        if sheet not in key.issue_ids:
            problems.append(f"{sheet}: a sheet that was not exported; left out")
            continue
        marks[sheet] = {}
        for issue_id in key.issue_ids[sheet]:
            if label(issue_id) not in rows:
                problems.append(f"{sheet}: the row {label(issue_id)!r} is gone; restore it from the exported file")
                marks[sheet][issue_id] = None
                continue
            row = rows[label(issue_id)]
            found = list(_problems(row.contains, row.correct))
            for column, reason in found:
                comment = f" (comment: {row.comment})" if row.comment else ""
                problems.append(f"{sheet}!{column}{row.number}, {label(issue_id)}: {reason}{comment}")
            correct = _VERDICTS.get(row.correct, False)
            marks[sheet][issue_id] = None if found else Judgment(_VERDICTS[row.contains], correct, row.comment)
    return marks, problems


def merge(
    before: Mapping[str, Judgment | None], after: Mapping[str, Judgment | None], *, replace: bool
) -> tuple[dict[str, Judgment | None], list[str]]:
    """A response's marks from an earlier import and a later one, and the issues on which these contradict.

    What only one has is kept; where they contradict, the earlier stays, unless `replace`.
    """
    merged: dict[str, Judgment | None] = {}
    contradicting = []
    for issue_id, new in after.items():
        old = before.get(issue_id)
        same = (
            old is not None
            and new is not None
            and ((old.contains_issue, old.correct_conclusion) == (new.contains_issue, new.correct_conclusion))
        )
        if old is not None and new is not None and not same:
            contradicting.append(issue_id)
        takes_new = old is None or (new is not None and (replace or (same and new.rationales != "")))
        merged[issue_id] = new if takes_new else old
    return merged, contradicting


def read_marks(path: Path) -> Iterator[tuple[Response, Mapping[str, Judgment | None]]]:
    """The marks in a workbook whose key lies beside it, response by response; what is unanswered is None."""
    key = read_key(path.with_name(KEY_NAME))
    for sheet, marks in marks_of(read_workbook(path), key)[0].items():
        yield key.responses[sheet], marks


def _problems(contains: str, correct: str) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of an issue's two answers; nothing where they are complete."""
    for column, value in ((CONTAINS, contains), (CORRECT, correct)):
        if value and value not in _VERDICTS:
            yield column, f"impossible: {value[:40]!r}, must be {YES} or {NO}"
    if not contains:
        yield CONTAINS, "unanswered"
    elif contains == YES and not correct:
        yield CORRECT, "unanswered"
    elif contains == NO and correct == YES:
        yield CORRECT, f"impossible: {YES} for a conclusion that column {CONTAINS} says is not there"
