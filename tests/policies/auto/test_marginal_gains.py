"""Marginal gains within groups, against enumeration, naive fits and simulated problems."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuclust.environments.structured import Cascade, DiminishingReturns
from neuclust.errors import ConfigError, StateError
from neuclust.policies.auto.marginal_gains import (
    Fit,
    MarginalGains,
    MarginalGainsConfig,
    assemble_groups,
    evidence_gain,
    group_features,
    non_increasing_fit,
)
from neuclust.randomness import stream

Pays = Callable[[Tensor, Tensor], float]  # labels (K,), arm rewards (K,)


def counted(table: Callable[[int], float]) -> Pays:
    return lambda labels, rewards: table(round(float(rewards.sum())))


def threshold(least: int) -> Pays:
    return counted(lambda j: float(j >= least))


def diminishing(size: int, discount: float) -> Pays:
    truth = DiminishingReturns(size, discount)
    return lambda labels, rewards: truth.realised(rewards, labels)


def drawn_slate(rng: np.random.Generator, size: int, style: str, levels: np.ndarray) -> tuple[Tensor, Tensor]:
    """Labels and rewards (K,). "sorted": shown by falling mean, which is the group's; "same": mostly one group."""
    labels = rng.integers(len(levels), size=size)
    if style == "same" and rng.random() < 0.9:
        labels[:] = labels[0]
    means = rng.uniform(0.2, 0.9, size) if style == "free" else levels[labels]
    if style == "sorted":
        order = np.argsort(-means, kind="stable")
        labels, means = labels[order], means[order]
    return torch.from_numpy(labels), torch.from_numpy((rng.random(size) < means).astype(np.float64))


def taught(pays: Pays, size: int, style: str, seed: int, noise: float, slates: int) -> tuple[MarginalGains, list[int]]:
    """What was learned, and after how many slates groups were found to matter (checked every ten)."""
    rng = stream(seed, f"test slate worth {style}")
    gains, levels, found = MarginalGains(MarginalGainsConfig(), size), rng.uniform(0.1, 0.9, 6), []
    for t in range(1, slates + 1):
        labels, rewards = drawn_slate(rng, size, style, levels)
        gains.observe(labels, rewards, pays(labels, rewards) + noise * float(rng.standard_normal()))
        if t % 10 == 0 and gains.steps is not None:
            found.append(t)
    return gains, found


# features and fit


def test_features_count_the_groups_with_at_least_j_rewarded_arms() -> None:
    rng = stream(1, "test slate worth features")
    for _ in range(50):
        labels, rewards = rng.integers(-1, 4, size=6), (rng.random(6) < 0.6).astype(float)
        hits = [rewards[labels == label].sum() for label in np.unique(labels)]
        naive = [sum(h >= j for h in hits) for j in range(1, 7)]
        assert group_features(torch.from_numpy(labels), torch.from_numpy(rewards)).tolist() == naive


def test_features_of_fractional_rewards_are_the_groups_jth_largest_and_keep_the_sum() -> None:
    rewards = torch.tensor([0.2, 0.9, 0.5, 0.4], dtype=torch.float64)
    features = group_features(torch.tensor([7, 7, 3, 7]), rewards)
    assert features.tolist() == pytest.approx([0.9 + 0.5, 0.4, 0.2, 0.0])
    assert float(features.sum()) == pytest.approx(float(rewards.sum()))


