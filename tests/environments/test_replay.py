"""Recorded rounds are dealt and paid as they happened, in an order of the seed's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_problems import not_none

from neuclust.core import Environment, Slate
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.environments.profiles import replay_environment
from neuclust.environments.rewards import mean
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.registry import build_policy

N, R, D, K = 30, 25, 4, 3


def recorded(seed: int = 0) -> ProfileDataset:
    generator = np.random.default_rng(seed)
    arms = [np.sort(generator.choice(N, generator.integers(6, 15), replace=False)) for _ in range(R)]
    starts = np.cumsum([0, *map(len, arms)])
    return ProfileDataset(
        name="toy",
        arms=generator.uniform(1, 5, (N, D)).astype(np.float32),
        rounds=(generator.random((R, D)) < 0.5).astype(np.float32),
        arm_ids=np.arange(N) + 50,
        round_ids=np.arange(R),
        features=tuple("abcd"),
        counts=np.ones((N, D), dtype=np.float32),
        offers=Offers(starts, np.concatenate(arms), generator.integers(0, 2, starts[-1]).astype(np.float32)),
    )


def standardised() -> ProfileDataset:
    """The same record with features of either sign, in profiles and queries."""
    data, generator = recorded(), np.random.default_rng(1)
    arms, rounds = (generator.standard_normal((rows, D)).astype(np.float32) for rows in (N, R))
    return replace(data, arms=arms, rounds=rounds)


@pytest.mark.parametrize(
    ("policy", "preset", "clusters"),
    [
        ("auto", "default", None),
        ("neuclust", "default", 3),
        ("neuclust", "paper-lift", 3),
        ("neuclust-online", "default", 3),
        ("cn-ucb", "default", None),
        ("linucb", "default", None),
        ("neural-linear", "default", None),
        ("cc-mab", "default", None),
    ],
)
def test_policies_play_features_of_either_sign(policy: str, preset: str, clusters: int | None, tmp_path: Path) -> None:
    standardised().save(tmp_path / "signed.npz")
    toy = replay_environment(load_dataset(tmp_path / "signed.npz"), slate_size=K)
    player = build_policy(policy, environment=toy, preset=preset, clusters=clusters)
    for t in range(1, 6):
        r = toy.round(t)
        chosen = player.select(r)
        player.update(r, chosen, toy.play(r, chosen))
        assert bool(torch.isfinite(chosen.means).all())


def slate(*positions: int) -> Slate:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.tensor(positions), zeros, zeros)


def test_is_an_environment_of_the_datasets_size() -> None:
    toy = replay_environment(recorded(), slate_size=K)
    assert isinstance(toy, Environment)
    assert (toy.name, toy.horizon, toy.dim, toy.n_arms, toy.slate_size) == ("toy", R, D, N, K)
    assert toy.counts is not None


def test_every_recorded_round_is_dealt_once_as_it_was() -> None:
    data = recorded()
    assert data.offers is not None
    toy = replay_environment(data, slate_size=K)
    wanted = {
        (tuple((arms + 50).tolist()), tuple(paid.tolist()), tuple(query.tolist()))
        for (arms, paid), query in zip([data.offers.of(row) for row in range(R)], data.rounds, strict=True)
    }
    dealt = set()
    for t in range(1, R + 1):
        r = toy.round(t)
        assert torch.equal(r.profiles, torch.tensor(data.arms[r.arm_ids.numpy() - 50], dtype=torch.float64))
        dealt.add((tuple(r.arm_ids.tolist()), tuple(toy.means(r).tolist()), tuple(not_none(r.query).tolist())))
    assert dealt == wanted


def test_what_happened_is_paid_whatever_the_coins() -> None:
    for seed in range(5):
        toy = replay_environment(recorded(), slate_size=K, seed=seed)
        for t in range(1, R + 1):
            r = toy.round(t)
            chosen = slate(2, 0, 5)
            feedback = toy.play(r, chosen)
            assert torch.equal(feedback.arm_rewards, toy.means(r)[chosen.positions])
            score = toy.score(r, chosen, feedback)
            hindsight = float(toy.means(r).sort(descending=True).values[:K].sum() >= 3)
            assert score.best_expected == toy.best_expected_reward(r) == hindsight
            assert score.expected == score.realised_reward == toy.expected_reward(r, chosen)
            assert score.expected_regret == score.clipped_regret == score.realised_regret == hindsight - score.expected
            assert score.clipped_floor == 0


def order(toy: SlateEnvironment) -> list[tuple[int, ...]]:
    return [tuple(toy.round(t).arm_ids.tolist()) for t in range(1, toy.horizon + 1)]


def test_the_seed_deals_the_order_and_nothing_else() -> None:
    first, again, other = (order(replay_environment(recorded(), slate_size=K, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)


def test_a_shorter_horizon_plays_the_first_rounds() -> None:
    short, long = (replay_environment(recorded(), slate_size=K, horizon=t, seed=4) for t in (7, R))
    assert order(short) == order(long)[:7]


def test_averages_are_over_the_rounds_that_offered_an_arm() -> None:
    data = recorded()
    assert data.offers is not None
    toy = replay_environment(data, slate_size=K)
    for arm in range(N):
        paid = data.offers.rewards[data.offers.arms == arm]
        assert float(toy.average_means()[arm]) == pytest.approx(float(paid.mean()) if len(paid) else 0.0)


def test_the_slate_reward_can_be_chosen() -> None:
    toy = replay_environment(recorded(), slate_size=K, reward=mean(K))
    r = toy.round(1)
    assert toy.expected_reward(r, slate(0, 1, 2)) == pytest.approx(float(toy.means(r)[:3].mean()))


def test_refuses_slates_larger_than_the_smallest_round() -> None:
    data = recorded()
    assert data.offers is not None
    smallest = int(data.offers.sizes.min())
    assert replay_environment(data, slate_size=smallest).slate_size == smallest
    with pytest.raises(ConfigError, match=f"1 to the {smallest} arms of the smallest round.*more arms"):
        replay_environment(data, slate_size=smallest + 1)


def test_refuses_a_dataset_without_a_record_and_too_long_a_horizon() -> None:
    data = recorded()
    plain = ProfileDataset("plain", data.arms, data.rounds, data.arm_ids, data.round_ids, data.features)
    with pytest.raises(DataError, match="recorded offers"):
        replay_environment(plain)
    with pytest.raises(ConfigError, match=f"1 to the {R} prepared rounds"):
        replay_environment(data, slate_size=K, horizon=R + 1)
