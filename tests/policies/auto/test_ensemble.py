"""The ensemble: priors, evidence, weights by fixed share, and refits on recent slates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import random_round, same_state
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.policies.auto.ensemble import (
    BY_SCORE,
    CERTAIN,
    FORGETTING,
    PSEUDO_COUNT,
    Ensemble,
    EnsembleConfig,
    refit_on_recent,
)
from neuclust.policies.auto.features import BlocksConfig, ContextClusters, FeatureBlocks
from neuclust.policies.auto.learners.catalogue import LearnersConfig
from neuclust.policies.auto.learners.net_regression import NetLearnerConfig
from neuclust.randomness import stream

D, K = 3, 4
QUICK = LearnersConfig(net=NetLearnerConfig(width=4, steps=5))


def blocks(clusters: bool = True) -> FeatureBlocks:
    found = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, D, K))
    assert found is not None
    corners = torch.eye(D, dtype=torch.float64)
    return replace(found, clusters=ContextClusters(corners, 0.5)) if clusters else found


def ensemble(learners: str = "linear,local,additive", seed: int = 2, generation: int = 0, **changes: Any) -> Ensemble:
    return Ensemble(EnsembleConfig(learners=learners, options=QUICK, **changes), blocks(), K, seed, generation)


def slate(t: int) -> tuple[Tensor, Tensor]:
    """Contexts (K, D), and rewards (K,) more likely where the first feature is large."""
    z = random_round(t, K, D, K, seed=5).profiles
    return z, (torch.from_numpy(stream(1, "test rewards", t).random(K)) < z[:, 0]).double()


def fitted(one: Ensemble, slates: range) -> Ensemble:
    for t in slates:
        one.update(*slate(t))
    return one


def chances(one: Ensemble, z: Tensor) -> Tensor:
    """Every learner's predictions, `CERTAIN` units away from 0 and 1, (M, K)."""
    features, least = one.blocks.read(z), CERTAIN * one.plays.scale.unit
    return torch.stack([learner.means(features) for learner in one.learners.values()]).clamp(least, 1 - least)


def likelihood(p: Tensor, r: Tensor) -> Tensor:
    return (r * p.log() + (1 - r) * (1 - p).log()).sum(-1)


def start(level: float, above: float) -> float:
    """The chance whose log-odds are `above` those of the level."""
    return 1 / (1 + (1 - level) / level * math.exp(-above))


def test_mean_reward_by_hand() -> None:
    """It starts at the level moved by fixed log-odds, as `PSEUDO_COUNT`/unit arms; recent rewards by score replace a
    share of the earlier ones with every slate."""
    one = ensemble("linear")
    z = slate(1)[0]
    assert one.mean_reward == pytest.approx(start(0.5, BY_SCORE))
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    one.update(z, rewards, torch.tensor([False, False, True, True]))
    level = (2 + 0.5) / (4 + 1)
    count = PSEUDO_COUNT / (level * (1 - level))
    assert one.mean_reward == pytest.approx((1 + count * start(level, BY_SCORE)) / (2 + count))
    kept = 1 - FORGETTING * level * (1 - level)
    one.update(z[:3], 0 * rewards[:3])  # all were chosen by score
    level = (2 + 0.5) / (7 + 1)
    count = PSEUDO_COUNT / (level * (1 - level))
    assert one.mean_reward == pytest.approx((kept * 1 + 0 + count * start(level, BY_SCORE)) / (kept * 2 + 3 + count))


def test_the_first_learner_and_local_have_the_prior() -> None:
    assert ensemble("additive,linear,local", prior=4.0).evidence.tolist() == [4.0, 0.0, 4.0]
    behind = ensemble("linear,recent,additive", prior=4.0)
    assert behind.evidence.tolist() == [4.0, -4.0, 0.0]
    without = Ensemble(EnsembleConfig(learners="local,additive,linear", prior=4.0), blocks(clusters=False), K)
    assert list(without.learners) == ["additive", "linear"]
    assert without.evidence.tolist() == [4.0, 0.0]


