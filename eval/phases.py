"""Where the time of a training run went: what train/throughput.py logs of each step, by phase."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.command import InputError
from data.jsonl import read_jsonl

METRICS_NAME = "metrics.jsonl"  # train/progress.py writes it
# From the bottom of a bar to its top. The colours are at least 15 apart (CIEDE2000), with and without each of the three
# kinds of colour blindness, and have a contrast of 3 with the page, light and dark.
PHASES = {
    "generate": "#006dac",
    "judge": "#e87319",
    "sync": "#16a978",
    "learn": "#b94112",
    "evaluate": "#8387fe",
    "save": "#ac85a2",
}
MEANING = (
    "Each second of the main process counts once: generate takes in what is judged meanwhile, judge is the wait for "
    "verdicts that is left, a sync within generate or evaluate counts to that one, evaluate (its judging too) and save "
    "count to the step after them, and learn is all the rest, waits for other processes among it; what comes before "
    "the first step and after the last is in none."
)
MAX_BARS = 40


@dataclass(frozen=True, slots=True)
class Span:
    """Steps `first` to `last` of a run and the seconds that each phase took in all of them, in the order of PHASES."""

    first: int
    last: int
    seconds: tuple[float, ...]

    @property
    def of_a_step(self) -> tuple[float, ...]:
        """Mean seconds of a step.

        >>> Span(5, 8, (4.0, 0.0, 0.0, 6.0, 0.0, 2.0)).of_a_step
        (1.0, 0.0, 0.0, 1.5, 0.0, 0.5)
        """
        return tuple(seconds / (self.last - self.first + 1) for seconds in self.seconds)


def read_spans(path: Path) -> list[Span]:
    """The spans of a run's metrics.jsonl by step, one a line; none where there is no such file, or no time in it.

    A line has the means of the steps since the line before (logging_steps). Of two lines with one step, as resumed runs
    leave them, the later counts. A log that begins late, as that of a run gone on with in another folder, begins with a
    line of no more steps than the next.

    Raises:
        InputError: a line with a step or times that are none.
    """
    means: dict[int, tuple[float, ...]] = {}
    for line, row in read_jsonl(path) if path.is_file() else ():
        if any(f"time/{phase}_s" in row for phase in PHASES):
            step, times = _checked(row, f"{path}, line {line}")
            means[step] = times
    steps = sorted(means)
    before = max(0, 2 * steps[0] - steps[1]) if len(steps) > 1 else 0
    return [
        Span(start + 1, end, tuple((end - start) * mean for mean in means[end]))
        for start, end in zip([before, *steps], steps, strict=False)
    ]


def _checked(row: Mapping[str, Any], where: str) -> tuple[int, tuple[float, ...]]:
    if type(row.get("step")) is not int or row["step"] < 1:
        raise InputError(f'{where}: "step" must be a whole number from 1, got {row.get("step")!r}')
    for key in (f"time/{phase}_s" for phase in PHASES):
        value: Any = row.get(key)
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise InputError(f'{where}: "{key}" must be seconds, a number from 0, got {value!r}')
    times = tuple(float(row[f"time/{phase}_s"]) for phase in PHASES)
    if not sum(times):
        raise InputError(f"{where}: a step of no time; the seconds of its phases add up to 0")
    return row["step"], times


def joined(spans: Sequence[Span]) -> Span:
    """One or more spans that follow one another, as one."""
    columns = zip(*(span.seconds for span in spans), strict=True)
    return Span(spans[0].first, spans[-1].last, tuple(map(math.fsum, columns)))


def shares(spans: Sequence[Span]) -> dict[str, float]:
    """The share of each phase in all time of one or more spans; together 1.

    >>> shares([Span(1, 1, (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)), Span(2, 2, (5.0, 0.0, 0.0, 1.0, 0.0, 0.0))])["generate"]
    0.75
    """
    seconds = joined(spans).seconds
    return {phase: part / math.fsum(seconds) for phase, part in zip(PHASES, seconds, strict=True)}


def windows(spans: Sequence[Span], most: int = MAX_BARS) -> list[Span]:
    """As few spans in a row joined as it takes to be at most so many."""
    size = max(1, math.ceil(len(spans) / most))
    return [joined(spans[start : start + size]) for start in range(0, len(spans), size)]


def draw_phases(spans: Sequence[Span], path: Path) -> None:
    """A stacked bar of a step's seconds for each window of steps; written as PNG or SVG, whichever the path ends in."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    bars = windows(spans)
    middles = [(bar.first + bar.last) / 2 for bar in bars]
    widths = [0.9 * (bar.last - bar.first + 1) for bar in bars]
    bottoms = [0.0] * len(bars)
    for (phase, share), heights in zip(
        shares(spans).items(), zip(*(bar.of_a_step for bar in bars), strict=True), strict=True
    ):
        label = f"{phase} {share:.1%}"
        axes.bar(middles, heights, widths, bottoms, color=PHASES[phase], linewidth=0, label=label)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
    axes.set(xlabel="step", ylabel="seconds a step")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False)
    figure.savefig(path, dpi=150)
