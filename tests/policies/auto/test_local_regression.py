"""One regression per cluster against a naive reference, and how clusters are found."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from small_problems import random_round, same_state
from torch import Tensor

from neuclust.core import Round
from neuclust.policies.auto.features import BlocksConfig, ContextClusters, FeatureBlocks, find_clusters
from neuclust.policies.auto.learners.block_regression import BlockRegressionConfig
from neuclust.policies.auto.learners.local_regression import VARIANCES, LocalRegression
from neuclust.policies.auto.plays import Plays, RewardScale
from neuclust.randomness import stream

D, K, C = 3, 4, 4
CORNERS = torch.tensor([[0.2, 0.2, 0.2], [0.8, 0.2, 0.2], [0.2, 0.8, 0.2], [0.2, 0.2, 0.8]], dtype=torch.float64)
UNTUNED = BlockRegressionConfig(steps=0)
LEVEL = RewardScale().level  # before any data


def blocks() -> FeatureBlocks:
    """Uniform contexts with four clusters in the corners."""
    found = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, D, K))
    assert found is not None
    return replace(found, clusters=ContextClusters(CORNERS / found.scale, 0.4))


BLOCKS = blocks()


def learner(config: BlockRegressionConfig = UNTUNED, bonus: float = 0.7) -> LocalRegression:
    assert BLOCKS.clusters is not None
    return LocalRegression(config, BLOCKS.clusters, bonus)


def cluster_of(z: Tensor) -> list[int]:
    """The nearest corner, by a loop."""
    return [min(range(C), key=lambda c: float(((row - CORNERS[c]) ** 2).sum())) for row in z]


def by_hand(z: Tensor) -> np.ndarray:
    """[1, (x − centroid)/spread] of every context."""
    rows = [[1.0, *((row - CORNERS[c]) / BLOCKS.scale / 0.4).tolist()] for row, c in zip(z, cluster_of(z), strict=True)]
    return np.array(rows)


def unit_of(rewards: Tensor) -> float:
    """p̄(1 − p̄), p̄ the mean reward from a start of one arm that paid ½, at most ½."""
    level = min(0.5, (float(rewards.sum()) + 0.5) / (len(rewards) + 1))
    return level * (1 - level)


def naive(seen: Tensor, rewards: Tensor, z: Tensor, level: float = LEVEL) -> tuple[list[float], list[float]]:
    """Means and widths of contexts z by a ridge regression of r − level per cluster, in units of the rewards."""
    x, clusters, asked = by_hand(seen), np.array(cluster_of(seen)), by_hand(z)
    unit = unit_of(rewards)
    noise, prior = UNTUNED.noise * unit, np.array([VARIANCES[0], *[VARIANCES[1]] * D]) * unit**2
    means, widths = [], []
    for row, cluster in zip(asked, cluster_of(z), strict=True):
        mine = x[clusters == cluster]
        precision = mine.T @ mine / noise + np.diag(1 / prior)
        target = mine.T @ (rewards.numpy()[clusters == cluster] - level) / noise
        means.append(level + row @ np.linalg.solve(precision, target))
        widths.append(float(np.sqrt(row @ np.linalg.solve(precision, row))))
    return means, widths


def contexts(t: int, clusters: tuple[int, ...]) -> Tensor:
    """One context near each of these corners."""
    return CORNERS[list(clusters)] + 0.2 * (
        torch.from_numpy(stream(3, "test near", t).random((len(clusters), D))) - 0.5
    )


def taught(one: LocalRegression, slates: range, plays: Plays, reward: float | None = None) -> tuple[Tensor, Tensor]:
    """Contexts and rewards of slates near the first three corners; coins unless a reward is given."""
    seen, got = [], []
    for t in slates:
        z = contexts(t, (0, 1, 2, 1))
        coins = torch.from_numpy(stream(4, "test coins", t).random(K)) < 0.2 + 0.6 * z[:, 0]
        rewards = coins.double() if reward is None else torch.full((K,), reward, dtype=torch.float64)
        one.learn(plays.add(z, BLOCKS.read(z), rewards), plays)
        seen.append(z)
        got.append(rewards)
    return torch.cat(seen), torch.cat(got)


def test_without_tuning_it_is_one_ridge_regression_per_cluster() -> None:
    one = learner()
    seen, rewards = taught(one, range(1, 16), Plays(BLOCKS, K))
    z = random_round(9, 40, D, K).profiles
    means, widths = (torch.tensor(values, dtype=torch.float64) for values in naive(seen, rewards, z))
    features = BLOCKS.read(z)
    scores, given = one.scores(features, t=1)
    torch.testing.assert_close(given, means)
    torch.testing.assert_close(one.means(features), means)
    torch.testing.assert_close(scores, means + 0.7 * widths)


def test_a_cluster_without_data_has_the_level_and_the_full_width() -> None:
    one = learner()
    unit = unit_of(taught(one, range(1, 16), Plays(BLOCKS, K))[1])
    z = torch.cat([CORNERS[3:], contexts(50, (3,) * 5)])
    scores, means = one.scores(BLOCKS.read(z), t=1)
    assert means.tolist() == [LEVEL] * 6
    slopes = torch.from_numpy(by_hand(z)[:, 1:])
    full = unit * (VARIANCES[0] + VARIANCES[1] * slopes.square().sum(1)).sqrt()
    torch.testing.assert_close(scores - means, 0.7 * full)
    played = one.scores(BLOCKS.read(CORNERS[:1]), t=1)
    assert float(played[0] - played[1]) < 0.5 * 0.7 * unit * VARIANCES[0] ** 0.5


def test_the_level_is_the_clusters_mean_weighted_by_what_the_data_determines() -> None:
    one = learner(BlockRegressionConfig(steps=1))
    seen, rewards = taught(one, range(1, 2), Plays(BLOCKS, K), reward=0.9)
    ahead, widths = naive(seen, rewards, CORNERS)  # at a centroid x = [1, 0]: the cluster's own level and its width
    known = [1 - width**2 / (VARIANCES[0] * unit_of(rewards) ** 2) for width in widths]
    overall = (float(rewards.sum()) + 0.5) / (len(rewards) + 1)
    total = overall + sum(k * mean for k, mean in zip(known, ahead, strict=True))
    assert one.level == pytest.approx(total / (1 + sum(known)))
    assert known[3] == pytest.approx(0)
    assert known[1] > known[0] > 0.1
    torch.testing.assert_close(
        one.means(BLOCKS.read(CORNERS)), torch.tensor(naive(seen, rewards, CORNERS, one.level)[0]).double()
    )


def test_the_level_moves_towards_the_played_clusters() -> None:
    one, plays = learner(BlockRegressionConfig()), Plays(BLOCKS, K)
    levels = [LEVEL]
    for t in range(1, 31):
        taught(one, range(t, t + 1), plays, reward=0.9)
        levels.append(one.level)
    assert all(left <= right for left, right in pairwise(levels[:12]))
    assert 0.6 < one.level < 0.9
    assert float(one.means(BLOCKS.read(CORNERS))[3]) == one.level  # the unplayed one follows


def test_variances_and_noise_are_estimated_once_there_are_enough_rewards() -> None:
    one, plays = learner(BlockRegressionConfig()), Plays(BLOCKS, K)
    levels = torch.tensor([0.1, 0.5, 0.9, 0.3], dtype=torch.float64)
    for t in range(1, 201):
        z = contexts(t, (0, 1, 2, 3))
        rewards = levels + 0.05**0.5 * torch.from_numpy(stream(5, "test noise", t).standard_normal(K))
        one.learn(plays.add(z, BLOCKS.read(z), rewards), plays)
        if not plays.informed:
            assert (one.variances.tolist(), one.noise) == (list(VARIANCES), BlockRegressionConfig().noise)
    unit = plays.scale.unit
    assert one.noise * unit == pytest.approx(0.05, rel=0.15)
    of_level, of_slope = (one.variances * unit**2).tolist()
    assert of_level > 0.05 > 4 * of_slope
    torch.testing.assert_close(one.means(BLOCKS.read(CORNERS)), levels, atol=0.05, rtol=0)


def test_a_state_brings_it_back_and_both_learn_on_alike() -> None:
    one, again, plays = learner(BlockRegressionConfig()), learner(BlockRegressionConfig()), Plays(BLOCKS, K)
    taught(one, range(1, 24), plays)
    again.load_state_dict(one.state_dict())
    copy = Plays(BLOCKS, K)
    copy.load_state_dict(plays.state_dict())
    taught(one, range(24, 32), plays)
    taught(again, range(24, 32), copy)
    assert same_state(one.state_dict(), again.state_dict())
    features = BLOCKS.read(random_round(9, 20, D, K).profiles)
    for mine, other in zip(one.scores(features, 1), again.scores(features, 1), strict=True):
        assert torch.equal(mine, other)


# --- clusters of contexts --------------------------------------------------------------------------------------

FEW = BlocksConfig(most_clusters=5, fewest_arms=48)  # fewer than usual: the search costs time


def round_of(profiles: Tensor, query: Tensor | None = None) -> Round:
    return Round(1, torch.arange(len(profiles)), profiles, query, K)


def gathered(n: int = 48) -> Tensor:
    """Arms close to the corners in turn, in other units."""
    return 5 * contexts(60, tuple(i % C for i in range(n)))


def sphere(n: int = 100) -> Tensor:
    drawn = torch.from_numpy(stream(6, "test sphere").standard_normal((n, D)))
    return torch.nn.functional.normalize(drawn)


def test_labels_are_the_nearest_centroids() -> None:
    z = random_round(9, 60, D, K).profiles
    assert BLOCKS.clusters is not None
    assert BLOCKS.clusters.labels(BLOCKS.scaled(z)).tolist() == cluster_of(z)


def test_clusters_of_clustered_contexts_are_found_and_kept_in_a_state() -> None:
    found = FeatureBlocks.of(FEW, round_of(gathered()))
    assert found is not None
    clusters = found.clusters
    assert clusters is not None
    x = found.scaled(gathered())
    means = torch.stack([x[c::C].mean(0) for c in range(C)])
    order = torch.cdist(means, clusters.centroids).argmin(1)
    torch.testing.assert_close(clusters.centroids[order], means)
    assert clusters.labels(x).tolist() == order.repeat(12).tolist()
    assert clusters.spread == pytest.approx(float((x - means.repeat(12, 1)).square().sum(1).mean().sqrt()))
    again = FeatureBlocks.from_state(FEW, D, found.state_dict())
    assert again.clusters is not None
    assert torch.equal(again.clusters.centroids, clusters.centroids)
    assert again.clusters.spread == clusters.spread
    assert torch.equal(again.clusters.labels(x), clusters.labels(x))


def test_there_are_no_clusters_on_a_sphere_under_a_mask_or_with_few_arms() -> None:
    assert find_clusters(FEW, sphere()) is None
    some = replace(FEW, fewest_arms=49)
    for round, config in ((round_of(gathered(), torch.ones(D).double()), FEW), (round_of(gathered()), some)):
        found = FeatureBlocks.of(config, round)
        assert found is not None
        assert found.clusters is None
        assert FeatureBlocks.from_state(config, D, found.state_dict()).clusters is None
