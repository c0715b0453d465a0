"""The real MovieLens problem against the numbers known of it."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import sklearn
import torch
from sklearn.cluster import KMeans

from neuclust.core import Slate
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment

T, K = 1000, 5
BEST = 0.832039
FLOOR = 139.7499
ALL_FIVE = [751, 4731, 6213, 9844, 9983]
SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def dataset() -> ProfileDataset:
    path = SHARED / "movielens-25m.npz"
    if not path.is_file():
        pytest.skip(f"the prepared MovieLens problem is not at {path}")
    return load_dataset(path)


@pytest.fixture(scope="module")
def environment(dataset: ProfileDataset) -> SlateEnvironment:
    return profile_environment(dataset, slate_size=K, horizon=T)


@pytest.fixture(scope="module")
def means(environment: SlateEnvironment) -> torch.Tensor:
    """μ of every arm in every round, (T, N)."""
    return torch.stack([environment.means(environment.round(t)) for t in range(1, T + 1)])


def slate(positions: torch.Tensor) -> Slate:
    return Slate(positions, torch.zeros(K, dtype=torch.float64), torch.zeros(K, dtype=torch.float64))


def random_slate(t: int, n: int) -> Slate:
    return slate(torch.from_numpy(np.random.default_rng([11, t]).choice(n, K, replace=False)))


def test_sizes_and_ids(dataset: ProfileDataset) -> None:
    assert dataset.arms.shape == (10168, 20)
    assert dataset.arm_ids[:5].tolist() == [3, 4, 19, 75, 84]
    assert dataset.round_ids[:4].tolist() == [29, 32, 50, 111]


def test_profiles(dataset: ProfileDataset) -> None:
    assert float(np.linalg.norm(dataset.arms, axis=1).mean()) == pytest.approx(15.322, abs=5e-4)
    missing = dict(zip(dataset.features, (dataset.arms == 0).mean(0), strict=True))
    assert missing["Film-Noir"] == pytest.approx(0.1971, abs=5e-5)
    assert missing["Documentary"] == pytest.approx(0.2259, abs=5e-5)
    assert missing["(no genres listed)"] == pytest.approx(0.5232, abs=5e-5)
    five = ((dataset.arms == 5) | (dataset.arms == 0)).all(1)
    assert np.flatnonzero(five).tolist() == ALL_FIVE


def test_movies(dataset: ProfileDataset) -> None:
    sizes = np.bincount(dataset.rounds[:T].sum(1).astype(int))
    assert sizes.tolist() == [0, 132, 218, 324, 216, 86, 20, 4]
    assert len(np.unique(dataset.rounds[:T], axis=0)) == 362
    assert int(dataset.rounds.sum(1).max()) == 10


def test_mean_reward(means: torch.Tensor) -> None:
    assert float(means.mean()) == pytest.approx(0.69296, abs=5e-6)
    assert float(means.max()) == pytest.approx(math.tanh(5 / 4), abs=1e-12)


def test_the_optimum_never_moves(environment: SlateEnvironment, means: torch.Tensor) -> None:
    best = [environment.best_expected_reward(environment.round(t)) for t in range(1, T + 1)]
    assert best == pytest.approx([BEST] * T, abs=5e-7)
    tied = (means >= math.tanh(5 / 4) - 1e-12).sum(1)
    assert (int(tied.min()), int(tied.median()), int(tied.max())) == (5, 7, 343)


def test_the_clipped_regret_has_a_floor(environment: SlateEnvironment) -> None:
    floor = 0.0
    for t in range(1, T + 1):
        r = environment.round(t)
        best = slate(environment.best_positions(r))
        score = environment.score(r, best, environment.play(r, best))
        assert score.expected_clipped_regret == pytest.approx(score.clipped_floor, abs=1e-14)
        floor += score.clipped_floor
    assert floor == pytest.approx(FLOOR, abs=5e-5)


def test_a_random_slate(environment: SlateEnvironment, means: torch.Tensor) -> None:
    draws = torch.from_numpy(np.random.default_rng(0).integers(means.shape[1], size=(T, 100, K)))
    expected = environment.reward.expected(torch.gather(means[:, None].expand(-1, 100, -1), 2, draws))
    assert float(expected.mean()) == pytest.approx(0.513, abs=0.003)
    assert T * (BEST - float(expected.mean())) == pytest.approx(319, abs=3)


def test_one_fixed_slate_is_almost_optimal(environment: SlateEnvironment, means: torch.Tensor) -> None:
    static = torch.topk(means.sum(0), K).indices
    regret = (BEST - environment.reward.expected(means[:, static])).sum()
    assert float(regret) == pytest.approx(0.015, abs=1e-3)
    # three of the five who gave nothing but fives; the two others never rated some genres
    assert len(set(static.tolist()) & set(ALL_FIVE)) == 3


def test_an_all_ones_linear_rule_is_optimal(environment: SlateEnvironment) -> None:
    regret = 0.0
    for t in range(1, T + 1):
        r = environment.round(t)
        regret += environment.best_expected_reward(r) - environment.expected_reward(
            r, slate(torch.topk(r.contexts.sum(1), K).indices)
        )
    assert regret == pytest.approx(0.0, abs=5e-4)


def test_expected_clipped_regret_is_best_times_failure(environment: SlateEnvironment) -> None:
    """E max(0, R* − R) = u*(1 − u) = floor + u*·regret for every slate, exactly."""
    for t in range(1, T + 1, 3):
        r = environment.round(t)
        played = random_slate(t, environment.n_arms)
        score = environment.score(r, played, environment.play(r, played))
        assert score.expected_clipped_regret == pytest.approx(score.best_expected * (1 - score.expected), abs=1e-13)
        weighted = score.clipped_floor + score.best_expected * score.expected_regret
        assert score.expected_clipped_regret == pytest.approx(weighted, abs=1e-13)


def test_clipped_regret_averages_to_its_expectation(dataset: ProfileDataset) -> None:
    """The same identity by Monte Carlo: 8 seeds of coins and rivals on random slates of 250 rounds."""
    clipped, expected, variance = 0.0, 0.0, 0.0
    for seed in range(8):
        environment = profile_environment(dataset, slate_size=K, horizon=T, seed=seed)
        for t in range(1, T + 1, 4):
            r = environment.round(t)
            played = random_slate(t, environment.n_arms)
            score = environment.score(r, played, environment.play(r, played))
            clipped += score.clipped_regret
            expected += score.expected_clipped_regret
            variance += score.expected_clipped_regret * (1 - score.expected_clipped_regret)
    assert abs(clipped - expected) < 4 * math.sqrt(variance)
    assert expected / 2000 == pytest.approx(0.405, abs=0.01)  # random play: 405 to 407 in 1000 rounds


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="clusters were recorded with scikit-learn 1.9")
@pytest.mark.parametrize(("count", "smallest", "largest", "lost"), [(22, 141, 1218, 0.864), (15, None, None, 0.015)])
def test_restricting_the_slate_to_one_cluster_costs_little(
    dataset: ProfileDataset,
    environment: SlateEnvironment,
    means: torch.Tensor,
    count: int,
    smallest: int | None,
    largest: int | None,
    lost: float,
) -> None:
    labels = torch.from_numpy(KMeans(count, n_init=10, random_state=0).fit_predict(dataset.arms).astype(np.int64))
    sizes = torch.bincount(labels)
    if smallest is not None:
        assert (int(sizes.min()), int(sizes.max())) == (smallest, largest)
    inside = torch.stack(
        [environment.reward.expected(torch.topk(means[:, labels == c], K).values) for c in range(count)]
    )
    assert float((BEST - inside.max(0).values).sum()) == pytest.approx(lost, abs=1e-3)
