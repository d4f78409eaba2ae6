"""A judge against experts: how near it comes to them, where it errs, and what to make of that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.cases import ROOT_ID, Case, Issue
from data.command import InputError
from eval.agreement_figures import ALPHAS, Estimates, Measure, confusion
from eval.estimates import Estimate, Panel, estimate
from eval.metrics import PARTS
from eval.raters import OUTCOMES, Item, Rater, code, panels
from eval.reliability import all_pairs, difference, lead, mean, mean_over_pairs
from eval.soft_verdicts import Calibration, calibrate

RELIABLE, TENTATIVE = 0.8, 0.67  # Krippendorff (2004), section 11.4
THRESHOLDS = (
    f"Alpha from {RELIABLE} on: reliable; from {TENTATIVE}: tentative; below: draw no conclusion. "
    "*: the interval reaches below that, or there is none."
)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An issue on which all experts that marked it say one thing and the judge another. The order is absent or not."""

    generator: str
    doc_id: str
    sample: int
    issue_id: str
    summary: str
    depth: int
    experts: str
    judge: str
    rationales: str

    def to_record(self) -> dict[str, Any]:
        """A line of mismatches.jsonl."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """What a judge's marks are worth beside the experts'.

    `estimates` has `judge/alpha/...`, the mean of its alphas with each expert; `experts/alpha/...`, the mean of the
    experts' alphas with each other; `gap/alpha/...`, the first less the second; `judge/leniency/...`, what it gives
    more than the experts' mean; `judge/wrong/<where>_frac`, its share of mismatches where the experts agree.
    `confusion` counts its outcomes (columns) against what the experts agree on (rows).
    """

    num_experts: int
    num_responses: int
    num_cases: int
    estimates: Estimates
    confusion: NDArray[np.int64]
    mismatches: tuple[Mismatch, ...]
    calibrations: Mapping[str, Calibration]
    cost: Mapping[str, float]

    def figures(self) -> dict[str, float | str | None]:
        """All of it flat."""
        flat: dict[str, float | str | None] = {
            "judge/num_responses": self.num_responses,
            "judge/num_cases": self.num_cases,
        }
        for name, found in self.estimates.items():
            flat |= found.figures(name)
        for row, column in np.ndindex(self.confusion.shape):
            flat[f"judge/confusion/{OUTCOMES[row]}/{OUTCOMES[column]}"] = int(self.confusion[row, column])
        for name, calibration in self.calibrations.items():
            flat |= calibration.figures(f"judge/soft/{name}")
        return flat | {f"judge/cost/{name}": value for name, value in self.cost.items()}


def check_judge(
    judge: Rater,
    experts: Sequence[Rater],
    cases: Mapping[str, Case],
    cost: Mapping[str, float],
    threshold: float = 0.5,
    measure: Measure = estimate,
) -> JudgeCheck:
    """The judge against the experts, on the responses that any of these has marked.

    Raises:
        InputError: there is no issue that both the judge and an expert have marked.
    """
    items = sorted({item for expert in experts for item in expert.marks} & judge.marks.keys())
    of = panels([judge, *experts], cases, items, threshold)
    with_judge, among_experts = _pairs_with_common_marks(of["outcome"])
    if not with_judge:
        raise InputError("No issue was marked by both the judge and an expert")
    estimates: Estimates = {}
    for name, alpha in ALPHAS.items():
        of_judge = mean_over_pairs(alpha, with_judge)
        estimates[f"judge/alpha/{name}"] = measure(of[name], of_judge)
        if among_experts:
            of_experts = mean_over_pairs(alpha, among_experts)
            estimates[f"experts/alpha/{name}"] = measure(of[name], of_experts)
            estimates[f"gap/alpha/{name}"] = measure(of[name], difference(of_judge, of_experts))
        else:
            why = "one expert" if len(experts) == 1 else "no two experts marked one response"
            estimates[f"experts/alpha/{name}"] = estimates[f"gap/alpha/{name}"] = Estimate(None, undefined=why)
    estimates |= {f"judge/leniency/{part}": measure(of[part], lead) for part in PARTS}

    marks = list(_agreed_marks(judge, experts, cases, items, threshold))
    places: dict[str, list[tuple[str, float]]] = {}
    for item, issue, agreed, said in marks:
        for place in ("issues", f"depth_{issue.depth}") if issue.id != ROOT_ID else ("order",):
            places.setdefault(place, []).append((item.doc_id, float(agreed != said)))
    for place, wrong in sorted(places.items()):
        rates = Panel((judge.name,), tuple(case for case, _ in wrong), np.array([[value for _, value in wrong]]))
        estimates[f"judge/wrong/{place}_frac"] = measure(rates, mean)
    outcomes = [(agreed, said) for _, issue, agreed, said in marks if issue.id != ROOT_ID]
    agreed_panel = Panel(("experts", judge.name), ("",) * len(outcomes), np.array(outcomes).reshape(-1, 2).T)
    return JudgeCheck(
        len(experts),
        len(items),
        len({item.doc_id for item in items}),
        estimates,
        confusion(agreed_panel),
        tuple(_mismatch(*mark, judge) for mark in marks if mark[2] != mark[3]),
        _calibrations(judge, experts, cases, items, threshold),
        cost,
    )


def verdict(check: JudgeCheck) -> tuple[str, ...]:
    """The check in sentences, each with its figures."""
    found = check.estimates
    judge, experts, gap = (found[f"{who}/alpha/score"] for who in ("judge", "experts", "gap"))
    said = [f"Agreement with the experts, alpha of the score: {judge}, {reading(judge)}."]
    if experts.value is None:
        said.append(f"Agreement of the experts with each other: {experts}. Published for lawyers: 0.87.")
    else:
        said.append(f"Agreement of the experts with each other: {experts}, {reading(experts)}.")
    if gap.value is not None and gap.low is not None and gap.high is not None:
        clear = "not to be told from one more expert on so many cases"
        if gap.low > 0 or gap.high < 0:
            clear = f"it is {'nearer to' if gap.low > 0 else 'further from'} them than they are to each other"
        said.append(f"The first less the second: {gap}, {clear}.")
    leniency = found["judge/leniency/score"]
    if leniency.value is not None:
        sure = leniency.low is not None and leniency.high is not None and (leniency.low > 0 or leniency.high < 0)
        kind = ("lenient" if leniency.value > 0 else "strict") if sure else "neither lenient nor strict for sure"
        said.append(f"Its score less the experts', of 10 points: {leniency}, {kind}.")
    wrong = {name: f for name, f in found.items() if name.startswith("judge/wrong/")}
    told = (f"{name.split('/')[2].removesuffix('_frac').replace('_', ' ')} {rate}" for name, rate in wrong.items())
    said.append(f"Share it gets wrong where the experts agree: {', '.join(told) or 'nothing to tell from'}.")
    credit, blame = (sum(int(check.confusion[place]) for place in where) for where in (_CREDITED, _BLAMED))
    said.append(f"Of these issues it credits {credit} too much and {blame} too little (absent, wrong, right).")
    if check.cost:
        calls, responses = check.cost["calls"], max(check.cost["responses"], 1)
        tokens_in, tokens_out = (check.cost[f"tokens_{end}"] / responses for end in ("in", "out"))
        seconds = check.cost["latency_s"] / max(calls + check.cost["retries"], 1)
        said.append(
            f"Cost: {calls:g} calls ({check.cost['given_up']:g} without an answer), {seconds:.1f} s each; per response "
            f"{tokens_in:,.0f} tokens in, {tokens_out:,.0f} out"
            + (f", price {check.cost['price'] / responses:.3g}." if "price" in check.cost else ".")
        )
    return (*said, THRESHOLDS)


def reading(alpha: Estimate) -> str:
    """What an alpha allows by the usual thresholds; with a star where no interval bears it out.

    >>> reading(Estimate(0.7, 0.6, 0.8))
    'tentative *'
    """
    if alpha.value is None:
        return "nothing can be said"
    for floor, kind in ((RELIABLE, "reliable"), (TENTATIVE, "tentative")):
        if alpha.value >= floor:
            return kind if alpha.low is not None and alpha.low >= floor else f"{kind} *"
    return "not reliable"


_CREDITED = ((0, 1), (0, 2), (1, 2))  # places of the confusion: the experts' outcome, then the judge's
_BLAMED = ((1, 0), (2, 0), (2, 1))


def _pairs_with_common_marks(of: Panel) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The pairs of rows of the judge, which is the first, and an expert, and those of two experts."""
    marked = ~np.isnan(of.values)
    pairs = [pair for pair in all_pairs(len(marked)) if marked[list(pair)].all(axis=0).any()]
    return [pair for pair in pairs if pair[0] == 0], [pair for pair in pairs if pair[0] != 0]


