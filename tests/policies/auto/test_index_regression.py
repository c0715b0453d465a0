"""The multi-index model: gradients against autograd, what it finds, and when it is refitted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import random_round
from torch import Tensor

from neuclust.errors import ConfigError, StateError
from neuclust.models.bayes_linear import BayesLinear
from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks, quadratic_columns, scaled_inputs
from neuclust.policies.auto.learners import index_regression
from neuclust.policies.auto.learners.block_regression import BlockRegressionConfig
from neuclust.policies.auto.learners.catalogue import LEARNERS, Learner, LearnersConfig
from neuclust.policies.auto.learners.gradient_directions import Observed, gradient_directions, quadratic_weights
from neuclust.policies.auto.learners.index_regression import (
    MOST_VARIANCE,
    VARIANCES,
    Ascent,
    IndexConfig,
    IndexModel,
    IndexRegression,
    SharedAdam,
)
from neuclust.policies.auto.plays import Plays, RewardScale
from neuclust.randomness import stream

D, K = 4, 3
AUTOGRAD: Any = torch.autograd.functional  # without types
UNIT = RewardScale().unit  # of the rewards, before any
SMALL = IndexConfig(directions=2, frequencies=6, members=3, steps=2, first=4, growth=1.5)


def blocks(masked: bool = False, dim: int = D) -> FeatureBlocks:
    query = (torch.arange(dim) % 3 != 1).double() if masked else None
    found = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, dim, K, query=query))
    assert found is not None
    assert found.masked == masked
    return found


def contexts(t: int, n: int = K, dim: int = D) -> Tensor:
    return random_round(t, n, dim, K, seed=5).profiles


def index(config: IndexConfig = SMALL, seed: int = 3, **options: Any) -> IndexRegression:
    return IndexRegression(config, BlockRegressionConfig(), blocks(**options), seed, "test")


def taught(learners: list[IndexRegression], plays: Plays, slates: range) -> None:
    """Slates of random contexts, paid where the first feature is near ½; the first of each is of the slate before."""
    for t in slates:
        z = torch.cat([contexts(t - 1)[-1:], contexts(t)[1:]])
        chances = 0.9 - 3 * (z[:, 0] - 0.5) ** 2
        rewards = (torch.from_numpy(stream(1, "test rewards", t).random(K)) < chances).double()
        played = plays.add(z, blocks().read(z), rewards)
        for learner in learners:
            learner.learn(played, plays)


def played_by(learner: IndexRegression, slates: int) -> Plays:
    plays = Plays(blocks(), K)
    taught([learner], plays, range(1, slates + 1))
    return plays


def climbed(one: IndexModel, seen: Observed, steps: int) -> IndexModel:
    """After so many steps, with the posterior of all of this data."""
    ascent = Ascent(one, steps)
    while ascent.left:
        ascent.step(seen.single())
    one.rebuild(seen)
    return one


def member(config: IndexConfig = SMALL, dim: int = 3, seed: int = 0) -> IndexModel:
    one = IndexModel(config, BlockRegressionConfig(), dim, stream(seed, "test member"))
    one.directions = 6 * one.directions  # cosines that are no constants
    return one


def repeated(dim: int = 3) -> tuple[Observed, Tensor, Tensor]:
    """Twelve contexts, each seen one to three times; all rows (n, d) and all rewards (n,)."""
    rng = stream(2, "test observed")
    x, times = torch.from_numpy(rng.standard_normal((12, dim))), rng.integers(1, 4, size=12)
    rows = torch.repeat_interleave(torch.arange(12), torch.from_numpy(times))
    rewards = torch.from_numpy(rng.random(len(rows)))
    sums = torch.zeros(12, dtype=torch.float64).index_add_(0, rows, rewards)
    counts = torch.from_numpy(times).double()
    return Observed(x, sums, counts, float((rewards**2).sum()), RewardScale()), x[rows], rewards


def cosines(one: IndexModel, x: Tensor, directions: Tensor) -> Tensor:
    """√(2/D) cos(Ωᵀ Pᵀx + β)."""
    return math.sqrt(2 / len(one.phases)) * torch.cos(x @ directions @ one.frequencies + one.phases)


def dense_evidence(one: IndexModel, directions: Tensor, x: Tensor, rewards: Tensor) -> Tensor:
    """log N(r; 0, Φ S Φᵀ + σ² I), which autograd can follow."""
    columns = torch.cat([torch.ones(len(x), 1, dtype=torch.float64), x, cosines(one, x, directions)], 1)
    covariance = (columns * one.belief.prior) @ columns.T
    covariance = covariance + one.belief.noise_variance * torch.eye(len(x), dtype=torch.float64)
    fit: Tensor = rewards @ torch.linalg.solve(covariance, rewards)
    return -0.5 * (torch.logdet(2 * math.pi * covariance) + fit)


def weighed() -> IndexModel:
    """A member whose blocks and noise have other variances than at first."""
    one = member()
    one.prior.variances = torch.tensor([0.3, 0.05, 0.6], dtype=torch.float64)
    one.belief.reweight(one.prior.by_column, 0.07)
    return one


# --- a member -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
def test_columns_are_the_constant_the_context_and_the_cosines(masked: bool) -> None:
    learner, read = index(masked=masked), blocks(masked)
    z = contexts(7) * torch.tensor([1.0, float(not masked), 1.0, 1.0], dtype=torch.float64)
    one = learner.members[1]
    found = one.columns(scaled_inputs(read.read(z).inputs, learner.scale))
    assert found.shape == (K, 1 + D + masked + 6)
    for row, context in zip(found.tolist(), z.tolist(), strict=True):
        x = [value / read.scale for value in context]
        x += [sum(x) / sum(value != 0 for value in x)] if masked else []
        x = [value / read.input_length for value in x]
        along = [sum(x[i] * float(one.directions[i, r]) for i in range(len(x))) for r in range(2)]
        expected = [1.0, *x]
        for cosine in range(6):
            angle = sum(along[r] * float(one.frequencies[r, cosine]) for r in range(2)) + float(one.phases[cosine])
            expected.append(math.sqrt(2 / 6) * math.cos(angle))
        assert row == pytest.approx(expected)


def test_typical_contexts_have_length_one() -> None:
    for masked in (False, True):
        query = (torch.arange(D) % 3 != 1).double() if masked else None
        z = random_round(1, 50, D, K, query=query).contexts
        x = scaled_inputs(blocks(masked).read(z).inputs, index(masked=masked).scale)
        assert x.shape[1] == index(masked=masked).dim == D + masked
        assert float(x.square().sum(1).mean()) == pytest.approx(1.0)


def test_the_cosines_are_random_features_of_a_gaussian_process() -> None:
    """Their products are about exp(−‖Pᵀ(x − y)‖²/2), and frequencies and phases are drawn so."""
    one = IndexModel(IndexConfig(frequencies=2000), BlockRegressionConfig(), 3, stream(0, "test member"))
    one.directions = 8 * one.directions
    x = repeated()[0].x
    columns = one.columns(x)[:, 4:]
    apart = torch.cdist(x @ one.directions, x @ one.directions)
    torch.testing.assert_close(columns @ columns.T, torch.exp(-0.5 * apart**2), atol=0.1, rtol=0)


@pytest.mark.parametrize("single", [False, True])
def test_the_gradient_is_that_of_the_density_of_all_rewards(single: bool) -> None:
    """Fails when a context seen twice counts once, or when the spread of the weights is left out."""
    one, (seen, x, rewards) = weighed(), repeated()
    directions = one.directions.clone().requires_grad_()
    (expected,) = torch.autograd.grad(dense_evidence(one, directions, x, rewards), directions)
    read = seen.single() if single else seen
    assert read.x.dtype == read.sums.dtype == read.counts.dtype == (torch.float32 if single else torch.float64)
    angles = one._angles(read.x)
    columns = one._columns(read.x, angles)
    assert columns.dtype == read.x.dtype
    one.belief.rebuild(columns, read.sums, read.counts, read.energy)
    gradient = one._evidence_gradient(read, angles, columns)
    assert gradient.dtype == torch.float64
    error = 1e-4 if single else 1e-9
    torch.testing.assert_close(gradient, expected, rtol=error, atol=error * float(expected.abs().max()))


def test_the_log_posterior_is_the_density_of_all_rewards_and_of_the_directions() -> None:
    one, (seen, x, rewards) = weighed(), repeated()
    expected = float(dense_evidence(one, one.directions, x, rewards))
    expected -= sum(entry**2 for entry in one.directions.flatten().tolist()) / (2 * 0.5**2)
    assert one.log_posterior(seen) == pytest.approx(expected, abs=1e-8)
    assert one.belief.data.count == 0  # its own belief stays as it was


def test_gradient_ascent_raises_the_log_posterior_more_than_better_variances_do() -> None:
    rng = stream(3, "test climbing")
    x = torch.from_numpy(rng.standard_normal((120, 3)))
    rewards = torch.sin(2 * x[:, 0]) / 2 + 0.1 * torch.from_numpy(rng.standard_normal(120))
    seen = Observed(x, rewards, torch.ones_like(rewards), float(rewards @ rewards), RewardScale())
    free, held = member(), member(IndexConfig(directions=2, frequencies=6, rate=1e-12))
    for one in (free, held):
        climbed(one, seen, 40)
    assert free.log_posterior(seen) > held.log_posterior(seen) + 10
    assert float((held.directions - member().directions).abs().max()) < 1e-9
    fresh = BayesLinear(free.prior.by_column * UNIT**2, free.prior.noise * UNIT)
    fresh.observe(free.columns(x), rewards)  # the belief is of the last directions, in full precision
    torch.testing.assert_close(free.belief.mean, fresh.mean, rtol=1e-9, atol=1e-9)


def test_without_information_directions_follow_their_prior() -> None:
    """Contexts of length 0: every step leads straight to 0, the first with length `rate`."""
    one, begun = member(), member().directions
    nothing = torch.zeros(5, 3, dtype=torch.float64)
    climbed(one, Observed(nothing, 0.5 * torch.ones(5).double(), torch.ones(5).double(), 2.0, RewardScale()), 1)
    torch.testing.assert_close(one.directions, begun - 0.1 * begun / begun.square().mean().sqrt())


def test_variances_and_noise_are_estimated() -> None:
    """A line with a little noise: the cosines explain nothing, and no variance is above its bound."""
    rng = stream(4, "test tuning")
    x = torch.from_numpy(rng.standard_normal((400, 3)))
    rewards = 3 * x[:, 0] + math.sqrt(0.05) * torch.from_numpy(rng.standard_normal(400))
    one = member()
    climbed(one, Observed(x, rewards, torch.ones_like(rewards), float(rewards @ rewards), RewardScale()), 20)
    constant, line, cosine = one.prior.variances.tolist()
    assert one.belief.noise_variance == pytest.approx(0.05, rel=0.2)
    assert constant == VARIANCES[0]  # never tuned
    assert line == MOST_VARIANCE
    assert cosine < 0.01 * line
    assert torch.equal(one.belief.prior, one.prior.by_column * UNIT**2)


def test_adam_steps_share_one_second_moment() -> None:
    gradients = [[2.0, 0.0, -1.0], [0.5, 0.0, 3.0], [-4.0, 0.0, 0.25]]
    adam, first, second = SharedAdam(0.2), [0.0] * 3, 0.0
    for t, gradient in enumerate(gradients, 1):
        first = [0.9 * old + 0.1 * new for old, new in zip(first, gradient, strict=True)]
        second = 0.999 * second + 0.001 * sum(entry**2 for entry in gradient) / 3
        size = math.sqrt(second / (1 - 0.999**t))
        expected = [0.2 * entry / (1 - 0.9**t) / size for entry in first]
        step = adam.step(torch.tensor(gradient, dtype=torch.float64)).tolist()
        assert step == pytest.approx(expected)
        assert step[1] == 0.0  # where there is no gradient nothing moves
    assert SharedAdam(0.2).step(torch.zeros(3)).tolist() == [0.0, 0.0, 0.0]


# --- gradient directions of a quadratic ----------------------------------------------------------------------


def weights_of(function: Any, dim: int) -> Tensor:
    """Weights of `quadratic_columns` for a quadratic function of one x (d,), by its derivatives at 0."""
    origin = torch.zeros(dim, dtype=torch.float64)
    gradient = AUTOGRAD.jacobian(function, origin)
    second = AUTOGRAD.hessian(function, origin)
    pairs = [float(second[i, j]) / (2 if i == j else 1) for i in range(dim) for j in range(i, dim)]
    return torch.tensor([float(function(origin)), *gradient.tolist(), *pairs], dtype=torch.float64)


def test_quadratic_columns_are_all_products() -> None:
    x = contexts(3)
    for found, row in zip(quadratic_columns(x).tolist(), x.tolist(), strict=True):
        assert found == pytest.approx([1.0, *row, *(row[i] * row[j] for i in range(D) for j in range(i, D))])


def test_quadratic_weights_are_those_of_a_regression() -> None:
    """Rewards of a quadratic function with hardly any noise: its weights come back."""
    rng = stream(9, "test guide")
    x = torch.from_numpy(rng.standard_normal((200, 2)))
    truth = torch.tensor([0.2, 0.5, -0.3, 0.4, -0.6, 0.1], dtype=torch.float64)
    rewards = quadratic_columns(x) @ truth
    seen = Observed(x, 2 * rewards, torch.full((200,), 2.0).double(), float(2 * rewards @ rewards), RewardScale())
    found = quadratic_weights(seen, BlockRegressionConfig(), VARIANCES)
    torch.testing.assert_close(found, truth, atol=0.01, rtol=0)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_one_direction_of_a_square_is_found_and_nothing_beside_it(count: int) -> None:
    a = torch.tensor([3.0, -1.0, 2.0], dtype=torch.float64)
    found = gradient_directions(weights_of(lambda x: (a @ x) ** 2, 3), repeated()[0], count)
    assert found.shape == (3, count)
    torch.testing.assert_close(found @ found.T, torch.outer(a, a) / (a @ a), rtol=1e-9, atol=1e-9)
    assert float(found[:, :-1].abs().sum()) < 1e-6


@pytest.mark.parametrize("count", [1, 2, 7])
def test_directions_are_the_leading_gradients_where_arms_were_played(count: int) -> None:
    """A general quadratic function against autograd at every play; d = 4, so that some counts are above it."""
    seen, rows, _ = repeated(dim=4)
    draw = torch.from_numpy(stream(8, "test bends").standard_normal((5, 4)))

    def function(x: Tensor) -> Tensor:
        return 0.3 + draw[0] @ x + (draw[1] @ x) ** 2 - 0.4 * (draw[2] @ x) * (draw[3] @ x)

    gradients = np.stack([AUTOGRAD.jacobian(function, row).numpy() for row in rows])
    values, vectors = np.linalg.eigh(sum(np.outer(gradient, gradient) for gradient in gradients))
    kept = min(count, 4)
    expected = sum(values[-k] / values[-1] * np.outer(vectors[:, -k], vectors[:, -k]) for k in range(1, kept + 1))
    found = gradient_directions(weights_of(function, 4), seen, count)
    torch.testing.assert_close(found @ found.T, torch.from_numpy(expected), rtol=1e-9, atol=1e-9)
    assert found.shape == (4, count)
    assert int((found.abs().sum(0) > 0).sum()) == kept


def test_a_constant_has_no_direction() -> None:
    found = gradient_directions(weights_of(lambda x: 0.5 + 0 * x.sum() ** 2, 3), repeated()[0], 2)
    assert not bool(found.any())


# --- all members ----------------------------------------------------------------------------------------------


def steps_taken(patch: pytest.MonkeyPatch, plays: Plays) -> list[tuple[int, IndexModel, Tensor]]:
    """Every step from now on: number of slates, model, where it was before."""
    steps: list[tuple[int, IndexModel, Tensor]] = []
    climb = IndexModel.climb

    def noted(self: IndexModel, seen: Observed, adam: SharedAdam) -> None:
        assert float(seen.counts.sum()) == plays.slates * K
        steps.append((plays.slates, self, self.directions.clone()))
        climb(self, seen, adam)

    patch.setattr(IndexModel, "climb", noted)
    return steps


def per_slate(steps: list[tuple[int, IndexModel, Tensor]]) -> dict[int, int]:
    return {at: sum(one == at for one, *_ in steps) for at, *_ in steps}


def test_members_climb_when_due_and_candidates_at_doublings(monkeypatch: pytest.MonkeyPatch) -> None:
    """First after 4 slates, then whenever there are half as many more; candidates from 8 and from twice 9."""
    monkeypatch.setattr(index_regression, "WORK", 10**9)
    learner, plays = index(), Plays(blocks(), K)
    steps = steps_taken(monkeypatch, plays)
    taught([learner], plays, range(1, 29))
    assert per_slate(steps) == {4: 6, 6: 6, 9: 24, 13: 6, 19: 24, 28: 6}  # 3 members 2 steps, 3 candidates 6
    assert (learner._due, learner._doubled) == (42, 38)


def test_an_update_does_no_more_than_its_share_and_the_rest_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four steps per update at most; turns that become due meanwhile wait for those that are not over."""
    monkeypatch.setattr(index_regression, "WORK", 4 * 1000)
    learner, plays = index(), Plays(blocks(), K)
    steps = steps_taken(monkeypatch, plays)
    taught([learner], plays, range(1, 16))
    taken = per_slate(steps)
    assert (taken[4], taken[5]) == (4, 2)
    assert max(taken.values()) == 4
    assert sum(taken[at] for at in range(9, 15)) == 24
    assert taken[15] == 4


