"""The paper's Figures 2 to 9 from records: regret and reward, the elbow, and the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction.phases import PAPER, PAPER_POLICIES
from neuclust.report.columns import (
    BEST_POSSIBLE,
    Picture,
    canvas,
    draw_curves,
    legend,
    legend_lines,
    regret_picture,
)
from neuclust.report.figures import COLOURS, GREY, INK, Band, Numbers, curve_bands, line_styles
from neuclust.report.reproduction import Reproduction, cluster_points, label
from neuclust.report.tables import number
from neuclust.report.vectors import small_letters

NUMBERS = {"movielens": ("2 and 3", "6", "8"), "yelp": ("4 and 5", "7", "9")}
DRAWN = (*PAPER_POLICIES, "linucb", "uniform")  # the paper's own, and two that say where these stand
FLOOR = Line2D([], [], color=INK, linewidth=0.9, linestyle=(0, (5, 3)))


def paper_figures(found: Reproduction) -> list[Picture]:
    """Every figure that the records can give, named and numbered as in the paper."""
    curves, elbow, clusters = NUMBERS[found.study.name]
    with small_letters():
        drawn = [*_curves(found, curves), _elbow(found, elbow), _clusters(found, clusters)]
    return [picture for picture in drawn if picture is not None]


def _curves(found: Reproduction, figures: str) -> list[Picture]:
    runs = [run for run in found.runs.get(PAPER, ()) if run.policy in DRAWN]
    if not runs:
        return []
    problem, slug = problems(runs)[0], figures.replace(" ", "-")
    regret = regret_picture(problem)
    expected = [] if regret is None else [
        replace(
            regret,
            name=f"figures-{slug}-expected-regret",
            title=f"Figures {figures}: expected regret",
            caption=f"{regret.caption} {label(found)}.",
        )
    ]  # fmt: skip
    return [_clipped(found, problem, figures, slug), *expected, _reward(found, problem, figures, slug)]


def expected_clipped(run: RunRecord) -> list[tuple[int, float]]:
    """E[clipped regret] so far, Σ u*(1 − u), from the points of the curves.

    Between two points u* counts as constant: exact where it is (MovieLens) or where every round is a point.
    """
    return _products(run, _rewards(run))


def floor_curve(run: RunRecord) -> list[tuple[int, float]]:
    """What a perfect policy pays so far, Σ u*(1 − u*), in the same manner."""
    return _products(run, _bests(run))


def _rewards(run: RunRecord) -> Numbers:
    return np.array([value for _, value in run.reward_curve], dtype=np.float64)


def _bests(run: RunRecord) -> Numbers:
    return np.add(_rewards(run), [value for _, value in run.curve])


def _products(run: RunRecord, sums: Numbers) -> list[tuple[int, float]]:
    """Σ u*(n − Σu) / n over the stretches between points, u* averaged inside each."""
    rounds = np.array([t for t, _ in run.curve], dtype=np.float64)
    length = np.diff(rounds, prepend=0.0)
    best, got = np.diff(_bests(run), prepend=0.0), np.diff(sums, prepend=0.0)
    total = np.cumsum(best * (length - got) / length)
    return [(int(t), float(value)) for t, value in zip(rounds, total, strict=True)]


def _clipped(found: Reproduction, problem: ProblemRuns, figures: str, slug: str) -> Picture:
    bands = [band.from_zero() for band in curve_bands(problem, expected_clipped)]
    floor = curve_bands(problem, floor_curve)[0].from_zero()
    figure, axes = canvas(legend_lines(problem, more=1))
    axes.plot(floor.rounds, floor.mean, color=INK, linewidth=1.0, linestyle=(0, (5, 3)), zorder=4)
    draw_curves(axes, bands)
    _draw_ends(axes, problem)
    axes.set_ylim(0, 1.08 * _highest(bands, problem))
    axes.set_xlim(0, problem.rounds * 1.02)
    axes.set_ylabel("clipped regret so far")
    legend(figure, problem, more={"floor: a perfect policy": FLOOR})
    caption = (
        "The paper's metric; lower is better. Lines: its expectation; dots: what the coins gave at the end, ± 1 "
        f"standard error; dashed: the floor that a perfect policy pays, {number(float(floor.mean[-1]))} at the end. "
        f"{label(found)}."
    )
    return Picture(f"figures-{slug}-clipped-regret", f"Figures {figures}: clipped regret", caption, figure)


def _draw_ends(axes: Axes, problem: ProblemRuns) -> None:
    styles = line_styles(problem)
    for contender in problem.contenders:
        end = contender.over_seeds("clipped_regret")
        axes.errorbar(
            problem.rounds, end.mean, yerr=end.error or 0.0, fmt="o", markersize=3, capsize=1.5, elinewidth=0.8,
            color=styles[contender.title].colour, clip_on=False, zorder=5,
        )  # fmt: skip


def _highest(bands: Sequence[Band], problem: ProblemRuns) -> float:
    ends = [contender.over_seeds("clipped_regret") for contender in problem.contenders]
    return max(*(float(band.seeds.max()) for band in bands), *(end.mean + (end.error or 0.0) for end in ends))


def _reward(found: Reproduction, problem: ProblemRuns, figures: str, slug: str) -> Picture:
    bands = [band.from_zero() for band in curve_bands(problem, lambda run: run.reward_curve)]
    best = curve_bands(problem, lambda run: list(_with_rounds(run)))[0].from_zero()
    figure, axes = canvas(legend_lines(problem, more=1))
    axes.plot(best.rounds, best.mean, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    draw_curves(axes, bands)
    axes.set_ylim(0, 1.04 * float(best.mean[-1]))
    axes.set_ylabel("expected reward so far")
    legend(figure, problem, more={"best possible": BEST_POSSIBLE})
    caption = f"Slate rewards summed over rounds; higher is better; dashed: the best possible. {label(found)}."
    return Picture(f"figures-{slug}-reward", f"Figures {figures}: reward", caption, figure)


def _with_rounds(run: RunRecord) -> zip[tuple[int, float]]:
    return zip((t for t, _ in run.curve), _bests(run).tolist(), strict=True)


def _elbow(found: Reproduction, figure_number: str) -> Picture | None:
    if len(found.elbow) < 2:
        return None
    counts, squares = zip(*found.elbow, strict=True)
    figure, axes = canvas(0, left=0.18)
    axes.plot(counts, squares, color=COLOURS[0], marker="o", markersize=3, linewidth=1.3)
    _mark_chosen(axes, found)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("within-cluster sum of squares")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(0, 1.05 * squares[0])
    caption = f"k-means of all profiles; dotted: the paper's choice of {found.study.clusters}."
    return Picture(f"figure-{figure_number}-elbow", f"Figure {figure_number}: the elbow", caption, figure)


def _mark_chosen(axes: Axes, found: Reproduction) -> None:
    axes.axvline(found.study.clusters, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)


def _clusters(found: Reproduction, figure_number: str) -> Picture | None:
    players = cluster_points(found, "neuclust")
    if not players:
        return None
    bound = cluster_points(found, "cluster-oracle")
    lines = [(players, COLOURS[0], f"NeUClust, preset {players[0][1].preset}")]
    if bound:
        lines.append((bound, GREY, "the best slates inside one cluster"))
    figure, axes = canvas(len(lines))
    for points, colour, _ in lines:
        _draw_points(axes, points, colour)
    _mark_chosen(axes, found)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel(f"expected regret after {found.rounds} rounds")
    axes.set_ylim(bottom=0)
    handles = [Line2D([], [], color=colour, marker="o", markersize=3, linewidth=1.3) for _, colour, _ in lines]
    _plain_legend(figure, handles, [name for *_, name in lines])
    seeds = len(players[0][1].runs)
    spread = "one seed, so no error bars" if seeds == 1 else f"{seeds} seeds, ± 1 standard error"
    caption = (
        f"Lower is better; {spread}; dotted: the paper's choice of {found.study.clusters}. Grey: what a policy that "
        "knows every mean loses because all of a slate must come from one cluster."
    )
    title = f"Figure {figure_number}: number of clusters"
    return Picture(f"figure-{figure_number}-clusters", title, caption, figure)


def _draw_points(axes: Axes, points: Sequence[tuple[int, Contender]], colour: str) -> None:
    counts = [count for count, _ in points]
    ends = [one.over_seeds("expected_regret") for _, one in points]
    axes.errorbar(
        counts, [end.mean for end in ends], yerr=[end.error or 0.0 for end in ends], color=colour, marker="o",
        markersize=3, linewidth=1.3, capsize=2, elinewidth=0.8,
    )  # fmt: skip


def _plain_legend(figure: Figure, handles: Sequence[Line2D], names: Sequence[str]) -> None:
    figure.legend(
        handles, names, loc="lower left", frameon=False, labelspacing=0.25, borderaxespad=0.2, bbox_to_anchor=(0.01, 0)
    )
