"""Learners on feature blocks: what they fit, and that a state brings them back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import random_round
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.policies.auto.features import BlocksConfig, ContextClusters, FeatureBlocks
from neuclust.policies.auto.learners.block_logistic import BlockLogistic, BlockLogisticConfig
from neuclust.policies.auto.learners.block_regression import (
    PRIOR,
    BlockRegression,
    BlockRegressionConfig,
    evidence_step,
)
from neuclust.policies.auto.learners.catalogue import (
    LEARNERS,
    LearnersConfig,
    checked_names,
    fitting_learners,
)
from neuclust.policies.auto.learners.net_regression import NetLearnerConfig
from neuclust.policies.auto.plays import INFORMED, Plays, RewardScale
from neuclust.randomness import stream

D, K = 3, 4


def blocks(limit: int = 40) -> FeatureBlocks:
    found = FeatureBlocks.of(BlocksConfig(cross_limit=limit), random_round(1, 50, D, K))
    assert found is not None
    return found


def gathered() -> FeatureBlocks:
    """As if contexts formed three clusters."""
    return replace(blocks(), clusters=ContextClusters(torch.eye(D, dtype=torch.float64), 0.5))


def chance(z: Tensor) -> Tensor:
    """Only the product of two features matters."""
    return 0.1 + 0.8 * ((z[:, 0] > 0.5) == (z[:, 1] > 0.5)).double()


def taught(learner: Any, slates: int, noise: float | None = None) -> Plays:
    """A learner after slates of random contexts, with coin flips or Gaussian rewards."""
    plays = Plays(blocks(), K)
    for t in range(1, slates + 1):
        z = random_round(t, K, D, K, seed=5).profiles
        rng = stream(1, "test rewards", t)
        if noise is None:
            rewards = torch.from_numpy(rng.random(K)) < chance(z)
        else:
            rewards = z[:, 0] + noise**0.5 * torch.from_numpy(rng.standard_normal(K))
        played = plays.add(z, gathered().read(z), rewards.double())
        learner.learn(played, plays)
    return plays


def test_regression_without_evidence_steps_is_ridge_by_block() -> None:
    learner = BlockRegression(BlockRegressionConfig(steps=0), blocks(), "crosses", bonus=0.7)
    plays = taught(learner, 12)
    held = plays.held()
    x, sums, counts = held.features.matrix, held.sums, held.counts
    sizes = blocks().sizes("crosses")
    prior = torch.tensor([PRIOR[name] for name, size in sizes.items() for _ in range(size)], dtype=torch.float64)
    level = min(0.5, float((sums.sum() + 0.5) / (counts.sum() + 1)))
    unit = level * (1 - level)
    noise = BlockRegressionConfig().noise * unit
    covariance = torch.linalg.inv(torch.diag(1 / (prior * unit**2)) + (x.T * counts) @ x / noise)
    features = gathered().read(random_round(99, 20, D, K).profiles)
    scores, means = learner.scores(features, t=1)
    expected = features.matrix @ (covariance @ x.T @ sums / noise)
    torch.testing.assert_close(means, expected)
    torch.testing.assert_close(learner.means(features), expected)
    widths = ((features.matrix @ covariance) * features.matrix).sum(1).sqrt()
    torch.testing.assert_close(scores, expected + 0.7 * widths)


RARER = 50.0  # times
COMMON = RewardScale(0.5)
SELDOM = RewardScale((1 - math.sqrt(1 - 4 * COMMON.unit / RARER)) / 2)  # a unit so many times smaller


def taught_at(scale: RewardScale, times: float, learner: Any, patch: pytest.MonkeyPatch) -> Any:
    """A learner after slates whose arms were each seen so many times and paid once or never."""
    patch.setattr(Plays, "scale", scale)
    plays = Plays(blocks(), K)
    for t in range(1, 13):
        z = random_round(t, K, D, K, seed=5).profiles
        rewards = (torch.from_numpy(stream(1, "test rewards", t).random(K)) < chance(z)).double()
        learner.learn(plays.add(z, gathered().read(z), rewards, torch.full_like(rewards, times)), plays)
    return learner


@pytest.mark.parametrize("bonus", [0.0, 1.0])
def test_rewards_of_one_per_cent_and_of_one_half_look_alike(bonus: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rewards in many times as many observations: all scores are so many times smaller, slates are the same.

    Fails when a prior variance, the noise or a bonus is in units of rewards.
    """
    config = BlockRegressionConfig(steps=0)
    assert SELDOM.level < 0.01
    features = gathered().read(random_round(99, 20, D, K).profiles)
    common, seldom = (
        taught_at(scale, times, BlockRegression(config, gathered(), "crosses", bonus), monkeypatch)
        for scale, times in ((COMMON, 1.0), (SELDOM, RARER))
    )
    for mine, other in zip(common.scores(features, 1), seldom.scores(features, 1), strict=True):
        torch.testing.assert_close(mine, RARER * other, rtol=1e-9, atol=1e-9)
    slates = [torch.topk(one.scores(features, 1)[0], K).indices.tolist() for one in (common, seldom)]
    assert slates[0] == slates[1]
    first = common.prior.variances.clone()
    for one, scale in ((common, COMMON), (seldom, SELDOM)):
        evidence_step(BlockRegressionConfig(), one.prior, one.belief, scale)
    torch.testing.assert_close(common.prior.variances, seldom.prior.variances, rtol=1e-9, atol=1e-9)
    assert not torch.equal(common.prior.variances, first)


