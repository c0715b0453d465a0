"""Pictures at the width of a paper's column: small, with a legend and no title, for a page and for print."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from neuclust.analysis.groups import Contender, ProblemRuns
from neuclust.experiment.records import RunRecord
from neuclust.report.figures import (
    FEW_SEEDS,
    INK,
    NO_BREAK_SPACE,
    Band,
    Numbers,
    average_best,
    average_reward,
    curve_bands,
    line_styles,
    needs_log_axis,
    use_log_axis,
)
from neuclust.report.tables import number
from neuclust.report.vectors import small_letters

WIDTH, PLOT_HEIGHT = 3.4, 2.1  # inches; one column of most papers
LINE = 0.135  # inches a line of the legend
MOST_DRAWN = 12  # contenders in one picture
MOST_PANELS = 4  # contenders whose clusters are drawn
LONGEST_NAME, LONGEST_TICK, SHORT_NAME = 56, 28, 24  # letters
TIME_SPREAD = 10.0  # times apart from which seconds need a log axis
MOST_WINDOWS, ROUNDS_A_WINDOW = 40, 6  # stretches of rounds over which the shares of clusters are taken
RANK_COLOURS = ("#08519C", "#3182BD", "#6BAED6", "#BDD7E7", "#E4E4E4")
BEST_POSSIBLE = Line2D([], [], color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
RANK_NAMES = ("most played", "2nd", "3rd", "4th", "all others")


@dataclass(frozen=True, slots=True)
class Picture:
    """One drawn figure, what it is called in a file name, and what it shows in a sentence."""

    name: str
    title: str
    caption: str
    figure: Figure


def pictures(problem: ProblemRuns) -> list[Picture]:
    """Every picture that the records of one problem can give."""
    drawn = replace(problem, contenders=problem.contenders[:MOST_DRAWN])
    with small_letters():
        makers = (regret_picture, _reward, _clipped, _runtime, _clusters)
        return [picture for draw in makers if (picture := draw(drawn))]


def colours(problem: ProblemRuns) -> dict[str, str]:
    """The colour of each contender in the pictures, by title; those not drawn have none."""
    drawn = replace(problem, contenders=problem.contenders[:MOST_DRAWN])
    return {title: style.colour for title, style in line_styles(drawn).items()}


def regret_picture(problem: ProblemRuns) -> Picture | None:
    """Expected regret round by round; None where records came without curves."""
    if not _all_have(problem, lambda run: run.curve):
        return None
    bands = curve_bands(problem, lambda run: run.curve)
    figure, axes = canvas(legend_lines(problem))
    finals = [float(band.mean[-1]) for band in bands]
    if log := needs_log_axis(finals):
        use_log_axis(axes, finals)
    else:
        bands = [band.from_zero() for band in bands]
        axes.set_ylim(0, max(1e-3, 1.06 * max(float(band.seeds.max()) for band in bands)))
    axes.set_ylabel("expected regret so far" + (" (log)" if log else ""))
    draw_curves(axes, bands)
    legend(figure, problem)
    return Picture("regret", "Expected regret", f"The lower, the better; {_spread(problem)}.", figure)


def _reward(problem: ProblemRuns) -> Picture | None:
    if not _all_have(problem, lambda run: run.reward_curve and len(run.reward_curve) == len(run.curve)):
        return None
    bands = curve_bands(problem, average_reward)
    best = curve_bands(problem, average_best)[0]
    figure, axes = canvas(legend_lines(problem, more=1))
    axes.plot(best.rounds, best.mean, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylabel("average expected reward so far")
    lowest = min(float(band.seeds.min()) for band in bands)
    axes.set_ylim(max(0.0, lowest - 0.05), float(best.mean.max()) * 1.04)
    draw_curves(axes, bands)
    legend(figure, problem, more={"best possible": BEST_POSSIBLE})
    caption = f"The higher, the better; dashed: the best possible; {_spread(problem)}."
    return Picture("reward", "Slate reward", caption, figure)


def _clipped(problem: ProblemRuns) -> Picture:
    names = [_shortened(contender.title, LONGEST_TICK) for contender in problem.contenders]
    height = max(PLOT_HEIGHT + 0.3, 0.75 + 0.2 * len(names))  # beside the others on a page, or taller
    figure, axes = canvas(0, height, left=min(0.5, 0.05 + 0.0165 * max(map(len, names))))
    chosen = line_styles(problem)
    for place, contender in enumerate(problem.contenders):
        final, colour = contender.over_seeds("clipped_regret"), chosen[contender.title].colour
        single = [run.clipped_regret for run in contender.runs]
        axes.plot(single, [place + 0.25] * len(single), ".", color=colour, alpha=0.4, markersize=3)
        axes.errorbar(final.mean, place, xerr=final.error or 0.0, fmt="o", color=colour, markersize=4, capsize=2)
    floor = problem.contenders[0].over_seeds("clipped_floor").mean
    axes.axvline(floor, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    to_the_left = floor > 0.7 * axes.get_xlim()[1]  # or the words would leave the picture
    axes.annotate(
        f"floor {number(floor)}, on average",
        (floor, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-2 if to_the_left else 2, 2),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        fontsize=6.5,
    )
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#E3E3E3", linewidth=0.5)
    axes.set_xlabel(f"clipped regret after {problem.rounds} rounds")
    caption = (
        "The lower, the better; dashed: the floor, which a perfect policy pays too, on average: single runs scatter "
        "about it and can fall below it. Large: mean ± 1 standard error; small: single seeds."
    )
    return Picture("clipped", "Clipped regret and its floor", caption, figure)


def _runtime(problem: ProblemRuns) -> Picture:
    figure, axes = canvas(legend_lines(problem))
    chosen, points = line_styles(problem), []
    for contender in problem.contenders:
        seconds, regret = contender.over_seeds("seconds"), contender.over_seeds("expected_regret")
        colour = chosen[contender.title].colour
        axes.errorbar(
            max(seconds.mean, 1e-3), regret.mean, yerr=regret.error or 0.0, fmt="o", color=colour, markersize=4.5,
            capsize=2, elinewidth=0.8, clip_on=False, zorder=4,
        )  # fmt: skip
        points.append((max(seconds.mean, 1e-3), regret.mean))
    times, regrets = [point[0] for point in points], [point[1] for point in points]
    if log_time := max(times) > TIME_SPREAD * min(times):
        axes.set_xscale("log")
        axes.set_xlim(min(times) / 2, max(times) * 2)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(times) < 100 * min(times) else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, max(times) * 1.15)
    if log_regret := needs_log_axis(regrets):
        use_log_axis(axes, regrets)
    else:
        axes.set_ylim(0, max(1e-3, 1.25 * max(regrets)))
    axes.set_xlabel("seconds a run" + (" (log)" if log_time else ""))
    axes.set_ylabel("expected regret" + (" (log)" if log_regret else ""))
    legend(figure, problem, lines=False)
    return Picture("runtime", "Time against regret", "Down and to the left is better: less regret, sooner.", figure)


def _clusters(problem: ProblemRuns) -> Picture | None:
    players = [contender for contender in problem.contenders if any(run.chosen_clusters for run in contender.runs)]
    players = players[:MOST_PANELS]
    if not players:
        return None
    top, below, panel = 0.2, 0.6, 1.3 if len(players) == 1 else 1.0
    height = below + len(players) * (panel + top) + 0.05
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.14, right=0.97, bottom=below / height, top=1 - (top + 0.02) / height, hspace=0.3)
    for place, contender in enumerate(players):
        axes = figure.add_subplot(len(players), 1, place + 1)
        _draw_shares(axes, contender)
        if place == len(players) - 1:
            axes.set_xlabel("round")
        else:
            axes.set_xticklabels([])
    handles = [Line2D([], [], marker="s", linestyle="", color=colour, markersize=4.5) for colour in RANK_COLOURS]
    figure.legend(
        handles, RANK_NAMES, loc="lower left", ncols=5, frameon=False, handletextpad=0.2, columnspacing=0.8,
        bbox_to_anchor=(0.0, 0.0), borderaxespad=0.3,
    )  # fmt: skip
    caption = (
        "Share of the rounds around each round in which a run played its most played cluster, its second, and so on; "
        "clusters are ranked in each run by itself, since their numbers mean nothing across seeds."
    )
    return Picture("clusters", "Which clusters were played", caption, figure)


def _draw_shares(axes: Axes, contender: Contender) -> None:
    rounds, shares = cluster_shares([run.chosen_clusters for run in contender.runs if run.chosen_clusters])
    axes.stackplot(rounds, shares, colors=RANK_COLOURS, linewidth=0)
    axes.set_xlim(float(rounds[0]), float(rounds[-1]))
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.set_title(_shortened(contender.title, LONGEST_NAME), loc="left", fontsize=7, pad=3)
    axes.spines[["top", "right"]].set_visible(False)


def cluster_shares(choices: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Rounds (w,) and shares (5, w) of the clusters ranked 1, 2, 3, 4 and beyond by each run's own counts.

    Each column sums to 1: of all rounds of all runs in that window, how many played a cluster of that rank.
    """
    length = max(map(len, choices))
    windows = min(MOST_WINDOWS, max(1, length // ROUNDS_A_WINDOW))
    edges = np.linspace(0, length, windows + 1).round().astype(int)
    counts = np.zeros((len(RANK_NAMES), len(edges) - 1))
    for chosen in choices:
        ranks = _ranks(chosen)
        for window, (low, high) in enumerate(pairwise(edges)):
            counts[:, window] += np.bincount(ranks[low:high], minlength=len(RANK_NAMES))
    middles = (edges[:-1] + 1 + edges[1:]) / 2
    if len(middles) == 1:  # an area needs two ends
        return np.array([0.5, length + 0.5]), np.repeat(counts / counts.sum(0), 2, axis=1)
    return middles, counts / counts.sum(0)


def _ranks(chosen: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Each round's cluster as its place in the order of how often it was played, equal counts by number."""
    order = sorted(Counter(chosen).items(), key=lambda item: (-item[1], item[0]))
    place = {cluster: min(rank, len(RANK_NAMES) - 1) for rank, (cluster, _) in enumerate(order)}
    return np.array([place[cluster] for cluster in chosen], dtype=np.int64)


def _all_have(problem: ProblemRuns, has: Callable[[RunRecord], object]) -> bool:
    """Foreign records may come without curves."""
    return all(has(run) for contender in problem.contenders for run in contender.runs)


def canvas(names: int, height: float = PLOT_HEIGHT, left: float = 0.14) -> tuple[Figure, Axes]:
    """Axes at the width of a column, with room for so many lines of names below."""
    room = LINE * names + (0.08 if names else 0.0)
    whole = height + room
    figure = Figure(figsize=(WIDTH, whole))
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=left, right=0.97, top=1 - 0.16 / whole, bottom=(room + 0.36) / whole)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E3E3E3", linewidth=0.5)
    axes.set_axisbelow(True)
    return figure, axes


def draw_curves(axes: Axes, bands: Sequence[Band]) -> None:
    """Means, the best on top; thin lines for few seeds, a band of ± 1 standard error for more."""
    for band in reversed(bands):
        axes.plot(band.rounds, band.mean, color=band.colour, linestyle=band.dash, linewidth=1.3, zorder=3)
        if 1 < len(band.seeds) <= FEW_SEEDS:
            axes.plot(band.rounds, band.seeds.T, color=band.colour, linewidth=0.4, alpha=0.5, zorder=2)
        elif len(band.seeds) > FEW_SEEDS:
            low, high = band.mean - band.error, band.mean + band.error
            axes.fill_between(band.rounds, low, high, color=band.colour, alpha=0.18, linewidth=0, zorder=2)
    axes.set_xlabel("round")
    axes.set_xlim(0, max(float(band.rounds[-1]) for band in bands))


def _spread(problem: ProblemRuns) -> str:
    if problem.seeds == 1:
        return "one seed"
    return "thin: single seeds" if problem.seeds <= FEW_SEEDS else "shaded: ± 1 standard error"


def _shortened(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _legend_columns(problem: ProblemRuns) -> int:
    return 2 if max(len(contender.title) for contender in problem.contenders) <= SHORT_NAME else 1


def legend_lines(problem: ProblemRuns, more: int = 0) -> int:
    """Lines that the names of all contenders and of `more` further things need."""
    return math.ceil((len(problem.contenders) + more) / _legend_columns(problem))


def legend(
    figure: Figure, problem: ProblemRuns, lines: bool = True, more: Mapping[str, Line2D] = MappingProxyType({})
) -> None:
    """Below the axes, least regret first; a leading blank keeps names that begin with _, which would be hidden."""
    chosen = line_styles(problem)
    handles, names = [], []
    for contender in problem.contenders:
        style = chosen[contender.title]
        shape = {"linestyle": style.dash, "linewidth": 1.3} if lines else {"linestyle": "", "marker": "o"}
        handles.append(Line2D([], [], color=style.colour, markersize=4, **shape))
        name = _shortened(contender.title, LONGEST_NAME)
        names.append(f"{NO_BREAK_SPACE}{name}" if name.startswith("_") else name)
    figure.legend(
        [*handles, *more.values()], [*names, *more], loc="lower left", ncols=_legend_columns(problem),
        frameon=False, labelspacing=0.25, borderaxespad=0.2, bbox_to_anchor=(0.01, 0.0),
        handlelength=2.2 if lines else 1.0,
    )  # fmt: skip
