"""What kind of problem a prepared dataset is: its numbers, and what they mean in words."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.analysis.inspection_rewards import Floats, Progress, Rewards, View, look_at
from neuclust.analysis.summary import EASIER_REWARDS, HARDLY
from neuclust.data.dataset import ProfileDataset
from neuclust.environments.profiles import check_affinity
from neuclust.errors import ConfigError
from neuclust.randomness import stream

ELBOW = (1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 22, 26, 30, 35, 40)
PICTURED_ARMS = 5000
CONTEXT_ROUNDS = 20  # rounds in which distinct contexts are counted


@dataclass(frozen=True, slots=True)
class Clusters:
    """k-means of the profiles: the elbow, and the clustering looked at."""

    elbow: tuple[tuple[int, float], ...]  # number of clusters, within-cluster sum of squares
    labels: NDArray[np.int64]  # (N,) by size, 0 the largest
    sizes: tuple[int, ...]
    pictured: NDArray[np.int64]  # (p,) arms in the picture
    plane: Floats  # (p, 2) their first two principal components
    explained: tuple[float, float]  # share of the variance each component carries


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything that is reported of a dataset."""

    name: str
    arms: int
    rounds: int
    features: int
    rounds_looked_at: int
    slate_size: int
    zeros_in_arms: float
    zeros_in_rounds: float
    active_features_a_round: float
    distinct_profiles: int
    distinct_contexts_a_round: float  # median over some rounds
    arms_without_profile: int
    observations: float | None  # behind the profiles, where counted
    arms_offered: tuple[int, float, int] | None  # fewest, median and most per round, where rounds are recorded
    rewards: Rewards
    clusters: Clusters