def test_a_full_memory_counts_as_all_slates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members climb, and candidates come, as often in a long life as when the memory was filled."""
    learner, plays = index(), Plays(blocks(), K)
    plays.capacity, plays.slates = 10 * K, 5000
    learner._begin_turns(plays)
    assert (learner._due, learner._doubled) == (5005, 5010)


def test_before_the_first_ascent_members_observe_only() -> None:
    learner, begun = index(), index()
    plays = played_by(learner, 3)
    z, rewards, _ = (torch.cat(parts) for parts in zip(*plays.latest(3), strict=True))
    x = blocks().read(z).inputs[:, :-1] / learner.scale
    for one, first in zip(learner.members, begun.members, strict=True):
        assert torch.equal(one.directions, first.directions)
        unit = plays.scale.unit
        expected = BayesLinear(torch.full((1 + D + 6,), VARIANCES[0] * unit**2), BlockRegressionConfig().noise * unit)
        expected.observe(first.columns(x), rewards)
        torch.testing.assert_close(one.belief.mean, expected.mean)
    taught([learner], plays, range(4, 6))
    assert not any(torch.equal(a.directions, b.directions) for a, b in zip(learner.members, begun.members, strict=True))


@pytest.mark.parametrize("slates", [4, 5, 30])
def test_posteriors_are_of_all_observations(slates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after an ascent, one slate later, and where gradients are computed on some contexts only."""
    monkeypatch.setattr(index_regression, "CLIMBED", 20)
    learner = index()
    plays = played_by(learner, slates)
    z, rewards, _ = (torch.cat(parts) for parts in zip(*plays.latest(slates), strict=True))
    x = blocks().read(z).inputs[:, :-1] / learner.scale
    for one in learner.members:
        phi, noise, unit = one.columns(x), one.belief.noise_variance, plays.scale.unit
        precision = torch.diag(1 / (one.prior.by_column * unit**2)) + phi.T @ phi / noise
        torch.testing.assert_close(one.belief.mean, torch.linalg.solve(precision, phi.T @ rewards / noise))
        assert one.belief.data.count == slates * K


