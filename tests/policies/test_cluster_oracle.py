"""The cluster oracle against an enumeration of clusters."""

from __future__ import annotations

import naive_reference as naive
import pytest
from sklearn.cluster import KMeans
from small_problems import slate_of, small_environment

from neuclust.environments.rewards import threshold
from neuclust.environments.slates import SlateEnvironment
from neuclust.policies.reference import ClusterOracle, ClusterOracleConfig
from neuclust.slates.clustering import ClusteringConfig

DIM, K = 6, 3


def oracle(environment: SlateEnvironment, count: int) -> ClusterOracle:
    return ClusterOracle(
        ClusterOracleConfig(ClusteringConfig(count=count)),
        DIM,
        K,
        means=environment.means,
        value=environment.expected_reward,
        catalogue=(environment.arm_ids, environment.profiles),
    )


@pytest.mark.parametrize("reward", ["mean", "threshold"])
def test_it_plays_the_best_slate_of_the_best_cluster(reward: str) -> None:
    """Fails when the worst cluster wins, or when clusters are compared by their single best arm."""
    pays = threshold(K) if reward == "threshold" else None
    environment = small_environment(n=90, centres=1, seed=3, reward=pays)  # one cloud: no cluster is best throughout
    policy = oracle(environment, 6)
    labels = KMeans(6, n_init=10, max_iter=300, random_state=0).fit_predict(environment.profiles.numpy())
    assert min(labels.tolist().count(c) for c in range(6)) >= K
    for t in range(1, 31):
        round = environment.round(t)
        means, ids = environment.means(round).tolist(), round.arm_ids.tolist()
        slates = [naive.top(means, ids, [i for i in range(90) if labels[i] == c], K) for c in range(6)]
        values = [environment.expected_reward(round, slate_of(*slate)) for slate in slates]
        slate = policy.select(round)
        assert environment.expected_reward(round, slate) == pytest.approx(max(values))
        assert slate.positions.tolist() in slates
        policy.update(round, slate, environment.play(round, slate))


def test_with_one_cluster_it_is_the_oracle() -> None:
    environment = small_environment()
    policy = oracle(environment, 1)
    for t in range(1, 11):
        round = environment.round(t)
        assert policy.select(round).positions.tolist() == environment.best_positions(round).tolist()
