"""Fit the Yelp twin to aggregate facts: `python -m tools.fit_yelp_twin FACTS.json`.

FACTS.json holds counts over real restaurants (how often each term occurs, pairs of terms that meet at least
40 times, numbers of terms, equal rows) and percentiles over users; no restaurant, name or review is in it.
The script rewrites `src/neuclust/data/yelp_twin.json`, the same bytes for the same facts, in about two minutes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from neuclust.data.options import Floats
from neuclust.data.yelp_twin import (
    EVERYWHERE,
    STATISTICS,
    YelpStatistics,
    draw_terms,
    nearest_correlation,
)
from neuclust.errors import DataError, NeuclustError

FULL_CATALOGUE, FULL_TERMS = 52_268, 171  # of the paper; the facts cover fewer of both
FEWEST_MEETINGS = 40  # pairs below are not in the facts
IMPLIED_FROM = 0.97  # a term that meets another in this share of its restaurants always does in the twin
ROUNDS = 12
STEP = 0.6
ENOUGH_REVIEWS = 5  # users in the twin have at least so many

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Targets:
    """What the twin must reproduce, `restaurants` left out: m terms, pairs of them, n restaurants."""

    n: int
    terms: tuple[str, ...]
    occurs: Floats  # (m,)
    meets: Matrix  # (m, m), 0 on the diagonal


def main(arguments: list[str]) -> None:
    """Read the facts, fit, write the statistics."""
    if len(arguments) != 1:
        raise DataError(f"expected one argument, the file with the facts, got {len(arguments)}")
    record = fit(read_facts(Path(arguments[0])))
    STATISTICS.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")


def read_facts(path: Path) -> dict[str, Any]:
    """The facts as they lie in the file."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        missing = {"terms", "cooccurrence_min40", "terms_per_restaurant_histogram"} - set(facts)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: expected a JSON file of facts, got {error}") from None
    if missing:
        raise DataError(f"{path}: expected facts with {', '.join(sorted(missing))}")
    return dict(facts)


def fit(facts: dict[str, Any]) -> dict[str, Any]:
    """Thresholds and correlations by matching what the twin shows to the facts, then copies."""
    targets = extend(targets_of(facts))
    statistics = _start(facts, targets)
    latent_occurs, latent_meets = targets.occurs.copy(), targets.meets.copy()
    for step in range(ROUNDS):
        statistics = replace(statistics, **_gaussian(latent_occurs / targets.n, latent_meets / targets.n))
        shown = draw_terms(replace(statistics, fresh=1.0), targets.n, seed=step)[:, 1:].astype(np.float32)
        meets = np.asarray(shown.T @ shown, dtype=np.float64)
        latent_occurs *= ((targets.occurs + 1) / (meets.diagonal() + 1)) ** STEP
        latent_meets *= ((targets.meets + 1) / (meets + 1)) ** STEP
        latent_occurs = np.clip(latent_occurs, 1.0, 0.9 * targets.n)
        latent_meets = np.minimum(latent_meets, 0.999 * np.minimum.outer(latent_occurs, latent_occurs))
    statistics = replace(statistics, fresh=_share_of_originals(statistics, facts["distinct_tfidf_rows"], targets.n))
    return record_of(statistics)


def targets_of(facts: dict[str, Any]) -> Targets:
    """Counts of the facts; pairs they leave out share what the numbers of terms say is left."""
    n = int(facts["restaurants"])
    listed = sorted((t for t in facts["terms"] if t["term"] != EVERYWHERE), key=lambda t: (-t["df"], t["term"]))
    terms = tuple(str(t["term"]) for t in listed)
    place = {term: index for index, term in enumerate(terms)}
    occurs = np.array([float(t["df"]) for t in listed])
    meets = np.full((len(terms), len(terms)), np.nan)
    for one, other, count in facts["cooccurrence_min40"]:
        if one in place and other in place:
            meets[place[one], place[other]] = meets[place[other], place[one]] = count
    sizes = {int(size) - 1: number for size, number in facts["terms_per_restaurant_histogram"].items()}
    left = sum(number * size * (size - 1) for size, number in sizes.items()) - np.nansum(meets)
    by_chance = np.outer(occurs, occurs) / n
    hidden = np.isnan(meets) & ~np.eye(len(terms), dtype=bool)
    meets[hidden] = _scaled(by_chance[hidden], left)
    np.fill_diagonal(meets, 0.0)
    return Targets(n, terms, occurs, meets)


def extend(targets: Targets) -> Targets:
    """Add the terms that reach the paper's weight in its larger catalogue only.

    Their frequencies go on from the rarest listed one down to its share of the catalogues' sizes; each
    keeps the company of a rare listed term.
    """
    extra = FULL_TERMS - 1 - len(targets.terms)
    if extra <= 0:
        return targets
    rarest = targets.occurs[-1]
    added = np.linspace(rarest, rarest * targets.n / FULL_CATALOGUE, extra + 1)[1:]
    models = len(targets.terms) - 1 - np.arange(extra)
    rows = targets.meets[models] * (added / targets.occurs[models])[:, None]
    corner = np.outer(added, added) / targets.n
    np.fill_diagonal(corner, 0.0)
    meets = np.block([[targets.meets, rows.T], [rows, corner]])
    names = tuple(f"term-{len(targets.terms) + 2 + index}" for index in range(extra))
    return Targets(targets.n, targets.terms + names, np.concatenate([targets.occurs, added]), meets)


