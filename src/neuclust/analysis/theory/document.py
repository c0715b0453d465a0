"""The analysis as one JSON document: plain numbers, null where one is not finite."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from neuclust.analysis.theory.played import RunNumbers
from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.analysis.theory.words import misprints, sentences

SCHEMA = 1
POINTS = 200  # of every series that is kept
SERIES = (
    "regret", "gamma", "terms.value", "terms.gamma_1", "terms.gamma_2", "terms.gamma_3", "offset", "squares", "logdet",
    "drift", "drift_bound", "held.optimistic", "held.covered", "slate_value", "expected",
    "clusters.aligned.others", "clusters.aligned.best", "clusters.best.gap", "overlap",
)  # fmt: skip


def document(numbers: ProblemNumbers, run: RunNumbers | None) -> dict[str, Any]:
    """Everything, under stable names; `effective_dimension` is one number."""
    found, clusters = numbers.sample, numbers.clusters
    first = numbers.estimates[0]
    made = {
        "schema": SCHEMA,
        "problem": numbers.name,
        "effective_dimension": first.value,
        "effective_dimension_low": first.low,
        "effective_dimension_high": first.high,
        "effective_dimension_methods": [asdict(each) for each in numbers.estimates],
        "effective_dimension_by_convention": dict(numbers.by_convention),
        "effective_dimension_growth": [list(each) for each in numbers.growth],
        "contexts": {
            "distinct": len(found.contexts), "directions": len(found.folded.rays), "features": found.contexts.shape[1],
            "rounds": found.looked_at, "arms": found.arms,
        },
        "sizes": asdict(numbers.sizes),
        "norm_bound": {"by_jitter": [list(each) for each in numbers.bound.by_jitter], "settles": numbers.bound.settles,
                       "lambda_0": numbers.bound.smallest, "largest_eigenvalue": numbers.bound.largest},
        "condition_1": [asdict(line) | {"holds": line.holds} for line in numbers.condition],
        "theorem_1": asdict(numbers.choices),
        "assumptions": [asdict(check) for check in numbers.assumptions],
        "clusters": {
            "clustered": clusters.clustered, "sentence": clusters.report.sentence, "count": clusters.count,
            "silhouette": clusters.silhouette, "elbow": [list(each) for each in clusters.elbow], "bend": clusters.bend,
            "asked": clusters.asked, "rand_index": clusters.rand_index, "rand_index_asked": clusters.rand_index_asked,
            "against": clusters.against, "structural_gap": clusters.structural_gap,
            "delta": _spread([each.others for each in clusters.aligned]),
            "P": _spread([each.best for each in clusters.aligned]),
            "delta_cosine": _spread([each.others_cosine for each in clusters.aligned]),
            "P_cosine": _spread([each.best_cosine for each in clusters.aligned]),
        },
        "run": None if run is None else run_document(run),
        "sentences": sentences(numbers, run),
        "not_as_printed": misprints(numbers, run),
    }  # fmt: skip
    return {name: plain(each) for name, each in made.items()}


def run_document(run: RunNumbers) -> dict[str, Any]:
    """What was watched, thinned to at most `POINTS` rounds."""
    kept = np.unique(np.linspace(0, len(run.steps) - 1, min(POINTS, len(run.steps))).astype(int))
    regret = np.cumsum(run.series("regret"))
    series = {name: run.series(name)[kept].tolist() for name in SERIES}
    if run.lemma_3 is not None:
        series |= {f"lemma_3.{name}": values[kept].tolist() for name, values in run.lemma_3.by_round.items()}
    shares = ("optimistic", "optimistic_offset", "covered", "best_optimistic", "best_covered")
    return {
        "policy": run.title,
        "seed": run.seed,
        "rounds": run.rounds,
        "same_as_recorded": run.same_as_recorded,
        "growth": None if run.growth is None else asdict(run.growth) | {"verdict": run.growth.verdict},
        "lemma_3": None if run.lemma_3 is None else run.lemma_3.sums,
        "rates": {name: _mean(run.series(f"held.{name}")) for name in shares},
        "calibration": None if run.calibration is None else asdict(run.calibration),
        "linearisation": None if run.linearisation is None else asdict(run.linearisation),
        "gamma_eq_8": run.final_gamma,
        "effective_dimension_running": run.running_dimension[-1][1] if run.running_dimension else None,
        "ridge_ends": list(run.ridge_ends),
        "width_squares": run.width_squares,
        "width_squares_bound": run.width_bound,
        "series": {"t": [run.steps[i].t for i in kept], "cumulative_regret": regret[kept].tolist(), **series},
    }


def plain(value: Any) -> Any:
    """The same with null for numbers that JSON has no name for."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _spread(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"min": float(np.min(values)), "mean": float(np.mean(values)), "max": float(np.max(values))}


def _mean(values: Any) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan
