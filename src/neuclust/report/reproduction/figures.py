"""The paper's Figures 2 to 9 from records: regret and reward, the elbow, and the number of clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.lines import Line2D

from neuclust.analysis import curves
from neuclust.analysis.estimates import Estimate, counted, number
from neuclust.analysis.groups import ProblemRuns, problems
from neuclust.analysis.reproduction.results import Reproduction, cluster_points
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction.phases import AUTHORS, PAPER, PAPER_POLICIES, Study
from neuclust.report import drawing
from neuclust.report.drawing import Picture
from neuclust.report.inspection import draw_elbow
from neuclust.report.pictures import BEST_POSSIBLE, canvas, draw_points, entries, regret_picture

DRAWN = (*PAPER_POLICIES, "linucb", "uniform")  # the paper's own, and two that say where these stand
OTHER_SCRIPTS = ("neural-mab",)  # the authors' is another algorithm than ours of that name: both are drawn
CHOICE: dict[str, Any] = {"color": drawing.GREY, "linewidth": 0.9, "linestyle": drawing.CHOICE_DASH, "zorder": 1}
FLOOR = ("floor: a perfect policy", drawing.dashed(drawing.FLOOR_DASH))
Points = Sequence[tuple[int, Estimate]]  # expected regret by number of clusters


@dataclass(frozen=True, slots=True)
class Numbers:
    """Which figure of the paper shows what on a data set."""

    regret: int
    reward: int
    elbow: int
    clusters: int


NUMBERS = {"movielens": Numbers(2, 4, 6, 8), "yelp": Numbers(3, 5, 7, 9)}


def paper_figures(found: Reproduction) -> list[Picture]:
    """Every figure that the records can give, named and numbered as in the paper."""
    players = {name: _regrets(found, name) for name in ("neuclust", "cluster-oracle")}
    seeds = min((len(one.runs) for _, one in cluster_points(found, "neuclust")), default=0)
    return [
        *curve_pictures(found.study, drawn_runs(found)),
        *elbow_pictures(found.study, found.elbow),
        *cluster_pictures(found.study, players, found.rounds, seeds),
    ]


def drawn_runs(found: Reproduction) -> list[RunRecord]:
    """The runs whose curves Figures 2 to 5 show."""
    theirs = [run for run in found.runs.get(AUTHORS, ()) if run.policy in OTHER_SCRIPTS]
    return [*(run for run in found.runs.get(PAPER, ()) if run.policy in DRAWN), *theirs]


def _regrets(found: Reproduction, policy: str) -> Points:
    return [(count, one.over_seeds("expected_regret")) for count, one in cluster_points(found, policy)]


def curve_pictures(study: Study, runs: Sequence[RunRecord]) -> list[Picture]:
    """Regret and reward round by round: Figures 2 and 4, or 3 and 5."""
    if not runs:
        return []
    problem, numbers = problems(runs)[0], NUMBERS[study.name]
    played = f"T = {problem.rounds}, {seeds_words(problem)}."
    with drawing.small_letters():
        drawn = [(numbers.regret, _clipped(problem)), (numbers.regret, regret_picture(problem))]
        drawn.append((numbers.reward, _reward(problem)))
    return [
        replace(
            picture,
            name=f"figure-{figure}-{picture.title.replace(' ', '-').lower()}",
            title=f"Figure {figure}: {picture.title.lower()}",
            caption=f"{picture.caption} {played}",
        )
        for figure, picture in drawn
        if picture is not None
    ]


def seeds_words(problem: ProblemRuns) -> str:
    """`10 seeds`, or who has how many where they differ."""
    counts: dict[int, list[str]] = {}
    for one in problem.contenders:
        counts.setdefault(len(one.runs), []).append(one.title)
    if len(counts) == 1:
        return counted(problem.seeds, "seed")
    return "; ".join(
        f"{counted(count, 'seed')} of {', '.join(counts[count])}" for count in sorted(counts, reverse=True)
    )


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


def elbow_pictures(study: Study, elbow: Sequence[tuple[int, float]]) -> list[Picture]:
    """The sum of squares by number of clusters: Figure 6 or 7; none from fewer than two points."""
    if len(elbow) < 2:
        return []
    figure_number = NUMBERS[study.name].elbow
    with drawing.small_letters():
        figure, axes = canvas((), left=0.18)
        draw_elbow(axes, elbow, markersize=3, linewidth=1.3)
        axes.axvline(study.clusters, **CHOICE)
    caption = f"k-means of all profiles; dotted: the paper's choice of {study.clusters}."
    return [Picture(f"figure-{figure_number}-elbow", f"Figure {figure_number}: the elbow", caption, figure)]


def cluster_pictures(study: Study, points: Mapping[str, Points], rounds: int, seeds: int) -> list[Picture]:
    """Regret by number of clusters: Figure 8 or 9; `points` of NeUClust and of the best slates inside one cluster."""
    if not points["neuclust"]:
        return []
    figure_number, bound = NUMBERS[study.name].clusters, points.get("cluster-oracle", ())
    lines = [(points["neuclust"], drawing.BLUE, "NeUClust, the paper's settings")]
    if bound:
        lines.append((bound, drawing.GREY, "the best slates inside one cluster"))
    look: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.3}
    with drawing.small_letters():
        figure, axes = canvas([(name, Line2D([], [], color=colour, **look)) for _, colour, name in lines], most=1)
        for ends, colour, _ in lines:
            draw_points(axes, [count for count, _ in ends], [end for _, end in ends], colour, capsize=2, **look)
        axes.axvline(study.clusters, **CHOICE)
        axes.set_xlabel("number of clusters")
        axes.set_ylabel(f"expected regret after {rounds} rounds")
        axes.set_ylim(bottom=0)
    spread = "one seed, so no error bars" if seeds == 1 else f"{seeds} seeds, ± 1 standard error"
    caption = f"Lower is better; {spread}; dotted: the paper's choice of {study.clusters}."
    if bound:
        caption += " Grey: what a policy that knows every mean loses because all of a slate must come from one cluster."
    title = f"Figure {figure_number}: number of clusters"
    return [Picture(f"figure-{figure_number}-clusters", title, caption, figure)]
