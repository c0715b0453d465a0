"""Matching, δ, P and the structural gap against plain searches; quality of clusters that are there and that are not."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from small_problems import clustered_profiles

from neuclust.errors import DataError
from neuclust.randomness import stream
from neuclust.theory.clusters import (
    alignment,
    bend,
    best_cluster,
    centroids,
    elbow,
    k_means,
    match,
    rand_index,
    silhouette,
)


def test_centroids_are_means_of_the_members() -> None:
    x = torch.from_numpy(stream(0, "centroid rows").random((9, 3)))
    labels = torch.tensor([4, 4, 1, 1, 1, 7, -1, 7, 4])
    found = centroids(x, labels)
    assert found.names.tolist() == [1, 4, 7]
    for name, row in zip((1, 4, 7), found.centroids, strict=True):
        torch.testing.assert_close(row, x[labels == name].mean(0))


@pytest.mark.parametrize("references", [5, 4])
def test_the_match_has_the_smallest_sum_of_distances(references: int) -> None:
    rng = stream(references, "matching")
    found, reference = torch.from_numpy(rng.random((4, 3))), torch.from_numpy(rng.random((references, 3)))
    distances = torch.cdist(found, reference)
    best = min(
        permutations(range(references), 4), key=lambda order: sum(float(distances[i, j]) for i, j in enumerate(order))
    )
    assert match(found, reference).tolist() == list(best)
    assert sorted(match(reference, found).tolist()) == sorted([*range(4), *[-1] * (references - 4)])


def test_delta_is_the_nearest_other_cluster_and_p_the_best_one() -> None:
    reference = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 2.0]], dtype=torch.float64)
    played = torch.tensor([0.5, 0.1], dtype=torch.float64)
    found = alignment(played, 0, 2, reference)
    assert found.others == pytest.approx(max(0.5 * 0.6 + 0.1 * 0.8, 0.2))
    assert found.best == pytest.approx(0.2)
    length = float(torch.linalg.vector_norm(played))
    assert found.others_cosine == pytest.approx(0.38 / length)
    assert found.best_cosine == pytest.approx(0.1 / length)
    assert alignment(played, 0, 0, reference[:1]).others == 0.0  # no other there


def test_the_best_cluster_and_its_gap_are_those_of_a_search() -> None:
    rng = stream(3, "gap")
    means, labels = torch.from_numpy(rng.random(30)), torch.from_numpy(rng.integers(0, 5, 30))
    labels[0] = 9  # alone: cannot fill a slate

    def value(positions: torch.Tensor) -> float:
        return float(means[positions].prod())

    best = value(torch.topk(means, 3).indices)
    worths = {}
    for name in range(5):
        members = (labels == name).nonzero().flatten()
        worths[name] = value(members[torch.topk(means[members], 3).indices])
    found = best_cluster(labels, means, 3, value, best)
    assert found.name == max(worths, key=worths.__getitem__)
    assert found.value == pytest.approx(max(worths.values()))
    assert found.gap == pytest.approx(best - found.value)
    assert found.gap >= 0
    with pytest.raises(DataError, match="fewer clusters"):
        best_cluster(torch.arange(30), means, 3, value, best)


def test_balls_are_found_and_a_cloud_is_not() -> None:
    balls = clustered_profiles(300, 6, 4).numpy()
    labels, _ = k_means(balls, 4)
    again, _ = k_means(balls, 4, seed=5)
    assert rand_index(labels, again) == pytest.approx(1.0)
    assert silhouette(balls, labels) > 0.6
    assert bend(elbow(balls, (1, 2, 3, 4, 5, 6, 8, 10))) == 4
    cloud = stream(0, "cloud").random((300, 6))
    assert silhouette(cloud, k_means(cloud, 4)[0]) < 0.2
    shuffled = stream(1, "shuffle").permutation(labels)
    assert abs(rand_index(labels, shuffled)) < 0.05
    assert np.isnan(silhouette(balls, np.zeros(300, dtype=np.int64)))


def test_the_elbow_skips_counts_beyond_the_distinct_points() -> None:
    points = np.repeat(np.eye(3), 5, axis=0)
    assert [count for count, _ in elbow(points, (1, 2, 3, 4))] == [1, 2, 3]
    assert bend([(1, 5.0), (2, 5.0)]) == 1
