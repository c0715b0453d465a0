"""The picture and the table of policies in a shop."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuclust.analysis.estimates import counted
from neuclust.analysis.shop import ShopSummary, moving_average, tenth
from neuclust.experiment.shop import ELIGIBLE, ITEMS, SLATE_SIZE, Reals, ShopRun
from neuclust.report import drawing
from neuclust.report.figures import HEIGHT, WIDTH, label_ends
from neuclust.report.tables import csv_text

HEADINGS = ("policy", "clicks", "first tenth", "last tenth", "share of the possible gain")
TITLE = f"A shop that learns: slates of {SLATE_SIZE}, {ELIGIBLE} of {ITEMS} items in stock per request"
MOST_POINTS = 300  # of a curve
BASELINES = {"uniform": drawing.GREY}  # drawn without a colour of their own


def shop_figure(runs: Sequence[ShopRun]) -> Figure:
    """Clicks per request of every policy as a moving average, between random slates and the best possible ones."""
    longest = max(runs, key=len)
    window = tenth(len(longest))
    figure = drawing.new_figure((WIDTH, HEIGHT))
    figure.subplots_adjust(left=0.085, right=0.97, top=0.9, bottom=0.115)
    axes = drawing.bare(figure.add_subplot(), width=0.8)
    axes.set_title(TITLE, loc="left", fontsize=11.5, color=drawing.INK, pad=10)
    pen = drawing.WIDE_PEN
    policies = [
        _drawn(axes, moving_average(run.expected, window), color=colour, linewidth=pen.line, zorder=3)
        for run, colour in zip(runs, _colours(runs), strict=True)
    ]
    reference = {"color": drawing.INK, "linewidth": pen.reference, "zorder": 2}
    best = _drawn(axes, moving_average(longest.best, window), linestyle=drawing.BEST_DASH, **reference)
    random = _drawn(axes, moving_average(longest.random, window), linestyle=drawing.CHOICE_DASH, **reference)
    axes.set_xlim(0, len(longest))
    axes.set_ylim(0, axes.dataLim.y1 * 1.06)
    axes.set_xlabel(f"requests   (mean over the last {counted(window, 'request')})")
    axes.set_ylabel("expected clicks per request (higher is better)")
    ends = [(run.policy, end, colour) for run, end, colour in zip(runs, policies, _colours(runs), strict=True)]
    label_ends(axes, [*ends, ("best possible", best, drawing.INK), ("random slates", random, drawing.INK)])
    return figure


def _drawn(axes: Axes, curve: Reals, **style: Any) -> float:
    """A curve of one value per request, at most about `MOST_POINTS` of them; its last value."""
    begin = min(len(curve) // 100, len(curve) - 1)  # means over fewer requests are noise
    requests = np.unique(np.linspace(begin + 1, len(curve), MOST_POINTS).astype(np.int64))
    axes.plot(requests, curve[requests - 1], **style)
    return float(curve[-1])


def _colours(runs: Sequence[ShopRun]) -> list[str]:
    """A colour for each policy, in the order in which they were given; baselines are grey."""
    coloured = [run.policy for run in runs if run.policy not in BASELINES]
    return [
        BASELINES.get(run.policy) or drawing.COLOURS[coloured.index(run.policy) % len(drawing.COLOURS)] for run in runs
    ]


def summary_rows(summaries: Sequence[ShopSummary]) -> list[tuple[str, ...]]:
    """The cells of a table for people."""
    return [
        (each.policy, f"{each.clicks:,}", f"{each.first:.2f}", f"{each.last:.2f}", f"{each.gain:.0%}")
        for each in summaries
    ]


def text_table(summaries: Sequence[ShopSummary]) -> str:
    """The table as aligned text."""
    lines = [HEADINGS, *summary_rows(summaries)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    return "\n".join(row.rstrip() for row in rows) + "\n"


def requests_csv(runs: Sequence[ShopRun]) -> str:
    """One line per policy and request: clicks, and expected clicks of its slate, of random ones and of the best one."""
    rows: list[tuple[object, ...]] = [("policy", "request", "clicks", "expected", "random", "best")]
    for run in runs:
        columns = zip(run.clicks, run.expected, run.random, run.best, strict=True)
        rows += [
            (run.policy, t, int(c), *(f"{value:.6f}" for value in more)) for t, (c, *more) in enumerate(columns, 1)
        ]
    return csv_text(rows)
