"""A synthetic MovieLens problem with the statistics of the real one and no real user.

Users come from a mixture. Each component draws, for a user and genre g,

    y ~ N(mean, L Lᵀ)          liking on the logit scale, m = 0.5 + 4.5 / (1 + e^{−y})
    n ~ round(lognormal)       how many ratings stand behind the entry, 0 for the user's missing genres
    x = m + s ε √(κ (m − 0.5)(5 − m) / n), rounded to a sum of n half-star ratings, divided by n

where s, one number per user, is the spread of the user's ratings. `movielens_twin.json`, written by
`python -m tools.fit_movielens_twin`, holds means and covariances over at least 20 users each, and counts of genre sets.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.data.dataset import ProfileDataset, profile_dataset
from neuclust.data.options import Bools, Floats
from neuclust.errors import ConfigError
from neuclust.randomness import stream

STATISTICS_FILE = Path(__file__).with_name("movielens_twin.json")
WORST, BEST = 0.5, 5.0  # stars
RATING_VARIANCE = 0.18  # κ: one rating has s.d. 0.9 around a liking of 3.5
EVENNESS = 0.4  # s.d. of log s
SLIP = 0.25  # share of a nearly perfect user's genres that are not exactly 5.0
SMALLEST_CROWD = 5  # perfect users in any twin, so that a best slate of the paper's K exists in every round


@dataclass(frozen=True, slots=True)
class Component:
    """One part of the mixture, over d genres."""

    users: int
    mean: Floats  # (d,) of y
    factor: Floats  # (d, d) lower triangular L
    log_counts: Floats  # (d,) mean of log n
    missing: Bools  # (p, d) frequent patterns of missing genres
    missing_users: NDArray[np.int64]  # (p,) users with each pattern; the others use the common rates


@dataclass(frozen=True, slots=True)
class GenreSets:
    """The sets of genres movies carry, (m, d), and how many movies carry each, (m,)."""

    sets: Bools
    movies: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TwinStatistics:
    """The statistics of the real problem that the twin is drawn from."""

    features: tuple[str, ...]
    users: int
    perfect: int  # users whose every entry is 5.0
    nearly_perfect: int  # further users with most entries at 5.0
    missing_rates: Floats  # (d,) of users with a rare pattern of missing genres
    count_factor: Floats  # (d, d) lower triangular, of log n around its component's mean
    components: tuple[Component, ...]
    early_sets: GenreSets  # the first rounds: films many have seen carry more genres
    later_sets: GenreSets


def movielens_twin(n_users: int = 10168, n_rounds: int = 6000, seed: int = 0) -> ProfileDataset:
    """Users as arms (with `counts`), movies as rounds; deterministic in its arguments."""
    if n_users < SMALLEST_CROWD or n_rounds < 1:
        expected = f"at least {SMALLEST_CROWD} users and 1 round"
        raise ConfigError(f"movielens twin: expected {expected}, got {n_users} users and {n_rounds} rounds")
    statistics = read_statistics(STATISTICS_FILE)
    profiles, counts = _users(statistics, n_users, stream(seed, "twin users"))
    movies = _movies(statistics, n_rounds, stream(seed, "twin movies"))
    arms, rounds = (np.arange(1, n_users + 1), profiles), (np.arange(1, n_rounds + 1), movies)
    return profile_dataset("movielens-twin", statistics.features, arms, rounds, counts)


def draw_users(
    component: Component, missing_rates: Floats, count_factor: Floats, n: int, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """n users of one component: profiles (n, d) and counts (n, d), both 0 where a genre is missing."""
    d = len(component.mean)
    deviation = generator.standard_normal((n, d)) @ component.factor.T
    log_counts = component.log_counts + generator.standard_normal((n, d)) @ count_factor.T
    spread = np.exp(EVENNESS * generator.standard_normal((n, 1)) - EVENNESS**2)  # E s² = 1
    level = deviation.mean(1, keepdims=True)
    liking = stars(component.mean + level + spread * (deviation - level))
    counts = np.maximum(1.0, np.round(np.exp(log_counts)))
    noise = spread * np.sqrt(RATING_VARIANCE * (liking - WORST) * (BEST - liking) / counts)
    profiles = _on_half_stars(liking + noise * generator.standard_normal((n, d)), counts)
    missing = _draw_missing(component, missing_rates, n, generator)
    return np.where(missing, 0.0, profiles), np.where(missing, 0.0, counts)


def stars(logits: Floats) -> Floats:
    """0.5 + 4.5 / (1 + e^{−y}), elementwise."""
    return np.asarray(WORST + (BEST - WORST) / (1.0 + np.exp(-logits)))


def _on_half_stars(profiles: Floats, counts: Floats) -> Floats:
    """The nearest means that `counts` half-star ratings can have."""
    sums = np.clip(np.round(2 * counts * profiles), 2 * WORST * counts, 2 * BEST * counts)
    return np.asarray(sums / (2 * counts))


def _draw_missing(component: Component, rates: Floats, n: int, generator: np.random.Generator) -> Bools:
    """Which genres each of n users never rated, (n, d)."""
    missing: Bools = generator.random((n, len(rates))) < rates
    place = np.searchsorted(np.cumsum(component.missing_users), generator.random(n) * component.users, side="right")
    frequent = place < len(component.missing_users)
    missing[frequent] = component.missing[place[frequent]]
    return missing


def _users(statistics: TwinStatistics, n: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """n users in random order: a few perfect and nearly perfect ones, the rest from the mixture."""
    perfect = max(SMALLEST_CROWD, round(statistics.perfect * n / statistics.users))
    nearly = min(n - perfect, round(statistics.nearly_perfect * n / statistics.users))
    shares = np.array([component.users for component in statistics.components], dtype=np.float64)
    sizes = generator.multinomial(n - perfect - nearly, shares / shares.sum())
    groups = [
        _enthusiasts(statistics, perfect, 0.0, generator),
        _enthusiasts(statistics, nearly, SLIP, generator),
        *(
            draw_users(component, statistics.missing_rates, statistics.count_factor, int(size), generator)
            for component, size in zip(statistics.components, sizes, strict=True)
        ),
    ]
    profiles, counts = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    profiles[perfect:] = _below_perfect(profiles[perfect:], counts[perfect:])
    order = generator.permutation(n)
    return profiles[order], counts[order]


def _enthusiasts(
    statistics: TwinStatistics, n: int, slip: float, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """n users of the most enthusiastic component who rate every genre, at 5.0 but for a share `slip`."""
    keenest = max(statistics.components, key=lambda component: float(component.mean.mean()))
    nothing = np.zeros(len(statistics.features))
    everything = replace(keenest, missing=keenest.missing[:0], missing_users=keenest.missing_users[:0])
    profiles, counts = draw_users(everything, nothing, statistics.count_factor, n, generator)
    return np.where(generator.random(profiles.shape) < slip, profiles, BEST), counts


def _below_perfect(profiles: Floats, counts: Floats) -> Floats:
    """The same users, none with 5.0 throughout: such a one loses half a star in the genre rated most."""
    profiles = profiles.copy()
    rows = np.flatnonzero(((profiles >= BEST) | (counts == 0)).all(1))
    most = counts[rows].argmax(1)
    profiles[rows, most] = BEST - 0.5 / np.maximum(1.0, counts[rows, most])
    return profiles


def _movies(statistics: TwinStatistics, n: int, generator: np.random.Generator) -> Bools:
    """n genre sets in random order, each as often as on the real movies as far as those reach: (n, d)."""
    early = _shuffled(statistics.early_sets, generator)[:n]
    later = _shuffled(statistics.later_sets, generator)[: n - len(early)]
    beyond = n - len(early) - len(later)
    again = later[generator.integers(max(1, len(later)), size=beyond)]
    return np.concatenate([early, later, again])


def _shuffled(table: GenreSets, generator: np.random.Generator) -> Bools:
    return generator.permutation(np.repeat(table.sets, table.movies, axis=0), axis=0)


def read_statistics(path: Path) -> TwinStatistics:
    """Statistics as `tools.fit_movielens_twin` writes them: triangles packed row by row, sets as bits."""
    record = json.loads(path.read_text(encoding="utf-8"))
    d = len(record["features"])
    return TwinStatistics(
        features=tuple(record["features"]),
        users=record["users"],
        perfect=record["perfect"],
        nearly_perfect=record["nearly_perfect"],
        missing_rates=np.array(record["missing_rates"]),
        count_factor=_unpacked(record["count_factor"], d),
        components=tuple(_component(part, d) for part in record["components"]),
        early_sets=GenreSets(*_sets(record["early_sets"], d)),
        later_sets=GenreSets(*_sets(record["later_sets"], d)),
    )


def _component(record: dict[str, Any], d: int) -> Component:
    mean, factor, log_counts = np.array(record["mean"]), _unpacked(record["factor"], d), np.array(record["log_counts"])
    return Component(record["users"], mean, factor, log_counts, *_sets(record["missing"], d))


def _unpacked(values: Sequence[float], d: int) -> Floats:
    lower = np.zeros((d, d))
    lower[np.tril_indices(d)] = values
    return lower


def _sets(record: list[list[int]], d: int) -> tuple[Bools, NDArray[np.int64]]:
    table = np.array(record, dtype=np.int64).reshape(-1, 2)
    return (table[:, :1] >> np.arange(d)) & 1 == 1, table[:, 1]
