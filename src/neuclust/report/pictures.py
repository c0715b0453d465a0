"""Pictures at the width of a paper's column: small, with a legend and no title, for a page and for print."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from neuclust.analysis.curves import cluster_shares
from neuclust.analysis.estimates import Estimate, number
from neuclust.analysis.groups import ProblemRuns
from neuclust.report import drawing
from neuclust.report.drawing import Picture
from neuclust.report.figures import draw_regret, draw_reward

WIDTH, PLOT_HEIGHT = 3.4, 2.1  # inches; one column of most papers
LINE = 0.135  # inches per line of the legend
MOST_DRAWN = 12  # contenders in one picture
MOST_PANELS = 4  # contenders whose clusters are drawn
LONGEST_NAME, LONGEST_TICK, SHORT_NAME = 56, 28, 24  # letters
TIME_SPREAD = 10.0  # times apart from which seconds need a log axis
RANK_COLOURS = ("#08519C", "#3182BD", "#6BAED6", "#BDD7E7", "#E4E4E4")
RANK_NAMES = ("most played", "2nd", "3rd", "4th", "all others")
BEST_POSSIBLE = ("best possible", drawing.dashed(drawing.BEST_DASH))

Entry = tuple[str, Line2D]  # of a legend


def pictures(problem: ProblemRuns) -> list[Picture]:
    """Every picture that the records of one problem can give."""
    makers = (regret_picture, _reward, _clipped, _runtime, _clusters)
    with drawing.small_letters():
        return [picture for draw in makers if (picture := draw(_drawn(problem)))]


def colours(problem: ProblemRuns) -> dict[str, str]:
    """The colour of each contender in the pictures, by title; those not drawn have none."""
    return {title: style.colour for title, style in drawing.line_styles(_drawn(problem)).items()}


def _drawn(problem: ProblemRuns) -> ProblemRuns:
    return replace(problem, contenders=problem.contenders[:MOST_DRAWN])


def regret_picture(problem: ProblemRuns) -> Picture | None:
    """Expected regret round by round; None where records came without curves."""
    if not all(run.curve for run in problem.runs):
        return None
    figure, axes = canvas(entries(problem))
    _, log = draw_regret(axes, problem, drawing.COLUMN_PEN)
    axes.set_ylabel(f"expected regret so far{' (log)' if log else ''}")
    caption = f"The lower, the better; {drawing.spread_words(problem.seeds, 'one seed')}."
    return Picture("regret", "Expected regret", caption, figure)


def _reward(problem: ProblemRuns) -> Picture | None:
    if not all(run.reward_curve and len(run.reward_curve) == len(run.curve) for run in problem.runs):
        return None  # foreign records may come without curves
    figure, axes = canvas([*entries(problem), BEST_POSSIBLE])
    draw_reward(axes, problem, drawing.COLUMN_PEN)
    axes.set_ylabel("average expected reward so far")
    caption = f"The higher, the better; dashed: the best possible; {drawing.spread_words(problem.seeds, 'one seed')}."
    return Picture("reward", "Slate reward", caption, figure)


def _clipped(problem: ProblemRuns) -> Picture:
    names = [drawing.shortened(contender.title, LONGEST_TICK) for contender in problem.contenders]
    height = max(PLOT_HEIGHT + 0.3, 0.75 + 0.2 * len(names))  # beside the others on a page, or taller
    figure, axes = canvas((), height, left=min(0.5, 0.05 + 0.0165 * max(map(len, names))))
    chosen = drawing.line_styles(problem)
    for place, contender in enumerate(problem.contenders):
        final, colour = contender.over_seeds("clipped_regret"), chosen[contender.title].colour
        single = [run.clipped_regret for run in contender.runs]
        axes.plot(single, [place + 0.25] * len(single), ".", color=colour, alpha=0.4, markersize=3)
        axes.errorbar(final.mean, place, xerr=final.error or 0.0, fmt="o", color=colour, markersize=4, capsize=2)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    floor = problem.contenders[0].over_seeds("clipped_floor").mean
    axes.axvline(floor, color=drawing.INK, linewidth=0.9, linestyle=drawing.FLOOR_DASH, zorder=1)
    axes.set_xlim(left=0)
    to_the_left = floor > 0.7 * axes.get_xlim()[1]  # or the words would leave the picture
    offset, side = (-2, "right") if to_the_left else (2, "left")
    axes.annotate(
        f"floor {number(floor)}, on average", (floor, 1.0), xycoords=axes.get_xaxis_transform(), xytext=(offset, 2),
        textcoords="offset points", ha=side, fontsize=6.5,
    )  # fmt: skip
    axes.grid(axis="y", visible=False)
    drawing.bare(axes, grid="x", width=0.5)
    axes.set_xlabel(f"clipped regret after {problem.rounds} rounds")
    caption = (
        "The lower, the better; dashed: the floor, which a perfect policy pays too, on average: single runs scatter "
        "about it and can fall below it. Large: mean ± 1 standard error; small: single seeds."
    )
    return Picture("clipped", "Clipped regret and its floor", caption, figure)


def _runtime(problem: ProblemRuns) -> Picture:
    figure, axes = canvas(entries(problem, lines=False), handle=1.0)
    chosen = drawing.line_styles(problem)
    times = [max(contender.over_seeds("seconds").mean, 1e-3) for contender in problem.contenders]
    regrets = [contender.over_seeds("expected_regret") for contender in problem.contenders]
    for contender, seconds, regret in zip(problem.contenders, times, regrets, strict=True):
        look = {"fmt": "o", "markersize": 4.5, "capsize": 2, "clip_on": False, "zorder": 4}
        draw_points(axes, [seconds], [regret], chosen[contender.title].colour, **look)
    if log_time := max(times) > TIME_SPREAD * min(times):
        axes.set_xscale("log")
        axes.set_xlim(min(times) / 2, max(times) * 2)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(times) < 100 * min(times) else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, max(times) * 1.15)
    means = [regret.mean for regret in regrets]
    if log_regret := drawing.needs_log_axis(means):
        drawing.use_log_axis(axes, means)
    else:
        axes.set_ylim(0, max(1e-3, 1.25 * max(means)))
    axes.set_xlabel(f"seconds per run{' (log)' if log_time else ''}")
    axes.set_ylabel(f"expected regret{' (log)' if log_regret else ''}")
    return Picture("runtime", "Time against regret", "Down and to the left is better: less regret, sooner.", figure)


def _clusters(problem: ProblemRuns) -> Picture | None:
    players = [contender for contender in problem.contenders if any(run.chosen_clusters for run in contender.runs)]
    players = players[:MOST_PANELS]
    if not players:
        return None
    top, below, panel = 0.2, 0.6, 1.3 if len(players) == 1 else 1.0
    height = below + len(players) * (panel + top) + 0.05
    figure = drawing.new_figure((WIDTH, height))
    figure.subplots_adjust(left=0.14, right=0.97, bottom=below / height, top=1 - (top + 0.02) / height, hspace=0.3)
    panels = figure.subplots(len(players), 1, squeeze=False)[:, 0]
    for axes, contender in zip(panels, players, strict=True):
        rounds, shares = cluster_shares([run.chosen_clusters for run in contender.runs if run.chosen_clusters])
        axes.stackplot(rounds, shares, colors=RANK_COLOURS, linewidth=0)
        axes.set_xlim(float(rounds[0]), float(rounds[-1]))
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.set_title(drawing.shortened(contender.title, LONGEST_NAME), loc="left", fontsize=7, pad=3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[:-1]:
        axes.set_xticklabels([])
    panels[-1].set_xlabel("round")
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


def entries(problem: ProblemRuns, lines: bool = True) -> list[Entry]:
    """Names and marks of all contenders, least regret first."""
    chosen, found = drawing.line_styles(problem), []
    for contender in problem.contenders:
        style, name = chosen[contender.title], drawing.shortened(contender.title, LONGEST_NAME)
        shape = {"linestyle": style.dash, "linewidth": 1.3} if lines else {"linestyle": "", "marker": "o"}
        found.append((name, Line2D([], [], color=style.colour, markersize=4, **shape)))
    return found


def canvas(
    named: Sequence[Entry], height: float = PLOT_HEIGHT, left: float = 0.14, *, handle: float = 2.2, most: int = 2
) -> tuple[Figure, Axes]:
    """Axes at the width of a column, with a legend of at most `most` columns below."""
    columns = most if max((len(name) for name, _ in named), default=0) <= SHORT_NAME else 1
    room = LINE * math.ceil(len(named) / columns) + (0.08 if named else 0.0)
    whole = height + room
    figure = drawing.new_figure((WIDTH, whole))
    figure.subplots_adjust(left=left, right=0.955, top=1 - 0.16 / whole, bottom=(room + 0.36) / whole)
    if named:
        # a leading blank keeps names that begin with _ visible
        names = [f"{drawing.NO_BREAK_SPACE}{name}" if name.startswith("_") else name for name, _ in named]
        figure.legend(
            [mark for _, mark in named], names, loc="lower left", ncols=columns, frameon=False, labelspacing=0.25,
            borderaxespad=0.2, bbox_to_anchor=(0.01, 0.0), handlelength=handle,
        )  # fmt: skip
    return figure, drawing.bare(figure.add_subplot(), width=0.5)


def draw_points(axes: Axes, x: Sequence[float], ends: Sequence[Estimate], colour: str, **look: Any) -> None:
    """Means with error bars of ± 1 standard error."""
    bars = [end.error or 0.0 for end in ends]
    axes.errorbar(x, [end.mean for end in ends], yerr=bars, color=colour, elinewidth=0.8, **look)