def test_candidates_start_at_random_and_at_gradient_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_regression, "WORK", 10**9)
    learner, plays = index(), Plays(blocks(), K)
    steps = steps_taken(monkeypatch, plays)
    taught([learner], plays, range(1, 10))
    seen = Observed.of(plays.held(), learner.scale)
    start = gradient_directions(quadratic_weights(seen, learner.regression, VARIANCES), seen, 2)
    anywhere, near, far = [before for _, _, before in steps][-18::6]
    assert 0 < float(anywhere.abs().max()) < 0.5
    torch.testing.assert_close(near, start / 0.3)
    torch.testing.assert_close(far, start / 0.6)


def test_a_candidate_takes_the_place_of_the_member_of_the_least_posterior_if_its_own_is_larger() -> None:
    replaced = 0
    for seed in range(4):
        learner = index(seed=seed)
        plays = played_by(learner, 8)
        seen = Observed.of(plays.held(), learner.scale)
        learner._turn, learner._turns = 3, 6
        model = climbed(learner._fresh(), seen, 6 * (seed % 2))
        members, heights = list(learner.members), [one.log_posterior(seen) for one in learner.members]
        better = model.log_posterior(seen) > min(heights)
        learner._end_turn(model, seen, plays)
        expected = [
            model if better and height == min(heights) else one for one, height in zip(members, heights, strict=True)
        ]
        assert [id(one) for one in learner.members] == [id(one) for one in expected]
        assert learner._turn == 4
        replaced += better
    assert 0 < replaced < 4  # both happen: the test can tell


