"""Exploration around a policy: its slate, its pool, exact chances, and its learning left to itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ruled_rounds import rounds
from scipy.stats import chisquare
from small_problems import feedback, not_none
from torch import Tensor

from neuclust.core import Cap, Feedback, Policy, Round, Rules, Slate
from neuclust.errors import ConfigError, DataError, SaveError, StateError
from neuclust.kernels.ranking import top
from neuclust.models.state import take
from neuclust.policies.exploring import Exploring, HasScores, base_slate, pooled_arms
from neuclust.slates.propensities import Exploration, probability
from neuclust.slates.rules import keeps, keeps_rules, row_rules


class Counting:
    """Plays the arms whose ids have the largest values; adds rewards to the values it is told of."""

    dim, slate_size = 2, 4

    def __init__(self, arms: int = 40) -> None:
        self.values = torch.arange(arms, dtype=torch.float64)
        self.asked: list[Round] = []

    def select(self, round: Round) -> Slate:
        self.asked.append(round)
        values = self.values[round.arm_ids]
        best = top(values, round.arm_ids, round.slate_size)
        return Slate(best, values[best], values[best] / 100, propensities=None, cluster=2)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        self.values[round.arm_ids[slate.positions]] += feedback.arm_rewards

    def state_dict(self) -> dict[str, Tensor]:
        return {"values": self.values.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.values = take(state, "values", self.values)

    def save(self, directory: Path) -> None:
        raise AssertionError


class Scoring(Counting):
    """The same, and says its scores."""

    def scores(self, round: Round) -> Tensor:
        return self.values[round.arm_ids]


class Ruled(Scoring):
    """The same, and keeps rules by itself."""

    @keeps_rules
    def select(self, round: Round) -> Slate:
        return super().select(round)


KINDS = [Counting, Scoring, Ruled]


def round_of(n: int = 40, k: int = 3, t: int = 1, **fields: Any) -> Round:
    return Round(t, torch.arange(n), torch.ones(n, 2), None, k, **fields)


def test_it_is_a_policy_and_policies_with_scores_are_told_apart() -> None:
    policy: Policy = Exploring(Counting())
    assert isinstance(policy, Policy)
    assert isinstance(Scoring(), HasScores)
    assert not isinstance(Counting(), HasScores)
    not_one: Any = "linucb"
    with pytest.raises(ConfigError, match="policy: expected a policy to explore around"):
        Exploring(not_one)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_share_the_slate_is_the_policys(kind: type[Counting]) -> None:
    round = round_of()
    slate, own = Exploring(kind(), Exploration(share=0.0)).select(round), kind().select(round)
    assert slate.positions.tolist() == own.positions.tolist() == [39, 38, 37]
    assert slate.means.tolist() == own.means.tolist()
    assert slate.bonuses.tolist() == own.bonuses.tolist()
    assert not_none(slate.propensities).tolist() == [1.0] * 3
    assert (slate.cluster, slate.explored) == (2, None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_pool_are_the_best_arms_that_rules_allow(kind: type[Counting]) -> None:
    """Fails when excluded arms fill the pool, when the base slate is left out, or when asking stops at one slate."""
    round = round_of(rules=Rules(excluded=torch.tensor([36, 39])))
    base = torch.tensor([38, 2, 37])  # a base slate with an arm far from the best
    assert pooled_arms(kind(), round, row_rules(round), base, 9).tolist() == [38, 2, 37, 35, 34, 33, 32, 31, 30]
    assert pooled_arms(kind(), round, row_rules(round), base, 2).tolist() == base.tolist()
    assert sorted(pooled_arms(kind(), round, row_rules(round), base, 100).tolist()) == [*range(36), 37, 38]


def test_scores_of_another_length_are_refused() -> None:
    class Short(Scoring):
        def scores(self, round: Round) -> Tensor:
            return self.values[:5]

    with pytest.raises(DataError, match=r"one score per arm, \(40,\), from the policy, got shape \(5,\)"):
        Exploring(Short()).select(round_of())


@pytest.mark.parametrize("kind", [Counting, Ruled])
def test_slates_are_as_frequent_as_the_product_of_their_propensities(kind: type[Counting]) -> None:
    """Fails when rounds share random numbers, or when propensities belong to another base slate or pool."""
    rules = Rules(torch.tensor([1]), torch.tensor([5]), (Cap(torch.tensor([0, 0, 1, 1, 2, 2]), 1),))
    explorer, counts = Exploring(kind(), Exploration(0.8, pool=4, anywhere=0.5), seed=3), Counter[tuple[int, ...]]()
    chances: dict[tuple[int, ...], float] = {}
    for t in range(1, 601):
        slate = explorer.select(round_of(6, 3, t, rules=rules))
        rows = tuple(slate.positions.tolist())
        counts[rows] += 1
        chance = math.prod(not_none(slate.propensities).tolist())
        assert chances.setdefault(rows, chance) == chance
    assert len(chances) == 12  # arm 1, one of 2 and 3, and arm 4, in any order
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)
    expected = [600 * chances[rows] for rows in counts]
    assert min(expected) > 5
    assert chisquare(list(counts.values()), expected).pvalue > 1e-4


@settings(max_examples=40, deadline=None)
@given(round=rounds(most_arms=6, most_slots=4, full=True), seed=st.integers(0, 1000), kind=st.sampled_from(KINDS))
def test_every_slate_keeps_the_rules_with_its_exact_chance(round: Round, seed: int, kind: type[Counting]) -> None:
    exploration = Exploration(0.6, pool=3, anywhere=0.5)
    policy = kind()
    slate = Exploring(policy, exploration, seed).select(round)
    assert keeps(row_rules(round), slate.positions.tolist())
    base = base_slate(kind(), round, row_rules(round))
    pool = pooled_arms(kind(), round, row_rules(round), base.positions, 3)
    expected = probability(slate.positions, base.positions, pool, round, exploration)
    assert not_none(slate.propensities).tolist() == expected.tolist()
    values = policy.values[round.arm_ids[slate.positions]]
    assert slate.means.tolist() == values.tolist()
    assert slate.bonuses.tolist() == (values / 100).tolist()


def test_randomness_is_keyed_by_the_rounds_draw_and_the_seed() -> None:
    explorer = Exploring(Scoring(), Exploration(1.0, pool=40), seed=1)
    first = explorer.select(round_of(t=5)).positions.tolist()
    assert explorer.select(round_of(t=5)).positions.tolist() == first
    assert explorer.select(round_of(t=8, draw=5)).positions.tolist() == first
    assert explorer.select(round_of(t=5, draw=8)).positions.tolist() != first
    assert Exploring(Scoring(), Exploration(1.0, pool=40), seed=2).select(round_of(t=5)).positions.tolist() != first


def test_arms_besides_the_base_slate_are_asked_for_by_themselves_and_leave_no_cluster() -> None:
    policy = Scoring()
    slate = Exploring(policy, Exploration(1.0, pool=1, anywhere=1.0)).select(round_of())
    assert len(policy.asked) == 2
    drawn = [row for row in slate.positions.tolist() if row < 37]
    assert policy.asked[1].arm_ids.tolist() == drawn
    assert slate.cluster is None
    assert not_none(slate.explored).tolist() == [True] * 3


def test_arms_that_the_policy_itself_drew_evenly_stay_marked() -> None:
    class Drawing(Scoring):
        def select(self, round: Round) -> Slate:
            slate = super().select(round)
            return replace(slate, explored=slate.positions == 38)

    slate = Exploring(Drawing(), Exploration(share=0.0)).select(round_of())
    assert not_none(slate.explored).tolist() == [False, True, False]


def test_a_policy_that_does_not_know_rules_is_kept_to_them() -> None:
    rules = Rules(torch.tensor([0]), torch.tensor([39]), (Cap(torch.arange(40) // 2, 1),))
    for kind in KINDS:
        slate = Exploring(kind(), Exploration(share=0.0)).select(round_of(rules=rules))
        assert sorted(slate.positions.tolist()) == [0, 37, 38]
        assert not_none(slate.propensities).tolist() == [1.0] * 3
    with pytest.raises(DataError, match="only 2 fit"):
        Exploring(Counting()).select(round_of(rules=Rules(caps=(Cap(torch.arange(40) % 2, 1),))))


def test_updates_and_state_are_the_policys_and_the_seed() -> None:
    explorer, round = Exploring(Scoring(), seed=4), round_of()
    slate = explorer.select(round)
    before = explorer.state_dict()
    explorer.select(round)
    assert torch.equal(explorer.state_dict()["policy.values"], before["policy.values"])
    explorer.update(round, slate, feedback([1.0, 0.0, 1.0], 1.0))
    after = explorer.state_dict()
    assert set(after) == {"seed", "policy.values"}
    gained = after["policy.values"] - before["policy.values"]
    assert gained[slate.positions].tolist() == [1.0, 0.0, 1.0]
    other = Exploring(Scoring(), seed=9)
    other.load_state_dict(after)
    later = round_of(t=2)
    assert other.select(later).positions.tolist() == explorer.select(later).positions.tolist()
    with pytest.raises(StateError, match="seed"):
        other.load_state_dict({"policy.values": after["policy.values"]})
    with pytest.raises(StateError, match="values"):
        other.load_state_dict({"seed": torch.tensor(11)})
    assert other.seed == 4


def test_saving_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="save its `policy`"):
        Exploring(Counting()).save(tmp_path / "save")
    assert list(tmp_path.iterdir()) == []
