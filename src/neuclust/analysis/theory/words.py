"""The analysis in plain sentences: clustered or not, how large, how fast, which assumption fails, where it errs."""

import math
from collections.abc import Sequence

import numpy as np

from neuclust.analysis.theory.decomposition import Lemma3
from neuclust.analysis.theory.played import RunNumbers
from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.theory.assumptions import Check
from neuclust.theory.bounds import largest_rounds, lemma_1


def sentences(numbers: ProblemNumbers, run: RunNumbers | None) -> list[str]:
    """The answers, most wanted first."""
    said = [clustered(numbers), dimension(numbers)]
    if run is not None and run.growth is not None:
        said.append(growth(run))
    said += [*failing(numbers.assumptions), width(numbers)]
    if run is not None and run.lemma_3 is not None:
        said += [bound(run, run.lemma_3), promised(run)]
    return said


def clustered(numbers: ProblemNumbers) -> str:
    """Whether the arms form clusters, and what staying inside one costs."""
    found = numbers.clusters
    verdict = "The arms form clusters" if found.clustered else "The arms form no clusters"
    index = f"K-means with {found.count} agrees with {found.against} to {found.rand_index:.2f} (adjusted Rand index)"
    if found.asked != found.count:
        index += f", with the policy's {found.asked} to {found.rand_index_asked:.2f}"
    price = f"the best slate inside one cluster loses {found.structural_gap:.3g} of {found.best_expected:.3g} per round"
    return f"{verdict}: {found.report.sentence}. {index}; {price}."


def dimension(numbers: ProblemNumbers) -> str:
    """d̃ and what it is of."""
    found, folded = numbers.sample, numbers.sample.folded
    first = numbers.estimates[0]
    value = f"d̃ = {first.value:.4g}"
    if first.method != "exact":
        value = f"d̃ lies between {first.low:.4g} and {first.high:.4g}"
    of = f"{folded.total:,} distinct contexts of the first {found.looked_at:,} rounds"
    shape = f"{found.contexts.shape[1]} features, {len(folded.rays):,} directions"
    rest = ""
    if len(numbers.growth) > 1:
        (small, low), (large, high) = numbers.growth[-2:]
        rest = f" It still grows with the set: {low:.4g} for {small:,} contexts, {high:.4g} for {large:,}."
    return f"The effective dimension is {value} on {of} ({shape}), λ = {numbers.sizes.ridge:g}.{rest}"


def growth(run: RunNumbers) -> str:
    """The exponent of regret."""
    found = run.growth
    assert found is not None
    runs = "one run" if found.runs == 1 else f"{found.runs} runs"
    interval = f"95 % interval {found.low:.2f} to {found.high:.2f}, {runs}"
    fitted = f"Regret of {run.title} grows like t^{found.exponent:.2f} ({interval})"
    reachable = run.reachable
    share = f"{found.final:.4g} after {run.rounds:,} rounds, {found.final / reachable:.2%} of what could be earned"
    late = "; above 1 means that most of it came late" if found.exponent > 1 else ""
    return f"{fitted}: {found.verdict}{late}. It is {share if reachable > 0 else f'{found.final:.4g}'}."


def failing(checks: tuple[Check, ...]) -> list[str]:
    """Which assumptions fail, then what each of them asks and what is there instead."""
    failed = [each for each in checks if each.holds is False]
    held = _listed([each.number for each in checks if each.holds])
    if not failed:
        return [f"No assumption fails on this data; it keeps {held}."]
    numbers = _listed([each.number for each in failed])
    first = f"Of the assumptions, the data break {numbers} and keep {held or 'none'}."
    return [first, *(f"Assumption {each.number} asks: {each.asks}. Found: {each.found}." for each in failed)]


def _listed(numbers: Sequence[int]) -> str:
    """1, 2 and 3."""
    *first, last = [*map(str, numbers)] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def width(numbers: ProblemNumbers) -> str:
    """Condition 1 against the width there is."""
    lines = [line for line in numbers.condition if not line.holds]
    if not lines:
        return f"Condition 1 holds for a width of {numbers.sizes.width:,}."
    worst = max(lines, key=lambda line: line.required - line.actual)
    finite = max((line.required for line in lines if math.isfinite(line.required)), default=math.nan)
    need = (
        "an infinite width, since λ₀ = 0"
        if math.isinf(worst.required)
        else f"log₁₀({worst.name}) ≥ {worst.required:.1f}"
    )
    other = f" (and 10^{finite:.0f} by another line)" if math.isinf(worst.required) else ""
    asked = f"{len(lines)} of its {len(numbers.condition)} lines fail, the worst asks for {need}{other}"
    return f"Condition 1 fails for a width of {numbers.sizes.width:,}: {asked}."


