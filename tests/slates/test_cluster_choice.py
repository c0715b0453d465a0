"""The number of clusters is found where there are clusters, and none are claimed where there are none."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_problems import random_round
from torch import Tensor

from neuclust.core import Round
from neuclust.errors import ConfigError
from neuclust.randomness import stream
from neuclust.slates.cluster_choice import CRITERIA, _Looked, choose_clusters, responsibilities
from neuclust.slates.clustering import ClusteringConfig, ClusterMap


def blobs(clusters: int, seed: int, arms: int = 24, dim: int = 12) -> Tensor:
    """Gaussian balls of deviation 0.35 around Gaussian centres, `arms` each."""
    rng = stream(seed, "test blobs", clusters)
    centres = rng.standard_normal((clusters, dim))
    return torch.from_numpy(np.repeat(centres, arms, 0) + 0.35 * rng.standard_normal((clusters * arms, dim)))


def cloud(kind: str, seed: int) -> Tensor:
    rng = stream(seed, f"test cloud {kind}")
    size = (200, int(rng.integers(2, 12)))
    points = {
        "gaussian": lambda: rng.standard_normal(size),
        "stretched": lambda: rng.standard_normal(size) * np.linspace(0.2, 3, size[1]),
        "uniform": lambda: rng.random(size),
        "skewed": lambda: rng.lognormal(size=size),
    }[kind]()
    return torch.from_numpy(points)


@pytest.mark.parametrize(("clusters", "seed"), [(5, 0), (9, 1), (16, 2), (25, 3)])
def test_blobs_are_found_exactly(clusters: int, seed: int) -> None:
    report = choose_clusters(blobs(clusters, seed))
    assert report.clustered
    assert report.count == clusters
    assert report.chosen["likelihood"] == clusters
    assert report.centroids.shape == (clusters, 12)


@pytest.mark.parametrize("kind", ["gaussian", "stretched", "uniform", "skewed"])
@pytest.mark.parametrize("seed", range(2))
def test_one_cloud_is_no_clusters(kind: str, seed: int) -> None:
    report = choose_clusters(cloud(kind, seed), most=8)
    assert not report.clustered
    assert report.count == 1
    assert "form no clusters" in report.sentence


def test_silhouettes_are_scikit_learns() -> None:
    from sklearn.metrics import silhouette_score

    points = blobs(4, 0).numpy()
    looked = _Looked(points)
    for count in (2, 4, 7):
        assert looked.silhouette(count) == pytest.approx(silhouette_score(points, looked.fit(count)[0]))


@given(seed=st.integers(0, 1000), scale=st.one_of(st.none(), st.floats(0.05, 5.0)))
def test_responsibilities_are_chances_and_the_nearest_has_the_largest(seed: int, scale: float | None) -> None:
    rng = stream(seed, "test soft")
    points, centroids = torch.from_numpy(rng.standard_normal((20, 3))), torch.from_numpy(rng.standard_normal((4, 3)))
    soft = responsibilities(points, centroids, scale=scale)
    torch.testing.assert_close(soft.sum(1), torch.ones(20, dtype=torch.float64))
    nearest = torch.cdist(points, centroids).argmin(1)
    assert bool((soft.gather(1, nearest.unsqueeze(1)).squeeze(1) >= soft.amax(1) - 1e-12).all())


def test_responsibilities_follow_the_formula() -> None:
    points, centroids = torch.tensor([[0.0], [1.0]]).double(), torch.tensor([[0.0], [2.0]]).double()
    soft = responsibilities(points, centroids, scale=1.0)
    assert float(soft[0, 0]) == pytest.approx(1 / (1 + np.exp(-2)))
    assert soft[1].tolist() == pytest.approx([0.5, 0.5])


def test_a_map_takes_the_number_from_the_data_and_keeps_it() -> None:
    points = blobs(6, 4)
    round = Round(1, torch.arange(len(points)), points, None, 3)
    clusters = ClusterMap(ClusteringConfig(choose="stability", most=12), 3)
    assert len(clusters.partition(round).names) == 6
    assert clusters.report is not None
    assert clusters.report.criterion == "stability"
    clusters.settle(round)
    again = ClusterMap(ClusteringConfig(choose="stability", most=12), 3)
    again.load_state_dict(clusters.state_dict())
    assert len(again.partition(round).names) == 6


def test_a_map_without_clusters_uses_one_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    clusters = ClusterMap(ClusteringConfig(choose="silhouette", most=8), 3)
    round = random_round(1, 200, 5, 3)
    with caplog.at_level(logging.WARNING):
        assert len(clusters.partition(round).names) == 1
        clusters.partition(round)
    assert [record.message for record in caplog.records if "form no clusters" in record.message] == caplog.messages
    assert len(caplog.messages) == 1


def test_few_or_equal_arms_are_one_cluster() -> None:
    for points in (torch.ones(10, 3), torch.rand(3, 2)):
        report = choose_clusters(points)
        assert not report.clustered
        assert set(report.chosen) == set(CRITERIA)


@pytest.mark.parametrize("settings", [{"method": "hdbscan"}, {"on": "masked"}, {"most": 1}])
def test_a_choice_that_cannot_be_made_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="use choose=fixed"):
        ClusteringConfig(choose="elbow", **settings)
