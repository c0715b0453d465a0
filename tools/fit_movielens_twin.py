"""Measure a prepared MovieLens problem for its synthetic twin: `python -m tools.fit_movielens_twin FILE.npz`.

Rewrites `src/neuclust/data/movielens_twin.json`. Only aggregates leave: every mean, covariance and
pattern rests on at least 20 users. Equal input gives equal output.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.options import Bools, Floats
from neuclust.data.twin import (
    BEST,
    RATING_VARIANCE,
    STATISTICS_FILE,
    WORST,
    Component,
    GenreSets,
    TwinStatistics,
    draw_users,
    stars,
)
from neuclust.errors import DataError, NeuclustError
from neuclust.randomness import stream

FEWEST_USERS = 20  # behind every number that is written
CLUSTERS = 22
TAIL_USERS = (101, 72, 30)  # lowest user means, high ones, highest ones: too rare for k-means to set apart
EARLY_ROUNDS = 1000
NEARLY = 0.5  # share of entries at 5.0 from which a user counts as nearly perfect
LARGEST_DENOMINATOR = 2000
# For s half stars over n ratings, s / 2n in lowest terms loses a factor gcd(s, 2n); over random s and n its
# logarithm has mean Σ_p log p · E v_p = (2/3) log 2 + Σ_{odd p} log p / (p² − 1) = 0.79 and variance 0.6.
LOG_GCD_MEAN, LOG_GCD_VARIANCE = 0.79, 0.6
REFINEMENTS, REFINEMENT_USERS = 8, 4000
SMALLEST_EIGENVALUE = 1e-3


@dataclass(frozen=True, slots=True)
class Sample:
    """Users the mixture is fitted to: profiles, which entries are there, log n estimates, logits."""

    profiles: Floats  # (n, d)
    present: Bools
    log_counts: Floats  # NaN where missing, as in `logits`
    logits: Floats

    def rows(self, chosen: Bools) -> Sample:
        return Sample(self.profiles[chosen], self.present[chosen], self.log_counts[chosen], self.logits[chosen])


def fit_statistics(
    dataset: ProfileDataset, n_clusters: int = CLUSTERS, tail_users: tuple[int, int, int] = TAIL_USERS
) -> TwinStatistics:
    """Clusters of users, their moments, and then corrections until simulated users have the same moments."""
    arms, present = dataset.arms.astype(np.float64), dataset.arms > 0
    at_best = ((arms >= BEST) & present).sum(1) / np.maximum(1, present.sum(1))
    sample = _sample(dataset.arms[at_best < 1.0])
    labels = _labels(sample, n_clusters, tail_users)
    components = [_component(sample, labels == c) for c in range(labels.max() + 1)]
    statistics = TwinStatistics(
        features=dataset.features,
        users=len(arms),
        perfect=int((at_best == 1.0).sum()),
        nearly_perfect=int(((at_best >= NEARLY) & (at_best < 1.0)).sum()),
        missing_rates=_rare_missing_rates(sample, labels, components),
        count_factor=_count_factor(sample, labels, components),
        components=tuple(components),
        early_sets=_genre_sets(dataset.rounds[:EARLY_ROUNDS] > 0),
        later_sets=_genre_sets(dataset.rounds[EARLY_ROUNDS:] > 0),
    )
    for _ in range(REFINEMENTS):
        statistics = _refined(statistics, sample, labels)
    return statistics


def _sample(arms: NDArray[np.float32]) -> Sample:
    present, profiles = arms > 0, arms.astype(np.float64)
    denominators = np.ones(arms.shape)
    denominators[present] = smallest_denominators(arms[present])
    log_counts = np.where(present, np.log(denominators / 2) + LOG_GCD_MEAN, np.nan)
    # A mean of n ratings is known to a quarter of 1/n stars: so far a logit may go.
    margin = 0.25 / np.maximum(1.0, np.exp(np.where(present, log_counts, 0.0))) / (BEST - WORST)
    share = np.clip((profiles - WORST) / (BEST - WORST), margin, 1 - margin)
    return Sample(profiles, present, log_counts, np.where(present, np.log(share / (1 - share)), np.nan))


def smallest_denominators(values: NDArray[np.float32]) -> Floats:
    """The smallest q with p / q equal to the value in single precision, at most 2000: (n,)."""
    found = np.full(len(values), float(LARGEST_DENOMINATOR))
    exact, tolerance = values.astype(np.float64), 0.55 * np.spacing(values).astype(np.float64)
    rest = np.arange(len(values))
    for q in range(1, LARGEST_DENOMINATOR):
        hit = np.abs(np.round(exact[rest] * q) / q - exact[rest]) <= tolerance[rest]
        found[rest[hit]] = q
        rest = rest[~hit]
    return found


def _labels(sample: Sample, n_clusters: int, tail_users: tuple[int, int, int]) -> NDArray[np.int64]:
    """The component of every user: k-means, but for the extremes of the user means, (n,)."""
    order = np.argsort(sample.profiles.sum(1) / sample.present.sum(1), kind="stable")
    low, high, highest = tail_users
    core = order[low : len(order) - high - highest]
    labels = np.empty(len(order), dtype=np.int64)
    labels[core] = KMeans(n_clusters, n_init=4, random_state=0).fit_predict(sample.profiles[core])
    labels[order[:low]] = n_clusters
    labels[order[len(order) - high - highest :]] = n_clusters + 1
    labels[order[len(order) - highest :]] = n_clusters + 2
    sizes = np.bincount(labels, minlength=n_clusters + 3)
    if sizes.min() < FEWEST_USERS:
        raise DataError(
            f"expected at least {FEWEST_USERS} users in each of {len(sizes)} groups, got {sizes.min()}; "
            "fit a larger file or fewer clusters"
        )
    return labels


def _component(sample: Sample, members: Bools) -> Component:
    group = sample.rows(members)
    known = group.present.sum(0) >= FEWEST_USERS
    mean = _mean_where_known(group.logits, sample.logits, known)
    covariance = _covariance(group, mean, np.nanvar(sample.logits, 0))
    missing, users = _frequent_missing(group.present)
    return Component(
        users=len(group.profiles),
        mean=mean,
        factor=_factor(covariance),
        log_counts=_mean_where_known(group.log_counts, sample.log_counts, known),
        missing=missing,
        missing_users=users,
    )


def _mean_where_known(group: Floats, everyone: Floats, known: Bools) -> Floats:
    """Means by genre; a genre too few rated takes everyone's mean, moved as the group's other genres are."""
    overall = np.nanmean(everyone, 0)
    own = np.where(known, np.nansum(group, 0) / np.maximum(1, (~np.isnan(group)).sum(0)), overall)
    moved: Floats = overall + (float((own - overall)[known].mean()) if known.any() else 0.0)
    return np.where(known, own, moved)


def _covariance(group: Sample, mean: Floats, overall_variance: Floats) -> Floats:
    """Of the logits over users who have both genres, (d, d), less the noise of averaging n ratings."""
    deviation = np.where(group.present, group.logits - mean, 0.0)
    pairs = group.present.T.astype(np.float64) @ group.present
    covariance = np.where(pairs >= FEWEST_USERS, deviation.T @ deviation / np.maximum(pairs, 1), 0.0)
    # Few users say little of many correlations: shrink these towards none.
    covariance *= len(deviation) / (len(deviation) + 2 * len(mean))
    variance = np.where(np.diag(pairs) >= FEWEST_USERS, _second_moment(deviation, pairs), overall_variance)
    rarity = np.where(group.present, 1 / np.maximum(1.0, np.exp(np.nan_to_num(group.log_counts))), 0.0)
    liking = stars(mean)
    noise = RATING_VARIANCE * (BEST - WORST) ** 2 / ((liking - WORST) * (BEST - liking))
    noise *= rarity.sum(0) / np.maximum(1, np.diag(pairs))
    np.fill_diagonal(covariance, np.maximum(variance - noise, 0.15 * variance))
    return covariance


def _second_moment(deviation: Floats, pairs: Floats) -> Floats:
    moment: Floats = (deviation**2).sum(0) / np.maximum(1, np.diag(pairs))
    return moment


def _factor(covariance: Floats) -> Floats:
    """Cholesky factor of the nearest matrix without negative directions."""
    values, vectors = np.linalg.eigh(covariance)
    repaired = (vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T
    factor: Floats = np.linalg.cholesky(repaired)
    return factor


def _frequent_missing(present: Bools) -> tuple[Bools, NDArray[np.int64]]:
    patterns, users = np.unique(~present, axis=0, return_counts=True)
    frequent = users >= FEWEST_USERS
    return patterns[frequent], users[frequent].astype(np.int64)


def _rare_missing_rates(sample: Sample, labels: NDArray[np.int64], components: list[Component]) -> Floats:
    """Share of missing entries by genre among the users whose pattern is rare in their component, (d,)."""
    rare = np.ones(len(labels), dtype=np.bool_)
    for c, component in enumerate(components):
        for pattern in component.missing:
            rare &= ~((labels == c) & (sample.present != pattern).all(1))
    if rare.sum() < FEWEST_USERS:
        return np.zeros(sample.present.shape[1])
    rates: Floats = (~sample.present[rare]).mean(0)
    return rates


def _count_factor(sample: Sample, labels: NDArray[np.int64], components: list[Component]) -> Floats:
    """Factor of the covariance of log n around the component means, free of the gcd's own spread."""
    means = np.array([component.log_counts for component in components])
    deviation = np.where(sample.present, sample.log_counts - means[labels], 0.0)
    pairs = sample.present.T.astype(np.float64) @ sample.present
    covariance = deviation.T @ deviation / np.maximum(1, pairs)
    covariance[np.diag_indices(len(covariance))] -= LOG_GCD_VARIANCE
    return _factor(covariance)