@pytest.mark.parametrize("slates", [3, 4, 10, 17])
def test_half_an_ascent_is_saved_and_goes_on_alike(slates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_regression, "WORK", 1)  # one step per update
    learner, again = index(), index()
    plays = played_by(learner, slates)
    assert (learner._ascent is not None) == (slates > 3)
    again.load_state_dict(learner.state_dict())
    taught([learner, again], plays, range(slates + 1, slates + 12))
    states = learner.state_dict(), again.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_scores_are_the_mean_over_members_and_their_spread() -> None:
    learner = index(IndexConfig(directions=2, frequencies=6, members=3, steps=2, first=4, bonus=0.7))
    played_by(learner, 7)
    features = blocks().read(contexts(99, 20))
    x = features.inputs[:, :-1] / learner.scale
    each = np.stack([(one.columns(x) @ one.belief.mean).numpy() for one in learner.members])
    scores, means = learner.scores(features, t=1)
    np.testing.assert_allclose(means, each.mean(0))
    np.testing.assert_allclose(learner.means(features), each.mean(0))
    np.testing.assert_allclose(scores, each.mean(0) + 0.7 * each.std(0, ddof=1))
    assert float((scores - means).min()) > 0


# --- what it finds --------------------------------------------------------------------------------------------


def hidden(z: Tensor) -> Tensor:
    """The chance of a reward: large on a slab across one direction out of six."""
    a = torch.tensor([1.0, -2.0, 0.5, 1.5, 0.0, -1.0], dtype=torch.float64)
    along = (z - 0.5) @ a / torch.linalg.vector_norm(a)
    return 0.05 + 0.9 * torch.exp(-((along - 0.2) ** 2) / (2 * 0.13**2))


