"""The picture of docs/choosing.md: every policy's regret beside the best one's, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from neuclust.report.drawing import COLOURS, GREY, INK, new_figure, small_letters, svg_text
from tools.choosing_record import Contest, Scores, aligned, best, is_linear, winner
from tools.reproduction_page import number

FARTHEST = 100.0  # times the best policy's regret; what is farther stands at the edge
LEAST_REGRET = 0.1  # divides in place of a smaller best regret, which no ratio could be read of
MARKERS = {  # shape, and how far below the middle of its row, so that equal policies do not hide each other
    "auto": ("D", 0.0),
    "best linear": ("o", -0.12),
    "neuclust": ("s", 0.12),
    "cn-ucb": ("v", 0.22),
    "neural-linear": ("P", -0.06),
    "uniform": ("X", 0.06),
}


def relative_regrets(scores: Scores, first: str) -> dict[str, float]:
    """Mean regrets over that of the `first` policy on the same seeds, for every policy the picture shows."""
    shown = {name: name for name in MARKERS} | {"best linear": best(scores, is_linear) or ""}
    found = {}
    for label, name in shown.items():
        mine, least = aligned(scores[name].regret, scores[first].regret) if name in scores else ([], [])
        if mine:
            found[label] = max(1.0, fmean(mine) / max(fmean(least), LEAST_REGRET))
    return found


def picture_text(given: Contest, digest: str) -> str:
    """The picture as SVG, with the digest of the record it was drawn from at its end."""
    played = [
        (problem + given.mark(problem), scores, name)
        for problem, _, scores in given.played("own")
        if (name := winner(scores))
    ]
    sizes = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    with small_letters(dict.fromkeys(sizes, 9.5)):
        figure = new_figure((10.0, 1.45 + 0.36 * len(played)))
        _draw(figure, played)
        return f"{svg_text(figure)}<!-- record {digest} -->\n"


def _draw(figure: Any, played: Sequence[tuple[str, Scores, str]]) -> None:
    """A row for every problem, with its scores and its winner."""
    axes = figure.add_subplot()
    tall = figure.get_figheight()
    figure.subplots_adjust(left=0.12, right=0.75, top=1 - 0.75 / tall, bottom=0.55 / tall)
    for place, (_, scores, name) in enumerate(played):
        axes.axhspan(place - 0.5, place + 0.5, color="#F3F3F3" if place % 2 else "white", zorder=0)
        text = f"{name}  {number(scores[name].mean)}"
        axes.text(1.015, place, text, transform=axes.get_yaxis_transform(), va="center", color=INK)
    _draw_markers(axes, [relative_regrets(scores, name) for _, scores, name in played])
    axes.set_yticks(range(len(played)), [label for label, _, _ in played])
    axes.set_ylim(len(played) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    _draw_scale(axes)
    axes.text(1.015, 1.01, "best policy and its regret", transform=axes.transAxes, va="bottom", color=GREY)
    figure.legend(loc="upper center", ncols=len(MARKERS), frameon=False, handletextpad=0.2, columnspacing=1.2)


def _draw_markers(axes: Any, rows: Sequence[Mapping[str, float]]) -> None:
    """A marker for every policy and problem; white edges keep neighbours apart."""
    for colour, (label, (marker, lower)) in zip((INK, *COLOURS), MARKERS.items(), strict=False):
        points = [(min(row[label], FARTHEST * 1.3), place + lower) for place, row in enumerate(rows) if label in row]
        across, down = [value for value, _ in points], [height for _, height in points]
        look = {"s": 80 if label == "auto" else 62, "facecolor": colour, "edgecolor": "white", "linewidths": 0.5}
        axes.scatter(across, down, marker=marker, label=label, zorder=3, **look)


def _draw_scale(axes: Any) -> None:
    axes.set_xscale("log")
    axes.set_xlim(0.87, FARTHEST * 1.7)
    axes.axvline(1.0, color=INK, linewidth=0.9, zorder=1)
    axes.axvline(FARTHEST, color=GREY, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    ticks = (1, 1.5, 2, 3, 5, 10, 20, 50)
    axes.set_xticks([*ticks, FARTHEST * 1.3], [*(f"{tick:g}×" for tick in ticks), "more"])
    axes.minorticks_off()
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("mean expected regret divided by that of the best policy (log scale; left is better)")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
