"""The analysis on a terminal: the answers in sentences, then one table per statement."""

import math
from collections.abc import Sequence

from neuclust.analysis.theory.played import RunNumbers
from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.analysis.theory.words import misprints, sentences

Row = tuple[str, ...]
Table = tuple[str, Row, list[Row]]  # title, headings, rows


def text(numbers: ProblemNumbers, run: RunNumbers | None) -> str:
    """Sentences and tables as plain text."""
    parts = [f"{numbers.name}", "", *sentences(numbers, run), ""]
    for title, headings, rows in tables(numbers, run):
        parts += [title, *aligned([headings, *rows]), ""]
    parts += ["Where the statement does not hold as printed", *misprints(numbers, run)]
    return "\n".join(parts) + "\n"


def aligned(lines: Sequence[Row]) -> list[str]:
    """Columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return [f"  {row}".rstrip() for row in rows]


def tables(numbers: ProblemNumbers, run: RunNumbers | None) -> list[Table]:
    """Every table of the page."""
    made = [dimensions(numbers, run), conditions(numbers), assumptions(numbers), clusters(numbers)]
    return made if run is None or run.lemma_3 is None else [*made, lemma(run), gammas(numbers, run), measured(run)]


def dimensions(numbers: ProblemNumbers, run: RunNumbers | None) -> Table:
    rows: list[Row] = [
        (each.method, _n(each.value), _n(each.low), _n(each.high), each.error) for each in numbers.estimates
    ]
    names = {"initialised": "H̃^(L+1)", "halved": "(H̃^(L+1) + Σ^(L+1))/2", "printed": "(H̃^(L) + Σ^(L))/2, as printed"}
    rows += [(f"H = {names[name]}", _n(value), "", "", "exact") for name, value in numbers.by_convention.items()]
    if run is not None and run.running_dimension:
        last, value = run.running_dimension[-1]
        rows.append(
            ("of the arms played", _n(value), "", "", f"the running one, log det Z_t/log(1 + tK/λ) at t = {last:,}")
        )
    return "Effective dimension", ("method", "d̃", "low", "high", "error"), rows


def conditions(numbers: ProblemNumbers) -> Table:
    rows: list[Row] = [
        (line.purpose, f"log₁₀({line.name}) ≥ {_n(line.required)}", _n(line.actual), "holds" if line.holds else "fails")
        for line in numbers.condition
    ]
    choices, training = numbers.choices, numbers.shape.arms.training
    step = "automatic" if training.step is None else f"{training.step:g}"
    rows += [
        ("step size of Theorem 1", f"η₁ = {choices.step:.3g}", step, ""),
        ("steps of Theorem 1", f"J ≥ {choices.steps:,}", f"{training.steps:,}",
         "holds" if training.steps >= choices.steps else "fails"),
        ("regulariser of Theorem 1", f"λ₁ ≥ {choices.least_ridge:g}", f"{numbers.sizes.ridge:g}",
         "holds" if numbers.sizes.ridge >= choices.least_ridge else "fails"),
    ]  # fmt: skip
    by_jitter = ", ".join(f"{_n(value)} at {jitter:g}" for jitter, value in numbers.bound.by_jitter)
    settles = "settles" if numbers.bound.settles else "grows"
    paired = len(numbers.sample.paired[0])
    rows.append((f"norm bound S = √(2hᵀH⁻¹h), {paired:,} contexts", "finite as the jitter falls", by_jitter, settles))
    return "Condition 1, Theorem 1 and S (constants 1)", ("what it is for", "asks", "here", ""), rows


def assumptions(numbers: ProblemNumbers) -> Table:
    words = {True: "holds", False: "fails", None: "cannot tell"}
    rows: list[Row] = [(f"{each.number} {each.name}", words[each.holds], each.found) for each in numbers.assumptions]
    return "Assumptions", ("assumption", "", "found"), rows


def clusters(numbers: ProblemNumbers) -> Table:
    found = numbers.clusters
    spread = {
        name: [getattr(each, name) for each in found.aligned]
        for name in ("others", "best", "others_cosine", "best_cosine")
    }
    rows: list[Row] = [
        (f"silhouette of {found.count} clusters", _n(found.silhouette)),
        ("number at the elbow of the sums of squares", f"{found.bend:,}"),
        (f"adjusted Rand index against {found.against}", _n(found.rand_index)),
        (f"the same with the policy's {found.asked} clusters", _n(found.rand_index_asked)),
        ("structural gap: best slate less best slate in one cluster", _n(found.structural_gap)),
        ("δ, best cluster's centroid with another's, as it is", _ends(spread["others"])),
        ("δ as a cosine", _ends(spread["others_cosine"])),
        ("P, the same with the truly best cluster's, as it is", _ends(spread["best"])),
        ("P as a cosine", _ends(spread["best_cosine"])),
    ]
    return f"Clusters of the profiles, {len(found.times)} rounds looked at", ("what", "value"), rows


def _ends(values: Sequence[float]) -> str:
    """Smallest, mean and largest."""
    if not values:
        return "–"
    return f"{_n(min(values))} to {_n(max(values))}, mean {_n(sum(values) / len(values))}"


def lemma(run: RunNumbers) -> Table:
    found = run.lemma_3
    assert found is not None
    rows: list[Row] = [
        ("regret that happened", _n(found.regret), ""),
        ("structural: no slate in one cluster can earn it", _n(found.structural), ""),
        ("ΣY_t, exploration", _n(found.exploration), _n(found.exploration_eq_8)),
        ("ΣU_t, optimism (e_t)", _n(found.optimism), _n(found.optimism_eq_8)),
        ("ΣP, F, with 9T^(−βα) = 4 + 2ε", _n(found.slate), _n(found.slate)),
        ("ΣE_t, clusters", _n(found.clusters), _n(found.clusters)),
        ("sum of the four", _n(found.total), _n(found.total_eq_8)),
        ("ΣP as printed, βα = 1 (T ≤ 9/4)", _n(found.slate_printed), ""),
        ("Σw² of played arms", _n(run.width_squares), ""),
        ("its bound in Lemma 11, with d̃ of the contexts above", _n(run.width_bound), ""),
        (
            "its bound from what was played, 2 log det Z_T/λ (where Σw² ≤ 1 per round)",
            _n(2 * float(run.series("logdet")[-1])),
            "",
        ),
    ]
    return f"Lemma 3 over {run.rounds:,} rounds", ("term", "γ as played", "γ of Eq. 8"), rows


def gammas(numbers: ProblemNumbers, run: RunNumbers) -> Table:
    chosen = [step for step in run.steps if step.terms is not None]
    picked = [chosen[round((len(chosen) - 1) * share)] for share in (0, 0.01, 0.1, 0.5, 1)]
    rows: list[Row] = []
    for step in dict.fromkeys(picked):
        terms = step.terms
        assert terms is not None
        parts = (terms.gamma_1, terms.gamma_2, terms.gamma_3, terms.noise, terms.norm, terms.factor, terms.descent)
        rows.append((f"{step.t:,}", *map(_n, parts), _n(terms.value), _n(step.offset)))
    headings = ("t", "Γ₁", "Γ₂", "Γ₃", "ζ√(…)", "√λ S", "λ + C₁tKL", "descent", "γ_{t−1}", "e_t, γ as played")
    bound = f"S = {_n(numbers.bound.value)}" if numbers.bound.settles else "S as configured, since it does not settle"
    return f"γ of Eq. 8, term by term (constants 1, {bound})", headings, rows


def measured(run: RunNumbers) -> Table:
    """What the lemmas promise of scores, weights, F and the linear model."""
    import numpy as np

    rows: list[Row] = []
    for name, words in (
        ("optimistic", "v ≥ μ"), ("optimistic_offset", "v + e_t ≥ μ (Corollary 1)"), ("covered", "|f − μ| ≤ γw"),
        ("best_optimistic", "v ≥ μ, arms of the best slate"), ("best_covered", "|f − μ| ≤ γw, arms of the best slate"),
    ):  # fmt: skip
        rows.append((words, f"{float(np.nanmean(run.series(f'held.{name}'))):.1%} of arms and rounds"))
    drift, limit = run.series("drift")[-1], run.series("drift_bound")[-1]
    rows.append(("‖θ_T − θ_0‖, bound 2√(TK/(mλ))", f"{_n(drift)}, {_n(limit)}"))
    if run.calibration is not None:
        c = run.calibration
        rows.append(
            (
                "|F − u(S)|, correlation, u ≈ a + bF",
                f"{c.error:.3g}, {c.correlation:.2f}, {c.intercept:.2f} + {c.slope:.2g}F",
            )
        )
    if run.linearisation is not None:
        lin = run.linearisation
        rows += [
            ("f against its linearisation at θ_0, largest", _n(lin.linear_error)),
            ("gradients at θ_T against θ_0, largest relative change", _n(lin.gradient_change)),
            ("‖g‖/√(mL), largest", _n(lin.gradient_length)),
            ("f against ridge regression on g(θ_0)/√m, largest", _n(lin.ridge_error)),
        ]
    return "Promises kept", ("promise", "measured"), rows


def _n(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
