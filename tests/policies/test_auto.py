"""auto: who leads, how scores are combined, what is left to chance, and what is forgotten."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import feedback, play, random_round, same_state, slate_of, small_environment, snapshot
from torch import Tensor

from neuclust.core import Feedback, Round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.ranking import top
from neuclust.parts.surprise import DriftConfig
from neuclust.policies.auto import Auto, AutoConfig, ExploringConfig
from neuclust.randomness import stream

DIM, K = 6, 3
GREEDY = ExploringConfig(eps0=0.0)


def built(seed: int = 2, **changes: Any) -> Auto:
    return Auto(AutoConfig(**{"exploring": GREEDY, **changes}), DIM, K, seed)


def expected_slate(policy: Auto, round: Round, scores: Tensor) -> list[int]:
    return top(scores, round.arm_ids, K).tolist()


def test_the_learner_that_foresaw_the_rewards_best_leads() -> None:
    """The slate is the top K of the learner with the largest prior + Σ one-step-ahead log-likelihood.

    Fails when evidence is counted after learning, when another learner leads, or when the prior is left out.
    """
    environment = small_environment(horizon=60)
    policy = built(combine="leader")
    tally: Tensor | None = None
    leaders = set()
    for t in range(1, 41):
        round = environment.round(t)
        slate = policy.select(round)
        outcome = environment.play(round, slate)
        if policy.team is not None and tally is not None:
            learners = list(policy.team.learners.values())
            features = policy.team.blocks.read(round.contexts)
            leader = max(range(len(learners)), key=lambda m: float(tally[m]))  # type: ignore[index]
            leaders.add(leader)
            scores, means = learners[leader].scores(features, t)
            assert slate.positions.tolist() == expected_slate(policy, round, scores)
            torch.testing.assert_close(slate.means, means[slate.positions])
            rows = policy.team.blocks.read(round.contexts[slate.positions])
            chances = torch.stack([learner.means(rows) for learner in learners]).clamp(0.03, 0.97)
            r = outcome.arm_rewards
            tally = tally + (r * chances.log() + (1 - r) * (1 - chances).log()).sum(1)
        policy.update(round, slate, outcome)
        assert policy.team is not None
        tally = policy.team.evidence.clone() if tally is None else tally
        torch.testing.assert_close(policy.team.evidence, tally)
    assert len(leaders) > 1


@pytest.mark.parametrize("combine", ["max", "average"])
def test_scores_are_combined_by_the_rule(combine: str) -> None:
    environment = small_environment()
    policy = built(combine=combine, penalty=0.2, temperature=2.0)
    play(policy, environment, range(1, 15))
    team, round = policy.team, environment.round(15)
    assert team is not None
    features = team.blocks.read(round.contexts)
    scores = torch.stack([learner.scores(features, 15)[0] for learner in team.learners.values()])
    gaps = team.evidence.max() - team.evidence
    if combine == "max":
        expected = (scores - 0.2 * gaps[:, None]).max(0).values
    else:
        weights = torch.exp(-gaps / 2.0)
        expected = (weights / weights.sum()) @ scores
    assert policy.select(round).positions.tolist() == expected_slate(policy, round, expected)


def test_the_chance_to_explore_follows_rewards_and_time() -> None:
    config = ExploringConfig(eps0=0.6, epsc=12.0, power=2.0)
    assert config.chance(0.2, 1) == pytest.approx(0.64 * 0.6)
    assert config.chance(0.5, 100) == pytest.approx(0.25 * 0.12)
    assert config.chance(1.0, 1) == 0


@pytest.mark.parametrize("rival", [0.0, 1.0])
def test_slots_left_to_chance_take_any_arm_or_a_learners_best(rival: float) -> None:
    """Every slot explores. Any arm: all are taken alike. A learner's best: only the learners' first arms."""
    environment = small_environment()
    policy = built(exploring=ExploringConfig(eps0=1.0, epsc=1e9, power=0.0, rival=rival))
    play(policy, environment, range(1, 8))
    assert policy.team is not None
    assert policy.exploring == 1.0
    round, taken = environment.round(8), torch.zeros(48)
    for t in range(100, 500):
        taken[policy.select(replace(round, t=t)).positions] += 1
    if rival == 0.0:
        assert float(taken.min()) > 0.3 * 400 * K / 48
        assert float(taken.max()) < 2 * 400 * K / 48
        return
    features = policy.team.blocks.read(round.contexts)
    greedy = [learner.means(features) for learner in list(policy.team.learners.values())[1:4]]
    best = {int(top(means, round.arm_ids, 1)[0]) for means in greedy}
    assert all(taken[arm] > 400 / 6 for arm in best)
    assert int((taken > 0).sum()) < 40


def test_exploring_slots_are_as_many_as_the_chance_says() -> None:
    environment = small_environment()
    policy = built(exploring=ExploringConfig(eps0=0.3, epsc=1e9, power=0.0, rival=0.0))
    greedy = built(exploring=GREEDY)
    for one in (policy, greedy):
        for t in range(1, 6):
            one.update(environment.round(t), slate_of(t, t + 9, t + 20), feedback([1.0, 0.0, 1.0], 1.0))
    others = 0
    for t in range(10, 410):
        round = replace(environment.round(6), t=t)
        chosen, best = (one.select(round).positions.tolist() for one in (policy, greedy))
        others += len(set(chosen) - set(best))
    assert others / (400 * K) == pytest.approx(0.3 * 45 / 48, abs=0.05)


def test_equal_contexts_are_chosen_together_and_units_do_not_matter() -> None:
    environment = small_environment()
    one, other = (built(exploring=ExploringConfig()) for _ in range(2))
    for t in range(1, 20):
        round = environment.round(t)
        scaled = replace(round, profiles=round.profiles * 2.0**-20)
        slate = one.select(round)
        assert other.select(scaled).positions.tolist() == slate.positions.tolist()
        outcome = environment.play(round, slate)
        one.update(round, slate, outcome)
        other.update(scaled, slate, outcome)
    twins = replace(environment.round(21), profiles=environment.round(21).profiles[torch.arange(48) // 2])
    greedy = built()
    greedy.load_state_dict(one.state_dict())
    first, second, _ = greedy.select(twins).positions.tolist()
    assert (first % 2, second) == (0, first + 1)


# --- a world that changes -------------------------------------------------------------------------------------


def liked(round: Round, positions: Tensor, sign: int, t: int) -> Feedback:
    """Rewards with a chance that rises from 0.05 to 0.85 with the first column, or falls."""
    chances = 0.05 + 0.8 * torch.sigmoid(20 * (sign * (round.profiles[positions, 0] - 0.5) - 0.2))
    coins = torch.from_numpy(stream(0, "test coins", t).random(K))
    return Feedback((coins < chances).double(), torch.tensor(math.nan, dtype=torch.float64))


def played(policy: Auto, rounds: range, sign: int) -> float:
    """Mean reward over the second half of these rounds."""
    rewards = []
    for t in rounds:
        round = random_round(t, 60, DIM, K)
        slate = policy.select(round)
        outcome = liked(round, slate.positions, sign, t)
        policy.update(round, slate, outcome)
        rewards.append(float(outcome.arm_rewards.mean()))
    late = rewards[len(rewards) // 2 :]
    return sum(late) / len(late)


def small_team(**changes: Any) -> Auto:
    return built(learners="linear,additive", exploring=ExploringConfig(), **changes)


def test_a_change_is_noticed_old_slates_are_forgotten_and_the_new_world_is_learned() -> None:
    policy, stubborn = small_team(), small_team(drift=DriftConfig(threshold=None))
    for one in (policy, stubborn):
        assert played(one, range(1, 101), 1) > 0.7
    assert policy.restarts == 0
    late, still = played(policy, range(101, 161), -1), played(stubborn, range(101, 161), -1)
    assert policy.restarts == policy.explain().restarts == 1
    assert stubborn.restarts == 0
    assert policy.team is not None
    assert 55 <= policy.team.plays.slates <= 65
    assert late > 0.7 > 0.5 > still


def test_nothing_is_forgotten_in_a_world_that_stays() -> None:
    policy = small_team()
    played(policy, range(1, 251), 1)
    assert policy.restarts == 0
    assert policy.team is not None
    assert policy.team.plays.slates == 250


def test_a_policy_saved_after_a_restart_continues_alike() -> None:
    policy, again = small_team(), small_team()
    played(policy, range(1, 91), 1)
    played(policy, range(91, 121), -1)
    assert policy.restarts == 1
    again.load_state_dict(snapshot(policy))
    assert same_state(snapshot(policy), snapshot(again))
    played(policy, range(121, 131), -1)
    played(again, range(121, 131), -1)
    assert same_state(snapshot(policy), snapshot(again))


# --- manners --------------------------------------------------------------------------------------------------


def test_rewards_that_are_no_chances_are_refused_and_change_nothing() -> None:
    environment = small_environment()
    policy = built()
    play(policy, environment, range(1, 3))
    before = snapshot(policy)
    with pytest.raises(DataError, match="from 0 to 1, got 4"):
        policy.update(environment.round(3), slate_of(0, 1, 2), feedback([1.0, 4.0, 0.0], 1.0))
    assert same_state(before, snapshot(policy))


def test_it_says_who_leads_and_why() -> None:
    environment = small_environment()
    policy = built()
    assert policy.explain().leader is None
    play(policy, environment, range(1, 12))
    told = policy.explain()
    assert told.leader is not None
    assert told.gaps[told.leader] == 0.0
    assert list(told.gaps) == policy.config.learners.split(",")
    assert set(told.noise) == {"linear", "quadratic"}
    assert (told.masked, told.exploring, policy.failed_trainings) == (True, 0.0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"learners": "linear,magic"}, {"combine": "best"}, {"penalty": -1.0}, {"temperature": 0.0},
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        AutoConfig(**change)


@pytest.mark.parametrize("change", [{"eps0": 1.5}, {"rival": -0.1}, {"epsc": -1.0}, {"power": math.nan}])
def test_impossible_exploration_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        ExploringConfig(**change)
