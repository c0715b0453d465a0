"""The logistic learner: exact while observations are few, level with an exact fit for ever after."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from small_problems import random_round
from torch import Tensor

from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks
from neuclust.policies.auto.learners.block_logistic import SPARE, BlockLogistic, BlockLogisticConfig, grown
from neuclust.policies.auto.plays import Plays
from neuclust.randomness import stream

D, K = 3, 4
UNTUNED = 10_000
found = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, D, K))
assert found is not None
BLOCKS: FeatureBlocks = found


def learner(exact: int, tune_every: int = UNTUNED) -> BlockLogistic:
    return BlockLogistic(BlockLogisticConfig(exact=exact, tune_every=tune_every), BLOCKS, "squares")


def taught(one: BlockLogistic, slates: int, exposure: float = 1.0) -> Plays:
    plays = Plays(BLOCKS, K)
    for t in range(1, slates + 1):
        z = random_round(t, K, D, K, seed=5).profiles
        odds = 6 * z[:, 0] - 4
        chances = exposure * torch.sigmoid(odds)
        rewards = (torch.from_numpy(stream(1, "test rewards", t).random(K)) < chances).double()
        one.learn(plays.add(z, BLOCKS.read(z), rewards, torch.full((K,), exposure).double()), plays)
    return plays


def mode(one: BlockLogistic, plays: Plays) -> Tensor:
    """The maximum of the posterior by a general optimiser."""
    held = plays.held()
    x, sums, counts = held.features.columns(one.prior.size).numpy(), held.sums.numpy(), held.counts.numpy()
    precision = 1 / one.prior.by_column.numpy()

    def energy(m: np.ndarray) -> float:
        f = x @ m
        return float(0.5 * precision @ m**2 - (sums * f - counts * np.logaddexp(0, f)).sum())

    return torch.from_numpy(minimize(energy, np.zeros(len(precision)), method="BFGS", options={"gtol": 1e-8}).x)


@pytest.mark.parametrize("exposure", [1.0, 0.5])
def test_few_observations_are_fitted_exactly(exposure: float) -> None:
    one = learner(exact=1000)
    plays = taught(one, 42, exposure)
    assert grown(42)  # the last slate was followed by a fit
    torch.testing.assert_close(one.belief.mean, mode(one, plays), atol=2e-3, rtol=0)
    held = plays.held()
    x = held.features.columns(one.prior.size)
    chances = torch.sigmoid(x @ one.belief.mean)
    precision = torch.diag(1 / one.prior.by_column) + (x.T * held.counts * chances * (1 - chances)) @ x
    torch.testing.assert_close(
        one.belief.solved.root.T @ one.belief.solved.root, torch.linalg.inv(precision), rtol=0.02, atol=1e-3
    )


def test_sums_alone_stay_level_with_an_exact_fit() -> None:
    """Fails when a slate is linearised before its own rewards are known, or counted twice."""
    one = learner(exact=80)
    plays = taught(one, 400)
    features = BLOCKS.read(random_round(999, 200, D, K).profiles)
    expected = torch.sigmoid(features.dot(mode(one, plays)))
    assert float((one.means(features) - expected).abs().max()) < 0.01
    assert one.belief.data.gram.shape == (one.prior.size, one.prior.size)


def test_a_memory_holds_so_much_and_earlier_slates_fade_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against sums of weighted outer products, each slate's weight multiplied whenever all of them fade."""
    one = BlockLogistic(BlockLogisticConfig(exact=0, tune_every=UNTUNED), BLOCKS, "squares", memory=2.0)
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    observe = one.belief.observe

    def noted(x: Tensor, sums: Tensor, weights: Tensor) -> None:
        seen.append((x, sums, weights))
        observe(x, sums, weights)

    monkeypatch.setattr(one.belief, "observe", noted)
    taught(one, 120)
    most, kept, total = 2.0 * one.prior.size, [], 0.0
    for _, _, weights in seen:
        kept.append(1.0)
        total += float(weights.sum())
        if total > SPARE * most:
            kept, total = [share * most / total for share in kept], most
    precision = torch.diag(1 / one.prior.by_column)
    moment = torch.zeros(one.prior.size, dtype=torch.float64)
    for (x, sums, weights), share in zip(seen, kept, strict=True):
        precision = precision + share * (x.T * weights) @ x
        moment = moment + share * (x.T @ sums)
    assert kept[0] < 0.5 < kept[-1]
    assert one.belief.data.count == pytest.approx(total)
    torch.testing.assert_close(one.belief.mean, torch.linalg.solve(precision, moment), rtol=1e-6, atol=1e-8)


