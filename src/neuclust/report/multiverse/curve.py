"""The specification curve: cells sorted by NeUClust − CN-UCB, and below each what it reads otherwise than preferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from neuclust.analysis.multiverse.outcomes import AHEAD, BEHIND, LEVEL, Outcome, outcomes_of
from neuclust.report.drawing import BLUE, GREY, GRID, INK, ORANGE, bare, new_figure, small_letters

_COLOURS = {AHEAD: BLUE, LEVEL: GREY, BEHIND: ORANGE}
_WORDS = {AHEAD: "NeUClust ahead", LEVEL: "level", BEHIND: "NeUClust behind"}
_LINEAR = 10.0  # regret, up to which the axis is linear


def sorted_cells(record: Mapping[str, Any]) -> list[Outcome]:
    """By the difference, least first; cells that failed come last."""
    cells = outcomes_of(record)
    return sorted(cells, key=lambda cell: (not cell.played, cell.gap.mean if cell.played else 0.0))


def curve(record: Mapping[str, Any]) -> Figure:
    """The figure: differences with 95 % intervals above, a dot for every answer that is not the preferred one below."""
    cells = sorted_cells(record)
    rows = _rows(record, cells)
    with small_letters():
        height = 2.6 + 0.13 * len(rows)
        figure = new_figure((max(4.5, 2.0 + 0.062 * len(cells)), height), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 0.13 * max(1, len(rows))])
        _draw_differences(above, cells)
        _draw_readings(below, cells, rows)
        _mark_preferred(record, cells, above, below)
        below.set_xlim(-1, len(cells))
    return figure


def _draw_differences(axes: Axes, cells: Sequence[Outcome]) -> None:
    bare(axes)
    axes.axhline(0.0, color=INK, linewidth=0.7)
    for place, cell in enumerate(cells):
        if not cell.played:
            axes.plot(place, 0.0, marker="x", color=INK, markersize=3.5, markeredgewidth=0.8, linestyle="none")
            continue
        colour, gap = _COLOURS[cell.order], cell.gap
        axes.plot([place, place], [gap.low, gap.high], color=colour, linewidth=1.0, zorder=2)
        face = colour if cell.sound else "white"
        axes.plot(
            place, gap.mean, "o", color=colour, markerfacecolor=face, markersize=3.2, markeredgewidth=0.8, zorder=3
        )
    axes.set_yscale("symlog", linthresh=_LINEAR, linscale=1.2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axes.set_yticks([-100, -10, -5, 0, 5, 10, 100])
    axes.minorticks_off()
    axes.set_ylabel("NeUClust − CN-UCB,\nexpected regret")
    axes.tick_params(axis="x", length=0)
    # where the sorted curve leaves room: above its middle and below its end
    axes.text(0.55, 0.98, "↑ CN-UCB has less regret", transform=axes.transAxes, ha="center", va="top", color=GREY)
    below = "↓ NeUClust has less regret: the paper's order"
    axes.text(0.985, 0.03, below, transform=axes.transAxes, ha="right", va="bottom", color=GREY)
    axes.legend(handles=_legend(cells), loc="upper left", frameon=False, handletextpad=0.3)


def _legend(cells: Sequence[Outcome]) -> list[Line2D]:
    def mark(colour: str, words: str, marker: str = "o", face: str | None = None) -> Line2D:
        return Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            markersize=3.5,
            markerfacecolor=face or colour,
            linestyle="none",
            label=words,
        )

    orders = {cell.order for cell in cells}
    found = [mark(_COLOURS[order], words) for order, words in _WORDS.items() if order in orders]
    if any(cell.played and not cell.sound for cell in cells):
        found.append(mark(GREY, "trainings failed", face="white"))
    if any(not cell.played for cell in cells):
        found.append(mark(INK, "runs failed or missing", "x"))
    return found


def _rows(record: Mapping[str, Any], cells: Sequence[Outcome]) -> list[tuple[int, str]]:
    """Reading and option of every answer that some cell gives and that is not the preferred one."""
    return [
        (index, option)
        for index, reading in enumerate(record["readings"])
        for option in reading["options"]
        if option != reading["preferred"] and any(cell.options[index] == option for cell in cells)
    ]


def _draw_readings(axes: Axes, cells: Sequence[Outcome], rows: Sequence[tuple[int, str]]) -> None:
    for height, (index, option) in enumerate(rows):
        if index % 2 == 0:
            axes.axhspan(height - 0.5, height + 0.5, color=GRID, alpha=0.5, linewidth=0)
        places = [place for place, cell in enumerate(cells) if cell.options[index] == option]
        colours = [_COLOURS.get(cells[place].order, INK) for place in places]
        axes.scatter(places, [height] * len(places), c=colours, s=7, linewidths=0, zorder=3)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.set_ylim(len(rows) - 0.5, -0.5)


def _mark_preferred(record: Mapping[str, Any], cells: Sequence[Outcome], above: Axes, below: Axes) -> None:
    preferred = tuple(reading["preferred"] for reading in record["readings"])
    rows = _rows(record, cells)
    labels = [f"{record['readings'][index]['name']}: {option}" for index, option in rows]
    below.set_yticks(range(len(rows)), labels)
    place = next((place for place, cell in enumerate(cells) if cell.options == preferred), None)
    if place is not None:
        for axes in (above, below):
            axes.axvline(place, color=INK, linewidth=0.6, linestyle=(0, (2, 2)), zorder=1)
        above.annotate("preferred cell ", (place, 0.55), xycoords=above.get_xaxis_transform(), ha="right", color=INK)
    below.set_xlabel("cells, sorted; a dot: an answer other than the preferred one")