def paid_by_the_best(learner: Learner, slates: int) -> float:
    """The mean chance of the twenty best of 400 new arms, after slates of five random ones."""
    read = blocks(dim=6)
    plays = Plays(read, 5)
    for t in range(1, slates + 1):
        z = contexts(t, 5, 6)
        rewards = torch.from_numpy(stream(1, "test hidden", t).random(5)) < hidden(z)
        learner.learn(plays.add(z, read.read(z), rewards.double()), plays)
    fresh = contexts(10_000, 400, 6)
    return float(hidden(fresh)[learner.means(read.read(fresh)).argsort()[-20:]].mean())


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_a_hidden_direction_is_found(seed: int) -> None:
    """A slab that no line tells: what lies beyond it pays as little as what lies before it."""
    found, line = (
        paid_by_the_best(LEARNERS[name](LearnersConfig(), blocks(dim=6), seed, "test"), 150)
        for name in ("index", "linear")
    )
    assert found > 0.75
    assert found > line + 0.3


# --- state ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slates", [3, 7, 17])
def test_a_state_brings_it_back_and_both_continue_alike(slates: int) -> None:
    """Before a refit, before candidates, and after some of them."""
    learner, again = index(), index()
    plays = played_by(learner, slates)
    again.load_state_dict({name: tensor.clone() for name, tensor in learner.state_dict().items()})
    features = blocks().read(contexts(99, 20))
    for _ in range(2):
        for mine, other in zip(learner.scores(features, 1), again.scores(features, 1), strict=True):
            assert torch.equal(mine, other)
        taught([learner, again], plays, range(plays.slates + 1, plays.slates + 14))  # candidates come
    assert learner.state_dict().keys() == again.state_dict().keys()
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in learner.state_dict().items())


