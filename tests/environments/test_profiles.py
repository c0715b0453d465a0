import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from small_problems import not_none

from neuclust.core import Slate
from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers
from neuclust.environments.profiles import (
    SparseTanhAffinity,
    TanhAffinity,
    profile_environment,
    replay_environment,
    start_profiles,
    tanh_affinity,
)
from neuclust.environments.rewards import mean
from neuclust.errors import ConfigError, DataError

entries = st.one_of(st.just(0.0), st.floats(0.5, 5.0, width=32))
profiles = arrays.arrays(np.float64, (6, 4), elements=entries)
queries = arrays.arrays(np.float64, 4, elements=st.one_of(st.just(0.0), st.floats(0.25, 2.0, width=32)))


def dataset(n: int = 40, n_rounds: int = 300, d: int = 6, seed: int = 0, **changes: Any) -> ProfileDataset:
    generator = np.random.default_rng(seed)
    arms = generator.uniform(0.5, 5.0, (n, d)) * (generator.random((n, d)) < 0.8)
    settings: dict[str, Any] = {
        "name": "toy",
        "arms": arms.astype(np.float32),
        "rounds": (generator.random((n_rounds, d)) < 0.4).astype(np.float32),
        "arm_ids": np.arange(n),
        "round_ids": np.arange(n_rounds),
        "features": tuple("abcdefgh"[:d]),
    }
    return ProfileDataset(**{**settings, **changes})


def naive_mean(profile: np.ndarray, query: np.ndarray) -> float:
    masked = [float(x * a) for x, a in zip(profile, query, strict=True) if x * a != 0]
    return math.tanh(sum(masked) / len(masked) / 4) if masked else 0.0


@settings(deadline=None)
@pytest.mark.parametrize("form", [TanhAffinity, SparseTanhAffinity])
@given(arms=profiles, query=queries)
def test_mean_reward_is_the_papers(
    form: type[TanhAffinity] | type[SparseTanhAffinity], arms: np.ndarray, query: np.ndarray
) -> None:
    truth = form.of(torch.from_numpy(arms))
    means = truth(None, torch.from_numpy(query))
    assert means.tolist() == pytest.approx([naive_mean(profile, query) for profile in arms], abs=1e-12)
    some = torch.tensor([4, 1, 1])
    assert torch.equal(truth(some, torch.from_numpy(query)), means[some])


def test_without_a_query_every_feature_counts() -> None:
    arms = torch.tensor([[4.0, 0.0], [2.0, 4.0]], dtype=torch.float64)
    for form in (TanhAffinity, SparseTanhAffinity):
        assert form.of(arms)(None, None).tolist() == pytest.approx([math.tanh(1.0), math.tanh(0.75)])


def test_sparse_profiles_get_the_sparse_form() -> None:
    assert isinstance(tanh_affinity(torch.eye(10)), SparseTanhAffinity)
    assert isinstance(tanh_affinity(torch.ones(10, 3)), TanhAffinity)


def test_the_logistic_form_is_the_tanh_form() -> None:
    s = torch.linspace(0.5, 5, 7, dtype=torch.float64)
    means = TanhAffinity.of(s[:, None])(None, None)
    assert torch.allclose(means, 2 / (1 + torch.exp(-s / 2)) - 1, atol=1e-15)
    assert float(means[-1]) == pytest.approx(0.84828, abs=5e-6)


def test_changing_what_is_shown_leaves_the_truth() -> None:
    toy = profile_environment(dataset(), slate_size=3)
    before = toy.means(toy.round(1)).clone()
    toy.round(1).profiles.mul_(0.0)
    toy.round(2)
    assert torch.equal(toy.means(toy.round(1)), before)


def test_builds_rounds_from_the_dataset() -> None:
    data = dataset()
    toy = profile_environment(data, slate_size=3)
    assert (toy.horizon, toy.name, toy.dim, toy.n_arms, toy.counts) == (300, "toy", 6, 40, None)
    assert toy.reward.name == "threshold:0.8"
    assert toy.profiles.dtype == torch.float64
    r = toy.round(5)
    assert np.array_equal(not_none(r.query).numpy(), data.rounds[4])
    assert np.array_equal(r.profiles.numpy(), data.arms)
    best = np.argsort([-naive_mean(x.astype(float), data.rounds[4]) for x in data.arms], kind="stable")[:3]
    assert toy.best_positions(r).tolist() == best.tolist()


def test_passes_on_the_counts_of_the_dataset() -> None:
    counts = np.full((40, 6), 3.0, dtype=np.float32)
    assert torch.equal(
        not_none(profile_environment(dataset(counts=counts)).counts), torch.full((40, 6), 3.0, dtype=torch.float64)
    )


@pytest.mark.parametrize("name", ["arms", "rounds"])
def test_the_simulated_reward_refuses_negative_features_and_says_what_to_do(name: str) -> None:
    data = dataset()
    getattr(data, name)[3, 2] = -1.0
    with pytest.raises(DataError, match=rf"negative entry {name}\[3, 2\] = -1; give the dataset recorded rewards"):
        profile_environment(data)


