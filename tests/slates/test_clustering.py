"""Clusters by every method, and every rule for clusters too small for a slate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive_reference as naive
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from small_problems import clustered_profiles, small_environment
from torch import Tensor

from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream
from neuclust.registry import build_policy
from neuclust.slates.clustering import ClusteringConfig, ClusterMap, fit_clusters, nearest
from neuclust.slates.partition import Clusters, usable

K = 3


class Given:
    """A clusterer that answers what it was told, and counts how often it is asked."""

    def __init__(self, labels: list[int]) -> None:
        self.labels, self.asked = np.array(labels), 0

    def fit_predict(self, X: NDArray[np.float64], y: None = None) -> NDArray[np.int64]:
        self.asked += 1
        return self.labels[: len(X)]


def blobs(n: int = 60, centres: int = 4) -> Tensor:
    return clustered_profiles(n, 5, centres)


def offered(profiles: Tensor, ids: list[int] | None = None, query: Tensor | None = None) -> Round:
    return Round(1, torch.arange(len(profiles)) if ids is None else torch.tensor(ids), profiles, query, K)


def partition_of(labels: Tensor) -> set[frozenset[int]]:
    """A grouping without its names."""
    return {frozenset(torch.nonzero(labels == c).flatten().tolist()) for c in set(labels.tolist())}


def true_blobs(n: int = 60, centres: int = 4) -> set[frozenset[int]]:
    """The blobs of `blobs`, found by distance to the first member: they are well separated."""
    gaps = torch.cdist(blobs(n, centres), blobs(n, centres))
    return {frozenset(torch.nonzero(row < 1.0).flatten().tolist()) for row in gaps}


# --- methods --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["kmeans", "minibatch", "gaussian-mixture", "agglomerative", "hdbscan"])
def test_every_method_finds_clear_blobs(method: Any) -> None:
    config = ClusteringConfig(method=method, count=4)
    clusters = fit_clusters(blobs(), config)
    assert len(true_blobs()) == 4
    assert partition_of(clusters.labels) == true_blobs()
    for c in range(4):
        torch.testing.assert_close(clusters.centroids[c], blobs()[clusters.labels == c].mean(0))


@pytest.mark.parametrize("method", ["kmeans", "minibatch", "gaussian-mixture", "agglomerative", "hdbscan"])
def test_every_method_gives_the_same_answer_again(method: Any) -> None:
    config = ClusteringConfig(method=method, count=6)
    noisy = torch.from_numpy(stream(0, "test noisy").random((80, 3)))
    noisy[40:] += 1.5
    first, again = fit_clusters(noisy, config), fit_clusters(noisy, config)
    assert torch.equal(first.labels, again.labels)


def test_kmeans_is_scikit_learns_with_the_configured_options() -> None:
    points = torch.from_numpy(stream(0, "test points").random((120, 4)))
    config = ClusteringConfig(count=7, n_init=3, max_iter=4, seed=5)
    expected = KMeans(7, n_init=3, max_iter=4, random_state=5).fit_predict(points.numpy())
    assert partition_of(fit_clusters(points, config).labels) == partition_of(torch.from_numpy(expected))


def test_one_cluster_holds_everybody() -> None:
    clusters = fit_clusters(blobs(), ClusteringConfig(count=1))
    assert clusters.labels.tolist() == [0] * 60
    torch.testing.assert_close(clusters.centroids[0], blobs().mean(0))


def test_hdbscan_noise_joins_the_nearest_cluster_or_forms_its_own() -> None:
    far = torch.cat([blobs(), torch.tensor([[30.0] * 5, [-30.0] * 5], dtype=torch.float64)])
    near_config = ClusteringConfig(method="hdbscan", count=5, noise="nearest")
    joined = fit_clusters(far, near_config)
    assert len(joined.centroids) == 4
    regular = joined.labels[:60]
    plain = torch.stack([far[:60][regular == c].mean(0) for c in range(4)])
    assert joined.labels[60:].tolist() == torch.cdist(far[60:], plain).argmin(1).tolist()
    own = fit_clusters(far, replace(near_config, noise="own"))
    assert len(own.centroids) == 5
    assert own.labels[60:].tolist() == [4, 4]
    assert set(own.labels[:60].tolist()) == {0, 1, 2, 3}
    torch.testing.assert_close(own.centroids[4], far[60:].mean(0))


def test_a_custom_clusterer_with_gaps_in_its_names_is_welcome() -> None:
    labels = [7, 7, 2, 2, 7, 100, 100, 2]
    clusters = fit_clusters(blobs(8, 2), ClusteringConfig(count=99), Given(labels))
    assert clusters.labels.tolist() == [1, 1, 0, 0, 1, 2, 2, 0]
    assert len(clusters.centroids) == 3  # the empty ones in between are dropped


def test_all_noise_is_refused_with_a_way_out() -> None:
    with pytest.raises(DataError, match=r"noise.*kmeans"):
        fit_clusters(blobs(8, 2), ClusteringConfig(), Given([-1] * 8))


def test_identical_arms_cannot_form_several_clusters() -> None:
    with pytest.raises(DataError, match=r"clustering\.count=1"):
        fit_clusters(torch.ones(20, 3, dtype=torch.float64), ClusteringConfig(count=3))


def test_fewer_distinct_arms_than_clusters_give_as_many_clusters_as_there_are() -> None:
    twins = torch.cat([torch.zeros(10, 2), torch.ones(10, 2)]).double()
    clusters = fit_clusters(twins, ClusteringConfig(count=5))
    assert partition_of(clusters.labels) == {frozenset(range(10)), frozenset(range(10, 20))}
    assert len(clusters.centroids) == 2


@pytest.mark.parametrize("method", ["kmeans", "minibatch", "gaussian-mixture", "agglomerative"])
def test_more_clusters_than_arms_are_refused(method: Any) -> None:
    with pytest.raises(ConfigError, match="9 clusters for 8 arms"):
        fit_clusters(blobs(8, 2), ClusteringConfig(method=method, count=9))


def test_without_a_seed_of_their_own_clusters_follow_the_policys_seed() -> None:
    for seed in (3, 4):
        assert ClusteringConfig(seed=None).seeded(seed) == ClusteringConfig(seed=seed)
        assert ClusteringConfig(seed=7).seeded(seed) == ClusteringConfig(seed=7)
    environment = small_environment(n=200, centres=1)

    def labels(seed: int) -> Tensor:
        policy: Any = build_policy(
            "neuclust", environment=environment, seed=seed, overrides={"clustering.seed": "none"}
        )
        found: Tensor = policy.clusters.partition(environment.round(1)).labels
        return found

    assert torch.equal(labels(3), labels(3))
    assert not torch.equal(labels(3), labels(4))


@pytest.mark.parametrize("change", [{"count": 0}, {"max_iter": 0}, {"n_init": 0}, {"seed": -1}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="ClusteringConfig"):
        ClusteringConfig(**change)


@given(st.integers(0, 10**6))
def test_nearest_is_the_centroid_at_the_smallest_distance(seed: int) -> None:
    rng = stream(seed, "test nearest")
    points, centroids = torch.from_numpy(rng.normal(size=(12, 3))), torch.from_numpy(rng.normal(size=(5, 3)))
    assert nearest(points, centroids).tolist() == torch.cdist(points, centroids).argmin(1).tolist()


# --- clusters too small for a slate ---------------------------------------------------------------------------

LINE = torch.tensor([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0], [20.0], [20.1], [20.2], [20.3]], dtype=torch.float64)
LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3, 3, 3])  # sizes 3, 2, 1, 4
CENTROIDS = torch.tensor([[0.1], [5.05], [9.0], [20.15]], dtype=torch.float64)
SCORES = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.3, 0.8, 0.2, 0.7, 0.6, 0.4], dtype=torch.float64)


def best(rule: str, labels: Tensor = LABELS) -> dict[int, list[int]]:
    count = int(labels.max()) + 1
    partition = usable(Clusters(labels, CENTROIDS[:count]), K, rule)
    slates = partition.best(SCORES[: len(labels)], torch.arange(len(labels)), K)
    return dict(zip(partition.names.tolist(), slates.tolist(), strict=True))


def test_merge_joins_the_smallest_to_its_nearest_until_all_can_fill_a_slate() -> None:
    # {5} joins {3, 4}, which then has three arms; nothing else moves
    assert best("merge") == {0: [1, 2, 0], 1: [5, 3, 4], 3: [7, 8, 9]}


def test_merge_uses_the_size_weighted_centroid_of_what_was_merged() -> None:
    """One arm at (0, 0) joins two at (6, 0): their centre (4, 0) is nearest to the third, (2, 0) would not be."""
    centroids = torch.tensor([[0.0, 0.0], [6.0, 0.0], [4.0, 6.0], [2.0, -6.2]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
    partition = usable(Clusters(labels, centroids), 4, "merge")
    assert partition_of(partition.labels) == {frozenset(range(7)), frozenset(range(7, 11))}


def test_skip_leaves_small_clusters_out() -> None:
    assert best("skip") == {0: [1, 2, 0], 3: [7, 8, 9]}


def test_skip_with_nothing_left_is_the_global_top_k() -> None:
    assert list(best("skip", torch.tensor([0, 0, 1, 1, 2]))) == [0]
    assert best("skip", torch.tensor([0, 0, 1, 1, 2]))[0] == [1, 2, 3]


def test_fill_borrows_the_best_of_the_nearest_clusters() -> None:
    # 1 = {3, 4} borrows from 2 = {5} (3.95 away); 2 = {5} borrows both of 1
    assert best("fill") == {0: [1, 2, 0], 3: [7, 8, 9], 1: [5, 3, 4], 2: [5, 3, 4]}


def test_fill_goes_on_to_the_next_cluster_when_the_nearest_is_not_enough() -> None:
    assert best("fill", torch.tensor([0, 0, 1, 2])) == {0: [1, 2, 0], 1: [1, 2, 3], 2: [1, 2, 3]}


def test_error_names_the_cluster_and_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"got 2 in cluster 1.*merge, skip or fill"):
        best("error")
    large = torch.tensor([0, 0, 0, 1, 1, 1])
    assert best("error", large) == {0: [1, 2, 0], 1: [5, 3, 4]}


@pytest.mark.parametrize("rule", ["merge", "skip", "fill"])
@given(st.integers(0, 10**6), st.integers(3, 25), st.integers(1, 8))
def test_every_rule_gives_slates_of_k_distinct_arms(rule: str, seed: int, n: int, count: int) -> None:
    rng = stream(seed, "test sizes")
    labels = torch.from_numpy(rng.integers(count, size=n))
    clusters = Clusters(labels, torch.from_numpy(rng.normal(size=(count, 2))))  # some may be empty: they are dropped
    partition = usable(clusters, K, rule)
    slates = partition.best(torch.from_numpy(rng.normal(size=n)), torch.arange(n), K)
    assert len(slates) == len(partition.names) > 0
    assert all(len(set(slate)) == K for slate in slates.tolist())


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_large_clusters_are_left_alone_by_every_rule(seed: int, count: int) -> None:
    rng = stream(seed, "test sizes")
    labels = torch.from_numpy(rng.permutation(np.arange(count * 5) % count))
    scores = rng.choice([0.0, 0.5, 1.0], size=count * 5)
    clusters = Clusters(labels, torch.from_numpy(rng.normal(size=(count, 2))))
    for rule in ("merge", "skip", "fill", "error"):
        found = usable(clusters, K, rule).best(torch.from_numpy(scores), torch.arange(count * 5), K)
        for c in range(count):
            members = [i for i in range(count * 5) if int(labels[i]) == c]
            assert found[c].tolist() == naive.top(scores.tolist(), range(count * 5), members, K)


# --- over the rounds ------------------------------------------------------------------------------------------


def labels_of(cluster_map: ClusterMap, round: Round) -> set[frozenset[int]]:
    """Arm ids grouped as the round's partition groups them."""
    partition = cluster_map.partition(round)
    return {frozenset(int(round.arm_ids[i]) for i in row.tolist() if i >= 0) for row in partition.table}


