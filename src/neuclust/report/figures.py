"""Pictures of a comparison: regret and reward round by round, and clipped regret above its floor.

Figures are objects of their own (no pyplot), so that nothing global is touched and no display is needed.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.errors import ConfigError, writing
from neuclust.experiment.records import RunRecord
from neuclust.report.tables import number

# Okabe and Ito's colours, told apart with any colour vision; yellow is left out: too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#8C564B")
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
Dash = tuple[int, tuple[float, ...] | None]
DASHES: tuple[Dash, ...] = ((0, None), (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
INK, GREY = "#222222", "#6E6E6E"
LOG_SPREAD = 30.0  # final regrets this many times apart cannot share a linear axis
FEW_SEEDS = 3  # up to here every seed is drawn as a thin line
PNG_DPI = 160
LABEL_GAP = 0.052  # of the axes' height between two labels
LABEL_SIZE = 9.5  # points
LONGEST_TITLE, LONGEST_LABEL = 84, 40  # letters
WIDTH, HEIGHT = 8.6, 5.0  # inches

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Style:
    """How a contender is drawn."""

    colour: str
    dash: Dash


@dataclass(frozen=True, slots=True)
class Band:
    """One contender's curves: rounds (p,), one row a seed (s, p), and how it is drawn."""

    title: str
    rounds: Numbers
    seeds: Numbers
    colour: str
    dash: Dash

    def from_zero(self) -> Band:
        """The same with the point (0, 0) before it, for sums on a linear axis."""
        rounds = np.concatenate([[0.0], self.rounds])
        return replace(self, rounds=rounds, seeds=np.pad(self.seeds, ((0, 0), (1, 0))))

    @property
    def mean(self) -> Numbers:
        return np.asarray(self.seeds.mean(0), dtype=np.float64)

    @property
    def error(self) -> Numbers:
        spread = self.seeds.std(0, ddof=1) / math.sqrt(len(self.seeds))
        return np.asarray(spread, dtype=np.float64)


def regret_figure(records: Sequence[RunRecord]) -> Figure:
    """Expected regret so far against the round; the lower, the better."""
    problem = _only_problem(records)
    bands = curve_bands(problem, lambda run: run.curve)
    figure, axes = _canvas("Expected regret", problem)
    finals = [float(band.mean[-1]) for band in bands]
    if needs_log_axis(finals):
        use_log_axis(axes, finals)
        axes.set_ylabel("expected regret so far (log scale; lower is better)")
    else:
        bands = [band.from_zero() for band in bands]
        axes.set_ylim(0, max(1e-3, 1.06 * max(float(band.seeds.max()) for band in bands)))
        axes.set_ylabel("expected regret so far (lower is better)")
    _draw(axes, bands)
    _label_ends(axes, [(band.title, float(band.mean[-1]), band.colour) for band in bands])
    return figure


