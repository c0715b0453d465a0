"""What every policy of every preset must keep, whatever it learns."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_problems import feedback, play, same_state, slate_of, small_environment, snapshot
from torch import Tensor

from neuclust.core import Policy, Round, Slate
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.registry import POLICIES, build_policy, load_policy, policy_config

K = 3
EVERY = [(name, preset) for name, spec in POLICIES.items() for preset in spec.presets]
TOLD = ("oracle", "cluster-oracle")  # what they know cannot be saved
LEARNING = [(name, preset) for name, preset in EVERY if name not in ("uniform", "static", *TOLD)]
APART = ("linucb-disjoint", "cc-mab", "cucb")  # what they learn of one arm may say nothing of another


def build(name: str, preset: str, environment: SlateEnvironment, seed: Any = 1, **overrides: str) -> Policy:
    """The preset with four clusters, and fewer steps where one update makes hundreds of them."""
    slow = preset.startswith("authors") and hasattr(POLICIES[name].presets[preset], "arms")
    quick = {"arms.training.steps": "6"} if slow else {}
    return build_policy(
        name, preset=preset, environment=environment, seed=seed, clusters=4, overrides={**quick, **overrides}
    )


def load(name: str, directory: Path, environment: SlateEnvironment) -> Policy:
    told = {"means": environment.means, "value": environment.expected_reward}
    kept = {"oracle": ["means"], "cluster-oracle": ["means", "value"]}.get(name, [])
    return load_policy(directory, **{part: told[part] for part in kept})


def answer(policy: Policy, round: Round) -> tuple[list[int], list[float], list[float], int | None]:
    slate = policy.select(round)
    return slate.positions.tolist(), slate.means.tolist(), slate.bonuses.tolist(), slate.cluster


every_policy = pytest.mark.parametrize(("name", "preset"), EVERY)
learning_policies = pytest.mark.parametrize(("name", "preset"), LEARNING)


# --- select ---------------------------------------------------------------------------------------------------


@every_policy
def test_it_is_a_policy(name: str, preset: str) -> None:
    assert isinstance(build(name, preset, small_environment()), Policy)


@every_policy
def test_select_leaves_the_state_as_it_was_and_answers_alike(name: str, preset: str) -> None:
    environment = small_environment()
    policy = build(name, preset, environment)
    for t in range(1, 4):
        round = environment.round(t)
        before = snapshot(policy)
        first = answer(policy, round)
        policy.select(environment.round(t + 7))
        assert answer(policy, round) == first
        assert same_state(before, snapshot(policy))
        slate = policy.select(round)
        policy.update(round, slate, environment.play(round, slate))


@every_policy
def test_a_slate_is_k_distinct_positions_of_the_round(name: str, preset: str) -> None:
    environment = small_environment(arms_per_round=30)
    policy = build(name, preset, environment, **small_clusters(name))
    for t in range(1, 6):
        round = environment.round(t)
        slate = policy.select(round)
        assert slate.positions.dtype == torch.int64
        assert slate.means.shape == slate.bonuses.shape == (K,)
        assert len(set(slate.positions.tolist())) == K
        assert 0 <= int(slate.positions.min()) <= int(slate.positions.max()) < 30
        assert bool(torch.isfinite(slate.means).all() and (slate.bonuses >= 0).all())
        policy.update(round, slate, environment.play(round, slate))


def small_clusters(name: str) -> dict[str, str]:
    """Where arms come and go a cluster may have too few of them."""
    return {"clustering.small": "merge"} if "clust" in name else {}


@every_policy
def test_the_same_seed_gives_the_same_slates(name: str, preset: str) -> None:
    environment = small_environment()
    first, again = (play(build(name, preset, environment), environment, range(1, 8)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n, p in EVERY if n not in ("linucb", "static", "oracle")])
def test_another_seed_is_another_policy(name: str, preset: str) -> None:
    environment = small_environment()
    states = [snapshot(build(name, preset, environment, seed=seed)) for seed in (1, 2)]
    assert not same_state(states[0], states[1])


@every_policy
def test_a_round_that_asks_for_nothing_still_gets_a_slate(name: str, preset: str) -> None:
    environment = small_environment()
    policy = build(name, preset, environment)
    round = replace(environment.round(1), query=torch.zeros(6, dtype=torch.float64))
    if name in TOLD:
        policy = build_policy(name, environment=fixed(environment))
    slate = policy.select(round)
    assert len(set(slate.positions.tolist())) == K
    policy.update(round, slate, feedback([1.0, 0.0, 1.0], 1.0))
    assert len(set(policy.select(environment.round(2)).positions.tolist())) == K


class _Fixed:
    """The same problem with means that no query changes, for the oracle."""

    def __init__(self, environment: SlateEnvironment) -> None:
        self.dim, self.slate_size = environment.dim, environment.slate_size
        self.arm_ids, self.counts = environment.arm_ids, environment.counts
        self.profiles = environment.profiles

    def means(self, round: Round) -> Tensor:
        return round.profiles.sum(1)

    def expected_reward(self, round: Round, slate: Slate) -> float:
        return float(self.means(round)[slate.positions].sum())


def fixed(environment: SlateEnvironment) -> Any:
    return _Fixed(environment)


@every_policy
def test_a_round_without_a_query_is_playable(name: str, preset: str) -> None:
    environment = small_environment()
    policy = build_policy(name, environment=fixed(environment)) if name in TOLD else build(name, preset, environment)
    for t in (1, 2, 3):
        round = replace(environment.round(1), t=t, query=None)
        if preset == "paper-lift":
            round = replace(round, profiles=round.profiles / 2)  # its ρ bounds masked contexts
        slate = policy.select(round)
        assert len(set(slate.positions.tolist())) == K
        policy.update(round, slate, feedback([1.0, 0.0, 1.0], 1.0))


# --- learning -------------------------------------------------------------------------------------------------


@learning_policies
def test_feedback_changes_what_is_believed(name: str, preset: str) -> None:
    environment = small_environment()
    policy = build(name, preset, environment)
    round = environment.round(1)
    before = answer(policy, round)
    slate = policy.select(round)
    policy.update(round, slate, feedback([1.0, 1.0, 1.0], 1.0))
    assert answer(policy, round) != before


@learning_policies
def test_unseen_rewards_are_not_learned(name: str, preset: str) -> None:
    """After feedback that is all NaN a policy believes what it believed."""
    environment = small_environment()
    policy, fresh = build(name, preset, environment), build(name, preset, environment)
    round = environment.round(1)
    policy.update(round, policy.select(round), feedback([math.nan] * K, math.nan))
    scanned = preset.startswith("authors") and name != "cn-ucb"  # the authors' scan widens U whatever was seen
    for t in (1, 2):
        found, expected = answer(policy, environment.round(t)), answer(fresh, environment.round(t))
        assert found == expected or (scanned and found[1] == expected[1])


@learning_policies
def test_an_arm_whose_reward_was_not_seen_leaves_no_trace(name: str, preset: str) -> None:
    """Two slates that differ in the unseen arm only teach the same."""
    environment = small_environment()
    round = after = environment.round(1)
    if name in APART:  # ask for the arms in question
        after = replace(round, arm_ids=round.arm_ids[[0, 5, 9]], profiles=round.profiles[[0, 5, 9]])
    answers = []
    for unseen in (2, 9):
        policy = build(name, preset, environment)
        policy.update(round, slate_of(0, unseen, 5), feedback([1.0, math.nan, 0.0], math.nan))
        answers.append(answer(policy, after))
    other = build(name, preset, environment)
    other.update(round, slate_of(0, 9, 5), feedback([1.0, 1.0, 0.0], math.nan))
    assert answers[0] == answers[1] != answer(other, after)
    assert answers[0][1] != answer(build(name, preset, environment), after)[1]  # what was seen is learned


@pytest.mark.parametrize("preset", list(POLICIES["neuclust"].presets))
def test_an_unseen_slate_reward_does_not_move_the_slate_model(preset: str) -> None:
    environment = small_environment()
    policy = build("neuclust", preset, environment)
    before = {k: v for k, v in snapshot(policy).items() if k.startswith("slates.parameter")}
    policy.update(environment.round(1), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], math.nan))
    assert all(torch.equal(snapshot(policy)[k], v) for k, v in before.items())
    policy.update(environment.round(2), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert not all(torch.equal(snapshot(policy)[k], v) for k, v in before.items())


@every_policy
def test_updates_may_come_late_and_out_of_order(name: str, preset: str) -> None:
    environment = small_environment()
    policy = build(name, preset, environment)
    rounds = [environment.round(t) for t in range(1, 7)]
    slates = [policy.select(round) for round in rounds]
    outcomes = [environment.play(round, slate) for round, slate in zip(rounds, slates, strict=True)]
    for i in (3, 0, 5, 1, 4, 2):
        policy.update(rounds[i], slates[i], outcomes[i])
    replayed = build(name, preset, environment)
    for i in (3, 0, 5, 1, 4, 2):  # a log of rounds, slates and feedback is enough
        replayed.update(rounds[i], slates[i], outcomes[i])
    assert same_state(snapshot(policy), snapshot(replayed))
    assert answer(policy, environment.round(7)) == answer(replayed, environment.round(7))


# --- save and load --------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize("saved_after", [0, 1, 8])
def test_a_saved_policy_continues_bit_for_bit(name: str, preset: str, saved_after: int, tmp_path: Path) -> None:
    environment = small_environment()
    straight = build(name, preset, environment)
    play(straight, environment, range(1, saved_after + 1))
    straight.save(tmp_path / "policy")
    again = load(name, tmp_path / "policy", environment)
    assert same_state(snapshot(straight), snapshot(again))
    for t in range(saved_after + 1, saved_after + 12):
        round = environment.round(t)
        assert answer(straight, round) == answer(again, round)
        slate = straight.select(round)
        outcome = environment.play(round, slate)
        straight.update(round, slate, outcome)
        again.update(round, slate, outcome)
    assert same_state(snapshot(straight), snapshot(again))


@pytest.mark.parametrize("name", ["neuclust", "neuclust-online", "cn-ucb"])
def test_a_saved_policy_with_dual_covariance_continues_bit_for_bit(name: str, tmp_path: Path) -> None:
    environment = small_environment(arms_per_round=30)
    straight = build(name, "default", environment, **{"confidence.solver": "dual"})
    play(straight, environment, range(1, 9))
    straight.save(tmp_path / "policy")
    again = load(name, tmp_path / "policy", environment)
    assert play(straight, environment, range(9, 25)) == play(again, environment, range(9, 25))
    assert same_state(snapshot(straight), snapshot(again))


def test_an_online_policy_loaded_before_it_saw_anything_continues_bit_for_bit() -> None:
    """One k-means iteration is not converged, so that a cold and a warm start differ."""
    environment = small_environment(n=200, centres=40)
    overrides = {"clustering.max_iter": "1", "clustering.n_init": "1"}
    straight, again = (build("neuclust-online", "default", environment, **overrides) for _ in range(2))
    round = environment.round(1)
    straight.update(round, straight.select(round), feedback([math.nan] * K, math.nan))
    again.load_state_dict(snapshot(straight))
    for t in range(2, 6):
        assert play(straight, environment, range(t, t + 1)) == play(again, environment, range(t, t + 1))
        assert same_state(snapshot(straight), snapshot(again))


@every_policy
def test_a_state_taken_earlier_brings_the_policy_back(name: str, preset: str) -> None:
    """state_dict is a picture of its moment: later updates do not reach it."""
    environment = small_environment()
    policy = build(name, preset, environment)
    play(policy, environment, range(1, 4))
    state, picture = policy.state_dict(), snapshot(policy)
    believed = answer(policy, environment.round(9))
    play(policy, environment, range(4, 8))
    assert same_state(state, picture)
    policy.load_state_dict(state)
    assert answer(policy, environment.round(9)) == believed


# --- refusals -------------------------------------------------------------------------------------------------


def spoiled(kind: str, round: Round) -> Round:
    profiles = round.profiles.clone()
    query = round.query
    assert query is not None
    if kind == "NaN profile":
        profiles[4, 2] = math.nan
    if kind == "infinite profile":
        profiles[4, 2] = math.inf
    changes: dict[str, Any] = {
        "NaN profile": {"profiles": profiles},
        "infinite profile": {"profiles": profiles},
        "NaN query": {"query": query * math.nan},
        "short query": {"query": query[:-1]},
        "wrong dimension": {"profiles": profiles[:, :-1], "query": query[:-1]},
        "flat profiles": {"profiles": profiles[:, 0]},
        "fewer arms than K": {"profiles": profiles[:2], "arm_ids": round.arm_ids[:2]},
        "another K": {"slate_size": 5},
        "ids that do not fit": {"arm_ids": round.arm_ids[:-1]},
    }
    return replace(round, **changes[kind])


SPOILED = ["NaN profile", "infinite profile", "NaN query", "short query", "wrong dimension", "flat profiles",
           "fewer arms than K", "another K", "ids that do not fit"]  # fmt: skip


@pytest.mark.parametrize("kind", SPOILED)
@pytest.mark.parametrize("name", list(POLICIES))
def test_a_round_that_cannot_be_played_is_refused_and_changes_nothing(name: str, kind: str) -> None:
    environment = small_environment()
    policy = build(name, "default", environment)
    play(policy, environment, range(1, 3))
    before = snapshot(policy)
    bad = spoiled(kind, environment.round(3))
    with pytest.raises(DataError, match=r"round 3: .*expected|round 3: this policy"):
        policy.select(bad)
    with pytest.raises(DataError, match="round 3"):
        policy.update(bad, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, snapshot(policy))


@pytest.mark.parametrize(
    ("slate", "rewards", "slate_reward"),
    [
        (slate_of(0, 1), [1.0, 0.0, 1.0], 1.0),
        (slate_of(0, 1, 2), [1.0, 0.0], 1.0),
        (slate_of(0, 1, 1), [1.0, 0.0, 1.0], 1.0),
        (slate_of(0, 1, 48), [1.0, 0.0, 1.0], 1.0),
        (slate_of(0, 1, -1), [1.0, 0.0, 1.0], 1.0),
        (slate_of(0, 1, 2), [1.0, math.inf, 1.0], 1.0),
        (slate_of(0, 1, 2), [1.0, 0.0, 1.0], -math.inf),
    ],
)
@pytest.mark.parametrize("name", list(POLICIES))
def test_feedback_that_does_not_belong_is_refused_and_changes_nothing(
    name: str, slate: Slate, rewards: list[float], slate_reward: float
) -> None:
    environment = small_environment()
    policy = build(name, "default", environment)
    play(policy, environment, range(1, 3))
    before = snapshot(policy)
    with pytest.raises(DataError, match="round 3: expected"):
        policy.update(environment.round(3), slate, feedback(rewards, slate_reward))
    assert same_state(before, snapshot(policy))


# --- configurations that cannot work --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "setting", "value", "said"),
    [
        ("neuclust", "confidence.ridge", "0", "above 0"),
        ("cn-ucb", "confidence.ridge", "-1", "above 0"),
        ("linucb", "ridge", "0", "above 0"),
        ("neuclust", "schedule.gamma", "-0.1", "at least 0"),
        ("linucb", "alpha", "-1", "alpha"),
        ("neuclust", "clustering.count", "0", "at least 1"),
        ("neuclust", "arms.training.step", "-1", "above 0"),
        ("neuclust", "confidence.ridg", "1", r"did you mean .*confidence\.ridge"),
        ("neuclust", "gama", "1", r"did you mean .*gamma"),
        ("linucb", "alhpa", "1", "did you mean alpha"),
        ("neuclust", "network.init", "xavier", "mirrored"),
    ],
)
def test_an_impossible_setting_is_refused_by_name(name: str, setting: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        policy_config(name, overrides={setting: value})


@pytest.mark.parametrize("init", ["symmetric", "mirrored"])
def test_an_odd_width_does_not_fit_an_initialisation_in_halves(init: str) -> None:
    with pytest.raises(ConfigError, match="even width, got 7"):
        build_policy(
            "neuclust", environment=small_environment(), overrides={"network.init": init, "network.width": "7"}
        )


def test_unknown_names_are_refused_with_the_closest() -> None:
    with pytest.raises(ConfigError, match="did you mean neuclust"):
        policy_config("neuclsut")
    with pytest.raises(ConfigError, match="did you mean paper"):
        policy_config("neuclust", "papper")
    with pytest.raises(ConfigError, match="expected one of default"):
        policy_config("linucb", "authors-ml")