def test_offline_clusters_are_settled_by_the_first_update_and_kept() -> None:
    clusterer = Given([0, 0, 0, 1, 1, 1, 0, 1])
    cluster_map = ClusterMap(ClusteringConfig(count=2), K, clusterer)
    round = offered(blobs(8, 2))
    cluster_map.settle(round)
    clusterer.labels = clusterer.labels[::-1]
    moved = offered(blobs(8, 2).flip(0))
    assert labels_of(cluster_map, moved) == {frozenset({0, 1, 2, 6}), frozenset({3, 4, 5, 7})}
    assert clusterer.asked == 1


def test_known_arms_keep_their_cluster_by_id_and_new_ones_join_the_nearest() -> None:
    profiles = blobs(24, 2)
    cluster_map = ClusterMap(ClusteringConfig(count=2), K)
    cluster_map.settle(offered(profiles[:20]))
    groups = {arm: c for c, members in enumerate(labels_of(cluster_map, offered(profiles[:20]))) for arm in members}
    order = [23, 5, 0, 21, 7, 20, 1, 22, 2, 9]
    found = labels_of(cluster_map, offered(profiles[order], order))
    for members in found:
        known = {groups[arm] for arm in members if arm < 20}
        assert len(known) <= 1
    for new in (20, 21, 22, 23):
        twin = int(torch.cdist(profiles[new : new + 1], profiles[:20]).argmin())  # blobs are far apart
        near = [members for members in found if new in members]
        assert len(near) == 1
        assert all(groups[a] == groups[twin] for a in near[0] if a < 20)