def test_what_fades_is_not_counted_again_by_a_fit_of_all() -> None:
    """Fails when all observations are linearised again after some of them faded."""
    faded = BlockLogistic(BlockLogisticConfig(exact=10_000, tune_every=UNTUNED), BLOCKS, "squares", memory=0.5)
    taught(faded, 200)
    assert faded.belief.data.count <= SPARE * 0.5 * faded.prior.size


def test_a_short_memory_follows_a_truth_that_turned() -> None:
    plays, config = Plays(BLOCKS, K), BlockLogisticConfig()
    short, whole = (BlockLogistic(config, BLOCKS, "squares", memory) for memory in (4.0, torch.inf))
    for t in range(1, 801):
        z = random_round(t, K, D, K, seed=5).profiles
        chances = torch.sigmoid(6 * z[:, 0 if t <= 600 else 1] - 4)
        rewards = (torch.from_numpy(stream(1, "test rewards", t).random(K)) < chances).double()
        played = plays.add(z, BLOCKS.read(z), rewards)
        for each in (short, whole):
            each.learn(played, plays)
    z = random_round(999, 200, D, K).profiles
    features, truth = BLOCKS.read(z), torch.sigmoid(6 * z[:, 1] - 4)
    errors = [float((one.means(features) - truth).square().mean()) for one in (short, whole)]
    assert errors[0] < 0.5 * errors[1]


def test_every_slate_is_learned_and_all_are_linearised_again_at_growth() -> None:
    times = [t for t in range(1, 2001) if grown(t)]
    assert times[:8] == list(range(1, 9))
    assert len(times) < 90
    one, before = learner(exact=0), torch.zeros(0)
    plays = Plays(BLOCKS, K)
    for t in range(1, 6):
        z = random_round(t, K, D, K, seed=5).profiles
        one.learn(plays.add(z, BLOCKS.read(z), torch.ones(K).double()), plays)
        assert not torch.equal(one.belief.mean, before)
        before = one.belief.mean


def test_prior_variances_are_tuned_and_saved() -> None:
    one, again = learner(1000, tune_every=10), learner(1000, tune_every=10)
    plays = taught(one, 60)
    assert not torch.equal(one.prior.variances, again.prior.variances)
    assert torch.equal(one.belief.prior, one.prior.by_column)
    again.load_state_dict(one.state_dict())
    z = random_round(99, K, D, K).profiles
    played = plays.add(z, BLOCKS.read(z), torch.ones(K).double())
    for each in (one, again):
        each.learn(played, plays)
    assert torch.equal(one.belief.mean, again.belief.mean)


def test_chances_that_round_to_one_are_still_ranked() -> None:
    one = BlockLogistic(BlockLogisticConfig(), BLOCKS, "mask")
    one.belief.reweight(torch.full((4,), 1e9).double(), 1.0)
    wanted = torch.tensor([60.0, 10.0, 0.0, 0.0], dtype=torch.float64)
    one.belief.observe(torch.eye(4, dtype=torch.float64), wanted)
    z = random_round(99, 30, D, K).profiles
    scores, means = one.scores(BLOCKS.read(z), 1)
    assert float(means.min()) == float(means.max()) == 1.0
    assert torch.equal(torch.argsort(scores), torch.argsort(z[:, 0]))