def test_evidence_steps_wait_until_rewards_tell_variances() -> None:
    """Not after many observations of hardly any reward, and then at once."""
    config = BlockRegressionConfig(every=1)
    learner, plays = BlockRegression(config, blocks(), "crosses", bonus=0.0), Plays(blocks(), K)
    first, slates = learner.prior.variances.clone(), 0
    while not plays.informed:
        assert torch.equal(learner.prior.variances, first)
        z = random_round(slates, K, D, K, seed=5).profiles
        rewards = torch.zeros(K, dtype=torch.float64)
        rewards[0] = float(slates % 5 == 0)
        learner.learn(plays.add(z, gathered().read(z), rewards), plays)
        slates += 1
    assert slates * K > 10 * INFORMED  # rewards count, not observations
    assert not torch.equal(learner.prior.variances, first)


def test_evidence_steps_find_the_noise_and_shrink_blocks_that_do_not_matter() -> None:
    learner = BlockRegression(BlockRegressionConfig(), blocks(), "crosses", bonus=0.0)
    taught(learner, 200, noise=0.05)
    constant, average, squares, crosses = learner.prior.variances.tolist()
    assert learner.belief.noise_variance == pytest.approx(0.05, rel=0.15)
    assert constant == PRIOR["constant"]  # never tuned
    assert average > 5 * max(squares, crosses)


@pytest.mark.parametrize("logistic", [False, True])
def test_products_of_features_are_learned(logistic: bool) -> None:
    gaussian = BlockRegression(BlockRegressionConfig(), blocks(), "crosses")
    learner = LEARNERS["logistic"](LearnersConfig(), blocks(), 0, "test") if logistic else gaussian
    taught(learner, 150)
    z = random_round(99, 300, D, K).profiles
    means = learner.means(blocks().read(z))
    assert float(means[chance(z) > 0.5].mean() - means[chance(z) < 0.5].mean()) > 0.3


def test_what_reads_no_products_does_not_learn_them() -> None:
    learner = LEARNERS["additive"](LearnersConfig(), blocks(), 0, "test")
    taught(learner, 150)
    z = random_round(99, 300, D, K).profiles
    means = learner.means(blocks().read(z))
    assert float(means[chance(z) > 0.5].mean() - means[chance(z) < 0.5].mean()) < 0.2


