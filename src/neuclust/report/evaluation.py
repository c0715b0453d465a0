"""The table and the picture of policies judged from a log."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neuclust.evaluation.results import Ends, Evaluation, Judgement, Logged, stated
from neuclust.report import drawing
from neuclust.report.tables import csv_text

HEADINGS = ("policy", "value per slate", "interval", "against what ran", "effective rows", "estimator", "interval kind")


def table_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The cells of a table for people: what ran first, then the policies, best first."""
    logged = evaluation.logged
    what_ran = ("what ran", f"{logged.value:.4g}", ends(logged.interval), "", f"{logged.evaluated:,}", "", "")
    ranked = sorted(evaluation.policies, key=lambda each: -each.estimate)
    return [(*what_ran[:-1], logged.interval_kind), *(_row(each, logged) for each in ranked)]


def _row(each: Judgement, logged: Logged) -> tuple[str, ...]:
    apart = stated(each.difference_interval, logged.value, logged.value_range)
    against = f"{each.difference:+.3g}  ({ends(apart)})"
    return (
        each.policy, f"{each.estimate:.4g}", ends(each.interval), against, f"{each.ess:,.0f}", each.estimator,
        each.interval_kind,
    )  # fmt: skip


def ends(interval: Ends) -> str:
    return f"{interval[0]:.3g} to {interval[1]:.3g}"


def text_table(evaluation: Evaluation) -> str:
    """The table as aligned text."""
    lines = [HEADINGS, *table_rows(evaluation)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join(row.rstrip() for row in rows) + "\n"


def csv_table(evaluation: Evaluation) -> str:
    """One line per policy with all numbers."""
    names = ("policy", "estimator", "estimate", "low", "high", "interval_kind", "ess", "difference", "difference_low",
             "difference_high", "rows", "verdict")  # fmt: skip
    rows: list[tuple[object, ...]] = [names]
    rows += [
        (each.policy, each.estimator, each.estimate, *each.interval, each.interval_kind, each.ess, each.difference,
         *each.difference_interval, each.rows, each.verdict)
        for each in evaluation.policies
    ]  # fmt: skip
    return csv_text(rows)


def evaluation_figure(evaluation: Evaluation) -> Figure:
    """Every policy's value with its interval, beside what ran."""
    ranked = sorted(evaluation.policies, key=lambda each: each.estimate)
    figure = drawing.new_figure((8.0, 1.5 + 0.42 * (len(ranked) + 1)), layout="constrained")
    axes = drawing.bare(figure.add_subplot(), grid="x", width=0.8)
    logged, count = evaluation.logged, len(ranked)
    axes.axvspan(*logged.interval, color=drawing.GREY, alpha=0.15, linewidth=0)
    axes.axvline(logged.value, color=drawing.INK, linestyle=drawing.BEST_DASH, linewidth=1.2)
    for place, each in enumerate(ranked):
        _bar(axes, place, each.estimate, each.interval, _colour(each))
    axes.set_yticks(range(count), [each.policy for each in ranked], fontsize=drawing.LABEL_SIZE)
    axes.set_ylim(-0.7, count - 0.3)
    axes.set_xlabel(f"value per slate ({logged.reward}), {evaluation.level:.0%} intervals; dashed: what ran")
    title = f"{Path(logged.path).name}: {logged.evaluated:,} slates evaluated"
    axes.set_title(title, loc="left", fontsize=11.0, color=drawing.INK, pad=8)
    return figure


def _bar(axes: Axes, place: int, estimate: float, interval: Ends, colour: str) -> None:
    axes.plot(interval, (place, place), color=colour, linewidth=2.4, solid_capstyle="butt", zorder=3)
    axes.plot([estimate], [place], "o", color=colour, markersize=6.5, zorder=4)


def _colour(each: Judgement) -> str:
    """Blue: better than what ran; orange: worse; grey: the log cannot tell."""
    low, high = each.difference_interval
    return drawing.BLUE if low > 0 else drawing.ORANGE if high < 0 else drawing.GREY
