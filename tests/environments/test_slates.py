import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import not_none
from torch import Tensor

from neuclust.core import Environment, Feedback, Round, Slate
from neuclust.environments.dealing import Arms, Recorded, Simulated
from neuclust.environments.problem import ProblemSpec, scored
from neuclust.environments.rewards import expected_clipped, from_table, mean, top_by_mean
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError

N, D, K, T = 12, 4, 3, 400


class Truth:
    """μ = a logistic of the query's taste for hidden numbers; counts how often it was asked."""

    def __init__(self) -> None:
        self.hidden = torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
        self.asked = 0

    def __call__(self, positions: Tensor | None, query: Tensor | None) -> Tensor:
        self.asked += 1
        hidden = self.hidden if positions is None else self.hidden[positions]
        return torch.sigmoid(hidden.sum(1) if query is None else hidden @ query)


def environment(**changes: Any) -> SlateEnvironment:
    generator = torch.Generator().manual_seed(3)
    profiles = torch.rand(N, D, dtype=torch.float64, generator=generator)
    queries = torch.rand(T, D, dtype=torch.float64, generator=generator)
    arms = Arms(profiles, changes.pop("ids", torch.arange(100, 100 + N)), changes.pop("counts", None))
    rounds = Simulated(changes.pop("means_of", None) or Truth(), changes.pop("queries", queries))
    return SlateEnvironment("toy", arms, rounds, ProblemSpec.of(None, changes, slate_size=K, horizon=T, seed=7))


def slate(*positions: int) -> Slate:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.tensor(positions), zeros, zeros)


def test_is_an_environment() -> None:
    assert isinstance(environment(), Environment)


def test_deals_the_same_objects_every_round_when_all_arms_are_offered() -> None:
    toy = environment()
    first, second = toy.round(1), toy.round(2)
    assert first.profiles is second.profiles
    assert first.arm_ids is second.arm_ids
    assert first.slate_size == K
    assert not torch.equal(not_none(first.query), not_none(second.query))


def test_offers_a_seeded_ascending_subset() -> None:
    toy = environment(arms_per_round=5)
    rounds = [toy.round(t) for t in range(1, 60)]
    assert all(len(set(r.arm_ids.tolist())) == 5 and r.arm_ids.tolist() == sorted(r.arm_ids.tolist()) for r in rounds)
    assert set(torch.cat([r.arm_ids for r in rounds]).tolist()) == set(toy.arm_ids.tolist())
    again = environment(arms_per_round=5).round(17)
    assert torch.equal(again.arm_ids, rounds[16].arm_ids)
    assert torch.equal(again.profiles, toy.profiles[rounds[16].arm_ids - 100])
    other = environment(arms_per_round=5, seed=8)
    assert any(not torch.equal(other.round(t).arm_ids, rounds[t - 1].arm_ids) for t in range(1, 10))


def test_means_follow_the_offered_arms() -> None:
    every, some = environment(), environment(arms_per_round=5)
    for t in (1, 9, 30):
        offered = some.round(t).arm_ids - 100
        assert torch.equal(some.means(some.round(t)), every.means(every.round(t))[offered])


def test_every_policy_meets_the_same_coins() -> None:
    """An arm's reward does not depend on its company, its slot, who asks or how many arms are offered."""
    toy, volatile = environment(), environment(arms_per_round=8)
    for t in range(1, 40):
        r = toy.round(t)
        alone = [float(toy.play(r, slate(i, (i + 1) % N, (i + 2) % N)).arm_rewards[0]) for i in range(N)]
        assert toy.play(r, slate(7, 2, 5)).arm_rewards.tolist() == [alone[7], alone[2], alone[5]]
        v = volatile.round(t)
        assert volatile.play(v, slate(6, 0, 3)).arm_rewards.tolist() == [
            alone[int(v.arm_ids[p]) - 100] for p in (6, 0, 3)
        ]


def test_rewards_have_the_true_means() -> None:
    toy = environment()
    gaps, variance = torch.zeros(K, dtype=torch.float64), torch.zeros(K, dtype=torch.float64)
    for t in range(1, T + 1):
        r = toy.round(t)
        chosen = toy.means(r)[[0, 4, 9]]
        gaps += toy.play(r, slate(0, 4, 9)).arm_rewards - chosen
        variance += chosen * (1 - chosen)
    assert float((gaps / variance.sqrt()).abs().max()) < 4


def test_coins_change_with_round_and_seed() -> None:
    played = [
        [environment(seed=s).play(environment().round(t), slate(0, 1, 2)).arm_rewards.tolist() for t in range(1, 30)]
        for s in (7, 8)
    ]
    assert len({tuple(rewards) for rewards in played[0]}) > 3
    assert played[0] != played[1]


def test_pays_the_slate_from_the_table() -> None:
    toy = environment(reward=from_table([0.0, 0.25, 0.5, 2.0]))
    for t in range(1, 30):
        feedback = toy.play(toy.round(t), slate(1, 2, 3))
        assert float(feedback.slate_reward) == [0.0, 0.25, 0.5, 2.0][int(feedback.arm_rewards.sum())]