def test_the_default_ensemble_has_index_where_there_are_products() -> None:
    many = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, 41, K))  # 40 features are the most with products
    assert many is not None
    assert "index" in Ensemble(EnsembleConfig(options=QUICK), blocks(), K).learners
    assert "index" not in Ensemble(EnsembleConfig(options=QUICK), many, K).learners


@pytest.mark.parametrize("settling", [0, 3])
def test_evidence_is_the_log_likelihood_after_settling(settling: int) -> None:
    one = ensemble(settling=settling, switching=0.0)
    expected = torch.tensor([5.0, 5.0, 0.0], dtype=torch.float64)
    for t in range(1, 9):
        z, rewards = slate(t)
        if t > settling:
            expected = expected + likelihood(chances(one, z), rewards)
        one.update(z, rewards)
        torch.testing.assert_close(one.evidence, expected)
    assert one.leader == list(one.learners)[int(expected.argmax())]
    torch.testing.assert_close(one.gaps, expected.max() - expected)


@pytest.mark.parametrize("switching", [0.0, 1.0])
def test_the_recent_log_likelihood_is_that_of_weighted_predictions(switching: float) -> None:
    one, predicted = ensemble(prior=1.0, switching=switching), []
    for t in range(1, 13):
        z, rewards = slate(t)
        weights = torch.exp(one.evidence) / torch.exp(one.evidence).sum() if switching == 0 else one.log_weights.exp()
        predicted.append(float(likelihood(weights @ chances(one, z), rewards)))
        one.update(z, rewards)
    for slates in (1, 5, 12, 50):
        assert one.recent_log_likelihood(slates) == pytest.approx(sum(predicted[-slates:]))


@pytest.mark.parametrize("settling", [0, 3])
@pytest.mark.parametrize("switching", [0.0, 0.4, 1.0, 30.0])
def test_weights_follow_fixed_share_after_settling(settling: int, switching: float) -> None:
    """v ← (1 − α) v' + α v_0 with α = min(½, switching / t), v' ∝ v exp(log-likelihood), for t > settling."""
    one = ensemble(prior=1.5, settling=settling, switching=switching)
    ahead = [math.exp(1.5), math.exp(1.5), 1.0]
    begun = [weight / sum(ahead) for weight in ahead]
    expected = begun
    for t in range(1, 13):
        z, rewards = slate(t)
        if t > settling:
            predicted = likelihood(chances(one, z), rewards).tolist()
            share = min(0.5, switching / t)
            judged = [weight * math.exp(ell) for weight, ell in zip(expected, predicted, strict=True)]
            expected = [
                (1 - share) * weight / sum(judged) + share * first for weight, first in zip(judged, begun, strict=True)
            ]
        one.update(z, rewards)
        assert one.log_weights.exp().tolist() == pytest.approx(expected, rel=1e-9)
    softmax = torch.softmax(one.evidence, 0)
    assert torch.allclose(one.log_weights.exp(), softmax) == (switching == 0.0)


def test_without_fixed_share_weights_that_underflow_keep_their_logarithm() -> None:
    one = ensemble(switching=0.0)
    one.evidence = torch.tensor([2000.0, 0.0, 0.0], dtype=torch.float64)  # after very many slates
    one.log_weights = torch.log_softmax(one.evidence, 0)
    fitted(one, range(1, 9))
    assert bool(torch.isfinite(one.log_weights).all())
    torch.testing.assert_close(one.log_weights, torch.log_softmax(one.evidence, 0))


@pytest.mark.parametrize("prior", [-1.0, 2000.0, float("nan")])
def test_a_prior_too_large_to_be_overcome_is_refused(prior: float) -> None:
    with pytest.raises(ConfigError, match=r"from 0 to 100|expected a finite number"):
        EnsembleConfig(prior=prior)