def tetrachoric(both: Floats, one: Floats, other: Floats) -> Floats:
    """ρ with P(x > h, y > k) = both for standard normals whose thresholds give P(x > h) and P(y > k)."""
    h, k = norm.isf(one), norm.isf(other)
    low, high = np.full(both.shape, -0.999), np.full(both.shape, 0.9995)
    for _ in range(30):
        middle = (low + high) / 2
        below = one * other + _joint_excess(middle, h, k) < both
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def record_of(statistics: YelpStatistics) -> dict[str, Any]:
    """What is written: whole thousandths, readable by `statistics_of`."""
    lower = statistics.correlations[np.tril_indices(len(statistics.terms), -1)]
    return {
        "source": "fitted by tools.fit_yelp_twin to aggregates over real restaurants and users",
        "terms": list(statistics.terms),
        "thresholds_thousandths": np.round(1000 * statistics.thresholds).astype(int).tolist(),
        "correlations_thousandths": np.round(1000 * lower).astype(int).tolist(),
        "implied": [list(pair) for pair in statistics.implied],
        "sizes": {str(size): number for size, number in statistics.sizes.items()},
        "only_restaurants": statistics.only_restaurants,
        "fresh": round(statistics.fresh, 3),
        "stars": statistics.stars.tolist(),
        "reviews": {"percent": statistics.reviews[0].tolist(), "count": statistics.reviews[1].tolist()},
    }


def _start(facts: dict[str, Any], targets: Targets) -> YelpStatistics:
    sizes = {int(size): int(number) for size, number in facts["terms_per_restaurant_histogram"].items()}
    stars = np.array([facts["stars_histogram"][str(star)] for star in range(1, 6)], dtype=np.float64)
    share = targets.meets / targets.occurs[:, None]
    implied = [(int(t), int(u)) for t, u in np.argwhere(share >= IMPLIED_FROM) if not _is_extra(targets.terms[t])]
    return YelpStatistics(
        terms=targets.terms,
        thresholds=np.zeros(len(targets.terms)),
        correlations=np.eye(len(targets.terms)),
        implied=tuple(implied),
        sizes=sizes,
        only_restaurants=facts["rows_whose_only_category_is_restaurants"] / sizes[1],
        fresh=1.0,
        stars=stars / stars.sum(),
        reviews=_reviews(facts["reviews_per_user_percentiles"]),
    )


def _gaussian(occurs: Floats, meets: Matrix) -> dict[str, Any]:
    """Thresholds and correlations of the Gaussian that would show these shares, were there one."""
    i, j = np.triu_indices(len(occurs), 1)
    wanted = np.eye(len(occurs))
    wanted[i, j] = wanted[j, i] = tetrachoric(meets[i, j], occurs[i], occurs[j])
    return {"thresholds": norm.isf(occurs), "correlations": nearest_correlation(wanted, steps=60)}


def _joint_excess(correlation: Floats, h: Floats, k: Floats) -> Floats:
    """∫₀^ρ φ₂(h, k; r) dr with r = sin θ, by Gauss and Legendre's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    angle = np.arcsin(correlation)[:, None] * (nodes + 1) / 2
    exponent = (h**2 + k**2)[:, None] / 2 - (h * k)[:, None] * np.sin(angle)
    density = np.exp(-exponent / np.cos(angle) ** 2) / (2 * np.pi)
    return np.asarray((density * weights).sum(1) * np.arcsin(correlation) / 2)


def _scaled(shape: Floats, total: float) -> Floats:
    """`shape` times a constant, capped below the smallest count the facts list, summing to `total`."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.minimum(FEWEST_MEETINGS - 1, middle * shape).sum() < total:
            low = middle
        else:
            high = middle
    return np.asarray(np.minimum(FEWEST_MEETINGS - 1, low * shape))


def _share_of_originals(statistics: YelpStatistics, distinct: int, n: int) -> float:
    """How many restaurants must not be copies so that as many rows differ as in the facts."""
    low, high = 0.05, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        terms = draw_terms(replace(statistics, fresh=middle), n, seed=0)
        if len(np.unique(np.packbits(terms, axis=1), axis=0)) < distinct:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _reviews(percentiles: dict[str, float]) -> tuple[Floats, Floats]:
    """The percentiles' curve of reviews a user, cut to users with enough of them, as percent of those."""
    percent = np.array([float(key) for key in percentiles] + [100.0])
    count = np.array([*percentiles.values(), 2 * max(percentiles.values())], dtype=np.float64)
    enough = float(np.interp(ENOUGH_REVIEWS, count, percent))
    kept = percent > enough
    scaled = 100 * (percent[kept] - enough) / (100 - enough)
    return np.round(np.concatenate([[0.0], scaled]), 2), np.concatenate([[float(ENOUGH_REVIEWS)], count[kept]])


def _is_extra(term: str) -> bool:
    return term.startswith("term-")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NeuclustError as error:
        sys.exit(f"fit_yelp_twin: {error}")
