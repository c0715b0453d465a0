import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_problems import built_in, not_none

from neuclust.core import Slate
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.twin import movielens_twin
from neuclust.environments.catalogue import build_environment
from neuclust.environments.dealing import Simulated
from neuclust.environments.movielens import (
    LARGEST_MEAN,
    SMALLEST_SPREAD,
    HiddenTaste,
    dealt_movies,
    ml_ideal,
    ml_quadratic,
    ml_volatile,
    unit_contexts,
    varied_users,
)
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError

PROBLEMS: dict[str, Callable[..., SlateEnvironment]] = {
    "ml-volatile": ml_volatile,
    "ml-ideal": ml_ideal,
    "ml-quadratic": ml_quadratic,
}

SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def twin() -> ProfileDataset:
    return movielens_twin(n_users=2000, n_rounds=300)


def hidden_taste(problem: SlateEnvironment) -> HiddenTaste:
    assert isinstance(problem.rounds, Simulated)
    assert isinstance(problem.rounds.means_of, HiddenTaste)
    return problem.rounds.means_of


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_means_are_chances_and_no_slate_beats_the_best(name: str, twin: ProfileDataset) -> None:
    problem = PROBLEMS[name](twin, seed=3, horizon=30, arms_per_round=60)
    generator = np.random.default_rng(0)
    for t in (1, 15, 30):
        r = problem.round(t)
        means = problem.means(r)
        assert len(r.arm_ids) == 60
        assert 0.0 <= float(means.min()) < float(means.max()) <= 1.0
        for _ in range(50):
            drawn = torch.from_numpy(generator.permutation(60)[:5])
            assert problem.expected_reward(r, Slate(drawn, drawn, drawn)) <= problem.best_expected_reward(r) + 1e-12


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_the_seed_deals_movies_offers_and_truth(name: str, twin: ProfileDataset) -> None:
    one, again, other = (PROBLEMS[name](twin, seed=s, horizon=9) for s in (1, 1, 2))
    rounds = [problem.round(7) for problem in (one, again, other)]
    assert torch.equal(not_none(rounds[0].query), not_none(rounds[1].query))
    assert torch.equal(one.means(rounds[0]), again.means(rounds[1]))
    assert not torch.equal(rounds[0].arm_ids, rounds[2].arm_ids)
    assert any(not torch.equal(not_none(one.round(t).query), not_none(other.round(t).query)) for t in range(1, 10))


def test_users_who_rate_everything_alike_are_left_out(twin: ProfileDataset) -> None:
    users, present, mean, spread = varied_users(twin)
    assert 0 < len(users) < len(twin.arms)
    assert float(spread.min()) >= SMALLEST_SPREAD
    assert float(mean.max()) <= LARGEST_MEAN
    left = np.setdiff1d(np.arange(len(twin.arms)), users)
    for row in left[:50]:
        rated = twin.arms[row][twin.arms[row] != 0].astype(float)
        assert rated.std() < SMALLEST_SPREAD or rated.mean() > LARGEST_MEAN
    assert np.array_equal(present, twin.arms[users] != 0)


def test_volatile_profiles_are_centred_on_three(twin: ProfileDataset) -> None:
    profiles = ml_volatile(twin).profiles
    rated = profiles != 0
    means = (profiles.sum(1) / rated.sum(1)).numpy()
    assert np.mean(np.abs(means - 3.0) < 1e-6) > 0.99  # the others have an entry that would fall below 0
    assert float(profiles.min()) >= 0.0


def test_the_ideal_point_is_the_best_place_to_be(twin: ProfileDataset) -> None:
    problem = ml_ideal(twin, seed=4, horizon=40, arms_per_round=None)
    r = problem.round(1)
    truth = hidden_taste(problem)
    asked = torch.nonzero(not_none(r.query)).flatten()
    away = (r.profiles[:, asked] - truth.hidden[asked]).square().mean(1)
    assert torch.equal(torch.argsort(away)[:5].sort().values, problem.best_positions(r).sort().values)
    assert float(problem.means(r).max()) <= 0.95


def test_quadratic_contexts_have_length_one_and_both_ends_pay(twin: ProfileDataset) -> None:
    problem = ml_quadratic(twin, seed=4, horizon=40)
    for t in range(1, 41):
        r = problem.round(t)
        lengths = r.contexts.norm(dim=1)
        assert bool(((lengths - 1).abs() < 1e-9).logical_or(lengths == 0).all())
        assert int(not_none(r.query).sum()) >= 2
    truth = hidden_taste(problem)
    mirrored = replace(truth, profiles=-truth.profiles)
    assert torch.allclose(mirrored(None, r.query), truth(None, r.query))
    assert float(problem.means(r).max()) > 0.8


def test_unit_contexts_of_nothing_are_nothing() -> None:
    profiles = torch.tensor([[3.0, 4.0, 1.0], [0.0, 0.0, 2.0]], dtype=torch.float64)
    shown = unit_contexts(profiles, torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
    assert torch.allclose(shown, torch.tensor([[0.6, 0.8, 0.2], [0.0, 0.0, 0.0]], dtype=torch.float64))


def test_refusals(twin: ProfileDataset) -> None:
    flat = ProfileDataset(
        "flat", np.full((4, 3), 5.0, "f4"), np.ones((2, 3), "f4"), np.arange(4), np.arange(2), tuple("abc")
    )
    with pytest.raises(DataError, match="got none"):
        ml_ideal(flat)
    with pytest.raises(DataError, match="at least 9"):
        dealt_movies(flat, 5, 0, fewest_genres=9)
    with pytest.raises(ConfigError, match="no dataset"):
        build_environment("bump", slate_size=5, horizon=5, seed=0, dataset=twin)


def test_real_users_play_the_same_problems() -> None:
    file = SHARED / "movielens-25m.npz"
    if not file.is_file():
        pytest.skip(f"no {file}")
    real = load_dataset(file)
    problem = built_in("ml-volatile", slate_size=5, horizon=500, seed=0, dataset=real)
    assert (problem.name, problem.n_arms) == ("ml-volatile", 9516)
    paper = build_environment("ml-paper", slate_size=5, horizon=20, seed=0, dataset=real)
    assert paper.best_expected_reward(paper.round(1)) == pytest.approx(0.832039, abs=1e-6)
