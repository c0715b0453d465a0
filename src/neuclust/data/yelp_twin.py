"""A synthetic Yelp: restaurants and users drawn from aggregate statistics, no real row among them.

A restaurant's terms are a Gaussian vector with the fitted correlations, cut at the terms' thresholds, completed by the
terms they always come with (brunch: breakfast), and drawn so that numbers of terms are as counted. Some restaurants
repeat another's terms, as the branches of a chain do. `python -m tools.fit_yelp_twin` writes the statistics.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from neuclust.data.dataset import ProfileDataset, profile_dataset
from neuclust.data.options import Bools, Floats, ratio
from neuclust.errors import ConfigError
from neuclust.randomness import stream

STATISTICS = Path(__file__).with_name("yelp_twin.json")
EVERYWHERE = "restaurants"  # the term every restaurant has
YELP_ROUNDS = 1000  # users of the paper's problem
OVERSAMPLING = 4  # candidates per restaurant, so that every number of terms is found often enough
SMALLEST_SLATE = 5  # at least so many restaurants list nothing but `Restaurants`, whatever the size
UNLISTED_IDF = 8.5  # of a term too rare to be kept, about 20 in 40,000
BLOCK = 16_384  # candidates drawn at once


@dataclass(frozen=True, slots=True)
class YelpStatistics:
    """Aggregates over real restaurants and users; terms are ordered by how often they occur."""

    terms: tuple[str, ...]  # (m,) without `restaurants`
    thresholds: Floats  # (m,) a term occurs where its Gaussian exceeds this
    correlations: Floats  # (m, m)
    implied: tuple[tuple[int, int], ...]  # (t, u): where t occurs, u does
    sizes: dict[int, int]  # number of terms, `restaurants` among them -> restaurants
    only_restaurants: float  # share of restaurants with one kept term that list no other category at all
    fresh: float  # share of restaurants that do not repeat another's terms
    stars: Floats  # (5,) shares of 1 to 5
    reviews: tuple[Floats, Floats]  # (percent, reviews per user), of users with five or more


def yelp_twin(
    n_restaurants: int = 52_268, n_terms: int = 171, n_rounds: int = YELP_ROUNDS, seed: int = 0
) -> ProfileDataset:
    """Restaurants as tf-idf rows (N, d), users as mean stars per term (R, d); equal arguments, equal data."""
    statistics = load_statistics()
    most = len(statistics.terms) + 1
    if n_restaurants < 2 * SMALLEST_SLATE or n_rounds < 1 or not 1 <= n_terms <= most:
        expected = f"at least {2 * SMALLEST_SLATE} restaurants, one round and 1 to {most} terms"
        raise ConfigError(f"yelp twin: expected {expected}, got {n_restaurants}, {n_rounds} and {n_terms}")
    carries = draw_terms(statistics, n_restaurants, seed)
    rounds = draw_tastes(statistics, carries, n_rounds, seed)
    contexts = tf_idf(carries, _unlisted(statistics, carries, seed))
    names = np.array([EVERYWHERE, *statistics.terms])[:n_terms]
    alphabetical = np.argsort(names)
    arms = (np.arange(n_restaurants, dtype=np.int64), contexts[:, alphabetical])
    users = (np.arange(n_rounds, dtype=np.int64), rounds[:, alphabetical])
    return profile_dataset("yelp-twin", names[alphabetical].tolist(), arms, users)


def without_plain(dataset: ProfileDataset) -> ProfileDataset:
    """The same without restaurants whose only category is `Restaurants`: theirs is the best slate of every round.

    Such a row has one entry, `restaurants` at weight 1; a rare further category makes that weight smaller.
    """
    weight = dataset.arms[:, dataset.features.index(EVERYWHERE)]
    listed = ((dataset.arms != 0).sum(1) > 1) | (weight < 1)
    counts = None if dataset.counts is None else dataset.counts[listed]
    return replace(dataset, arms=dataset.arms[listed], arm_ids=dataset.arm_ids[listed], counts=counts)


@cache
def load_statistics() -> YelpStatistics:
    """The statistics this package comes with."""
    return statistics_of(json.loads(STATISTICS.read_text(encoding="utf-8")))


def statistics_of(record: dict[str, Any]) -> YelpStatistics:
    """Numbers are whole thousandths in the file, to keep it small."""
    m = len(record["terms"])
    correlations = np.zeros((m, m))
    correlations[np.tril_indices(m, -1)] = np.array(record["correlations_thousandths"]) / 1000
    return YelpStatistics(
        terms=tuple(record["terms"]),
        thresholds=np.array(record["thresholds_thousandths"]) / 1000,
        correlations=nearest_correlation(correlations + correlations.T + np.eye(m), steps=1),
        implied=tuple((t, u) for t, u in record["implied"]),
        sizes={int(size): n for size, n in record["sizes"].items()},
        only_restaurants=record["only_restaurants"],
        fresh=record["fresh"],
        stars=np.array(record["stars"]),
        reviews=(np.array(record["reviews"]["percent"]), np.array(record["reviews"]["count"])),
    )


def draw_terms(statistics: YelpStatistics, n: int, seed: int) -> Bools:
    """Which restaurant carries which term, `restaurants` in column 0: (n, m + 1)."""
    quota = _quota(statistics.sizes, n)
    originals = {size: max(1, round(statistics.fresh * number)) for size, number in quota.items()}
    pool = draw_candidates(statistics, int(OVERSAMPLING * sum(originals.values())), seed)
    rng = stream(seed, "yelp-twin-terms")
    by_size = pool.sum(1) + 1
    rows = []
    for size, number in quota.items():
        if size == 1:
            rows.append(np.zeros((number, pool.shape[1]), dtype=bool))
            continue
        matching = np.flatnonzero(by_size == size)
        if len(matching) == 0:  # very many terms: take the candidate that comes nearest
            matching = np.argsort(np.abs(by_size - size), kind="stable")[:1]
        chosen = rng.permutation(matching)[: min(number, originals[size])]
        copies = rng.choice(chosen, number - len(chosen))
        rows.append(pool[np.concatenate([chosen, copies])])
    carried = rng.permutation(np.concatenate(rows))
    return np.column_stack([np.ones(n, dtype=bool), carried])


def draw_candidates(statistics: YelpStatistics, n: int, seed: int) -> Bools:
    """Signs of Gaussians with the statistics' thresholds and correlations, completed by `implied`: (n, m)."""
    root = np.linalg.cholesky(statistics.correlations).T.astype(np.float32)
    limits = statistics.thresholds.astype(np.float32)
    blocks = []
    for block in range(-(-n // BLOCK)):
        noise = stream(seed, "yelp-twin-candidates", block).standard_normal((BLOCK, len(limits)), dtype=np.float32)
        blocks.append(noise @ root > limits)
    return complete(np.concatenate(blocks)[:n], statistics.implied)


def complete(carries: Bools, implied: tuple[tuple[int, int], ...]) -> Bools:
    """Add the terms that always come with a term, until nothing is missing."""
    carries = carries.copy()
    before = -1
    while before != (before := int(carries.sum())):
        for term, companion in implied:
            carries[:, companion] |= carries[:, term]
    return carries


def tf_idf(carries: Bools, unlisted: Bools) -> Floats:
    """idf = ln((1 + n) / (1 + df)) + 1 per carried term, rows of unit length over all terms, kept or not."""
    n = len(carries)
    weights = carries * (np.log((1 + n) / (1 + carries.sum(0))) + 1)
    return np.asarray(weights / np.sqrt((weights**2).sum(1) + unlisted * UNLISTED_IDF**2)[:, None])


def draw_tastes(statistics: YelpStatistics, carries: Bools, n: int, seed: int) -> Floats:
    """Mean stars per term over restaurants with it that a user reviewed, drawn uniformly (0 if none): (n, m + 1)."""
    rng = stream(seed, "yelp-twin-users")
    numbers = np.round(np.interp(100 * rng.random(n), *statistics.reviews)).astype(np.int64)
    user = np.repeat(np.arange(n), numbers)
    reviewed = carries[rng.integers(len(carries), size=len(user))].astype(np.float64)
    stars = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], len(user), p=statistics.stars)
    starts = np.concatenate([[0], np.cumsum(numbers)[:-1]])
    counts = np.add.reduceat(reviewed, starts)
    sums = np.add.reduceat(reviewed * stars[:, None], starts)
    return ratio(sums, counts)


