"""A watched policy plays as it would alone, and what is read off it is what its models hold."""

from __future__ import annotations

import math

import pytest
import torch
from small_problems import same_state, small_environment

from neuclust.core import Policy
from neuclust.environments.slates import SlateEnvironment
from neuclust.experiment.contestants import parse_contestants
from neuclust.models.schedules import ScheduleConfig
from neuclust.theory.bounds import Constants, offset
from neuclust.theory.trajectory import Looking, Watched, after, progress_of

ROUNDS = 12


def made(environment: SlateEnvironment) -> Policy:
    (contestant,) = parse_contestants(["neuclust:paper"], settings=["clustering.count=4"])
    return contestant.build(environment, 3)


def played(policy: Policy, environment: SlateEnvironment) -> list[list[int]]:
    slates = []
    for t in range(1, ROUNDS + 1):
        round = environment.round(t)
        slate = policy.select(round)
        policy.update(round, slate, environment.play(round, slate))
        slates.append(slate.positions.tolist())
    return slates


def test_watching_changes_nothing() -> None:
    environment = small_environment()
    alone, seen = made(environment), Watched(made(environment), environment)
    assert played(alone, environment) == played(seen, environment)
    assert same_state(alone.state_dict(), seen.state_dict())
    assert [step.t for step in seen.steps] == list(range(1, ROUNDS + 1))


def test_steps_hold_what_the_models_held() -> None:
    environment = small_environment()
    watched = Watched(made(environment), environment, Looking(ScheduleConfig(norm_bound=2.0), Constants(), every=1))
    arms = watched.arms
    assert arms is not None
    for t in range(1, ROUNDS + 1):
        round = environment.round(t)
        progress, gamma = progress_of(arms), arms.gamma()
        slate = watched.select(round)
        scores = arms.scores(round.read)
        step = watched.steps[-1]
        widths = scores.bonuses[slate.positions] / gamma
        assert step.squares == pytest.approx(float((widths**2).sum()))
        assert step.offset == pytest.approx(offset(gamma, after(progress, 3), Constants()))
        assert step.regret == pytest.approx(
            environment.best_expected_reward(round) - environment.expected_reward(round, slate)
        )
        assert step.terms is not None
        assert step.terms.norm == pytest.approx(math.sqrt(progress.ridge) * 2.0)
        assert step.held is not None
        covered = (scores.means - environment.means(round)).abs() <= scores.bonuses + 1e-12
        assert step.held.covered == pytest.approx(float(covered.double().mean()))
        assert step.clusters is not None
        assert step.clusters.best.gap >= -1e-12
        watched.update(round, slate, environment.play(round, slate))
        last = watched.steps[-1]
        assert last.logdet == arms.confidence.logdet
        assert last.observations == 3 * t
        assert last.drift <= last.drift_bound
    moved = [(a - b).square().sum() for a, b in zip(arms.net.weights, arms.initial.weights, strict=True)]
    assert watched.steps[-1].drift == pytest.approx(float(torch.stack(moved).sum().sqrt()))


def test_a_policy_without_a_net_leaves_its_regret() -> None:
    environment = small_environment()
    (contestant,) = parse_contestants(["linucb"], settings=())
    watched = Watched(contestant.build(environment, 0), environment)
    played(watched, environment)
    assert watched.arms is None
    assert all(step.regret >= -1e-12 and math.isnan(step.gamma) for step in watched.steps)