def bound(run: RunNumbers, found: Lemma3) -> str:
    """Lemma 3's sum against the regret."""
    parts = f"exploration {_size(found.exploration)}, optimism {_size(found.optimism)}, F {_size(found.slate)}"
    parts += f", clusters {_size(found.clusters)}"
    gamma = f"with Eq. 8's γ, {_size(run.final_gamma)} at the end, it is {_size(found.total_eq_8)}"
    happened = f"The regret that happened is {found.regret:.4g}, and no run can lose more than {run.reachable:.4g}"
    first = f"Lemma 3 bounds the regret by {_size(found.total)} ({parts}; constants 1, γ as played); {gamma}"
    return f"{first}. {happened}: {'nothing' if found.total > run.reachable else 'something'} is said by the bound."


def promised(run: RunNumbers) -> str:
    """Optimism, coverage, drift and F in one sentence."""
    optimistic, covered = (float(np.nanmean(run.series(f"held.{name}"))) for name in ("optimistic", "covered"))
    drifts, limits = run.series("drift"), run.series("drift_bound")
    outside = float(np.nanmean(drifts > limits))
    drift = "stay inside their bound" if outside == 0 else f"leave their bound in {outside:.0%} of the rounds"
    said = f"Scores are optimistic for {optimistic:.1%} of arms and rounds and cover the truth for {covered:.1%}"
    said += f"; weights {drift} ({drifts[-1]:.3g} of {limits[-1]:.3g} at the end)"
    if run.calibration is not None:
        c = run.calibration
        said += f"; F misses the slate's worth by {c.error:.3g} on average (correlation {c.correlation:.2f})"
    return f"{said}."


def misprints(numbers: ProblemNumbers, run: RunNumbers | None) -> list[str]:
    """Where the statement does not hold as printed, with this problem's numbers."""
    sizes, worst = numbers.sizes, numbers.clusters.reverse
    five = next((each for each in numbers.assumptions if each.number == 5), None)
    floor = math.nan if five is None else five.numbers["delta_floor"]
    lowest = math.nan if five is None else five.numbers["delta_min"]
    printed, meant = numbers.choices.printed_steps, numbers.choices.steps
    lemma, wished = lemma_1(sizes.rounds, sizes.ridge), 36 / math.sqrt(sizes.rounds * sizes.ridge)
    here = f", {floor:.3g} here (smallest δ {lowest:.3g}, Y = {worst.least:.3g}, Q = {_size(worst.reverse)})"
    if not math.isfinite(worst.reverse):  # entries below 0, or clusters that share no feature
        here = " (here some centroids are at right angles or further apart: Q and E_t are infinite)"
    said = [
        f"T1. Theorem 1 chooses βα = 1, but Lemma 1 fixes 9T^(−βα) = 4 + 2ε ≥ 4, so that T ≤ {largest_rounds():g}. "
        f"Here T = {sizes.rounds:,}: f is bounded by {_size(lemma)}, not by {_size(wished)}, and ΣP grows like T^1.5.",
        f"T2. δ_t = C/t and P_t = C√t contradict ‖x‖ = 1 and x ≥ 0: by the proof's own inequality δ_t ≥ Y/(Q√d){here}, "
        "and P_t ≤ 1, so that ΣE_t grows like T.",
        _lemma_2(run),
        f"T4. e_T ≤ F ≤ its bound ties λ₁ from both sides{_ends(run)}, and Theorem 1 asks for λ₁ ≥ C₂LK = "
        f"{numbers.choices.least_ridge:g}; λ₁ is {sizes.ridge:g} here.",
        f"T5. {width(numbers)}",
        f"T6. J as printed is the logarithm of a number below 1, {printed:,.0f} steps; the proof needs {meant:,}, with "
        f"η₁ = {numbers.choices.step:.3g}.",
    ]
    return [each for each in said if each]


def _ends(run: RunNumbers | None) -> str:
    """λ_1 between Lemma 2's two ends, for F as it was played."""
    if run is None or math.isnan(run.ridge_ends[0]):
        return ""
    low, high = run.ridge_ends
    return f", for F as played to between {_size(low)} and {_size(high)} (constants 1)"


def _lemma_2(run: RunNumbers | None) -> str:
    start = (
        "T3. Lemma 1 drops the √m of f, and Lemma 2 needs F ≥ e_T, which fails where all K predictions are 0 or less"
    )
    if run is None or run.lemma_3 is None:
        return f"{start}, as in round 1."
    values, offsets = run.series("slate_value"), run.series("offset")
    kept = ~np.isnan(values)
    if not kept.any():
        return f"{start}, as in round 1."
    return (
        f"{start}, as in round 1: F ≥ e_t in {float((values[kept] >= offsets[kept]).mean()):.0%} of the rounds played."
    )


def _size(value: float) -> str:
    if math.isnan(value):
        return "none"
    return "infinite" if math.isinf(value) else f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.3g}"