def test_rounds_that_offer_arms_out_of_order_settle_the_same_clusters() -> None:
    profiles, order = blobs(12, 2), [5, 3, 11, 0, 1, 2, 4, 10, 9, 8, 7, 6]
    straight, shuffled = (ClusterMap(ClusteringConfig(count=2), K) for _ in range(2))
    straight.settle(offered(profiles))
    shuffled.settle(offered(profiles[order], order))
    assert labels_of(straight, offered(profiles)) == labels_of(shuffled, offered(profiles))


def test_masked_clusters_follow_the_query_and_profile_clusters_do_not() -> None:
    profiles = torch.tensor([[a, b] for a in (0.0, 9.0) for b in (0.0, 9.0) for _ in range(3)], dtype=torch.float64)
    first, second = (torch.tensor(q, dtype=torch.float64) for q in ([1.0, 0.0], [0.0, 1.0]))
    masked = ClusterMap(ClusteringConfig(count=2, on="masked"), K)
    masked.settle(offered(profiles, query=first))
    assert labels_of(masked, offered(profiles, query=first)) == {frozenset(range(6)), frozenset(range(6, 12))}
    assert labels_of(masked, offered(profiles, query=second)) == {
        frozenset({0, 1, 2, 6, 7, 8}), frozenset({3, 4, 5, 9, 10, 11})
    }  # fmt: skip
    fixed = ClusterMap(ClusteringConfig(count=2), K)
    fixed.settle(offered(profiles, query=first))
    assert labels_of(fixed, offered(profiles, query=first)) == labels_of(fixed, offered(profiles, query=second))


