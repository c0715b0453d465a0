"""auto: the leader, combined scores, exploration, optimistic slots, restarts, diminishing returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from small_problems import feedback, play, random_round, same_state, slate_of, small_environment, snapshot
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import top
from neuclust.policies.auto import ensemble as ensemble_module
from neuclust.policies.auto.change_point import DriftConfig
from neuclust.policies.auto.ensemble import (
    CERTAIN,
    Ensemble,
    EnsembleConfig,
    refit_on_recent,
    uniform_better,
)
from neuclust.policies.auto.exploration import ExplorationConfig
from neuclust.policies.auto.features import BlocksConfig, ContextClusters, FeatureBlocks, Features
from neuclust.policies.auto.learners.catalogue import Learner
from neuclust.policies.auto.policy import Auto, AutoConfig
from neuclust.randomness import stream
from neuclust.registry import build_policy, load_policy
from neuclust.slates.propensities import Exploration, probability

DIM, K = 6, 3
GREEDY = ExplorationConfig(most=0.0)


def built(seed: int = 2, **changes: Any) -> Auto:
    return Auto(AutoConfig(**{"exploring": GREEDY, **changes}), DIM, K, seed)


def set_chance(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Slots explore with this probability, up to `most`, whatever is known."""
    monkeypatch.setattr(ExplorationConfig, "chance", lambda self, _: min(self.most, share))


def expected_slate(policy: Auto, round: Round, scores: Tensor) -> list[int]:
    return top(scores, round.arm_ids, K).tolist()


def test_the_learner_of_the_most_evidence_leads() -> None:
    """Learners count by prior + Σ one-step-ahead log-likelihood.

    Fails when evidence is counted after learning or before settling, when another learner leads, or when
    the prior is left out.
    """
    environment = small_environment(horizon=60)
    ensemble = EnsembleConfig(prior=0.5, switching=0.0)
    policy = built(seed=3, optimistic_slots=0, items=False, slots=False, ensemble=ensemble)  # the leader changes
    tally = torch.tensor([0.5, 0.0, 0.0, -0.5, 0.0, 0.0, 0.0], dtype=torch.float64)  # contexts are masked: no `local`
    leaders = set()
    for t in range(1, 41):
        round = environment.round(t)
        slate = policy.select(round)
        outcome = environment.play(round, slate)
        if policy.ensemble is not None:
            learners = list(policy.ensemble.learners.values())
            features = policy.ensemble.blocks.read(round.contexts)
            leader = max(range(len(learners)), key=lambda m: float(tally[m]))
            leaders.add(leader)
            assert policy.explain().leader == list(policy.ensemble.learners)[leader]
            scores, means = (
                torch.stack(each) for each in zip(*(one.scores(features, t) for one in learners), strict=True)
            )
            weights = torch.softmax(tally, 0)
            assert slate.positions.tolist() == expected_slate(policy, round, weights @ scores)
            torch.testing.assert_close(slate.means, (weights @ means)[slate.positions], rtol=1e-4, atol=1e-4)
            rows = policy.ensemble.blocks.read(round.contexts[slate.positions])
            certain = CERTAIN * policy.ensemble.plays.scale.unit
            chances = torch.stack([learner.means(rows) for learner in learners]).clamp(certain, 1 - certain)
            r = outcome.arm_rewards
            if t > 3:
                tally = tally + (r * chances.log() + (1 - r) * (1 - chances).log()).sum(1)
        policy.update(round, slate, outcome)
        assert policy.ensemble is not None
        torch.testing.assert_close(policy.ensemble.evidence, tally)
    assert len(leaders) > 1


@pytest.mark.parametrize("switching", [0.0, 1.0])
def test_scores_are_averaged_by_weight(switching: float) -> None:
    environment = small_environment()
    policy = built(optimistic_slots=0, ensemble=EnsembleConfig(switching=switching))
    play(policy, environment, range(1, 15))
    ensemble, round = policy.ensemble, environment.round(15)
    assert ensemble is not None
    features = ensemble.blocks.read(round.contexts)
    scores = torch.stack([learner.scores(features, 15)[0] for learner in ensemble.learners.values()])
    weights = torch.softmax(ensemble.evidence, 0) if switching == 0 else torch.exp(ensemble.log_weights)
    assert policy.select(round).positions.tolist() == expected_slate(policy, round, weights @ scores)


