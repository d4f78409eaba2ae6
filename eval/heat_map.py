"""The 5 x 5 map of what is below an issue against how often it is right, as a picture."""

from collections.abc import Mapping
from pathlib import Path

from eval.outcomes import NUM_BINS, ErrorAnalysis

TICKS = tuple(f"{bin / NUM_BINS:.1f}–{(bin + 1) / NUM_BINS:.1f}" for bin in range(NUM_BINS))
COLUMNS = 3
PICTURES = (".png", ".svg", ".pdf")  # what a picture's file may end in


def draw_heat_maps(analyses: Mapping[str, ErrorAnalysis], path: Path) -> None:
    """One map per set; written as the path ends, one of PICTURES."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    num_rows = -(-len(analyses) // COLUMNS)
    num_columns = min(len(analyses), COLUMNS)
    figure = Figure(figsize=(3.6 * num_columns + 0.8, 3.6 * num_rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(num_rows, num_columns, squeeze=False).flat
    for axes, (name, errors) in zip(panels, analyses.items(), strict=False):
        for (covered, right), rate in errors.heat_map.items():
            if rate.estimate is None:
                continue
            value = rate.estimate.centre
            axes.add_patch(
                Rectangle((covered, right), 1, 1, facecolor=colormaps["Blues"](0.1 + 0.8 * value), edgecolor="white")
            )
            ink = "white" if value > 0.6 else "black"
            axes.text(covered + 0.5, right + 0.58, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=9)
            axes.text(covered + 0.5, right + 0.25, f"n={rate.num:g}", ha="center", va="center", color=ink, fontsize=6)
        axes.set(xlim=(0, NUM_BINS), ylim=(0, NUM_BINS), aspect="equal", title=name)
        axes.set(xlabel="children covered", ylabel="children covered and right")
        axes.set_xticks([bin + 0.5 for bin in range(NUM_BINS)], TICKS, fontsize=7)
        axes.set_yticks([bin + 0.5 for bin in range(NUM_BINS)], TICKS, fontsize=7)
    for axes in panels:
        axes.remove()
    figure.suptitle("How often an issue is right, by what became of its children", fontsize=10)
    figure.savefig(path, dpi=150)
