"""The paper's Figures 2 to 9 from records: regret and reward, the elbow, and the number of clusters."""

from dataclasses import replace
from typing import Any

from matplotlib.lines import Line2D

from neuclust.analysis import curves
from neuclust.analysis.estimates import number
from neuclust.analysis.groups import ProblemRuns, problems
from neuclust.analysis.reproduction.results import Reproduction, cluster_points
from neuclust.experiment.reproduction.phases import PAPER, PAPER_POLICIES
from neuclust.report import drawing
from neuclust.report.drawing import Picture
from neuclust.report.inspection import draw_elbow
from neuclust.report.pictures import BEST_POSSIBLE, canvas, draw_points, entries, regret_picture

NUMBERS = {"movielens": ("2 and 3", "6", "8"), "yelp": ("4 and 5", "7", "9")}
DRAWN = (*PAPER_POLICIES, "linucb", "uniform")  # the paper's own, and two that say where these stand
CHOICE: dict[str, Any] = {"color": drawing.GREY, "linewidth": 0.9, "linestyle": drawing.CHOICE_DASH, "zorder": 1}
FLOOR = ("floor: a perfect policy", drawing.dashed(drawing.FLOOR_DASH))


def paper_figures(found: Reproduction) -> list[Picture]:
    """Every figure that the records can give, named and numbered as in the paper."""
    regret, elbow, clusters = NUMBERS[found.study.name]
    with drawing.small_letters():
        drawn = [*_curves(found, regret), _elbow(found, elbow), _clusters(found, clusters)]
    return [picture for picture in drawn if picture is not None]


def _curves(found: Reproduction, figures: str) -> list[Picture]:
    runs = [run for run in found.runs.get(PAPER, ()) if run.policy in DRAWN]
    if not runs:
        return []
    problem = problems(runs)[0]
    pictures = [_clipped(problem), regret_picture(problem), _reward(problem)]
    return [
        replace(
            picture,
            name=f"figures-{figures.replace(' ', '-')}-{picture.title.replace(' ', '-').lower()}",
            title=f"Figures {figures}: {picture.title.lower()}",
            caption=f"{picture.caption} {found.label}.",
        )
        for picture in pictures
        if picture is not None
    ]


def _clipped(problem: ProblemRuns) -> Picture:
    bands = [band.from_zero() for band in curves.bands(problem, curves.expected_clipped)]
    floor = curves.bands(problem, curves.floor_curve)[0].from_zero()
    styles = drawing.line_styles(problem)
    figure, axes = canvas([*entries(problem), FLOOR])
    drawing.draw_reference(axes, floor, drawing.FLOOR_DASH, drawing.COLUMN_PEN, zorder=4)
    drawing.draw_bands(axes, bands, styles, drawing.COLUMN_PEN)
    ends = {one.title: one.over_seeds("clipped_regret") for one in problem.contenders}
    for title, end in ends.items():
        look = {"fmt": "o", "markersize": 3, "capsize": 1.5, "clip_on": False, "zorder": 5}
        draw_points(axes, [problem.rounds], [end], styles[title].colour, **look)
    highest = max(*(float(band.seeds.max()) for band in bands), *(end.mean + (end.error or 0) for end in ends.values()))
    axes.set_ylim(0, 1.08 * highest)
    axes.set_xlim(0, problem.rounds * 1.02)
    axes.set_ylabel("clipped regret so far")
    caption = (
        "The paper's metric; lower is better. Lines: its expectation; dots: what the coins gave at the end, ± 1 "
        f"standard error; dashed: the floor that a perfect policy pays, {number(float(floor.mean[-1]))} at the end."
    )
    return Picture("", "Clipped regret", caption, figure)


def _reward(problem: ProblemRuns) -> Picture:
    bands = [band.from_zero() for band in curves.bands(problem, curves.reward)]
    best = curves.bands(problem, curves.best_reward)[0].from_zero()
    figure, axes = canvas([*entries(problem), BEST_POSSIBLE])
    drawing.draw_reference(axes, best, drawing.BEST_DASH, drawing.COLUMN_PEN)
    drawing.draw_bands(axes, bands, drawing.line_styles(problem), drawing.COLUMN_PEN)
    axes.set_ylim(0, 1.04 * float(best.mean[-1]))
    axes.set_ylabel("expected reward so far")
    caption = "Slate rewards summed over rounds; higher is better; dashed: the best possible."
    return Picture("", "Reward", caption, figure)


def _elbow(found: Reproduction, figure_number: str) -> Picture | None:
    if len(found.elbow) < 2:
        return None
    figure, axes = canvas((), left=0.18)
    draw_elbow(axes, found.elbow, markersize=3, linewidth=1.3)
    axes.axvline(found.study.clusters, **CHOICE)
    caption = f"k-means of all profiles; dotted: the paper's choice of {found.study.clusters}."
    return Picture(f"figure-{figure_number}-elbow", f"Figure {figure_number}: the elbow", caption, figure)


def _clusters(found: Reproduction, figure_number: str) -> Picture | None:
    players = cluster_points(found, "neuclust")
    if not players:
        return None
    bound = cluster_points(found, "cluster-oracle")
    lines = [(players, drawing.BLUE, f"NeUClust, preset {players[0][1].preset}")]
    if bound:
        lines.append((bound, drawing.GREY, "the best slates inside one cluster"))
    look: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.3}
    figure, axes = canvas([(name, Line2D([], [], color=colour, **look)) for _, colour, name in lines], most=1)
    for points, colour, _ in lines:
        ends = [one.over_seeds("expected_regret") for _, one in points]
        draw_points(axes, [count for count, _ in points], ends, colour, capsize=2, **look)
    axes.axvline(found.study.clusters, **CHOICE)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel(f"expected regret after {found.rounds} rounds")
    axes.set_ylim(bottom=0)
    seeds = len(players[0][1].runs)
    spread = "one seed, so no error bars" if seeds == 1 else f"{seeds} seeds, ± 1 standard error"
    caption = (
        f"Lower is better; {spread}; dotted: the paper's choice of {found.study.clusters}. Grey: what a policy that "
        "knows every mean loses because all of a slate must come from one cluster."
    )
    title = f"Figure {figure_number}: number of clusters"
    return Picture(f"figure-{figure_number}-clusters", title, caption, figure)