def watched(chosen: tuple[float, int], uniform: tuple[float, int], slates: int) -> Ensemble:
    """An ensemble after slates of arms by score and drawn uniformly: sums of rewards and numbers of both."""
    blocks = FeatureBlocks.of(BlocksConfig(), random_round(1, 30, DIM, K))
    assert blocks is not None
    one = Ensemble(EnsembleConfig(learners="linear"), blocks, K)
    one._chosen, one._uniform = chosen, uniform
    one.plays.slates, one.plays._paid, one.plays._exposed = slates, chosen[0] + uniform[0], chosen[1] + uniform[1]
    return one


def test_it_explores_by_what_is_known_and_not_before_any_data() -> None:
    environment = small_environment()
    policy = built(exploring=ExplorationConfig())
    assert policy.exploring == 0.0
    slate = replace(slate_of(4, 9, 20), explored=torch.tensor([False, True, True]))
    policy.update(environment.round(1), slate, feedback([0.0, 0.0, math.nan], 0.0))
    seen = watched((0.0, 1), (0.0, 1), 1)  # the unseen arm is neither chosen nor drawn
    assert policy.ensemble is not None
    assert (policy.ensemble.mean_reward, uniform_better(policy.ensemble)) == (seen.mean_reward, uniform_better(seen))
    assert policy.exploring == policy.explain().exploring == policy.config.exploring.chance(seen) > 0


@pytest.mark.parametrize("zero", [0.0, 0.4])
def test_the_chance_that_uniform_slots_pay_more_is_that_of_two_rates_of_rewards(zero: float) -> None:
    """Against many draws of Gamma posteriors; rewards are read from the reward 0 on."""
    chosen, uniform = (3.0, 300), (4.0, 150)
    paid, drawn = ((zero * n + (1 - zero) * total, n) for total, n in (chosen, uniform))
    seen = watched(paid, drawn, 90)
    seen.plays.zero = zero
    count, rng = 0.5 / seen.plays.scale.level, stream(5, "test rates", 1)
    low = rng.gamma(chosen[0] + 1.0, 1 / (chosen[1] + count), 400_000)
    high = rng.gamma(uniform[0] + 0.5, 1 / (uniform[1] + count), 400_000)
    expected = float((high > low).mean())
    assert 0.5 < expected < 0.99
    assert uniform_better(seen) == pytest.approx(expected, abs=0.005)


def test_slots_are_drawn_at_random_where_what_is_chosen_pays_less() -> None:
    """Fails when a policy that is wrong about everything goes on choosing, or when one that is right stops."""
    config = ExplorationConfig()
    wrong, right, unknown = (
        watched(*seen, 100) for seen in (((2.0, 480), (3.0, 20)), ((60.0, 480), (1.0, 20)), ((3.0, 500), (0.0, 0)))
    )
    assert config.chance(wrong) > 0.7
    assert config.chance(right) < 0.02
    assert 0.05 < config.chance(unknown) < 0.2  # nothing was drawn so far
    rare = 1 - wrong.plays.scale.informative
    least = rare * uniform_better(wrong) ** config.power
    assert config.chance(wrong) == config.most < least
    assert replace(config, most=1.0).chance(wrong) == pytest.approx(least)
    assert replace(config, most=0.0).chance(wrong) == 0.0


def paid_at_best_prices(seed: int, most: float) -> float:
    """Expected rewards of 200 slates where middle prices are liked; contexts are (price, 1) of one of five segments."""
    learners = EnsembleConfig(learners="linear,additive")
    exploring = ExplorationConfig(most=most)
    policy = Auto(AutoConfig(ensemble=learners, exploring=exploring, optimistic_slots=0), 10, K, seed)
    total = 0.0
    for t in range(1, 201):
        rng, rows = stream(seed, "test prices", t), torch.zeros(60, 10, dtype=torch.float64)
        price, segment = torch.from_numpy(rng.standard_normal(60)), int(rng.integers(5))
        rows[:, 2 * segment], rows[:, 2 * segment + 1] = price, 1.0
        round = Round(t, torch.arange(60), rows, None, K)
        slate = policy.select(round)
        chances = 0.01 + 0.15 * (price[slate.positions].abs() < 0.5)
        coins = torch.from_numpy(stream(7 + seed, "test coins", t).random(K))
        policy.update(round, slate, feedback((coins < chances).double().tolist(), math.nan))
        total += float(chances.sum())
    return total