@pytest.mark.parametrize("offered", [None, 7])
def test_the_best_slate_is_the_best_of_all_slates(offered: int | None) -> None:
    toy = environment(arms_per_round=offered)
    for t in (1, 2, 3):
        r = toy.round(t)
        n = len(r.arm_ids)
        best = max(toy.expected_reward(r, slate(*three)) for three in itertools.combinations(range(n), K))
        assert toy.best_expected_reward(r) == pytest.approx(best, abs=1e-14)
        assert toy.expected_reward(r, slate(*toy.best_positions(r).tolist())) == pytest.approx(best, abs=1e-14)


def test_ties_go_to_the_lower_arm_id_and_the_best_comes_first() -> None:
    means = torch.tensor([0.5, 0.9, 0.5, 0.5, 0.1, 0.5], dtype=torch.float64)
    ids = torch.tensor([40, 50, 10, 30, 1, 20])
    assert top_by_mean(means, ids, 3).tolist() == [1, 2, 5]
    assert top_by_mean(means, ids, 6).tolist() == [1, 2, 5, 3, 0, 4]


def test_scores_agree_with_their_definitions() -> None:
    toy = environment(reward=mean(K))
    for t in range(1, 50):
        r = toy.round(t)
        played = slate(2, 8, 5)
        feedback = toy.play(r, played)
        score = toy.score(r, played, feedback)
        ideal, chosen = toy.means(r)[toy.best_positions(r)], toy.means(r)[[2, 8, 5]]
        assert score.best_expected == toy.best_expected_reward(r)
        assert score.expected == pytest.approx(toy.expected_reward(r, played), abs=1e-15)
        assert score.expected_regret == pytest.approx(score.best_expected - score.expected, abs=1e-15)
        assert score.realised_reward == float(feedback.slate_reward)
        assert score.realised_regret == pytest.approx(score.rival_reward - score.realised_reward, abs=1e-15)
        assert score.clipped_regret == max(0.0, score.realised_regret)
        assert score.expected_clipped_regret == pytest.approx(
            expected_clipped(toy.reward.outcomes(ideal), toy.reward.outcomes(chosen)), abs=1e-14
        )
        assert score.clipped_floor == pytest.approx(
            expected_clipped(toy.reward.outcomes(ideal), toy.reward.outcomes(ideal)), abs=1e-14
        )
        assert score.mean_gap == pytest.approx(float(ideal.sum() - chosen.sum()), abs=1e-14)
        assert score.mean_gap == pytest.approx(K * score.expected_regret, abs=1e-12)  # for the mean reward alone


def test_the_rival_has_coins_of_its_own() -> None:
    """Playing the best slate itself still shows the clipped regret's floor; shared coins would show 0.

    The best arms are the first ones, whose coins a rival would meet that drew from the arms' stream.
    """
    toy = environment(means_of=lambda positions, query: torch.linspace(0.9, 0.1, N, dtype=torch.float64))
    clipped, floor, variance = 0.0, 0.0, 0.0
    for t in range(1, T + 1):
        r = toy.round(t)
        best = slate(0, 1, 2)
        score = toy.score(r, best, toy.play(r, best))
        clipped, floor = clipped + score.clipped_regret, floor + score.clipped_floor
        variance += score.clipped_floor * (1 - score.clipped_floor)
        assert score.expected_regret == pytest.approx(0.0, abs=1e-14)
    assert abs(clipped - floor) < 4 * math.sqrt(variance)
    assert clipped > 10


def test_an_unseen_slate_reward_stays_unseen() -> None:
    toy = environment()
    unseen = Feedback(torch.full((K,), math.nan), torch.tensor(math.nan))
    score = toy.score(toy.round(1), slate(0, 1, 2), unseen)
    assert all(math.isnan(x) for x in (score.realised_reward, score.clipped_regret, score.realised_regret))
    assert math.isfinite(score.expected_regret + score.expected_clipped_regret + score.mean_gap)


def test_asks_the_truth_once_a_round() -> None:
    truth = Truth()
    toy = environment(means_of=truth)
    for t in (1, 2, 3):
        r = toy.round(t)
        feedback = toy.play(r, slate(0, 1, 2))
        toy.score(r, slate(0, 1, 2), feedback)
        toy.best_expected_reward(r)
    assert truth.asked == 3


def test_a_round_carries_neither_the_truth_nor_the_future() -> None:
    truth = Truth()
    toy = environment(means_of=truth)
    r = toy.round(1)
    query = not_none(r.query)
    assert query.untyped_storage().nbytes() == D * 8
    assert query._base is None
    before = toy.means(r).clone()
    query.zero_()
    r.profiles.zero_()
    toy.round(2)
    assert torch.equal(toy.means(toy.round(1)), before)
    assert float(not_none(toy.round(1).query).sum()) > 0