def _genre_sets(rounds: Bools) -> GenreSets:
    sets, movies = np.unique(rounds, axis=0, return_counts=True)
    return GenreSets(sets, movies.astype(np.int64))


def _refined(statistics: TwinStatistics, sample: Sample, labels: NDArray[np.int64]) -> TwinStatistics:
    """Move means, spreads and counts towards those whose simulated users look like the real ones."""
    components, simulated = [], []
    for c, component in enumerate(statistics.components):
        generator = stream(0, "fit twin", c)
        drawn, _ = draw_users(component, statistics.missing_rates, statistics.count_factor, REFINEMENT_USERS, generator)
        components.append(_corrected(component, sample.profiles[labels == c], drawn))
        simulated.append(drawn[: REFINEMENT_USERS * component.users // statistics.users])
    # The share of means on half stars falls as 1/n, so it tells by how much the counts are off.
    shift = np.log(_on_half_stars(np.concatenate(simulated)) / _on_half_stars(sample.profiles))
    moved = [replace(part, log_counts=part.log_counts + np.clip(shift, -0.5, 0.5)) for part in components]
    return replace(statistics, components=tuple(moved))


def _corrected(component: Component, real: Floats, drawn: Floats) -> Component:
    """A step on y's mean and scale that brings the mean and s.d. of the entries closer, genre by genre."""
    known = ((real > 0).sum(0) >= FEWEST_USERS) & ((drawn > 0).sum(0) >= FEWEST_USERS)
    (real_mean, real_sd), (drawn_mean, drawn_sd) = _moments(real), _moments(drawn)
    liking = stars(component.mean)
    slope = np.maximum((liking - WORST) * (BEST - liking), 0.3) / (BEST - WORST)
    step = np.where(known, 0.8 * (real_mean - drawn_mean) / slope, 0.0)
    scale = np.where(known, np.clip(real_sd / np.maximum(drawn_sd, 1e-6), 0.8, 1.25), 1.0)
    return replace(component, mean=component.mean + step, factor=component.factor * scale[:, None])


def _moments(profiles: Floats) -> tuple[Floats, Floats]:
    """Mean and s.d. of the entries that are there, by genre."""
    present = profiles > 0
    n = np.maximum(1, present.sum(0))
    mean = profiles.sum(0) / n
    return mean, np.sqrt((np.where(present, profiles - mean, 0.0) ** 2).sum(0) / n)


def _on_half_stars(profiles: Floats) -> Floats:
    """Share of the entries that lie on a half star, by genre; never quite 0."""
    present = profiles > 0
    on_level = present & (np.abs(2 * profiles - np.round(2 * profiles)) < 1e-4)
    share: Floats = on_level.sum(0) / np.maximum(1, present.sum(0)) + 0.002
    return share


def write_statistics(statistics: TwinStatistics, path: Path) -> None:
    """One line per component; equal statistics give equal bytes."""
    record = {
        "features": list(statistics.features),
        "users": statistics.users,
        "perfect": statistics.perfect,
        "nearly_perfect": statistics.nearly_perfect,
        "missing_rates": _rounded(statistics.missing_rates),
        "count_factor": _rounded(_packed(statistics.count_factor)),
        "early_sets": _set_record(statistics.early_sets.sets, statistics.early_sets.movies),
        "later_sets": _set_record(statistics.later_sets.sets, statistics.later_sets.movies),
        "components": [_component_record(component) for component in statistics.components],
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in record.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _component_record(component: Component) -> dict[str, Any]:
    return {
        "users": component.users,
        "mean": _rounded(component.mean),
        "factor": _rounded(_packed(component.factor)),
        "log_counts": _rounded(component.log_counts),
        "missing": _set_record(component.missing, component.missing_users),
    }


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in values]


def _packed(lower: Floats) -> Floats:
    return lower[np.tril_indices(len(lower))]


def _set_record(sets: Bools, counts: NDArray[np.int64]) -> list[list[int]]:
    """[bits, count] per set; bit g is feature g."""
    bits = sets @ (1 << np.arange(sets.shape[1], dtype=np.int64))
    return sorted([int(mask), int(count)] for mask, count in zip(bits, counts, strict=True))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tools.fit_movielens_twin FILE.npz\n")
        return 2
    try:
        statistics = fit_statistics(load_dataset(Path(arguments[0])))
    except NeuclustError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    write_statistics(statistics, STATISTICS_FILE)
    sys.stdout.write(f"{STATISTICS_FILE}: {len(statistics.components)} components of {statistics.users} users\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