def nearest_correlation(matrix: Floats, steps: int, floor: float = 1e-4) -> Floats:
    """A positive definite matrix with unit diagonal near `matrix` (Higham's alternating projections)."""
    near, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(steps):
        shifted = near - correction
        values, vectors = np.linalg.eigh(shifted)
        near = (vectors * np.maximum(values, floor)) @ vectors.T
        correction = near - shifted
        np.fill_diagonal(near, 1.0)
    values, vectors = np.linalg.eigh(near)
    near = (vectors * np.maximum(values, floor)) @ vectors.T
    scale = np.sqrt(np.diag(near))
    return np.asarray(near / scale[:, None] / scale)


def _quota(sizes: dict[int, int], n: int) -> dict[int, int]:
    """How many of n restaurants have each number of terms: shares as counted, whole numbers, n in all."""
    total = sum(sizes.values())
    exact = {size: n * number / total for size, number in sizes.items()}
    quota = {size: int(share) for size, share in exact.items()}
    quota[1] = max(quota[1], min(n, 2 * SMALLEST_SLATE))
    for size in sorted(exact, key=lambda size: quota[size] - exact[size]):
        quota[size] += sum(quota.values()) < n
    while (excess := sum(quota.values()) - n) > 0:
        largest = max((size for size in quota if size > 1), key=lambda size: quota[size])
        quota[largest] -= min(excess, quota[largest])
    return {size: number for size, number in quota.items() if number}


def _unlisted(statistics: YelpStatistics, carries: Bools, seed: int) -> Bools:
    """Restaurants without another kept term that do list a rare one: (n,). At least five list none."""
    bare = np.flatnonzero(carries.sum(1) == 1)
    rare = min(round((1 - statistics.only_restaurants) * len(bare)), max(0, len(bare) - SMALLEST_SLATE))
    chosen = stream(seed, "yelp-twin-unlisted").permutation(bare)[:rare]
    return np.isin(np.arange(len(carries)), chosen)
