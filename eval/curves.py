"""Score and parts over the steps of a run, as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.metrics import PARTS, Figures

Curve = Sequence[tuple[float, Figures]]
"""(step, figures) of one checkpoint after another."""

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart by colour-blind eyes too


def draw_curves(curves: Mapping[str, Curve], title: str, path: Path) -> None:
    """One panel per part with a line for each way of sampling and its interval as a band; written as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    for axes, part in zip(figure.subplots(1, len(PARTS)), ("coverage", "correctness", "order", "score"), strict=True):
        for (sampling, curve), colour in zip(curves.items(), _COLOURS, strict=False):
            points = [(step, figures) for step, figures in curve if figures[f"mean/{part}"] is not None]
            steps = [step for step, _ in points]
            centre, low, high = (
                [figures[f"mean/{part}{end}"] for _, figures in points] for end in ("", "/low", "/high")
            )
            axes.plot(steps, centre, marker="o", markersize=4, color=colour, label=sampling)
            axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set_title(part)
        axes.set_xlabel("step")
        axes.set_ylim(0, 10.2 if part == "score" else 1.02)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
