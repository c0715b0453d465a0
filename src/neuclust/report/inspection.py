"""Pictures of a prepared problem: what arms and slates are worth, the elbow, the clusters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neuclust.analysis.inspection import Inspection
from neuclust.analysis.inspection_rewards import Floats
from neuclust.report.drawing import BEST_DASH, BLUE, GREY, INK, ORANGE, panels

WIDE, NARROW = (10.0, 4.4), (7.0, 4.4)  # inches
DRAWN_BINS = 100
LABEL_ROOM = 0.045  # of the picture's width and height
LABEL_BOX = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}


def figures(found: Inspection) -> dict[str, Figure]:
    """Every picture by its file name without ending."""
    return {"rewards": reward_figure(found), "elbow": elbow_figure(found), "clusters": cluster_figure(found)}


def reward_figure(found: Inspection) -> Figure:
    """How mean rewards are spread over arms and rounds, and what slates earn round by round."""
    figure, (left, right) = panels(WIDE, 2)
    _draw_histogram(left, found)
    _draw_slates(right, found)
    figure.suptitle(f"{found.name}: {found.arms:,} arms, first {found.rounds_looked_at:,} rounds", color=INK)
    return figure


def elbow_figure(found: Inspection) -> Figure:
    """Within-cluster sum of squares against the number of clusters (the paper's Figures 6 and 7)."""
    figure, (axes,) = panels(NARROW, 1)
    draw_elbow(axes, found.clusters.elbow, markersize=4.5, linewidth=1.8)
    chosen = len(found.clusters.sizes)
    height = dict(found.clusters.elbow)[chosen]
    axes.plot([chosen], [height], marker="o", markersize=10, markerfacecolor="none", markeredgecolor=ORANGE, mew=2)
    share = height / found.clusters.elbow[0][1]
    words = f"{chosen} clusters: {share:.0%} of the sum with one"
    arrow = {"arrowstyle": "-", "color": ORANGE, "linewidth": 0.8, "shrinkB": 7}
    corner: dict[str, Any] = {"xytext": (0.97, 0.93), "textcoords": "axes fraction", "ha": "right", "va": "top"}
    axes.annotate(words, (chosen, height), color=ORANGE, arrowprops=arrow, **corner)
    figure.suptitle(f"{found.name}: how many clusters?", color=INK)
    return figure


def draw_elbow(axes: Axes, elbow: Sequence[tuple[int, float]], **look: Any) -> None:
    """Within-cluster sums of squares by number of clusters."""
    counts, squares = zip(*elbow, strict=True)
    axes.plot(counts, squares, color=BLUE, marker="o", **look)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("within-cluster sum of squares")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(0, 1.05 * squares[0])


def cluster_figure(found: Inspection) -> Figure:
    """Sizes of the clusters, and the arms in the plane of their first two principal components."""
    figure, (left, right) = panels(WIDE, 2)
    sizes = found.clusters.sizes
    colours = _hues(len(sizes))
    left.bar(range(1, len(sizes) + 1), sizes, color=colours, width=0.85)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.set_xlabel("cluster, largest first")
    left.set_ylabel("arms")
    left.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _draw_plane(right, found, colours)
    figure.suptitle(f"{found.name}: {len(sizes)} clusters of {found.arms:,} arms", color=INK)
    return figure


def _draw_histogram(axes: Axes, found: Inspection) -> None:
    shares = found.rewards.histogram.reshape(DRAWN_BINS, -1).sum(1)
    axes.stairs(100 * shares, np.linspace(0, 1, DRAWN_BINS + 1), fill=True, color=BLUE, alpha=0.85)
    axes.axvline(found.rewards.mean, color=INK, linewidth=1.2, linestyle=BEST_DASH)
    mean, side = found.rewards.mean, "left" if found.rewards.mean < 0.6 else "right"
    place = (mean, 0.97)
    axes.annotate(f"  average {mean:.3f}  ", place, xycoords=("data", "axes fraction"), ha=side, va="top", color=INK)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 100 * float(shares.max()) * 1.12)
    axes.set_xlabel("mean reward of an arm in a round")
    axes.set_ylabel("% of arms and rounds")


def _draw_slates(axes: Axes, found: Inspection) -> None:
    """Values of every round in ascending order of the best: rounds have no natural order to follow."""
    rewards, regrets = found.rewards, found.rewards.regrets
    order = np.lexsort((rewards.static, rewards.best))
    kept = "one slate throughout" if found.arms_offered is None else "one order of the arms"
    share = 100 * np.arange(1, len(order) + 1) / len(order)
    axes.plot(share, rewards.random[order], ".", color=GREY, markersize=2.5, alpha=0.5)
    axes.plot(share, rewards.static[order], color=ORANGE, linewidth=3.5, alpha=0.8)
    axes.plot(share, rewards.best[order], color=INK, linewidth=1.3)
    for label, colour in (
        ("best slate of each round", INK),
        (f"{kept} (loses {regrets['static']:.3g} in 1000 rounds)", ORANGE),
        (f"random slates (lose {regrets['random']:.0f} in 1000 rounds)", GREY),
    ):
        axes.plot([], [], color=colour, linewidth=3, label=label)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), fontsize=8.5, labelcolor="linecolor")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1)
    axes.set_xlabel("% of rounds, by their best slate")
    axes.set_ylabel(f"expected reward of a slate of {found.slate_size}")


def _draw_plane(axes: Axes, found: Inspection, colours: list[tuple[float, ...]]) -> None:
    clusters = found.clusters
    labels = clusters.labels[clusters.pictured]
    shade = np.array(colours)[labels]
    x_values, y_values = clusters.plane.T
    axes.scatter(x_values, y_values, s=5, c=shade, alpha=0.6, linewidths=0, rasterized=True)
    extent, labelled = np.ptp(clusters.plane, axis=0), list[Floats]()
    for cluster in np.unique(labels):  # larger ones first; a label that would cover another is left out
        x, y = centre = np.median(clusters.plane[labels == cluster], axis=0)
        if all(np.abs((centre - other) / extent).max() > LABEL_ROOM for other in labelled):
            labelled.append(centre)
            axes.text(x, y, str(cluster + 1), ha="center", va="center", fontsize=8, color=INK, bbox=LABEL_BOX)
    first, second = clusters.explained
    axes.set_xlabel(f"first principal component ({first:.0%} of the variance)")
    axes.set_ylabel(f"second ({second:.0%})")


def _hues(number: int) -> list[tuple[float, ...]]:
    """Neighbouring clusters far apart on the colour wheel."""
    wheel = colormaps["turbo"](np.linspace(0.06, 0.94, number))
    stride = next(step for step in range(max(1, round(0.38 * number)), number + 1) if np.gcd(step, number) == 1)
    return [tuple(float(part) for part in wheel[(index * stride) % number]) for index in range(number)]