@pytest.mark.parametrize("warm", [True, False])
def test_online_clusters_follow_the_profiles(warm: bool) -> None:
    cluster_map = ClusterMap(ClusteringConfig(count=2, warm=warm), K)
    start = torch.cat([torch.zeros(6, 1), torch.full((6, 1), 5.0)]).double()
    cluster_map.settle(offered(start), refit=True)
    moved = start.clone()
    moved[5] = 5.0
    groups = partition_of(cluster_map.partition(offered(moved), refit=True).labels)
    assert groups == {frozenset(range(5)), frozenset(range(5, 12))}


def test_a_warm_start_continues_from_the_last_centroids() -> None:
    """Started at its own solution k-means stays there, even where a cold start finds another one."""
    rng = stream(0, "test warm")
    points = torch.from_numpy(rng.random((60, 2)))
    settled = ClusterMap(ClusteringConfig(count=8, seed=1, n_init=1), K)
    settled.settle(offered(points), refit=True)
    before = labels_of(settled, offered(points))
    other_seed = ClusterMap(ClusteringConfig(count=8, seed=2, n_init=1, warm=True), K)
    other_seed.load_state_dict(settled.state_dict())
    warm = partition_of(other_seed.partition(offered(points.clone()), refit=True).labels)
    cold = ClusterMap(ClusteringConfig(count=8, seed=2, n_init=1, warm=False), K)
    cold.load_state_dict(settled.state_dict())
    assert warm == before
    assert partition_of(cold.partition(offered(points.clone()), refit=True).labels) != before


def test_a_saved_map_continues_and_an_unsettled_one_is_empty() -> None:
    first, again = (ClusterMap(ClusteringConfig(count=4), K) for _ in range(2))
    assert first.state_dict() == {}
    first.settle(offered(blobs()))
    again.load_state_dict(first.state_dict())
    some = list(range(0, 60, 2))
    assert labels_of(first, offered(blobs()[some], some)) == labels_of(again, offered(blobs()[some], some))
    again.load_state_dict({})
    assert again.settled is None