@pytest.mark.parametrize("t", [0, -1, T + 1])
def test_refuses_rounds_outside_the_horizon(t: int) -> None:
    with pytest.raises(DataError, match=f"from 1 to {T}, got {t}"):
        environment().round(t)


@pytest.mark.parametrize("positions", [(0, 1), (0, 1, 1), (0, 1, N), (-1, 0, 1), (0, 1, 2, 3)])
def test_refuses_slates_that_are_none(positions: tuple[int, ...]) -> None:
    toy = environment()
    r = toy.round(1)
    for refuse in (
        lambda: toy.play(r, slate(*positions)),
        lambda: toy.expected_reward(r, slate(*positions)),
        lambda: toy.score(r, slate(*positions), toy.play(r, slate(0, 1, 2))),
    ):
        with pytest.raises(DataError, match="3 distinct positions"):
            refuse()


def test_refuses_a_round_it_did_not_deal() -> None:
    toy = environment()
    foreign = Round(1, torch.arange(5), torch.zeros(5, D), None, K)
    with pytest.raises(DataError, match="as dealt"):
        toy.play(foreign, slate(0, 1, 2))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"slate_size": 0}, ConfigError),
        ({"slate_size": N + 1}, ConfigError),
        ({"arms_per_round": 2}, ConfigError),
        ({"arms_per_round": N + 1}, ConfigError),
        ({"horizon": 0}, ConfigError),
        ({"horizon": T + 1}, ConfigError),
        ({"reward": mean(4)}, ConfigError),
        ({"ids": torch.arange(3)}, DataError),
        ({"counts": torch.zeros(N, D + 1)}, DataError),
    ],
)
def test_refuses_problems_that_cannot_be_played(changes: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="toy: expected"):
        environment(**changes)


def test_works_without_queries() -> None:
    toy = environment(queries=None, horizon=10_000)
    r = toy.round(9_999)
    assert r.query is None
    assert np.isfinite(toy.score(r, slate(0, 1, 2), toy.play(r, slate(0, 1, 2))).expected)


def test_average_means_are_over_all_rounds_and_arms_whoever_is_offered() -> None:
    every, some = environment(horizon=30), environment(horizon=30, arms_per_round=5)
    expected = torch.stack([every.means(every.round(t)) for t in range(1, 31)]).mean(0)
    assert torch.allclose(every.average_means(), expected, atol=1e-14)
    assert torch.equal(every.average_means(), some.average_means())


def test_average_means_are_computed_once_and_where_nothing_is_asked_from_one_round() -> None:
    truth = Truth()
    toy = environment(means_of=truth, queries=None)
    first = toy.average_means()
    assert truth.asked == 1
    assert toy.average_means() is first
    assert torch.equal(first, toy.means(toy.round(3)))


def test_recorded_rounds_are_dealt_as_they_were() -> None:
    toy = environment()
    paid = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    recorded = SlateEnvironment("toy", toy.arms, Recorded(lambda t: (torch.arange(4) + t, paid)), ProblemSpec(K, 5))
    assert recorded.round(3).arm_ids.tolist() == [103, 104, 105, 106]
    assert recorded.play(recorded.round(3), slate(1, 2, 3)).arm_rewards.tolist() == [0.0, 1.0, 1.0]
    assert recorded.average_means()[[0, 1, 2, 8]].tolist() == pytest.approx([0.0, 1.0, 0.5, 1.0])
    assert recorded.same_truth(recorded)
    assert not recorded.same_truth(toy)


class Minimal:
    """An environment with the required members alone."""

    def __init__(self, whole: SlateEnvironment) -> None:
        self.name, self.dim, self.slate_size, self.horizon = whole.name, whole.dim, whole.slate_size, whole.horizon
        self.round, self.play = whole.round, whole.play
        self.expected_reward, self.best_expected_reward = whole.expected_reward, whole.best_expected_reward


def test_without_a_score_regret_comes_from_the_expected_rewards() -> None:
    whole = environment(reward=mean(K))
    minimal = Minimal(whole)
    assert isinstance(minimal, Environment)
    for t in (1, 2, 3):
        r, played = whole.round(t), slate(2, 8, 5)
        feedback = whole.play(r, played)
        exact, plain = whole.score(r, played, feedback), scored(minimal, r, played, feedback)
        assert scored(whole, r, played, feedback) == exact
        same = ("best_expected", "expected", "expected_regret", "realised_reward")
        assert [getattr(plain, name) for name in same] == [getattr(exact, name) for name in same]
        assert plain.rival_reward == exact.best_expected
        assert plain.realised_regret == pytest.approx(exact.best_expected - exact.realised_reward)
        assert plain.clipped_regret == max(0.0, plain.realised_regret)
        assert plain.mean_gap == pytest.approx(exact.mean_gap)
        assert 0 <= plain.expected_clipped_regret <= exact.expected_clipped_regret