@pytest.mark.parametrize("name", list(LEARNERS))
def test_a_state_brings_a_learner_back(name: str) -> None:
    learner, again = (LEARNERS[name](LearnersConfig(), gathered(), seed, "test") for seed in (3, 3))
    taught(learner, 23)
    again.load_state_dict(learner.state_dict())
    features = gathered().read(random_round(99, 20, D, K).profiles)
    for mine, other in zip(learner.scores(features, 7), again.scores(features, 7), strict=True):
        assert torch.equal(mine, other)


def test_names_are_checked_and_copies_left_out() -> None:
    assert checked_names("net, linear") == "net,linear"
    for wrong in ("", "linear,linear", "linear,magic"):
        with pytest.raises(ConfigError, match="expected some of linear"):
            checked_names(wrong)
    assert fitting_learners("linear,logistic,additive", blocks()) == ["linear", "logistic", "additive"]
    assert fitting_learners("linear,logistic,additive", blocks(limit=2)) == ["linear", "additive"]
    assert fitting_learners("linear,logistic", blocks(limit=2)) == ["linear", "logistic"]
    assert fitting_learners("additive,recent", blocks(limit=2)) == ["additive", "recent"]


def test_logistic_learners_forget_where_another_one_keeps_all() -> None:
    for name, memory in (("additive", 16.0), ("recent", 4.0), ("logistic", torch.inf)):
        learner = LEARNERS[name](LearnersConfig(), blocks(), 0, "test")
        assert isinstance(learner, BlockLogistic)
        assert learner._most == memory * learner.prior.size
    for name, memory in (("additive", torch.inf), ("recent", 4.0)):  # without crosses `logistic` is left out
        alone = LEARNERS[name](LearnersConfig(), blocks(limit=2), 0, "test")
        assert isinstance(alone, BlockLogistic)
        assert alone._most == memory * alone.prior.size


def test_directions_are_looked_for_where_products_are_read() -> None:
    assert fitting_learners("additive,index,logistic", blocks()) == ["additive", "index", "logistic"]
    assert fitting_learners("additive,index,logistic", blocks(limit=2)) == ["additive"]
    assert fitting_learners("index,logistic", blocks(limit=2)) == ["logistic"]
    assert fitting_learners("index", blocks(limit=2)) == ["linear"]


def test_nothing_is_local_without_clusters() -> None:
    assert fitting_learners("additive,local,net", gathered()) == ["additive", "local", "net"]
    assert fitting_learners("additive,local,net", blocks()) == ["additive", "net"]
    assert fitting_learners("local", gathered()) == ["local"]
    assert fitting_learners("local", blocks()) == ["linear"]


def test_bonuses_are_those_of_the_options() -> None:
    options = LearnersConfig(linear_bonus=0.3, local_bonus=0.5)
    features = gathered().read(random_round(99, 20, D, K).profiles)
    for name, bonus in (("linear", 0.3), ("local", 0.5)):
        given = LEARNERS[name](options, gathered(), 3, "test")
        single = LEARNERS[name](LearnersConfig(linear_bonus=1, local_bonus=1), gathered(), 3, "test")
        taught(given, 5)
        taught(single, 5)
        scores, means = given.scores(features, 1)
        ones, _ = single.scores(features, 1)
        torch.testing.assert_close(scores - means, bonus * (ones - means))
        assert float((ones - means).min()) > 0


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (BlockRegressionConfig, {"noise": 0.0}),
        (BlockRegressionConfig, {"least_variance": 1.0, "most_variance": 0.5}),
        (BlockRegressionConfig, {"every": 0}),
        (BlockLogisticConfig, {"tune_every": 0}),
        (BlockLogisticConfig, {"least_variance": 0.0}),
        (NetLearnerConfig, {"spread": -1.0}),
        (NetLearnerConfig, {"width": 0}),
        (LearnersConfig, {"linear_bonus": -0.1}),
        (LearnersConfig, {"local_bonus": -0.1}),
        (LearnersConfig, {"linear_bonus": float("nan")}),
    ],
)
def test_impossible_settings_are_refused(kind: type, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        kind(**change)