def with_offers() -> ProfileDataset:
    """Standardised features, and every third arm on offer in every round: the first half of them paid."""
    data = dataset(n=40, n_rounds=30)
    arms = np.tile(np.arange(0, 40, 3), 30)
    paid = np.tile(np.arange(14) < 7, 30).astype(np.float32)
    standardised = ((data.arms - data.arms.mean(0)) / data.arms.std(0)).astype(np.float32)
    return replace(data, arms=standardised, offers=Offers(np.arange(0, 14 * 30 + 1, 14), arms, paid))


def test_a_dataset_with_offers_is_played_back_whatever_its_features() -> None:
    data = with_offers()
    assert (data.arms < 0).any()
    toy = profile_environment(data, slate_size=3, horizon=20, seed=2, reward=mean(3))
    replay = replay_environment(data, slate_size=3, horizon=20, seed=2, reward=mean(3))
    for t in (1, 20):
        dealt = toy.round(t)
        assert dealt.arm_ids.tolist() == list(range(0, 40, 3))
        assert torch.equal(not_none(dealt.query), not_none(replay.round(t).query))
        assert toy.means(dealt).tolist() == [1.0] * 7 + [0.0] * 7


@pytest.mark.parametrize("option", ["arms_per_round", "start_ratings"])
def test_options_of_the_simulation_are_refused_with_offers(option: str) -> None:
    refused: dict[str, Any] = {option: 5}
    with pytest.raises(ConfigError, match=rf"{option}: expected none with toy, which plays back .* got 5; drop it"):
        profile_environment(with_offers(), **refused)


def test_start_ratings_hide_the_truth_behind_half_stars() -> None:
    data = dataset(n=300)
    known, cold = profile_environment(data, horizon=100), profile_environment(data, horizon=100, start_ratings=4)
    assert torch.equal(known.means(known.round(3)), cold.means(cold.round(3)))
    shown, counts = cold.round(3).profiles, not_none(cold.counts)
    assert not torch.equal(shown, known.profiles)
    assert torch.equal(shown.eq(0), counts.eq(0))
    assert torch.equal(cold.round(1).profiles, cold.round(2).profiles)
    sums = 2 * shown * counts  # half stars
    assert torch.allclose(sums, sums.round(), atol=1e-4)
    assert float(shown[counts > 0].min()) >= 0.5
    assert float(shown.max()) <= 5.0
    assert bool((counts[torch.from_numpy(data.arms == 0)] == 0).all())  # no rating where the truth has none
    assert float(counts.max()) <= 4
    assert bool((counts.sum(1) >= 4).all())


def test_start_ratings_centre_on_the_truth() -> None:
    """Averaged over many arms the shown profile is the arm's mean over each movie's genres: a level test."""
    data = dataset(
        n=4000, d=1, arms=np.full((4000, 1), 3.0, dtype=np.float32), rounds=np.ones((300, 1), dtype=np.float32)
    )
    shown, counts = start_profiles(data, 3, horizon=100, seed=0)
    assert (counts == 3).all()
    assert float(shown.mean()) == pytest.approx(3.0, abs=4 * 0.9 / math.sqrt(12_000))
    # 0.9² of noise and 0.5²/12 of rounding, over 3 ratings; a little is lost to the ends of the scale
    assert float(shown.std()) == pytest.approx(math.sqrt((0.81 + 0.25 / 12) / 3), rel=0.06)


def test_start_ratings_come_from_the_rounds_after_the_horizon() -> None:
    rounds = np.zeros((300, 6), dtype=np.float32)
    rounds[:150, 0], rounds[150:, 1] = 1.0, 1.0
    data = dataset(rounds=rounds, arms=np.full((40, 6), 3.0, dtype=np.float32))
    _, unplayed = start_profiles(data, 5, horizon=150, seed=0)
    assert unplayed[:, 0].sum() == 0
    assert (unplayed[:, 1] == 5).all()
    _, too_few_left = start_profiles(data, 5, horizon=250, seed=0)
    assert too_few_left[:, 0].sum() > 0


def test_start_ratings_draw_again_until_a_movie_fits() -> None:
    rounds = np.zeros((200, 6), dtype=np.float32)
    rounds[:, 0] = 1.0
    rounds[7] = [0, 1, 0, 0, 0, 0]
    arms = np.zeros((3, 6), dtype=np.float32)
    arms[0, 0], arms[1, 1], arms[2, 5] = 4.0, 2.0, 3.0  # the last one shares nothing with any movie
    _, counts = start_profiles(dataset(n=3, n_rounds=200, arms=arms, rounds=rounds), 6, horizon=200, seed=0)
    assert counts.tolist() == [[6, 0, 0, 0, 0, 0], [0, 6, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]


def test_start_ratings_follow_the_seed() -> None:
    data = dataset()
    first, again, other = (start_profiles(data, 3, 100, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n", [0, -2])
def test_refuses_no_start_ratings(n: int) -> None:
    with pytest.raises(ConfigError, match="at least 1 rating"):
        profile_environment(dataset(), start_ratings=n)


def test_a_round_can_be_played_on_a_part_of_the_arms() -> None:
    toy = profile_environment(dataset(), slate_size=3, arms_per_round=10, seed=4)
    r = toy.round(2)
    zeros = torch.zeros(3)
    score = toy.score(r, played := Slate(toy.best_positions(r), zeros, zeros), toy.play(r, played))
    assert len(r.arm_ids) == 10
    assert score.expected_regret == pytest.approx(0.0, abs=1e-15)
