"""Pictures of the analysis: dimension, regret, Lemma 3, γ, promises, drift, F, clusters."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from neuclust.analysis.theory.played import RunNumbers
from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.report.drawing import BLUE, COLOURS, GREY, INK, ORANGE, Picture, bare, new_figure, small_letters
from neuclust.report.inspection import draw_elbow

SIZE = (4.4, 2.9)  # inches
GREEN, PINK = COLOURS[2], COLOURS[3]


def pictures(numbers: ProblemNumbers, run: RunNumbers | None) -> list[Picture]:
    """Every picture there is data for."""
    with small_letters():
        made = [_dimension(numbers), _elbow(numbers)]
        if run is not None:
            made.append(_regret(run))
        if run is not None and run.lemma_3 is not None:
            made += [_lemma(run), _gamma(run), _promises(run), _drift(run)]
            if run.calibration is not None:
                made.append(_calibration(run))
            if not np.isnan(run.series("clusters.aligned.best")).all():
                made.append(_clusters(run))
    return made


def _axes() -> tuple[Figure, Axes]:
    figure = new_figure(SIZE, layout="constrained")
    axes = bare(figure.add_subplot())
    axes.tick_params(colors=INK)
    return figure, axes


def _dimension(numbers: ProblemNumbers) -> Picture:
    figure, axes = _axes()
    for place, each in enumerate(numbers.estimates):
        colour = COLOURS[place]
        axes.plot([each.low, each.high], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot([each.value], [place], "o", color=colour, markersize=6)
    first = numbers.estimates[0].value
    axes.axvline(first, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(numbers.estimates)), [each.method for each in numbers.estimates])
    axes.set_ylim(len(numbers.estimates) - 0.4, -0.6)
    axes.set_xlabel(f"effective dimension of {numbers.sample.folded.total:,} contexts")
    axes.grid(axis="x", color="#E3E3E3", linewidth=0.7)
    caption = "Every method with the ends of its error: certain ones of the bracket, ± 3 standard errors of Lanczos."
    return Picture("dimension", "Effective dimension, by method", caption, figure)


def _elbow(numbers: ProblemNumbers) -> Picture:
    figure, axes = _axes()
    draw_elbow(axes, numbers.clusters.elbow, markersize=3.5, linewidth=1.3)
    bend = numbers.clusters.bend
    axes.axvline(bend, color=ORANGE, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(f"  elbow: {bend}", (bend, 0.97), xycoords=("data", "axes fraction"), va="top", color=ORANGE)
    caption = (
        f"k-means of the profiles; silhouette {numbers.clusters.silhouette:.2f} with {numbers.clusters.count} clusters."
    )
    return Picture("elbow", "How many clusters", caption, figure)


def _regret(run: RunNumbers) -> Picture:
    figure, axes = _axes()
    t = np.array([step.t for step in run.steps], dtype=np.float64)
    regret = np.cumsum(run.series("regret"))
    axes.loglog(t, np.maximum(regret, 1e-6), color=BLUE, linewidth=1.6, label="regret")
    if run.growth is not None and regret[-1] > 0:
        b = run.growth.exponent
        axes.loglog(t, regret[-1] * (t / t[-1]) ** b, color=ORANGE, linewidth=1, label=f"t^{b:.2f}")
        axes.loglog(t, regret[-1] * (t / t[-1]) ** 0.5, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="√t")
    _plain(axes)
    axes.set_ylim(bottom=max(float(regret[regret > 0].min()) if (regret > 0).any() else 0.1, regret[-1] * 1e-4) * 0.8)
    axes.set_xlabel("round t")
    axes.set_ylabel("expected regret so far")
    _legend(axes)
    caption = "Both axes logarithmic: a power of t is a straight line. Lines end where the run ends."
    return Picture("regret", "How regret grows", caption, figure)


def _lemma(run: RunNumbers) -> Picture:
    found = run.lemma_3
    assert found is not None
    figure, axes = _axes()
    rows = [
        ("regret", found.regret, INK), ("exploration Y, γ as played", found.exploration, BLUE),
        ("exploration Y, γ of Eq. 8", found.exploration_eq_8, BLUE),
        ("optimism U, γ as played", found.optimism, ORANGE),
        ("optimism U, γ of Eq. 8", found.optimism_eq_8, ORANGE), ("slate network P", found.slate, GREEN),
        ("P as printed", found.slate_printed, GREEN), ("clusters E", found.clusters, PINK),
    ]  # fmt: skip
    ends = [value for _, value, _ in rows if math.isfinite(value)]
    for place, (_, value, colour) in enumerate(rows):
        shown = value if math.isfinite(value) else max(ends) * 100
        axes.barh(place, shown, color=colour, height=0.62, alpha=1.0 if math.isfinite(value) else 0.35)
        words = "infinite" if math.isinf(value) else "none" if math.isnan(value) else _short(value)
        axes.annotate(f" {words}", (1.0 if math.isnan(value) else shown, place), va="center", fontsize=6.5)
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, found.regret * 0.5 or 0.5), max(ends) * 1e5)
    axes.axvline(max(run.reachable, 1e-300), color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#E3E3E3", linewidth=0.7)
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
    axes.set_xlabel("sum over the run; dashed: all that could be earned")
    caption = "The terms of Lemma 3 beside the regret that happened, all constants 1."
    return Picture("lemma3", "Lemma 3 against the regret", caption, figure)


def _gamma(run: RunNumbers) -> Picture:
    figure, axes = _axes()
    t = [step.t for step in run.steps]
    for name, label, colour in (
        ("terms.value", "γ of Eq. 8", INK), ("terms.gamma_1", "Γ₁", BLUE), ("terms.gamma_2", "Γ₂", ORANGE),
        ("terms.gamma_3", "Γ₃", GREEN), ("terms.noise", "ζ√(log det + Γ₂ − 2 log Δ)", PINK),
        ("offset", "e_t, γ as played", GREY),
    ):  # fmt: skip
        values = run.series(name)
        axes.loglog(t, np.where(values > 0, values, np.nan), color=colour, linewidth=1.3, label=label)
    axes.axhline(float(np.nanmax(run.series("gamma"))), color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlabel("round t; dashed: γ as played")
    _legend(axes)
    _plain(axes, y=False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    return Picture("gamma", "γ of Eq. 8, term by term", "A diagnostic, no usable bonus: rewards lie in [0, 1].", figure)


def _promises(run: RunNumbers) -> Picture:
    figure, axes = _axes()
    t = np.array([step.t for step in run.steps])
    for name, label, colour in (
        ("optimistic", "v ≥ μ, all arms", BLUE), ("covered", "|f − μ| ≤ γw, all arms", ORANGE),
        ("best_optimistic", "v ≥ μ, the best slate", GREEN),
    ):  # fmt: skip
        axes.plot(t, 100 * _smooth(run.series(f"held.{name}")), color=colour, linewidth=1.3, label=label)
    axes.set_ylim(0, 103)
    axes.set_xlabel("round t (means of 25 rounds)")
    axes.set_ylabel("% of arms")
    _legend(axes)
    lifted = float(np.nanmean(run.series("held.optimistic_offset")))
    caption = f"Optimism and coverage with γ as played. With Corollary 1's e_t added {lifted:.1%} are optimistic."
    return Picture("promises", "Promises kept", caption, figure)


def _drift(run: RunNumbers) -> Picture:
    figure, axes = _axes()
    t = [step.t for step in run.steps]
    axes.plot(t, run.series("drift"), color=BLUE, linewidth=1.5, label="‖θ_t − θ_0‖")
    axes.plot(t, run.series("drift_bound"), color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="2√(tK/(mλ))")
    axes.set_xlabel("round t")
    axes.set_ylim(bottom=0)
    _legend(axes)
    return Picture("drift", "Weights against their bound", "How far training has moved the weights.", figure)


def _calibration(run: RunNumbers) -> Picture:
    figure, axes = _axes()
    found = run.calibration
    assert found is not None
    x = [each.predicted for each in found.bins]
    axes.plot(x, [each.expected for each in found.bins], "o-", color=BLUE, linewidth=1.3, markersize=4, label="u(S)")
    axes.plot(x, [each.realised for each in found.bins], "s", color=ORANGE, markersize=3.5, label="R, mean")
    ends = [min(*x, 0.0), max(*x, 1.0)]
    axes.plot(ends, ends, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="F = u")
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlabel("F of the played slates, by eighths")
    axes.set_ylabel("what they were worth")
    _legend(axes)
    caption = f"F misses by {found.error:.3g} on average; correlation {found.correlation:.2f}."
    return Picture("calibration", "Is F calibrated?", caption, figure)


def _clusters(run: RunNumbers) -> Picture:
    figure, axes = _axes()
    best, others = run.series("clusters.aligned.best_cosine"), run.series("clusters.aligned.others_cosine")
    kept = ~np.isnan(best)
    t = np.array([step.t for step in run.steps])[kept]
    axes.plot(t, others[kept], "o", color=ORANGE, markersize=4, markerfacecolor="none", label="δ_t, another cluster")
    axes.plot(t, best[kept], ".", color=BLUE, markersize=3, label="P_t, the best cluster")
    axes.set_xlabel("round t")
    axes.set_ylabel("cosine with the played centroid")
    low = float(min(np.nanmin(best[kept]), np.nanmin(others[kept])))
    axes.set_ylim(min(low, 0.0) - 0.05, 1.35)  # from right angles on, with room for the legend
    axes.set_yticks([tick for tick in (-1.0, -0.5, 0.0, 0.5, 1.0) if tick >= min(low, 0.0) - 0.05])
    _legend(axes)
    caption = (
        "1: the same direction, 0: nothing in common. Clusters that are apart have δ_t near 0 and P_t near 1; the "
        "analysis asks for δ_t like 1/t and P_t like √t, which lengths of 1 do not allow."
    )
    return Picture("separation", "Are clusters apart?", caption, figure)


def _smooth(values: np.ndarray, over: int = 25) -> np.ndarray:
    """Running means over the last rounds."""
    sums = np.cumsum(np.nan_to_num(values))
    out = np.empty_like(sums)
    for place in range(len(sums)):
        start = max(0, place + 1 - over)
        out[place] = (sums[place] - (sums[start - 1] if start else 0.0)) / (place + 1 - start)
    return out


def _short(value: float) -> str:
    """As a number up to a million, else as a power of ten."""
    if value < 1e6:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    whole = math.floor(math.log10(value))
    return f"{value / 10**whole:.1f}·{_power(10**whole)}"


def _power(value: float) -> str:
    """A power of ten, in letters: pages draw without a parser of formulas."""
    return f"10{str(round(math.log10(value))).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _plain(axes: Axes, y: bool = True) -> None:
    """Numbers instead of powers of ten."""
    which: Sequence[Axis] = (axes.xaxis, axes.yaxis) if y else (axes.xaxis,)
    for axis in which:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, labelcolor="linecolor", handlelength=1.4)
