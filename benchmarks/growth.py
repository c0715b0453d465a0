"""How a cost grows: the exponent b of y ≈ a·x^b, and the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from neuclust.report.drawing import COLOURS, GREY, INK, LABEL_SIZE

Curve = Sequence[tuple[float, float]]  # (x, y), x ascending


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes: what is varied, what is measured, and a curve a name."""

    title: str
    across: str
    up: str
    curves: Mapping[str, Curve]


def exponent(curve: Curve) -> float:
    """Slope of log y on log x by least squares over the upper half of the points (at least two); NaN without them."""
    points = [(math.log(x), math.log(y)) for x, y in curve if x > 0 and y > 0]
    upper = points[min(len(points) // 2, len(points) - 2) :] if len(points) >= 2 else []
    if len(upper) < 2:
        return math.nan
    x, y = np.array(upper).T
    return float(((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean())))


def growth_figure(panels: Sequence[Panel], columns: int = 4) -> Figure:
    """Log-log panels beside and below each other; each curve's name carries its exponent."""
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.7 * columns, 3.5 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for place, panel in enumerate(panels):
        _draw(figure.add_subplot(rows, columns, place + 1), panel)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    for index, (name, curve) in enumerate(panel.curves.items()):
        drawn = [(x, y) for x, y in curve if y > 0]
        if not drawn:
            continue
        colour, label = COLOURS[index % len(COLOURS)], f"{name}: x^{exponent(curve):.2f}"
        axes.plot(*zip(*drawn, strict=True), color=colour, linewidth=1.8, marker="o", markersize=4, label=label)
    _scale(axes, [y for curve in panel.curves.values() for _, y in curve if y > 0])
    axes.set_title(panel.title, loc="left", fontsize=LABEL_SIZE + 1, color=INK)
    axes.set_xlabel(panel.across, fontsize=LABEL_SIZE)
    axes.set_ylabel(panel.up, fontsize=LABEL_SIZE)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E3E3E3", linewidth=0.8)
    axes.tick_params(labelsize=LABEL_SIZE - 1, colors=GREY)
    axes.legend(fontsize=LABEL_SIZE - 1.5, frameon=False, loc="upper left")


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic, over whole decades, with room for the names above the curves."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    if values:
        axes.set_ylim(10.0 ** math.floor(math.log10(min(values))), 10.0 ** (math.ceil(math.log10(max(values))) + 0.8))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