def test_the_fit_is_the_best_non_increasing_one() -> None:
    rng = stream(2, "test slate worth fit")
    for _ in range(10):
        features, rewards = rng.random((30, 4)), rng.standard_normal(30) + 1
        gram, moments = features.T @ features, features.T @ rewards
        weights, parameters = non_increasing_fit(gram, moments)
        assert (np.diff(weights) <= 0).all()
        assert weights[-1] >= 0
        assert parameters == len({round(w, 6) for w in weights if w > 1e-9})
        # the same by enumeration: with the right set of positive differences plain least squares is the answer
        sums, best = np.triu(np.ones((4, 4))), (float((rewards**2).sum()), np.zeros(4))
        for used in itertools.chain.from_iterable(itertools.combinations(range(4), r) for r in range(1, 5)):
            columns = (features @ sums)[:, used]
            steps = np.linalg.lstsq(columns, rewards)[0]
            squares = float(((columns @ steps - rewards) ** 2).sum())
            if (steps >= 0).all() and squares < best[0]:
                best = squares, sums[:, used] @ steps
        assert weights == pytest.approx(best[1], abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_features_that_always_come_together_are_fitted_too(seed: int) -> None:
    rng = stream(seed, "test slate worth alike")
    base = rng.integers(0, 2, (1000, 2)).astype(float)
    features = base @ rng.integers(0, 3, (2, 5))
    rewards = features @ np.array([1.0, 0.5, 0.5, 0.2, 0.0])
    weights, parameters = non_increasing_fit(features.T @ features / 1000, features.T @ rewards / 1000)
    assert features @ weights == pytest.approx(rewards, abs=1e-5)
    assert parameters <= 2


# when groups matter


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("discount", [0.0, 0.5])
@pytest.mark.parametrize("style", ["free", "groups", "sorted"])
def test_diminishing_returns_are_found_and_their_steps_learned(size: int, discount: float, style: str) -> None:
    for seed, noise in itertools.product(range(2), (0.0, 0.1)):
        gains, found = taught(diminishing(size, discount), size, style, seed, noise, 300)
        assert found[0] <= (60 if noise == 0 else 250)
        assert found[-1] == 300
        steps = gains.steps
        assert steps is not None
        assert float(steps[0]) == 1
        assert bool((steps.diff() <= 0).all() and (steps >= 0).all())
        assert float(steps[1]) == pytest.approx(discount, abs=1e-6 if noise == 0 else 0.25)


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("style", ["free", "groups", "sorted", "same"])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_where_counts_are_all_the_top_k_is_played(size: int, style: str, noise: float) -> None:
    problems: dict[str, Pays] = {f"threshold {c}": threshold(c) for c in range(1, size + 1)}
    problems |= {"mean": diminishing(size, 1.0), "root": counted(lambda j: (j / size) ** 0.5)}
    for seed, (name, pays) in enumerate(problems.items()):
        _, found = taught(pays, size, style, seed, noise, 200)
        assert not found, name


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("style", ["free", "groups", "sorted", "same"])
def test_a_cascade_is_not_taken_for_groups(size: int, style: str) -> None:
    truth = Cascade(size)
    for seed, noise in itertools.product(range(3), (0.0, 0.1)):
        _, found = taught(lambda labels, rewards: truth.realised(rewards, labels), size, style, seed, noise, 200)
        assert not found


def test_slates_without_two_rewarded_arms_of_a_group_and_slates_of_one_group_tell_nothing() -> None:
    rng = stream(3, "test slate worth blind")
    apart, alike = MarginalGains(MarginalGainsConfig(), 4), MarginalGains(MarginalGainsConfig(), 4)
    for _ in range(300):
        rewards = torch.from_numpy((rng.random(4) < 0.5).astype(float))
        for gains, labels in ((apart, torch.arange(4)), (alike, torch.full((4,), int(rng.integers(3))))):
            gains.observe(labels, rewards, DiminishingReturns(4, 0.0).realised(rewards, labels))
            assert gains.steps is None


def test_a_model_is_beaten_by_fit_and_never_by_the_price_of_the_table() -> None:
    exact, price, better = 1e-12, 0.5 * math.log(100), 50 * math.log(2)
    # as good as a table of six cells, and cheaper: nothing is won
    assert evidence_gain(Fit(9, 2), Fit(20, 1), Fit(9, 6), 100, exact) == pytest.approx(0)
    # twice as good: 50 log 2 nats, whatever the table costs more; a model of more parameters pays for what it has more
    assert evidence_gain(Fit(9, 2), Fit(30, 1), Fit(18, 6), 100, exact) == pytest.approx(better)
    assert evidence_gain(Fit(9, 5), Fit(30, 1), Fit(18, 3), 100, exact) == pytest.approx(better - 2 * price)
    # all arms in one group: the same fit for fewer steps is better
    assert evidence_gain(Fit(9, 3), Fit(9, 1), Fit(20, 6), 100, exact) == pytest.approx(-2 * price)
    # R known to 0.3 only: (9 + 9) / 100 against (27 + 9) / 100
    assert evidence_gain(Fit(9, 1), Fit(27, 1), Fit(27, 1), 100, 0.3) == pytest.approx(better)


def test_a_threshold_met_only_by_slates_of_many_groups_is_still_a_count() -> None:
    """Two successes always in one group, three in three: steps of 1, 0, 0 fit better than any concave count."""
    gains = MarginalGains(MarginalGainsConfig(), 3)
    for _ in range(100):
        gains.observe(torch.tensor([0, 0, 1]), torch.tensor([1.0, 1.0, 0.0]), 0.0)
        gains.observe(torch.tensor([0, 1, 2]), torch.ones(3), 1.0)
        assert gains.steps is None


def test_the_mean_of_fractional_rewards_is_no_matter_of_groups() -> None:
    """The large group pays a little per arm, the small ones much: rewards cut to 0 and 1 would show falling steps."""
    rng = stream(4, "test slate worth fractions")
    gains = MarginalGains(MarginalGainsConfig(), 5)
    for _ in range(300):
        labels = torch.from_numpy(np.where(rng.random(5) < 0.6, 0, rng.integers(1, 9, 5)))
        rewards = torch.where(labels == 0, 0.55, 0.95) * torch.from_numpy(rng.random(5) < 0.7)
        gains.observe(labels, rewards.double(), float(rewards.mean()))
        assert gains.steps is None


def test_nothing_is_concluded_too_early_and_unseen_slates_do_not_count() -> None:
    rng = stream(5, "test slate worth early")
    gains, pays, labels = (
        MarginalGains(MarginalGainsConfig(at_least=30), 4),
        diminishing(4, 0.0),
        torch.tensor([0, 0, 1, 2]),
    )
    for _ in range(29):
        rewards = torch.from_numpy((rng.random(4) < 0.7).astype(float))
        gains.observe(labels, rewards, pays(labels, rewards))
        gains.observe(labels, torch.where(torch.arange(4) == 2, torch.nan, rewards), 0.5)
        gains.observe(labels, rewards, float("nan"))
        gains.observe(labels[:3], rewards[:3], 0.75)
        assert gains.steps is None
    gains.observe(labels, torch.ones(4), pays(labels, torch.ones(4)))
    assert gains.steps is not None


def test_what_was_learned_outlives_slates_that_tell_nothing() -> None:
    """A policy that spreads over groups shows every group once, and both models fit such slates."""
    gains, _ = taught(diminishing(5, 0.5), 5, "free", 6, 0.0, 60)
    rng = stream(7, "test slate worth after")
    for t in range(1, 4001):
        rewards = torch.from_numpy((rng.random(5) < 0.7).astype(float))
        gains.observe(torch.arange(5), rewards, float(rewards.mean()))
        assert t % 500 or gains.steps is not None


def test_steps_never_seen_are_the_last_one_seen() -> None:
    gains, labels, pays = MarginalGains(MarginalGainsConfig(), 4), torch.tensor([0, 0, 1, 1]), diminishing(4, 0.5)
    for rewards in list(itertools.product((0.0, 1.0), repeat=4)) * 4:
        gains.observe(labels, torch.tensor(rewards), pays(labels, torch.tensor(rewards)))
    assert gains.steps is not None
    assert gains.steps.tolist() == pytest.approx([1.0, 0.5, 0.5, 0.5])


def test_a_restored_model_continues_as_the_saved_one() -> None:
    gains, _ = taught(diminishing(3, 0.0), 3, "free", 8, 0.1, 120)
    copy = MarginalGains(MarginalGainsConfig(), 3)
    assert copy.steps is None
    copy.load_state_dict(gains.state_dict())
    assert copy.steps is not None
    for part in (gains, copy):
        part.observe(torch.tensor([0, 0, 1]), torch.ones(3), 2 / 3)
    assert gains.steps is not None
    assert torch.equal(gains.steps, copy.steps)
    with pytest.raises(StateError, match="expected"):
        MarginalGains(MarginalGainsConfig(), 4).load_state_dict(gains.state_dict())


@pytest.mark.parametrize(
    "change", [{"at_least": 1}, {"margin": -1.0}, {"floor": 0.0}, {"flattest": 0.0}, {"flattest": 1.1}]
)
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        MarginalGainsConfig(**change)
    with pytest.raises(ConfigError, match="expected"):
        MarginalGains(MarginalGainsConfig(), 0)


# the slate


def drawn_problem(rng: np.random.Generator, n: int, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Means, labels and ranks (n,); labels are any numbers."""
    names = rng.permutation(1000)[:groups] - 500
    return (
        torch.from_numpy(rng.random(n)),
        torch.from_numpy(names[rng.integers(groups, size=n)]),
        torch.from_numpy(rng.permutation(n)),
    )


def expected_value(means: Tensor, labels: Tensor, steps: Tensor) -> float:
    """E Σ_groups (steps[0] + … + steps[j_g − 1]) over all 2^k outcomes."""
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=len(means)):
        hit = torch.tensor(outcome, dtype=torch.bool)
        chance = float(torch.where(hit, means, 1 - means).prod())
        for group in set(labels.tolist()):
            total += chance * float(steps[: int((hit & (labels == group)).sum())].sum())
    return total


@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
def test_the_slate_is_the_best_of_diminishing_returns(discount: float) -> None:
    rng = stream(9, "test slate worth best")
    for _ in range(100):
        size = int(rng.integers(1, 7))
        means, labels, rank = drawn_problem(rng, int(rng.integers(size, 40)), int(rng.integers(1, 9)))
        steps = discount ** torch.arange(size, dtype=torch.float64)
        best = DiminishingReturns(size, discount).best(means, labels, rank)
        assert assemble_groups(means, labels, steps, rank, size).tolist() == best.tolist()


def test_no_slate_has_a_larger_expected_value_for_any_falling_steps() -> None:
    rng = stream(10, "test slate worth brute")
    for _ in range(12):
        means, labels, rank = drawn_problem(rng, 7, 3)
        steps = torch.from_numpy(np.sort(rng.random(3))[::-1].copy())
        slate = assemble_groups(means, labels, steps, rank, 3)
        best = max(expected_value(means[list(s)], labels[list(s)], steps) for s in itertools.combinations(range(7), 3))
        assert len(set(slate.tolist())) == 3
        assert expected_value(means[slate], labels[slate], steps) == pytest.approx(best, abs=1e-12)


def test_without_groups_the_slate_is_the_top_k_with_ties_by_rank() -> None:
    rng = stream(11, "test slate worth top")
    for _ in range(50):
        _, labels, rank = drawn_problem(rng, 30, 4)
        means = torch.from_numpy(rng.integers(0, 6, size=30) / 5)
        top = np.lexsort((rank.numpy(), -means.numpy()))[:6].tolist()
        falling = torch.tensor([1.0, 0.4, 0.1, 0.0, 0.0, 0.0])
        assert assemble_groups(means, torch.from_numpy(rng.permutation(30)), falling, rank, 6).tolist() == top
        assert assemble_groups(means, labels, torch.ones(6), rank, 6).tolist() == top


def test_ties_between_groups_go_by_rank_and_means_are_clipped() -> None:
    means, labels = torch.tensor([0.5, 0.5 + 1e-13, 1.4, 1.2, -0.1], dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0])
    coverage = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
    assert assemble_groups(means, labels, coverage, torch.tensor([0, 1, 4, 2, 3]), 5).tolist() == [3, 2, 0, 1, 4]
    assert assemble_groups(means, labels, coverage, torch.tensor([1, 0, 2, 4, 3]), 5).tolist() == [2, 3, 1, 0, 4]


@pytest.mark.parametrize("groups", [20, 100_000])
def test_a_hundred_thousand_arms_take_a_moment(groups: int) -> None:
    rng = stream(12, "test slate worth many")
    means, rank = torch.from_numpy(rng.random(100_000)), torch.arange(100_000)
    labels = torch.from_numpy(rng.integers(groups, size=100_000))
    steps = 0.5 ** torch.arange(10, dtype=torch.float64)
    begun = time.process_time()
    slate = assemble_groups(means, labels, steps, rank, 10)
    assert time.process_time() - begun < 1.0
    if groups == 20:
        assert slate.tolist() == DiminishingReturns(10, 0.5).best(means, labels, rank).tolist()