def test_best_prices_in_the_middle_are_found_by_what_random_slots_pay() -> None:
    """A linear learner takes prices at both ends, which hardly pay: 1 % where any arm would pay 7 %.

    Fails when slots that are chosen and slots that are drawn are not compared.
    """
    chosen_alone, compared = (sum(paid_at_best_prices(seed, most) for seed in (4, 7)) for most in (0.0, 0.8))
    assert chosen_alone < 0.03 * 2 * 200 * K
    assert compared > 3 * chosen_alone


@pytest.mark.parametrize("times", [4, 20])
def test_rewards_so_many_times_rarer_look_alike(times: int) -> None:
    """Equally many rewards of so many times as many arms say the same of chosen and drawn ones.

    Fails when rates are compared by their difference, or when priors have units.
    """
    config, arms = ExplorationConfig(most=1.0), 2_000
    common, seldom = (watched((20.0, n), (1.0, n // 10), 99) for n in (arms, arms * times))
    assert uniform_better(seldom) == pytest.approx(uniform_better(common), rel=0.03)
    assert 0.1 < uniform_better(common) < 0.5
    both = ((1 - one.plays.scale.informative) * uniform_better(one) ** config.power for one in (common, seldom))
    assert [config.chance(common), config.chance(seldom)] == pytest.approx(list(both))


@pytest.mark.parametrize("late", [0, 20])
@pytest.mark.parametrize("seed", [2, 3])
def test_few_slots_explore_where_chosen_arms_pay_more(late: int, seed: int) -> None:
    """Some arms pay 15 %, most hardly anything, at once or some rounds later: random slots end when that is known."""
    policy = built(seed, ensemble=EnsembleConfig(learners="linear,additive"), exploring=ExplorationConfig())
    shares, waiting = [], []
    for t in range(1, 301):
        round = random_round(t, 30, DIM, K)
        slate = policy.select(round)
        chances = 0.15 * round.profiles[slate.positions, 0] ** 4
        clicks = torch.from_numpy(stream(3, "test clicks", t).random(K)) < chances
        waiting.append((round, slate, feedback(clicks.double().tolist(), math.nan)))
        if len(waiting) > late:
            policy.update(*waiting.pop(0))
        shares.append(policy.exploring)
    assert 0 < policy.exploring < 0.02
    assert sum(shares) / len(shares) < 0.1


def test_slots_left_to_chance_take_any_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every slot explores: all arms are taken alike."""
    environment = small_environment()
    set_chance(monkeypatch, 1.0)
    policy = built(exploring=ExplorationConfig(most=1.0))
    play(policy, environment, range(1, 8))
    assert policy.exploring == 1.0
    round, taken = environment.round(8), torch.zeros(48)
    for t in range(100, 500):
        taken[policy.select(replace(round, t=t)).positions] += 1
    assert float(taken.min()) > 0.3 * 400 * K / 48
    assert float(taken.max()) < 2 * 400 * K / 48


def test_exploring_slots_are_as_many_as_the_chance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = small_environment()
    set_chance(monkeypatch, 0.3)
    policy = built(optimistic_slots=0, exploring=ExplorationConfig())
    greedy = built(optimistic_slots=0)
    for one in (policy, greedy):
        for t in range(1, 6):
            one.update(environment.round(t), slate_of(t, t + 9, t + 20), feedback([1.0, 0.0, 1.0], 1.0))
    others = 0
    for t in range(10, 410):
        round = replace(environment.round(6), t=t)
        chosen, best = (one.select(round).positions.tolist() for one in (policy, greedy))
        others += len(set(chosen) - set(best))
    assert others / (400 * K) == pytest.approx(0.3 * 45 / 48, abs=0.05)


def follows_base(slate: Slate, base: list[int]) -> None:
    """Slots that do not explore have the first arm of the base slate that is left."""
    assert slate.explored is not None
    left = list(base)
    for arm, by_chance in zip(slate.positions.tolist(), slate.explored.tolist(), strict=True):
        assert by_chance or arm == left[0]
        left = [other for other in left if other != arm]


def test_slots_drawn_uniformly_are_marked_blind_and_only_those(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chance has them, first or last: slots are looked at differently, and the blind mean is of all of them."""
    environment = small_environment()
    set_chance(monkeypatch, 0.5)
    policy, greedy = (built(optimistic_slots=0, slots=False, exploring=one) for one in (ExplorationConfig(), GREEDY))
    play(greedy, environment, range(1, 8))
    policy.load_state_dict(snapshot(greedy))
    blindly = torch.zeros(K)
    for t in range(100, 300):
        round = replace(environment.round(8), t=t)
        slate, base = policy.select(round), greedy.select(round)
        follows_base(slate, base.positions.tolist())
        assert slate.explored is not None
        blindly += slate.explored
        assert base.explored is not None
        assert not bool(base.explored.any())
    assert (blindly / 200).tolist() == pytest.approx([0.5] * K, abs=0.12)


def test_equal_contexts_are_chosen_together_and_units_do_not_matter() -> None:
    environment = small_environment()
    one, other = (built(exploring=ExplorationConfig()) for _ in range(2))
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


# --- optimistic slots ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opinion:
    """A learner whose score and mean of an arm are one of its features."""

    column: int
    scale: float

    def means(self, features: Features) -> Tensor:
        return features.x[:, self.column] * self.scale

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:
        return self.means(features), self.means(features)


WEIGHTS, EARNED, AHEAD = [0.1, 0.6, 0.3], [-3.0, -9.0, -5.0], [1.0, 8.0, 0.0]
PENALTY = 0.4  # per nat, in units of the rewards: a quarter before any


def scored_round(t: int, slate_size: int, arms: int = 30) -> Round:
    """Arms whose features, from 0.05 to 1.4, are the learners' scores."""
    z = 0.05 + 1.35 * torch.from_numpy(stream(4, "test promises", t).random((arms, DIM)))
    return Round(t, torch.arange(arms), z, None, slate_size)


def opinionated(slate_size: int = 5, **changes: Any) -> Auto:
    """Three learners of which the second leads, though it has lost the most evidence; arms are in two clusters."""
    policy = Auto(AutoConfig(**{"exploring": GREEDY, "penalty": PENALTY, **changes}), DIM, slate_size, 2)
    blocks = FeatureBlocks.of(BlocksConfig(), scored_round(1, slate_size))
    assert blocks is not None
    blocks = replace(blocks, clusters=ContextClusters(torch.eye(2, DIM, dtype=torch.float64), 0.5))
    ensemble = Ensemble(EnsembleConfig(learners="linear,additive,logistic"), blocks, slate_size, 2)
    ensemble.learners = {name: cast(Learner, Opinion(m, blocks.scale)) for m, name in enumerate(ensemble.learners)}
    ensemble.log_weights = torch.log(torch.tensor(WEIGHTS, dtype=torch.float64))
    ensemble._prior = torch.tensor(AHEAD, dtype=torch.float64)
    ensemble.evidence = ensemble._prior + torch.tensor(EARNED, dtype=torch.float64)
    policy.ensemble = ensemble
    return policy


def optimistic_slate(z: list[list[float]], slate_size: int, slots: int, taken: list[int]) -> list[int]:
    """The best average scores, then the largest optimistic ones, by plain loops."""
    free = [arm for arm in range(len(z)) if arm not in taken]
    liked = sorted(free, key=lambda arm: -sum(weight * z[arm][m] for m, weight in enumerate(WEIGHTS)))
    if slate_size - len(taken) < slots + 1:
        return liked[: slate_size - len(taken)]
    own = liked[: slate_size - len(taken) - slots]
    optimistic = {a: max(min(z[a][m], 1.0) - PENALTY / 4 * (max(EARNED) - EARNED[m]) for m in range(3)) for a in free}
    rest = sorted((arm for arm in free if arm not in own), key=lambda arm: (-optimistic[arm], arm))
    return own + rest[:slots]


@pytest.mark.parametrize("slate_size", [1, 2, 5])
@pytest.mark.parametrize("slots", [0, 1, 2, 4, 5])
def test_some_slots_go_to_the_largest_optimistic_scores(slate_size: int, slots: int) -> None:
    """Fails when priors count as evidence, when scores above 1 count for more, or when the average has no slot."""
    policy, plain = opinionated(slate_size, optimistic_slots=slots), opinionated(slate_size, optimistic_slots=0)
    differed = 0
    for t in range(1, 21):
        round = scored_round(t, slate_size)
        slate = policy.select(round)
        assert slate.positions.tolist() == optimistic_slate(round.contexts.tolist(), slate_size, slots, [])
        assert slate.explored is not None
        assert not bool(slate.explored.any())
        average = round.contexts[slate.positions, :3] @ torch.tensor(WEIGHTS, dtype=torch.float64)
        torch.testing.assert_close(slate.means, average)
        differed += slate.positions.tolist() != plain.select(round).positions.tolist()
    assert (differed > 10) == (0 < slots < slate_size)


@pytest.mark.parametrize("slots", [1, 2])
def test_slots_that_explore_are_drawn_around_the_slate_with_optimistic_slots(
    slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every slot has the first arm of the base slate that is left, or any arm; propensities are those of the core."""
    set_chance(monkeypatch, 0.5)
    policy = opinionated(optimistic_slots=slots, exploring=ExplorationConfig())
    explored = set()
    for t in range(1, 101):
        round = scored_round(t, 5, arms=8)  # so few that exploration often takes the best
        slate = policy.select(round)
        base = optimistic_slate(round.contexts.tolist(), 5, slots, [])
        follows_base(slate, base)
        chances = probability(slate.positions, torch.tensor(base), torch.tensor([]), round, Exploration(0.5, 1, 1.0))
        assert slate.propensities is not None
        torch.testing.assert_close(slate.propensities, chances)
        assert slate.explored is not None
        explored.add(int(slate.explored.sum()))
    assert explored >= {1, 2, 3, 4}


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_slots_are_optimistic_as_often_as_a_reward_tells(level: float) -> None:
    policy, plain = opinionated(optimistic_slots=1), opinionated(optimistic_slots=0)
    for one in (policy, plain):
        assert one.ensemble is not None
        one.ensemble.plays._exposed = 0.5 / level - 1  # nothing paid: the start of one arm that paid ½ is left
        assert one.ensemble.plays.scale.level == pytest.approx(level)
    rounds = [scored_round(t, 5) for t in range(1, 401)]
    differed = sum(policy.select(r).positions.tolist() != plain.select(r).positions.tolist() for r in rounds)
    assert differed / 400 == pytest.approx(4 * level * (1 - level), abs=0.06)
    assert differed > 0


def test_no_slot_is_optimistic_where_slates_maximise_marginal_gains() -> None:
    """Arms of which a second one in the same cluster adds half as much."""
    policies = opinionated(optimistic_slots=1), opinionated(optimistic_slots=0)
    rounds = [scored_round(t, 5) for t in range(1, 21)]
    before, plain = ([one.select(round).positions.tolist() for round in rounds] for one in policies)
    assert sum(mine != other for mine, other in zip(before, plain, strict=True)) > 10
    for one in policies:
        one.gains.steps = 0.5 ** torch.arange(5, dtype=torch.float64)
    spread, expected = ([one.select(round).positions.tolist() for round in rounds] for one in policies)
    assert spread == expected
    assert spread != plain  # by marginal gains indeed


@pytest.mark.parametrize(("level", "optimistic"), [(0.5, False), (0.15, False), (0.14, True), (0.02, True)])
def test_without_clusters_slots_are_optimistic_where_rewards_are_rare(level: float, optimistic: bool) -> None:
    """Elsewhere probes test the leader (`test_probes.py`), and a slot more in every slate would cost without end."""
    policies = opinionated(optimistic_slots=1), opinionated(optimistic_slots=0)
    for one in policies:
        assert one.ensemble is not None
        one.ensemble.blocks = replace(one.ensemble.blocks, clusters=None)
        one.ensemble.plays._exposed = 0.5 / level - 1
    rounds = [scored_round(t, 5) for t in range(1, 101)]
    mine, other = ([one.select(round).positions.tolist() for round in rounds] for one in policies)
    assert (mine != other) == optimistic


# --- change points ---------------------------------------------------------------------------------------------


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


def small_ensemble(**drift: Any) -> Auto:
    ensemble = EnsembleConfig(learners="linear,additive", drift=DriftConfig(**drift))
    return built(ensemble=ensemble, exploring=ExplorationConfig())


def test_a_change_is_detected_and_old_slates_are_forgotten() -> None:
    policy, stubborn = small_ensemble(), small_ensemble(threshold=None)
    for one in (policy, stubborn):
        assert played(one, range(1, 101), 1) > 0.7
    assert policy.restarts == 0
    late, still = played(policy, range(101, 161), -1), played(stubborn, range(101, 161), -1)
    assert policy.restarts == policy.explain().restarts == 1
    assert stubborn.restarts == 0
    assert policy.ensemble is not None
    assert 55 <= policy.ensemble.plays.slates <= 65
    assert late > 0.7 > 0.5 > still


def judged(policy: Auto, patch: pytest.MonkeyPatch) -> list[tuple[Ensemble, float]]:
    """Every refit from now on, and by how much it predicted the later half of its slates better."""
    seen: list[tuple[Ensemble, float]] = []

    def watched(ensemble: Ensemble, slates: int, seed: int, generation: int) -> Ensemble:
        fresh = refit_on_recent(ensemble, slates, seed, generation)
        later = max(1, slates // 2)
        seen.append((fresh, fresh.recent_log_likelihood(later) - ensemble.recent_log_likelihood(later)))
        assert fresh.plays.slates == slates
        assert (seed, generation) == (policy.seed, policy.restarts + 1)
        return fresh

    patch.setattr(ensemble_module, "refit_on_recent", watched)
    return seen


def test_a_change_counts_only_if_a_refit_predicts_the_rewards_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same change, and only how much better a refit must be differs."""
    policy, doubtful = small_ensemble(), small_ensemble(gain=1e9)
    for one in (policy, doubtful):
        played(one, range(1, 101), 1)
    seen = judged(policy, monkeypatch)
    played(policy, range(101, 161), -1)
    assert policy.restarts == 1
    assert policy.ensemble is next(fresh for fresh, better in seen if better > 5.0)
    assert all(better <= 5.0 for fresh, better in seen if fresh is not policy.ensemble)
    monkeypatch.undo()
    played(doubtful, range(101, 161), -1)
    assert doubtful.restarts == 0
    assert doubtful.ensemble is not None
    assert doubtful.ensemble.plays.slates == 160
    assert int(doubtful.ensemble.change_test.state_dict()["quiet_until"]) > 100  # there was an alarm, judged false


def test_after_a_false_alarm_nothing_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that nearly always raises an alarm, without a change."""
    jumpy = {"window": 6, "keep": 6, "shortest": 3, "threshold": 0.01}
    policy, credulous = small_ensemble(**jumpy), small_ensemble(**jumpy, gain=-1e9)
    seen = judged(policy, monkeypatch)
    played(policy, range(1, 81), 1)
    assert 1 < len(seen) < 80 / 6  # alarms, each followed by a quiet window
    assert max(better for _, better in seen) <= 5.0
    assert policy.restarts == 0
    assert policy.ensemble is not None
    assert policy.ensemble.plays.slates == 80
    monkeypatch.undo()
    played(credulous, range(1, 81), 1)
    assert credulous.restarts > 0


def test_nothing_is_forgotten_without_a_change() -> None:
    policy = small_ensemble()
    played(policy, range(1, 251), 1)
    assert policy.restarts == 0
    assert policy.ensemble is not None
    assert policy.ensemble.plays.slates == 250


def test_a_policy_saved_after_a_restart_continues_alike() -> None:
    policy, again = small_ensemble(), small_ensemble()
    played(policy, range(1, 91), 1)
    played(policy, range(91, 121), -1)
    assert policy.restarts == 1
    again.load_state_dict(snapshot(policy))
    assert same_state(snapshot(policy), snapshot(again))
    played(policy, range(121, 131), -1)
    played(again, range(121, 131), -1)
    assert same_state(snapshot(policy), snapshot(again))


# --- arms in clusters ------------------------------------------------------------------------------------------

PER_CLUSTER, CENTRES = 15, 4
LEVELS = torch.tensor([0.6, 0.55, 0.5, 0.45], dtype=torch.float64)  # of the clusters' arms


def clustered_round(t: int) -> Round:
    """Arms near four corners in turn; the arm at position p is of cluster p mod 4."""
    corners = 1 + 2 * torch.eye(CENTRES, DIM, dtype=torch.float64)
    near = 0.3 * torch.from_numpy(stream(0, "test clusters").random((CENTRES * PER_CLUSTER, DIM)))
    return Round(t, torch.arange(len(near)), corners.repeat(PER_CLUSTER, 1) + near, None, K + 1)


def gathered(seed: int = 2, **changes: Any) -> Auto:
    """A policy with its clusters set: the search takes seconds."""
    config = AutoConfig(**{"ensemble": EnsembleConfig(learners="linear,local"), **changes})
    policy, first = Auto(config, DIM, K + 1, seed), clustered_round(1)
    blocks = FeatureBlocks.of(config.blocks, first)
    assert blocks is not None
    x = blocks.scaled(first.contexts)
    clusters = ContextClusters(torch.stack([x[c::CENTRES].mean(0) for c in range(CENTRES)]), 0.1)
    policy.ensemble = Ensemble(config.ensemble, replace(blocks, clusters=clusters), K + 1, seed)
    return policy


def paid(slate: Slate, t: int, coverage: bool) -> Feedback:
    """A slate pays the share of clusters with a rewarded arm, or of rewarded arms."""
    labels = slate.positions % CENTRES
    hits = torch.from_numpy(stream(7, "test hits", t).random(K + 1)) < LEVELS[labels]
    value = len(torch.unique(labels[hits])) if coverage else int(hits.sum())
    return Feedback(hits.double(), torch.tensor(value / (K + 1), dtype=torch.float64))


def rewarded(policy: Auto, rounds: range, coverage: bool) -> list[list[int]]:
    slates = []
    for t in rounds:
        slate = policy.select(clustered_round(t))
        policy.update(clustered_round(t), slate, paid(slate, t, coverage))
        slates.append(slate.positions.tolist())
    return slates


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_slate_spreads_over_clusters_where_that_pays_and_else_is_the_top(seed: int) -> None:
    """No cluster is so good that slates hardly ever mix: such slates cannot tell what spreading pays."""
    spread, counted = gathered(seed, optimistic_slots=0), gathered(seed, optimistic_slots=0)
    assert spread.explain().steps is None
    rewarded(spread, range(1, 121), coverage=True)
    rewarded(counted, range(1, 121), coverage=False)
    for one in (spread, counted):
        one.config = replace(one.config, exploring=GREEDY)
    explanation, plain = spread.explain(), counted.explain()
    assert explanation.clusters == plain.clusters == CENTRES
    assert plain.steps is None
    assert explanation.steps is not None
    assert explanation.steps[0] == 1.0
    assert sorted(explanation.steps, reverse=True) == list(explanation.steps)
    assert explanation.steps[-1] < 0.3
    for t in range(121, 126):
        round = clustered_round(t)
        assert sorted(p % CENTRES for p in spread.select(round).positions.tolist()) == list(range(CENTRES))
        assert counted.ensemble is not None
        features = counted.ensemble.blocks.read(round.contexts)
        weights = torch.exp(counted.ensemble.log_weights)
        learners = counted.ensemble.learners.values()
        scores = weights @ torch.stack([learner.scores(features, t)[0] for learner in learners])
        expected = top(scores, round.arm_ids, K + 1)
        assert counted.select(round).positions.tolist() == expected.tolist()


def test_clusters_are_found_by_the_first_round_and_explained() -> None:
    config = AutoConfig(
        ensemble=EnsembleConfig(learners="linear,local"), blocks=BlocksConfig(most_clusters=5, fewest_arms=60)
    )
    policy = Auto(config, DIM, K + 1, 2)
    assert (policy.explain().clusters, policy.explain().steps) == (None, None)
    policy.update(clustered_round(1), slate_of(0, 1, 2, 3), feedback([1.0, 0.0, 1.0, 0.0], 0.5))
    assert policy.explain().clusters == CENTRES
    assert list(policy.explain().gaps) == ["linear", "local"]
    few = Auto(replace(config, blocks=BlocksConfig(fewest_arms=61)), DIM, K + 1, 2)
    few.update(clustered_round(1), slate_of(0, 1, 2, 3), feedback([1.0, 0.0, 1.0, 0.0], 0.5))
    assert few.explain().clusters == 1
    assert list(few.explain().gaps) == ["linear"]


def test_a_saved_policy_that_knows_clusters_plays_on_alike(tmp_path: Path) -> None:
    policy = gathered()
    rewarded(policy, range(1, 61), coverage=True)
    assert policy.explain().steps is not None  # marginal gains must be saved as well
    policy.save(tmp_path / "saved")
    again = load_policy(tmp_path / "saved")
    assert isinstance(again, Auto)
    assert again.explain() == policy.explain()
    assert rewarded(policy, range(61, 81), coverage=True) == rewarded(again, range(61, 81), coverage=True)
    assert same_state(snapshot(policy), snapshot(again))


# --- errors and explanations -----------------------------------------------------------------------------------


def test_it_explains_which_learner_leads() -> None:
    environment = small_environment()
    policy = built()
    assert (policy.explain().leader, policy.explain().weights) == (None, {})
    play(policy, environment, range(1, 12))
    explanation = policy.explain()
    assert explanation.leader is not None
    assert min(explanation.gaps.values()) == 0.0
    assert list(explanation.weights) == list(explanation.gaps)
    assert sum(explanation.weights.values()) == pytest.approx(1.0)
    assert explanation.weights[explanation.leader] == max(explanation.weights.values())
    assert policy.ensemble is not None
    assert list(explanation.weights.values()) == pytest.approx(policy.ensemble.log_weights.exp().tolist())
    assert list(explanation.gaps) == [name for name in policy.config.ensemble.learners.split(",") if name != "local"]
    assert set(explanation.noise) == {"linear"}
    assert (explanation.masked, explanation.exploring, policy.failed_trainings) == (True, 0.0, 0)
    assert (explanation.clusters, explanation.steps) == (1, None)


def test_the_linear_preset_plays_without_exploring() -> None:
    environment = small_environment()
    policy: Any = build_policy("auto", environment=environment, preset="linear", seed=1)
    slates = play(policy, environment, range(1, 12))
    assert all(len(set(slate)) == K for slate in slates)
    explanation = policy.explain()
    assert list(explanation.gaps) == ["linear"]
    assert (explanation.exploring, explanation.restarts) == (0.0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"penalty": -1.0}, {"optimistic_slots": -1},
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        AutoConfig(**change)


@pytest.mark.parametrize("change", [{"most": 1.5}, {"probes": -1.0}, {"power": math.nan}])
def test_impossible_exploration_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        ExplorationConfig(**change)


def test_an_optimistic_slot_that_is_drawn_leaves_propensities_unknown() -> None:
    policy = built(ensemble=EnsembleConfig(learners="linear,additive"), exploring=GREEDY)
    rng = stream(3, "contexts")
    for t in range(1, 4):
        contexts = torch.from_numpy(rng.standard_normal((20, policy.dim)))
        offered = Round(t, torch.arange(20), contexts, None, policy.slate_size)
        slate = policy.select(offered)
        if t == 1:
            assert slate.propensities is not None  # nothing is drawn before any reward
            policy.settle(offered)
            assert policy.ensemble is not None
            corners = torch.eye(2, policy.dim, dtype=torch.float64)
            policy.ensemble.blocks = replace(policy.ensemble.blocks, clusters=ContextClusters(corners, 0.5))
        zeros = torch.zeros(policy.slate_size)
        policy.update(offered, slate, Feedback(zeros, torch.tensor(0.0)))
    assert policy.ensemble is not None
    assert policy.ensemble.plays.scale.informative < 1
    assert slate.propensities is None
