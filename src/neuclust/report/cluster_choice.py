"""How many clusters? The table, the verdict in words, JSON and a picture of a cluster report."""

from dataclasses import asdict
from typing import Any

from matplotlib.figure import Figure

from neuclust.report.drawing import BEST_DASH, BLUE, GREY, INK, ORANGE, panels
from neuclust.slates.cluster_choice import ClusterReport

COLUMNS = {  # heading: what stands below it, and how it is written
    "clusters": ("count", ""), "squares": ("squares", ",.4g"), "silhouette": ("silhouette", ".3f"),
    "without clusters": ("reference", ".3f"), "halves agree": ("stability", ".2f"),
    "held-out log-density": ("likelihood", ".2f"),
}  # fmt: skip
PANELS = {  # criterion: what is drawn, its label, and the first number of clusters that has it
    "elbow": ("squares", "within-cluster sum of squares", 0),
    "silhouette": ("silhouette", "silhouette", 1),
    "stability": ("stability", "agreement of halves (ARI)", 1),
}


def text(name: str, report: ClusterReport) -> str:
    """One line per number of clusters, then what each criterion takes, then the verdict."""
    lines = ["  ".join(COLUMNS)]
    for row in report.rows:
        cells = (f"{getattr(row, name):{form}}".rjust(len(heading)) for heading, (name, form) in COLUMNS.items())
        lines.append("  ".join(cells))
    taken = ", ".join(f"{criterion} {count}" for criterion, count in report.chosen.items())
    looked = "" if report.looked_at == report.arms else f" (a sample of {report.looked_at:,} of {report.arms:,} arms)"
    model = f" Held-out arms are predicted better by {report.method}." if report.clustered else ""
    lines += ["", f"Each criterion by itself: {taken}.", f"{name}{looked}: {report.sentence}.{model}"]
    return "\n".join(lines) + "\n"


def record(name: str, report: ClusterReport) -> dict[str, Any]:
    """The report as JSON, without centroids."""
    plain = {key: value for key, value in asdict(report).items() if key not in ("rows", "centroids")}
    rows = [asdict(row) for row in report.rows]
    return {"schema": 1, "name": name, **plain, "count": report.count, "sentence": report.sentence, "rows": rows}


def figure(name: str, report: ClusterReport) -> Figure:
    """Elbow, silhouette and stability against the number of clusters, what each takes marked."""
    drawn, places = panels((11.0, 3.8), len(PANELS))
    for axes, (criterion, (column, label, first)) in zip(places, PANELS.items(), strict=True):
        rows = report.rows[first:]
        counts = [row.count for row in rows]
        axes.plot(counts, [getattr(row, column) for row in rows], color=BLUE, marker="o", markersize=3.5, linewidth=1.6)
        axes.axvline(report.chosen[criterion], color=ORANGE, linewidth=1.2)
        axes.set_title(f"{criterion}: {report.chosen[criterion]}", color=ORANGE, fontsize=10)
        axes.set_xlabel("number of clusters")
        axes.set_ylabel(label)
        if criterion == "silhouette":
            reference = [row.reference for row in rows]
            axes.plot(counts, reference, color=GREY, linestyle=BEST_DASH, linewidth=1.3, label="data without clusters")
            axes.legend(frameon=False, fontsize=8.5, labelcolor="linecolor")
        axes.set_ylim(bottom=min(0.0, *axes.get_ylim()))
    said = f"{report.count} clusters by {report.criterion}" if report.clustered else "no clusters"
    drawn.suptitle(f"{name}: {said}", color=INK)
    return drawn