def _agreed_marks(
    judge: Rater, experts: Sequence[Rater], cases: Mapping[str, Case], items: Sequence[Item], threshold: float
) -> Iterator[tuple[Item, Issue, float, float]]:
    """(response, issue, the experts' outcome, the judge's) wherever all experts that marked the issue agree.

    Outcomes are places in OUTCOMES; of the order only right counts, as in the score.
    """
    for item in items:
        for issue in cases[item.doc_id].issues:
            kind = "outcome" if issue.id != ROOT_ID else "correct_conclusion"
            said = code(judge.marks[item][issue.id], threshold)[kind]
            marks = [code(expert.marks.get(item, {}).get(issue.id), threshold)[kind] for expert in experts]
            agreed = {mark for mark in marks if not np.isnan(mark)}
            if len(agreed) == 1 and not np.isnan(said):
                yield item, issue, float(agreed.pop()), float(said)


def _mismatch(item: Item, issue: Issue, agreed: float, said: float, judge: Rater) -> Mismatch:
    names = OUTCOMES if issue.id != ROOT_ID else OUTCOMES[1:]
    judgment = judge.marks[item][issue.id]
    reason = "" if judgment is None else judgment.rationales
    summary = issue.summary if issue.id != ROOT_ID else "order"
    return Mismatch(*item, issue.id, summary, issue.depth, names[int(agreed)], names[int(said)], reason)


def _calibrations(
    judge: Rater, experts: Sequence[Rater], cases: Mapping[str, Case], items: Sequence[Item], threshold: float
) -> dict[str, Calibration]:
    """Of each mark where the judge's verdicts are probabilities; where they are yes and no there is nothing to do."""
    units = [(item, issue.id) for item in items for issue in cases[item.doc_id].sub_issues]
    found = {}
    for name in ("contains_issue", "correct_conclusion"):
        given = np.array([getattr(judge.marks[item][id], name, np.nan) for item, id in units], dtype=np.float64)
        if np.isin(given[~np.isnan(given)], (0, 1)).all():
            continue
        marks = [[code(e.marks.get(item, {}).get(id), threshold)[name] for e in experts] for item, id in units]
        agreed = [{mark for mark in row if not np.isnan(mark)} for row in marks]
        truth = np.array([row.pop() if len(row) == 1 else np.nan for row in agreed], dtype=np.float64)
        calibration = calibrate(given, truth, [item.doc_id for item, _ in units])
        if calibration is not None:
            found[name] = calibration
    return found