def test_a_state_is_a_copy() -> None:
    learner = index()
    plays = played_by(learner, 5)
    state = learner.state_dict()
    before = {name: tensor.clone() for name, tensor in state.items()}
    taught([learner], plays, range(6, 12))
    assert all(torch.equal(state[name], before[name]) for name in state)


@pytest.mark.parametrize("change", [{"members": 2}, {"members": 4}, {"frequencies": 7}, {"directions": 3}])
def test_a_state_of_another_shape_is_refused(change: dict[str, int]) -> None:
    wanted: dict[str, Any] = {"directions": 2, "frequencies": 6, "members": 3, **change}
    with pytest.raises(StateError, match="expected"):
        index(IndexConfig(**wanted)).load_state_dict(index().state_dict())


def test_a_state_of_other_contexts_is_refused() -> None:
    with pytest.raises(StateError, match="expected"):
        index(dim=D + 1).load_state_dict(index().state_dict())


def test_members_differ_and_are_told_by_seed_and_purpose() -> None:
    starts = {
        (seed, purpose, m): tuple(one.phases.tolist())
        for seed, purpose in ((0, "a"), (0, "b"), (1, "a"))
        for m, one in enumerate(IndexRegression(SMALL, BlockRegressionConfig(), blocks(), seed, purpose).members)
    }
    assert len(set(starts.values())) == len(starts) == 9
    again = IndexRegression(SMALL, BlockRegressionConfig(), blocks(), 0, "b")
    assert [tuple(one.phases.tolist()) for one in again.members] == [starts[0, "b", m] for m in range(3)]


@pytest.mark.parametrize(
    "change",
    [
        {"directions": 0}, {"frequencies": 0}, {"members": 1}, {"steps": 0}, {"first": 0}, {"bonus": -0.1},
        {"reach": 0.0}, {"rate": 0.0}, {"growth": 1.0}, {"growth": math.nan}, {"bonus": math.nan}, {"reach": math.nan},
        {"rate": math.nan},
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        IndexConfig(**change)