def reward_figure(records: Sequence[RunRecord]) -> Figure:
    """Average expected slate reward a round so far, under the best possible; the higher, the better."""
    problem = _only_problem(records)
    bands = curve_bands(problem, average_reward)
    figure, axes = _canvas("Average slate reward", problem)
    _draw(axes, bands)
    best = curve_bands(problem, average_best)[0]
    axes.plot(best.rounds, best.mean, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylabel("average expected slate reward so far (higher is better)")
    lowest = min(float(band.seeds.min()) for band in bands)
    axes.set_ylim(max(0.0, lowest - 0.05), float(best.mean.max()) + 0.04)
    ends = [(band.title, float(band.mean[-1]), band.colour) for band in bands]
    _label_ends(axes, [*ends, ("best possible", float(best.mean[-1]), INK)])
    return figure


def clipped_figure(records: Sequence[RunRecord]) -> Figure:
    """Clipped regret at the end, mean ± 1 s.e. over seeds, above the floor a perfect policy pays too."""
    problem = _only_problem(records)
    figure, axes = _canvas("Clipped regret", problem)
    styles = line_styles(problem)
    for place, contender in enumerate(problem.contenders):
        _draw_final(axes, place, contender, styles[contender.title].colour)
    names = [_final_name(contender) for contender in problem.contenders]
    axes.set_xticks(range(len(names)), names, fontsize=LABEL_SIZE)
    axes.set_xlim(-0.6, len(problem.contenders) - 0.4)
    several = "; large: mean ± 1 standard error, small: single seeds" if problem.seeds > 1 else ""
    axes.set_xlabel(f"dashed: a perfect policy, on average; single runs can fall below{several}", fontsize=LABEL_SIZE)
    figure.subplots_adjust(bottom=0.12 + 0.034 * max(name.count("\n") for name in names))
    axes.set_ylabel(f"clipped regret after {problem.rounds} rounds (lower is better)")
    _draw_floor(axes, problem)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a `.png` or `.svg`; equal figures give equal bytes."""
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise ConfigError(f"{path}: expected a picture named .png or .svg, got {path.suffix or 'no ending'}")
    with matplotlib.rc_context({"svg.hashsalt": "neuclust"}):
        metadata = {"Date": None} if kind == "svg" else {}
        with writing(path):
            figure.savefig(path, format=kind, dpi=PNG_DPI, metadata=metadata)


def _only_problem(records: Sequence[RunRecord]) -> ProblemRuns:
    found = problems(records)
    if len(found) != 1:
        names = ", ".join(problem.description for problem in found) or "no rounds at all"
        raise ConfigError(f"expected runs on one problem for one picture, got {names}; draw them one by one")
    return found[0]


def line_styles(problem: ProblemRuns) -> dict[str, Style]:
    """A style a contender, by name, so that every picture of the same runs agrees; oracles are grey."""
    learners = sorted(contender.title for contender in problem.contenders if not contender.knows_truth)
    styles = dict.fromkeys((contender.title for contender in problem.contenders), Style(GREY, DASHES[0]))
    for index, title in enumerate(learners):
        turn, colour = divmod(index, len(COLOURS))
        styles[title] = Style(COLOURS[colour], DASHES[turn % len(DASHES)])
    return styles


def curve_bands(problem: ProblemRuns, curve_of: Callable[[RunRecord], Sequence[tuple[int, float]]]) -> list[Band]:
    styles = line_styles(problem)
    return [_band(contender, curve_of, styles[contender.title]) for contender in problem.contenders]


def _band(contender: Contender, curve_of: Callable[[RunRecord], Sequence[tuple[int, float]]], style: Style) -> Band:
    """All seeds on the points of the shortest run."""
    curves = [np.array(curve_of(run), dtype=np.float64) for run in contender.runs]
    rounds = min(curves, key=lambda curve: float(curve[-1, 0]))[:, 0]
    rows = np.stack([np.interp(rounds, curve[:, 0], curve[:, 1]) for curve in curves])
    return Band(contender.title, rounds, rows, style.colour, style.dash)


def average_reward(run: RunRecord) -> list[tuple[int, float]]:
    return [(t, total / t) for t, total in run.reward_curve]


def average_best(run: RunRecord) -> list[tuple[int, float]]:
    """Σu*/t, from Σu* = Σu + regret."""
    return [(t, (reward + regret) / t) for (t, reward), (_, regret) in zip(run.reward_curve, run.curve, strict=True)]


def _canvas(what: str, problem: ProblemRuns) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, HEIGHT))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    kept = problem.options.replace(" ", NO_BREAK_SPACE).replace(f",{NO_BREAK_SPACE}", ", ")
    description = problem.description.replace(problem.options, kept) if kept else problem.description
    title = textwrap.wrap(f"{what} on {description}", LONGEST_TITLE)
    figure.subplots_adjust(left=0.095, right=0.97, top=0.945 - 0.045 * len(title), bottom=0.115)
    axes.set_title("\n".join(title), loc="left", fontsize=11.5, color=INK, pad=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E3E3E3", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _draw(axes: Axes, bands: Sequence[Band]) -> None:
    for band in reversed(bands):  # the best on top
        axes.plot(band.rounds, band.mean, color=band.colour, linestyle=band.dash, linewidth=2.0, zorder=3)
        if 1 < len(band.seeds) <= FEW_SEEDS:
            axes.plot(band.rounds, band.seeds.T, color=band.colour, linewidth=0.7, alpha=0.45, zorder=2)
        elif len(band.seeds) > FEW_SEEDS:
            low, high = band.mean - band.error, band.mean + band.error
            axes.fill_between(band.rounds, low, high, color=band.colour, alpha=0.18, linewidth=0, zorder=2)
    seeds = max(len(band.seeds) for band in bands)
    hint = "" if seeds == 1 else "thin lines: single seeds" if seeds <= FEW_SEEDS else "shaded: ± 1 standard error"
    axes.set_xlabel(f"round   ({hint})" if hint else "round")
    axes.set_xlim(0, max(float(band.rounds[-1]) for band in bands))


def needs_log_axis(finals: Sequence[float]) -> bool:
    """Whether final regrets (those above zero) lie too far apart for a linear axis."""
    positive = [final for final in finals if final > 0]
    return len(positive) > 1 and max(positive) > LOG_SPREAD * min(positive)


def use_log_axis(axes: Axes, finals: Sequence[float]) -> None:
    """Logarithmic, and linear near zero, where an oracle lives."""
    largest = max(finals)
    smallest = max(min(final for final in finals if final > 0), largest * 1e-5)
    axes.set_yscale("symlog", linthresh=10.0 ** math.floor(math.log10(smallest)), linscale=0.6)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, largest * 1.6)


def _draw_final(axes: Axes, place: int, contender: Contender, colour: str) -> None:
    final, single = contender.over_seeds("clipped_regret"), [run.clipped_regret for run in contender.runs]
    if len(single) > 1:
        axes.plot([place + 0.17] * len(single), single, ".", color=colour, alpha=0.4, markersize=5)
    axes.errorbar(place, final.mean, final.error or 0.0, fmt="o", color=colour, markersize=8, capsize=4)


def _draw_floor(axes: Axes, problem: ProblemRuns) -> None:
    """The dashed line nobody can stay below on average, named beside the picture."""
    floor = problem.contenders[0].over_seeds("clipped_floor").mean
    top = max(run.clipped_regret for contender in problem.contenders for run in contender.runs)
    axes.axhline(floor, color=INK, linewidth=1.3, linestyle=(0, (5, 3)), zorder=1)
    axes.set_ylim(0, max(top, floor) * 1.12 + 0.5)
    _label_ends(axes, [("floor", floor, INK)])


def _label_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """Name and value to the right of each end (name, value, colour), kept apart and tied to it by a line."""
    ends = sorted(ends, key=lambda end: end[1])
    texts = [f"{_shortened(name)}  {number(value)}" for name, value, _ in ends]
    _make_room(axes, max(map(len, texts)))
    points = [_height(axes, value) for _, value, _ in ends]
    for text, point, height, (_, _, colour) in zip(texts, points, spread_out(points, LABEL_GAP), ends, strict=True):
        axes.plot(
            [1.004, 1.03],
            [point, height],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.8,
            clip_on=False,
        )
        axes.text(1.037, height, text, transform=axes.transAxes, va="center", fontsize=LABEL_SIZE, color=colour)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"


def _make_room(axes: Axes, letters: int) -> None:
    """Leave the right of the figure to labels of so many letters, each about 0.55 of its size wide."""
    inches = 0.3 + letters * 0.55 * LABEL_SIZE / 72
    axes.figure.subplots_adjust(right=max(0.5, 1.0 - inches / WIDTH))


def _height(axes: Axes, value: float) -> float:
    """Where a data value lies on the axes, 0 at the bottom and 1 at the top."""
    return float(axes.transLimits.transform(axes.transScale.transform((0.0, value)))[1])


def spread_out(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights, at least `gap` apart, with the least sum of squared moves, kept within [0, 1].

    With y_i = h_i − i·gap the distance turns into an order, y_i ≤ y_{i+1}: pool neighbours that break it.
    """
    pools: list[list[float]] = []
    for index, height in enumerate(heights):
        pools.append([height - index * gap])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    levels = [fmean(pool) for pool in pools for _ in pool]
    ceiling = max(0.0, 1.0 - (len(heights) - 1) * gap)
    return [min(max(level, 0.0), ceiling) + index * gap for index, level in enumerate(levels)]


def _final_name(contender: Contender) -> str:
    """The name on several short lines over its clipped regret, to stand under its point."""
    lines = textwrap.wrap(contender.title, 12)
    return "\n".join([*lines, number(contender.over_seeds("clipped_regret").mean)])
