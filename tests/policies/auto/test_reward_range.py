"""auto on rewards that are not chances: a declared range, a learned one, and what a growing range keeps."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small_problems import feedback, random_round, same_state, slate_of, small_environment, snapshot
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.errors import ConfigError, DataError, StateError
from neuclust.models.bayes_linear import BayesLinear, rescale
from neuclust.policies.auto import ensemble as ensembles
from neuclust.policies.auto.item_effects import ItemEffects
from neuclust.policies.auto.policy import Auto, AutoConfig
from neuclust.policies.auto.reward_range import FARTHEST, Rescaling, RewardRange, RewardRangeConfig
from neuclust.policies.auto.slot_effects import SlotEffects
from neuclust.randomness import stream
from neuclust.registry import load_policy

DIM, K = 6, 3
LEARNED = RewardRangeConfig()


def built(**rewards: float) -> Auto:
    return Auto(AutoConfig(rewards=RewardRangeConfig(**rewards)), DIM, K, 2)


def played(policy: Auto, rounds: range, size: float = 1.0, shift: float = 0.0) -> list[Slate]:
    """Slates of rounds whose arms pay size + shift where their first features and a coin say so, else shift."""
    slates = []
    for t in rounds:
        round = offer(t)
        slate = policy.select(round)
        chances = torch.sigmoid(2 * round.contexts[slate.positions, :2].sum(1))
        paid = torch.from_numpy(stream(3, "coins", t).random(K)) < chances
        policy.update(round, slate, paying(size * paid.double() + shift))
        slates.append(slate)
    return slates


def paying(rewards: Tensor) -> Feedback:
    return feedback(rewards.tolist(), float(rewards.mean()))


def offer(t: int) -> Round:
    return random_round(t, 40, DIM, K, seed=5)


def test_declared_amounts_are_learned_as_chances_are() -> None:
    """Rewards 40 r − 7 on a range from −7 to 33 give the slates of r, with means and bonuses in their own units."""
    plain, amounts = built(), built(low=-7.0, high=33.0)
    for one, other in zip(played(plain, range(1, 16)), played(amounts, range(1, 16), 40.0, -7.0), strict=True):
        assert one.positions.tolist() == other.positions.tolist()
        torch.testing.assert_close(40 * one.means - 7, other.means)
        torch.testing.assert_close(40 * one.bonuses, other.bonuses)
    torch.testing.assert_close(40 * plain.scores(offer(50)) - 7, amounts.scores(offer(50)))
    assert plain.explain().rewards == (0.0, 1.0)
    assert amounts.explain().rewards == (-7.0, 33.0)
    assert amounts.explain().noise["linear"] == pytest.approx(1600 * plain.explain().noise["linear"])


def test_ends_follow_the_size_of_the_rewards_on_their_side() -> None:
    """Σr²/Σr, of rewards at most 8 widths outside; an end moves to 1.5 times it where a reward lies outside."""
    first = RewardRange.first(LEARNED)
    assert first.covering(torch.tensor([0.0, 1.0]), LEARNED)[:2] == (0.0, 1.0)
    assert first.covering(torch.tensor([0.0, 4.0]), LEARNED)[:2] == (0.0, 6.0)
    assert first.covering(torch.tensor([1.0, 4.0]), LEARNED)[:2] == (0.0, 1.5 * 17 / 5)
    assert first.covering(torch.tensor([-3.0, 0.5]), LEARNED)[:2] == (-4.5, 1.0)
    assert first.covering(torch.tensor([-3.0, -1.0, 6.0]), LEARNED)[:2] == (-1.5 * 10 / 4, 9.0)
    assert first.covering(torch.tensor([0.0, 1e9]), LEARNED)[:2] == (0.0, 1.5 * (1 + FARTHEST))


def test_ends_move_logarithmically_often_and_hardly_by_one_outlier() -> None:
    grown, times = RewardRange.first(LEARNED), 0
    for reward in range(1, 2_000):
        wider = grown.covering(torch.tensor([float(reward)]), LEARNED)
        times, grown = times + (wider.high != grown.high), wider
    assert 3 <= times <= 1 + math.log(2_000) / math.log(1.5)
    assert grown.high > 1_000
    clicks = RewardRange.first(LEARNED).covering(torch.ones(200), LEARNED)
    assert clicks.covering(torch.tensor([1e9]), LEARNED).high == pytest.approx(1.5 * 281 / 209)


@pytest.mark.parametrize(
    ("config", "ends"),
    [
        (RewardRangeConfig(high=-2.0), (-3.0, -2.0)), (RewardRangeConfig(low=-5.0), (-5.0, 1.0)),
        (RewardRangeConfig(low=5.0), (5.0, 6.0)), (RewardRangeConfig(high=0.2), (-0.8, 0.2)),
    ],
)  # fmt: skip
def test_one_end_can_be_declared(config: RewardRangeConfig, ends: tuple[float, float]) -> None:
    first = RewardRange.first(config)
    assert (first.low, first.high) == pytest.approx(ends)
    below, above = (torch.tensor([end], dtype=torch.float64) for end in (first.low - 1, first.high + 1))
    learned, declared = (below, above) if config.low is None else (above, below)
    assert first.covering(learned, config).width > first.width
    with pytest.raises(DataError, match="expected arm rewards from"):
        first.covering(declared, config)


@pytest.mark.parametrize(
    "ends", [{"low": 1.0, "high": 1.0}, {"low": 2.0, "high": 1.0}, {"low": math.nan}, {"high": 1e13}]
)
def test_impossible_ranges_are_refused(ends: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        RewardRangeConfig(**ends)


@pytest.mark.parametrize("worst", [1e49, -1e49, math.inf, 1e51])
@pytest.mark.parametrize("declared", [{}, {"low": 0.0, "high": 40.0}])
def test_hostile_rewards_are_refused_and_change_nothing(declared: dict[str, float], worst: float) -> None:
    environment, policy = small_environment(), built(**declared)
    policy.update(environment.round(1), slate_of(0, 1, 2), feedback([1.0, 0.0, math.nan], 0.5))
    before = snapshot(policy)
    with pytest.raises(DataError, match="expected"):
        policy.update(environment.round(2), slate_of(0, 1, 2), feedback([1.0, worst, 0.0], 1.0))
    assert same_state(before, snapshot(policy))


def test_rewards_outside_a_declared_range_are_refused_in_one_sentence() -> None:
    environment, policy = small_environment(), built(low=0.0, high=40.0)
    with pytest.raises(DataError, match=r"from 0 to 40, got -1; scale rewards, or change rewards.low"):
        policy.update(environment.round(1), slate_of(0, 1, 2), feedback([1.0, -1.0, 0.0], 1.0))


def test_statistics_on_a_wider_range_are_those_of_the_rewards_read_on_it() -> None:
    rng = stream(1, "regression")
    x = torch.cat([torch.ones(30, 1), torch.from_numpy(rng.standard_normal((30, 3)))], 1).double()
    rewards = torch.from_numpy(rng.random(30))
    one, other = (BayesLinear(torch.full((4,), 0.7), 0.3) for _ in range(2))
    one.observe(x, rewards)
    rescale(one, 0.2, 0.3)
    other.observe(x, 0.2 * rewards + 0.3)
    for name, value in other.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], value)


def test_a_growing_range_keeps_data_and_beliefs() -> None:
    """All sums are those of the rewards read on the wider range, and regressions believe what they did."""
    policy = built()
    played(policy, range(1, 61))
    ensemble = policy.ensemble
    assert ensemble is not None
    latest, held = ensemble.plays.latest(5), ensemble.plays.held()
    features = ensemble.blocks.read(offer(130).contexts)
    before = {name: learner.means(features) for name, learner in ensemble.learners.items()}
    ensembles.rescale(ensemble, Rescaling(0.4, 0.2))
    for (_, old, _), (_, new, _) in zip(latest, ensemble.plays.latest(5), strict=True):
        torch.testing.assert_close(0.4 * old + 0.2, new)
    wide = ensemble.plays.held()
    torch.testing.assert_close(wide.sums, 0.4 * held.sums + 0.2 * held.counts)
    squares = 0.16 * held.energy + 0.16 * float(held.sums.sum()) + 0.04 * float(held.counts.sum())
    assert wide.energy == pytest.approx(squares)
    for name, learner in ensemble.learners.items():
        moved = (learner.means(features) - 0.2) / 0.4 - before[name]
        # the constant's prior mean is 0 on every range, and logistic regression changes to first order
        assert float(moved.abs().mean()) < 0.06, name
        if name in ("linear", "index"):
            assert float(moved.std()) < 0.03, name
    assert ensemble.change_test.change() is None


def test_effects_of_items_and_slots_do_not_see_a_pure_change_of_units() -> None:
    items, slots, rng = ItemEffects(), SlotEffects(K), stream(4, "effects")
    for _ in range(200):
        ids = torch.from_numpy(rng.integers(0, 9, K))
        chances = torch.full((K,), 0.02, dtype=torch.float64)
        clicks = torch.from_numpy((rng.random(K) < 0.01 * (1 + ids.numpy() % 3)).astype(float))
        items.observe(ids, chances, clicks)
        slots.observe(torch.arange(K), chances, clicks)
    sums, estimates = items.state_dict()["sums"].clone(), slots.estimates
    for part in (items, slots):
        part.rescale(Rescaling(0.25, 0.0))
    torch.testing.assert_close(items.state_dict()["sums"][:2], 0.25 * sums[:2])
    assert torch.equal(items.state_dict()["sums"][2], sums[2])
    assert float((slots.estimates / estimates - 1).abs().max()) < 0.15  # the prior weighs more


def test_learned_amounts_are_told_apart_and_survive_an_outlier(tmp_path: Any) -> None:
    """From rewards of 0 and 40 the range and the means follow; one reward of a billion leaves the ranking nearly as it
    was; and a save holds the range."""
    policy = built()
    played(policy, range(1, 81), 40.0)
    assert 40 < policy.rewards.high <= 60
    worth = torch.sigmoid(2 * offer(90).contexts[:, :2].sum(1))
    scores = policy.scores(offer(90))
    assert float(torch.corrcoef(torch.stack([scores, worth]))[0, 1]) > 0.6
    slate = policy.select(offer(81))
    policy.update(offer(81), slate, paying(torch.tensor([40.0, 1e9, 0.0])))
    assert policy.rewards.high < 400
    played(policy, range(82, 92), 40.0)
    after = policy.scores(offer(90))
    assert float(torch.corrcoef(torch.stack([after, worth]))[0, 1]) > 0.5
    policy.save(tmp_path / "auto")
    again: Any = load_policy(tmp_path / "auto")
    one, other = played(policy, range(92, 96), 40.0), played(again, range(92, 96), 40.0)
    assert [s.positions.tolist() for s in one] == [s.positions.tolist() for s in other]
    assert same_state(snapshot(policy), snapshot(again))


def test_a_saved_range_other_than_the_declared_one_is_refused() -> None:
    declared = built(low=0.0, high=40.0)
    state = dict(declared.state_dict())
    for wrong in ([0.0, 20.0], [40.0, 0.0]):
        state["range"] = torch.tensor([*wrong, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
        with pytest.raises(StateError, match="declared ends"):
            built(low=0.0, high=40.0).load_state_dict(state)


@pytest.mark.parametrize(
    ("declared", "zeros", "told"),
    [
        ({}, [0.0, 0.0, 0.0], [1.0, -1.0, 0.0]),  # sums that cancel are rewards all the same
        ({"low": 0.0, "high": 1e9}, [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]),
        ({"low": 1.0, "high": 5.0}, [1.0, 1.0, 1.0], [1.0, 2.0, 1.0]),
        ({"low": -5.0, "high": -1.0}, [-1.0, -1.0, -1.0], [-1.0, -2.0, -1.0]),
    ],
)
def test_rewards_are_all_zero_until_one_is_not(
    declared: dict[str, float], zeros: list[float], told: list[float]
) -> None:
    """Fails when what was shown counts against an arm after a reward came, or does not before."""
    policy = built(**declared)
    for t, rewards, all_zero in ((1, zeros, True), (2, told, False), (3, zeros, False)):
        assert policy.rewards.all_zero == (t < 3)
        round = offer(t)
        policy.update(round, policy.select(round), paying(torch.tensor(rewards, dtype=torch.float64)))
        assert policy.rewards.all_zero == all_zero
        penalised = float(policy.scores(offer(1)).min()) < -0.5 * policy.rewards.width + policy.rewards.low
        assert penalised == all_zero


def test_a_restart_does_not_forget_that_rewards_came() -> None:
    policy = built()
    played(policy, range(1, 21))
    policy.items = ItemEffects()  # as a restart leaves it
    round = offer(21)
    slate = policy.select(round)
    policy.update(round, slate, paying(torch.zeros(K, dtype=torch.float64)))
    assert float(policy.scores(round)[slate.positions].min()) > -0.5


def test_levels_are_measured_from_the_reward_zero() -> None:
    """Amounts of which some are negative: 0 lies inside the range, and counts as nothing gained.

    Fails when the lower end counts as 0: rewards of hardly anything would look like rewards of a half.
    """
    assert RewardRange(-2.0, 6.0).zero == 0.25
    assert RewardRange(1.0, 5.0).zero == 0.0
    policy = Auto(AutoConfig(rewards=RewardRangeConfig(-2.0, 6.0)), 3, 2)
    contexts = torch.eye(3, dtype=torch.float64)
    round = Round(1, torch.arange(3), contexts, None, 2)
    zeros = torch.zeros(2, dtype=torch.float64)
    policy.update(round, Slate(torch.tensor([0, 1]), zeros, zeros), Feedback(zeros, torch.tensor(0.0)))
    assert policy.ensemble is not None
    level = ((2 * 0.25 + 0.5) / 3 - 0.25) / 0.75
    assert policy.ensemble.plays.scale.level == pytest.approx(level)
    assert policy.ensemble.plays.above_zero(0.1) > 0  # a mean loss