def inspect(
    dataset: ProfileDataset,
    *,
    rounds: int = 1000,
    slate_size: int = 5,
    clusters: int = 22,
    progress: Progress = lambda _: None,
) -> Inspection:
    """Look at the first `rounds` rounds with slates of `slate_size` and `clusters` clusters."""
    most = len(dataset.arms) if dataset.offers is None else int(dataset.offers.sizes.min())
    if rounds < 1 or not 1 <= slate_size <= most:
        raise ConfigError(f"expected at least 1 round and slates of 1 to {most} arms, got {rounds} and {slate_size}")
    if dataset.offers is None:
        check_affinity(dataset)
    horizon = min(rounds, len(dataset.rounds))
    sizes = None if dataset.offers is None else dataset.offers.sizes[:horizon]
    grouping = cluster_profiles(dataset.arms, clusters)
    queries = dataset.rounds[:horizon] != 0
    return Inspection(
        name=dataset.name,
        arms=len(dataset.arms),
        rounds=len(dataset.rounds),
        features=len(dataset.features),
        rounds_looked_at=horizon,
        slate_size=slate_size,
        zeros_in_arms=float((dataset.arms == 0).mean()),
        zeros_in_rounds=float((~queries).mean()),
        active_features_a_round=float(queries.sum(1).mean()),
        distinct_profiles=len(distinct_rows(dataset.arms)[0]),
        distinct_contexts_a_round=_distinct_contexts(dataset, horizon),
        arms_without_profile=int((~dataset.arms.any(1)).sum()),
        observations=None if dataset.counts is None else float(dataset.counts.sum()),
        arms_offered=None if sizes is None else (int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        rewards=look_at(View(dataset, horizon, slate_size, grouping.labels, progress)),
        clusters=grouping,
    )


def cluster_profiles(profiles: NDArray[np.float32], clusters: int) -> Clusters:
    """k-means on the distinct profiles, each weighted by how often it occurs (the same, and cheaper)."""
    first, back, weight = distinct_rows(profiles)
    distinct = profiles[first]
    if not 1 <= clusters <= (most := len(distinct)):
        raise ConfigError(f"expected 1 to {most} clusters (distinct profiles), got {clusters}", field="clusters")
    elbow = elbow_of(profiles, sorted({*ELBOW, clusters}))
    labels = _k_means(distinct, weight, clusters).labels_.astype(np.int64)
    by_size = np.argsort(-np.bincount(labels[back], minlength=clusters), kind="stable")
    ordered = np.argsort(by_size)[labels[back]]
    pictured, plane, explained = _plane(profiles)
    sizes = np.bincount(ordered, minlength=clusters)
    return Clusters(elbow, ordered, tuple(sizes.tolist()), pictured, plane, explained)


def elbow_of(profiles: NDArray[np.float32], numbers: Iterable[int]) -> tuple[tuple[int, float], ...]:
    """(number of clusters, within-cluster sum of squares) for those numbers that there are distinct profiles for."""
    first, _, weight = distinct_rows(profiles)
    distinct = profiles[first]
    return tuple(
        (number, float(_k_means(distinct, weight, number).inertia_)) for number in numbers if number <= len(distinct)
    )


def _k_means(distinct: NDArray[np.float32], weight: NDArray[np.int64], number: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(number, n_init=1, max_iter=300, random_state=0).fit(distinct, sample_weight=weight)


def distinct_rows(rows: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First occurrence of each distinct row, each row's place among them, and how often it occurs."""
    whole = np.ascontiguousarray(rows + 0.0)  # no negative zeros: rows are compared byte by byte
    bytes_of = whole.view(np.dtype((np.void, max(1, whole.shape[1] * whole.itemsize)))).ravel()
    _, first, back, number = np.unique(bytes_of, return_index=True, return_inverse=True, return_counts=True)
    return first, back, number


def sentences(found: Inspection) -> list[str]:
    """The inspection as plain sentences."""
    rewards, clusters = found.rewards, found.clusters
    counted = "" if found.observations is None else f", {found.observations:,.0f} observations behind the profiles"
    start = f"over the first {found.rounds_looked_at:,} rounds"
    if found.arms_offered is None:
        quantiles = ", ".join(f"{name} {value:.3f}" for name, value in rewards.quantiles.items())
        paid = f"Mean rewards {start}: average {rewards.mean:.5f}; {quantiles}."
    else:
        fewest, median, most = found.arms_offered
        offered = f"{fewest:,} to {most:,} arms per round (median {median:,.0f})"
        paid = f"Real feedback: {offered} {start}, of which {rewards.mean:.1%} paid; slates are valued in hindsight."
    return [
        f"{found.name}: {found.arms:,} arms, {found.rounds:,} rounds, {found.features} features{counted}.",
        f"Zeros: {found.zeros_in_arms:.1%} of the profiles' entries, {found.zeros_in_rounds:.1%} of the rounds'; "
        f"a round asks for {found.active_features_a_round:.1f} features on average.",
        f"Distinct profiles: {found.distinct_profiles:,} of {found.arms:,}; distinct contexts in a round: "
        f"{found.distinct_contexts_a_round:,.0f} (median); arms without any entry: {found.arms_without_profile:,}.",
        paid,
        f"Best slate of {found.slate_size}: expected reward {rewards.best.min():.6f} to {rewards.best.max():.6f}, "
        f"average {rewards.best.mean():.6f}; a perfect policy still has a clipped regret of "
        f"{rewards.clipped_floor:.2f} in 1000 rounds.",
        _verdict(rewards, found.arms_offered is None),
        f"{len(clusters.sizes)} clusters: sizes {min(clusters.sizes):,} to {max(clusters.sizes):,}; choosing within "
        f"the best single cluster costs {rewards.regrets['best cluster']:.3f} in 1000 rounds.",
    ]


def record(found: Inspection) -> dict[str, Any]:
    """The inspection as JSON; per-arm and per-round arrays are summed up."""
    plain = {name: value for name, value in asdict(found).items() if name not in ("rewards", "clusters")}
    rewards, best = found.rewards, found.rewards.best
    return {
        "schema": 1,
        **plain,
        "mean_reward": rewards.mean,
        "mean_reward_quantiles": rewards.quantiles,
        "best_slate": {"min": float(best.min()), "mean": float(best.mean()), "max": float(best.max())},
        "clipped_floor_per_1000": rewards.clipped_floor,
        "static_slate": list(rewards.static_arms),
        "regret_per_1000": {name.replace(" ", "_"): value for name, value in rewards.regrets.items()},
        "nearly_static": rewards.nearly_static,
        "elbow": [list(point) for point in found.clusters.elbow],
        "cluster_sizes": list(found.clusters.sizes),
        "sentences": sentences(found),
    }


def _verdict(rewards: Rewards, same_arms: bool) -> str:
    """Where rounds offer different arms, an order of the arms is kept instead of a slate."""
    best, regrets = float(rewards.best.mean()), rewards.regrets
    if best < HARDLY:
        what = f"the best ones earn {best:.2g} per round, so that regret says nothing here"
        return f"Hardly any slate can be paid: {what}; {EASIER_REWARDS}."
    slate = f"One slate kept throughout (arms {', '.join(map(str, rewards.static_arms))})"
    kept = slate if same_arms else "One order of the arms"
    start = f"{kept} loses {regrets['static']:.3f} in 1000 rounds, random slates {regrets['random']:.1f}: "
    if not rewards.nearly_static:
        return f"{start}no static slate will do, the choice has to depend on the round."
    shows = "low regret here shows that a policy finds good arms, not that it uses the context"
    return f"{start}a static slate is nearly optimal, so {shows}."


def _distinct_contexts(dataset: ProfileDataset, horizon: int) -> float:
    looked = np.unique(np.linspace(0, horizon - 1, CONTEXT_ROUNDS).astype(np.int64))
    offered = [dataset.arms if dataset.offers is None else dataset.arms[dataset.offers.of(t)[0]] for t in looked]
    active = [np.flatnonzero(dataset.rounds[t]) for t in looked]
    contexts = [arms[:, columns] for arms, columns in zip(offered, active, strict=True)]
    return float(np.median([len(distinct_rows(rows)[0]) for rows in contexts]))


def _plane(profiles: NDArray[np.float32]) -> tuple[NDArray[np.int64], Floats, tuple[float, float]]:
    """The first two principal components of some arms."""
    chosen = stream(0, "picture").permutation(len(profiles))[:PICTURED_ARMS]
    centred = (profiles - profiles.mean(0)).astype(np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    values, vectors = np.pad(values, (1, 0))[::-1], np.pad(vectors, ((0, 0), (1, 0)))[:, ::-1]
    shares = values[:2] / max(values.sum(), 1e-12)
    return chosen, centred[chosen] @ vectors[:, :2], (float(shares[0]), float(shares[1]))
