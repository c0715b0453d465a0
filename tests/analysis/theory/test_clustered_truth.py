"""On a problem whose clusters are known the diagnostics find them, and turn bad when the clusters are destroyed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from neuclust.analysis.theory.clustering import ClusterNumbers, cluster_numbers
from neuclust.environments.dealing import Arms, Simulated
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.synthetic import FixedMeans, clustered, true_clusters
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.randomness import stream

SIZES = (600, 12, 6)  # arms, dimensions, clusters


SPEC = ProblemSpec(slate_size=5, horizon=40, seed=0, arms_per_round=300)


def whole() -> SlateEnvironment:
    return clustered("clusters", SPEC, SIZES)


def destroyed() -> SlateEnvironment:
    """The same labels and mean rewards, on arms drawn without any clusters."""
    arms, means = true_clusters(SIZES, 0)
    rows = stream(0, "destroyed").standard_normal((600, 12))
    profiles = torch.from_numpy(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    labels = arms.labels
    assert labels is not None
    return SlateEnvironment(
        "destroyed", Arms.numbered(profiles.numpy(), labels.numpy()), Simulated(FixedMeans(means)), SPEC
    )


def looked_at(environment: SlateEnvironment) -> ClusterNumbers:
    encoder = Encoder(EncoderConfig("raw"), environment.dim, even=False)
    encoder.settle(environment.round(1).read)
    return cluster_numbers(environment, encoder, asked=4)


@pytest.fixture(scope="module")
def found() -> ClusterNumbers:
    return looked_at(whole())


def test_clusters_are_found_as_they_are(found: ClusterNumbers) -> None:
    assert found.clustered
    assert (found.count, found.asked) == (6, 4)
    assert found.against == "the true clusters"
    assert found.rand_index > 0.97
    assert found.rand_index_asked < 0.9  # four clusters cannot be six
    assert found.silhouette > 0.3
    assert found.structural_gap < 0.01 * found.best_expected


def test_delta_and_p_are_those_of_the_true_centroids(found: ClusterNumbers) -> None:
    environment = whole()
    labels = environment.true_labels
    assert labels is not None
    for each, t in zip(found.aligned, found.times, strict=True):
        round = environment.round(t)
        mine = labels[torch.searchsorted(environment.arm_ids, round.arm_ids)]
        means = environment.means(round)
        best = max(range(6), key=lambda name: float(torch.topk(means[mine == name], round.slate_size).values.sum()))
        middle = torch.stack([round.profiles[mine == name].mean(0) for name in range(6)])
        products: Tensor = middle @ middle[best]
        assert each.best == pytest.approx(float(products[best]), abs=0.02)
        others = max(float(products[name]) for name in range(6) if name != best)
        assert each.others == pytest.approx(others, abs=0.02)
        assert each.best_cosine > 0.99
        assert each.others_cosine < 0.8


def test_they_turn_bad_without_clusters(found: ClusterNumbers) -> None:
    bad = looked_at(destroyed())
    assert not bad.clustered
    assert bad.rand_index < 0.05
    assert bad.silhouette < 0.15 < found.silhouette
    assert np.mean([each.best_cosine for each in bad.aligned]) < 0.8
    assert bad.structural_gap > 5 * found.structural_gap + 0.005
