from collections.abc import Callable

import numpy as np
import pytest
import torch
from small_problems import not_none

from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.synthetic import bump, clusters, quadratic
from neuclust.errors import ConfigError

PROBLEMS: list[Callable[..., SlateEnvironment]] = [clusters, bump, quadratic]


def all_means(problem: SlateEnvironment) -> np.ndarray:
    """μ of the whole catalogue, from rounds that offer all of it."""
    return problem.means(problem.round(1)).numpy()


def explained(features: np.ndarray, target: np.ndarray) -> float:
    """R² of least squares."""
    features = np.column_stack([features, np.ones(len(features))])
    residual = target - features @ np.linalg.lstsq(features, target, rcond=None)[0]
    return float(1 - residual.var() / target.var())


@pytest.mark.parametrize("problem", PROBLEMS)
def test_arms_are_unit_vectors_shared_by_all_seeds(problem: Callable[..., SlateEnvironment]) -> None:
    first, second = problem(seed=1), problem(seed=2)
    assert first.profiles.shape == (5000, 20)
    assert torch.allclose(first.profiles.norm(dim=1), torch.ones(5000, dtype=torch.float64), atol=1e-12)
    assert torch.equal(first.profiles, second.profiles)
    assert len(first.round(1).arm_ids) == 500
    assert first.round(1).query is None


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_seed_deals_the_truth(problem: Callable[..., SlateEnvironment]) -> None:
    first, again, other = (all_means(problem(seed=s, arms_per_round=None)) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert np.abs(first - other).max() > 0.3
    assert first.min() >= 0.05
    assert first.max() <= 0.95 + 1e-12


@pytest.mark.parametrize("problem", PROBLEMS)
def test_sizes_are_parameters(problem: Callable[..., SlateEnvironment]) -> None:
    small = problem(n_arms=60, dim=5, arms_per_round=20, slate_size=3, horizon=7)
    assert small.profiles.shape == (60, 5)
    assert len(small.round(7).arm_ids) == 20
    assert small.best_positions(small.round(1)).shape == (3,)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_uniform_play_is_far_from_the_best(problem: Callable[..., SlateEnvironment]) -> None:
    toy = problem(seed=3)
    best = np.mean([toy.best_expected_reward(toy.round(t)) for t in range(1, 40)])
    random = [float(toy.reward.expected(toy.means(toy.round(t))[:5])) for t in range(1, 40)]
    assert best > 0.6
    assert np.mean(random) < 0.25


def test_clusters_tell_their_labels_and_these_are_real() -> None:
    toy = clusters()
    labels = toy.true_labels
    assert labels is not None
    assert np.bincount(labels.numpy()).tolist() == [250] * 20
    centres = torch.stack([toy.profiles[labels == c].mean(0) for c in range(20)])
    nearest = torch.cdist(toy.profiles, centres).argmin(1)
    assert float((nearest == labels).double().mean()) > 0.95


def test_the_best_slate_of_clusters_lies_inside_one() -> None:
    for seed in range(3):
        toy = clusters(seed=seed)
        lost = []
        for t in range(1, 31):
            r = toy.round(t)
            means, labels = toy.means(r), not_none(toy.true_labels)[r.arm_ids]
            groups = [means[labels == c] for c in range(20) if int((labels == c).sum()) >= 5]
            inside = max(float(toy.reward.expected(torch.topk(group, 5).values)) for group in groups)
            lost.append(toy.best_expected_reward(r) - inside)
        assert min(lost) > -1e-12
        assert np.mean(lost) < 0.02


def test_clusters_have_different_heights_and_shapes() -> None:
    toy = clusters(arms_per_round=None)
    means, labels = all_means(toy), not_none(toy.true_labels).numpy()
    heights = sorted(np.quantile(means[labels == c], 0.99) for c in range(20))
    assert heights[-1] > 0.9
    assert heights[0] < 0.4
    assert heights[-2] < 0.87
    # within a cluster a line explains the logistic shape, and not the others
    fits = [explained(toy.profiles.numpy()[labels == c], means[labels == c]) for c in range(20)]
    assert sum(fit > 0.8 for fit in fits) == 5
    assert sum(fit < 0.5 for fit in fits) == 15


def test_quadratic_is_quadratic() -> None:
    toy = quadratic(arms_per_round=None)
    x, means = toy.profiles.numpy(), all_means(toy)
    squares = np.stack([x[:, i] * x[:, j] for i in range(20) for j in range(i, 20)], axis=1)[:, :-1]
    assert explained(x, means) < 0.05
    assert explained(squares, means) > 0.95


def test_no_linear_score_finds_the_bump() -> None:
    toy = bump(arms_per_round=None)
    x, means = toy.profiles.numpy(), all_means(toy)
    assert explained(x, means) < 0.35
    line = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), means, rcond=None)[0]
    furthest = np.argsort(-(x @ line[:-1]))[:5].copy()
    chosen = float(toy.reward.expected(torch.from_numpy(means[furthest])))
    assert toy.best_expected_reward(toy.round(1)) > 0.9
    assert chosen < 0.5


@pytest.mark.parametrize("problem", PROBLEMS)
def test_refuses_sizes_that_make_no_problem(problem: Callable[..., SlateEnvironment]) -> None:
    for wrong in ({"n_arms": 0}, {"dim": 1}, {"n_arms": 100}, {"slate_size": 501}, {"horizon": 0}):
        with pytest.raises(ConfigError):
            problem(**wrong)
    with pytest.raises(ConfigError, match="clusters"):
        clusters(n_clusters=0)
