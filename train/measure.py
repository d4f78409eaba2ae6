"""A plan held against the run that came of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from train.plan import StepPlan

Held = tuple[str, float | None, float | None]  # name, planned, measured; None where one of them says nothing


def measure(step: StepPlan, figures: Mapping[str, float], rows: Sequence[Mapping[str, Any]]) -> list[Held]:
    """What the plan says and what a run's metrics.jsonl says.

    Measured are the fullest that a GPU was, and means over the steps.
    """
    seen: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if "loss" in row and value is not None:
                seen.setdefault(name, []).append(value)
    peaks = [figures[f"trainer/{phase}_gib"] for phase in ("generate", "learn") if figures]
    means = {name: sum(values) / len(values) for name, values in seen.items()}
    length = means.get("completions/mean_length")
    most = float(step.completions * step.max_completion_length)
    phase_names = [name for name in means if name.startswith(("time/", "throughput/"))]
    return [
        ("GiB of a trainer's GPU", max(peaks, default=None), max(seen.get("memory/peak_gib", []), default=None)),
        ("tokens written a generation", most, None if length is None else length * step.completions),
        ("optimiser steps a generation", float(step.updates), None),
        ("seconds a step", None, means.get("step_time")),
        *((name, None, means[name]) for name in phase_names),
    ]


def table(held: Sequence[Held]) -> str:
    """One line each, right below one another.

    >>> print(table([("seconds a step", None, 12.345)]))
                                             planned    measured
    seconds a step                                 -       12.35
    """
    lines = [f"{'':36}{'planned':>12}{'measured':>12}"]
    lines += [f"{name:36}{_shown(planned):>12}{_shown(measured):>12}" for name, planned, measured in held]
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
