"""Pictures of a comparison, one per file: regret and reward round by round, and clipped regret above its floor."""

import textwrap
from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuclust.analysis import curves
from neuclust.analysis.curves import Band
from neuclust.analysis.estimates import number
from neuclust.analysis.groups import ProblemRuns, problems
from neuclust.errors import ConfigError
from neuclust.experiment.records import RunRecord
from neuclust.report import drawing

LABEL_GAP = 0.052  # of the axes' height between two labels
LONGEST_TITLE, LONGEST_LABEL = 84, 40  # letters
WIDTH, HEIGHT = 8.6, 5.0  # inches


def regret_figure(records: Sequence[RunRecord]) -> Figure:
    """Expected regret so far against the round; the lower, the better."""
    problem = _only_problem(records)
    figure, axes = _canvas("Expected regret", problem)
    bands, log = draw_regret(axes, problem, drawing.WIDE_PEN)
    axes.set_ylabel(f"expected regret so far ({'log scale; ' if log else ''}lower is better)")
    _finish(axes, problem, bands)
    return figure


def reward_figure(records: Sequence[RunRecord]) -> Figure:
    """Average expected slate reward per round so far, under the best possible; the higher, the better."""
    problem = _only_problem(records)
    figure, axes = _canvas("Average slate reward", problem)
    bands, best = draw_reward(axes, problem, drawing.WIDE_PEN)
    axes.set_ylabel("average expected slate reward so far (higher is better)")
    _finish(axes, problem, bands, ("best possible", float(best.mean[-1]), drawing.INK))
    return figure


def clipped_figure(records: Sequence[RunRecord]) -> Figure:
    """Clipped regret at the end, mean ± 1 s.e. over seeds, above the floor a perfect policy pays too."""
    problem = _only_problem(records)
    figure, axes = _canvas("Clipped regret", problem)
    styles = drawing.line_styles(problem)
    names = []
    for place, contender in enumerate(problem.contenders):
        final, single = contender.over_seeds("clipped_regret"), [run.clipped_regret for run in contender.runs]
        colour = styles[contender.title].colour
        if len(single) > 1:
            axes.plot([place + 0.17] * len(single), single, ".", color=colour, alpha=0.4, markersize=5)
        axes.errorbar(place, final.mean, final.error or 0.0, fmt="o", color=colour, markersize=8, capsize=4)
        names.append("\n".join([*textwrap.wrap(contender.title, 12), number(final.mean)]))
    axes.set_xticks(range(len(names)), names, fontsize=drawing.LABEL_SIZE)
    axes.set_xlim(-0.6, len(problem.contenders) - 0.4)
    several = "; large: mean ± 1 standard error, small: single seeds" if problem.seeds > 1 else ""
    hint = f"dashed: a perfect policy, on average; single runs can fall below{several}"
    axes.set_xlabel(hint, fontsize=drawing.LABEL_SIZE)
    figure.subplots_adjust(bottom=0.12 + 0.034 * max(name.count("\n") for name in names))
    axes.set_ylabel(f"clipped regret after {problem.rounds} rounds (lower is better)")
    floor = problem.contenders[0].over_seeds("clipped_floor").mean
    axes.axhline(floor, color=drawing.INK, linewidth=1.3, linestyle=drawing.FLOOR_DASH, zorder=1)
    axes.set_ylim(0, max(floor, *(run.clipped_regret for run in problem.runs)) * 1.12 + 0.5)
    label_ends(axes, [("floor", floor, drawing.INK)])
    return figure


def draw_regret(axes: Axes, problem: ProblemRuns, pen: drawing.Pen) -> tuple[list[Band], bool]:
    """Curves of expected regret, and whether their axis is logarithmic."""
    bands = curves.bands(problem, curves.regret)
    finals = [float(band.mean[-1]) for band in bands]
    if log := drawing.needs_log_axis(finals):
        drawing.use_log_axis(axes, finals)
    else:
        bands = [band.from_zero() for band in bands]
        axes.set_ylim(0, max(1e-3, 1.06 * max(float(band.seeds.max()) for band in bands)))
    drawing.draw_bands(axes, bands, drawing.line_styles(problem), pen)
    return bands, log


def draw_reward(axes: Axes, problem: ProblemRuns, pen: drawing.Pen) -> tuple[list[Band], Band]:
    """Curves of the average reward so far, and that of the best slates."""
    bands = curves.bands(problem, curves.averaged(curves.reward))
    best = curves.bands(problem, curves.averaged(curves.best_reward))[0]
    drawing.draw_bands(axes, bands, drawing.line_styles(problem), pen)
    drawing.draw_reference(axes, best, drawing.BEST_DASH, pen)
    lowest = min(float(band.seeds.min()) for band in bands)
    axes.set_ylim(max(0.0, lowest - 0.05), float(best.mean.max()) * 1.04)
    return bands, best


def _only_problem(records: Sequence[RunRecord]) -> ProblemRuns:
    found = problems(records)
    if len(found) != 1:
        names = ", ".join(problem.description for problem in found) or "no rounds at all"
        raise ConfigError(f"expected runs on one problem for one picture, got {names}; draw them one by one")
    return found[0]


def _canvas(what: str, problem: ProblemRuns) -> tuple[Figure, Axes]:
    figure = drawing.new_figure((WIDTH, HEIGHT))
    kept = problem.options.replace(" ", drawing.NO_BREAK_SPACE).replace(f",{drawing.NO_BREAK_SPACE}", ", ")
    description = problem.description.replace(problem.options, kept) if kept else problem.description
    title = textwrap.wrap(f"{what} on {description}", LONGEST_TITLE)
    figure.subplots_adjust(left=0.095, right=0.97, top=0.945 - 0.045 * len(title), bottom=0.115)
    axes = drawing.bare(figure.add_subplot(), width=0.8)
    axes.set_title("\n".join(title), loc="left", fontsize=11.5, color=drawing.INK, pad=10)
    return figure, axes


def _finish(axes: Axes, problem: ProblemRuns, bands: Sequence[Band], *more: tuple[str, float, str]) -> None:
    """What the bands show, and the name and value of every curve at its end."""
    hint = drawing.spread_words(problem.seeds)
    axes.set_xlabel(f"round   ({hint})" if hint else "round")
    styles = drawing.line_styles(problem)
    label_ends(axes, [*((band.title, float(band.mean[-1]), styles[band.title].colour) for band in bands), *more])


def label_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """Name and value to the right of each end (name, value, colour), kept apart and tied to it by a line."""
    ends = sorted(ends, key=lambda end: end[1])
    texts = [f"{drawing.shortened(name, LONGEST_LABEL)}  {number(value)}" for name, value, _ in ends]
    inches = 0.3 + max(map(len, texts)) * 0.55 * drawing.LABEL_SIZE / 72  # a letter is about 0.55 of its size wide
    axes.figure.subplots_adjust(right=max(0.5, 1.0 - inches / WIDTH))
    # where values lie on the axes, 0 at the bottom and 1 at the top
    points = [float(axes.transLimits.transform(axes.transScale.transform((0.0, value)))[1]) for _, value, _ in ends]
    inside = axes.transAxes
    for text, point, height, (_, _, colour) in zip(texts, points, spread_out(points, LABEL_GAP), ends, strict=True):
        axes.plot([1.004, 1.03], [point, height], transform=inside, color=colour, linewidth=0.8, clip_on=False)
        axes.text(1.037, height, text, transform=inside, va="center", fontsize=drawing.LABEL_SIZE, color=colour)


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