def test_the_leader_has_the_largest_weight_not_the_most_evidence() -> None:
    one = ensemble()
    one.evidence = torch.tensor([3.0, 9.0, 1.0], dtype=torch.float64)
    one.log_weights = torch.log(torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64))
    assert one.leader == "additive"
    assert one.gaps.tolist() == [6.0, 0.0, 8.0]


def test_lost_evidence_leaves_priors_out() -> None:
    one, earned = ensemble(prior=7.0, settling=0), torch.zeros(3, dtype=torch.float64)
    assert one.lost_evidence.tolist() == [0.0, 0.0, 0.0]
    for t in range(1, 7):
        z, rewards = slate(t)
        earned = earned + likelihood(chances(one, z), rewards)
        one.update(z, rewards)
    torch.testing.assert_close(one.lost_evidence, earned.max() - earned)
    assert float((one.lost_evidence - one.gaps).abs().max()) > 1.0  # a prior stands between them
    again = ensemble(prior=7.0, settling=0)
    again.load_state_dict(one.state_dict())
    assert torch.equal(again.lost_evidence, one.lost_evidence)


def test_the_leaders_predictions_alone_are_tested_for_change() -> None:
    one = fitted(ensemble(prior=1.0), range(1, 9))
    one.log_weights = torch.log(torch.tensor([0.3, 0.1, 0.6], dtype=torch.float64))
    one.evidence = torch.tensor([5.0, 0.0, 1.0], dtype=torch.float64)  # another has the most evidence
    z, rewards = slate(9)
    p = chances(one, z)[2]
    excess = float((-(rewards - p) * torch.log(p / (1 - p))).sum())
    one.update(z, rewards)
    assert float(one.change_test.state_dict()["excess"][-1]) == pytest.approx(excess)


def test_a_refit_is_a_fresh_ensemble_of_the_latest_slates_alone() -> None:
    old = fitted(ensemble("linear,local,net"), range(1, 11))
    z, rewards = slate(11)
    old.update(z, rewards, torch.tensor([True, False, False, True]))  # marks that a refit ignores
    expected = fitted(ensemble("linear,local,net", generation=3), range(7, 12))
    again = refit_on_recent(old, 5, seed=2, generation=3)
    assert same_state(again.state_dict(), expected.state_dict())
    assert again.plays.slates == 5
    other = refit_on_recent(old, 5, seed=2, generation=4)
    assert not same_state(again.state_dict(), other.state_dict())  # other random starts
    assert refit_on_recent(old, 99, seed=2, generation=3).plays.slates == 11


def test_a_state_brings_an_ensemble_back_and_both_continue_alike() -> None:
    names = "linear,local,additive,net,index"
    one, again = fitted(ensemble(names), range(1, 13)), ensemble(names)
    one.update(*slate(13), torch.tensor([True, False, False, False]))
    again.load_state_dict({name: tensor.clone() for name, tensor in one.state_dict().items()})
    assert same_state(one.state_dict(), again.state_dict())
    features = one.blocks.read(random_round(99, 20, D, K).profiles)
    for _ in range(2):  # at once, and after more slates
        for mine, other in zip(one.learners.values(), again.learners.values(), strict=True):
            assert torch.equal(mine.scores(features, 20)[0], other.scores(features, 20)[0])
        assert (one.mean_reward, one.leader, one.recent_log_likelihood(4)) == (
            again.mean_reward,
            again.leader,
            again.recent_log_likelihood(4),
        )
        assert torch.equal(one.log_weights, again.log_weights)
        for same in (one, again):
            fitted(same, range(14, 20))
    assert same_state(one.state_dict(), again.state_dict())


@pytest.mark.parametrize(
    "change",
    [
        {"settling": -1}, {"learners": "linear,magic"}, {"learners": ""}, {"switching": -0.1}, {"switching": math.nan},
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        EnsembleConfig(**change)
