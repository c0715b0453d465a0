"""How many clusters? The table, the verdict in words, JSON and a picture of a cluster report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from neuclust.report.figures import COLOURS, GREY, INK
from neuclust.slates.cluster_choice import ClusterReport

BLUE, ORANGE = COLOURS[:2]
HEADINGS = ("clusters", "squares", "silhouette", "without clusters", "halves agree", "held-out log-density")


def text(name: str, report: ClusterReport) -> str:
    """One line a number of clusters, then what each criterion takes, then the verdict."""
    lines = ["  ".join(HEADINGS)]
    for row in report.rows:
        cells = (
            str(row.count),
            f"{row.squares:,.4g}",
            f"{row.silhouette:.3f}",
            f"{row.reference:.3f}",
            f"{row.stability:.2f}",
            f"{row.likelihood:.2f}",
        )
        lines.append("  ".join(cell.rjust(len(heading)) for cell, heading in zip(cells, HEADINGS, strict=True)))
    taken = ", ".join(f"{criterion} {count}" for criterion, count in report.chosen.items())
    lines += ["", f"Each criterion by itself: {taken}.", verdict(name, report)]
    return "\n".join(lines) + "\n"


def verdict(name: str, report: ClusterReport) -> str:
    """The report in two sentences."""
    looked = "" if report.looked_at == report.arms else f" (a sample of {report.looked_at:,} of {report.arms:,} arms)"
    model = f" Held-out arms are predicted better by {report.method}." if report.clustered else ""
    return f"{name}{looked}: {report.sentence}.{model}"


def record(name: str, report: ClusterReport) -> dict[str, Any]:
    """The report as JSON, without centroids."""
    plain = {key: value for key, value in asdict(report).items() if key not in ("rows", "centroids")}
    rows = [asdict(row) for row in report.rows]
    return {"schema": 1, "name": name, **plain, "count": report.count, "sentence": report.sentence, "rows": rows}


def figure(name: str, report: ClusterReport) -> Figure:
    """Elbow, silhouette and stability against the number of clusters, what each takes marked."""
    drawn = Figure(figsize=(11.0, 3.8), layout="constrained")
    FigureCanvasAgg(drawn)
    counts = np.array([row.count for row in report.rows])
    panels = (
        ("elbow", "within-cluster sum of squares", [row.squares for row in report.rows], None),
        ("silhouette", "silhouette", [row.silhouette for row in report.rows], [row.reference for row in report.rows]),
        ("stability", "agreement of halves (ARI)", [row.stability for row in report.rows], None),
    )
    for place, (criterion, label, heights, reference) in enumerate(panels, 1):
        axes = drawn.add_subplot(1, 3, place)
        first = 0 if criterion == "elbow" else 1  # one cluster has neither silhouette nor disagreement
        _draw(axes, counts[first:], np.array(heights)[first:], report.chosen[criterion], criterion, label)
        if reference is not None:
            axes.plot(counts[1:], reference[1:], color=GREY, linestyle=(0, (4, 3)), linewidth=1.3)
            axes.plot([], [], color=GREY, linestyle=(0, (4, 3)), label="data without clusters")
            axes.legend(frameon=False, fontsize=8.5, labelcolor="linecolor")
        axes.set_ylim(bottom=min(0.0, *axes.get_ylim()))
    said = f"{report.count} clusters by {report.criterion}" if report.clustered else "no clusters"
    drawn.suptitle(f"{name}: {said}", color=INK)
    return drawn


def _draw(axes: Axes, counts: Any, heights: Any, chosen: int, criterion: str, label: str) -> None:
    axes.plot(counts, heights, color=BLUE, marker="o", markersize=3.5, linewidth=1.6)
    axes.axvline(chosen, color=ORANGE, linewidth=1.2)
    axes.set_title(f"{criterion}: {chosen}", color=ORANGE, fontsize=10)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.7)
    axes.set_axisbelow(True)
