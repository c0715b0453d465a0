"""One slot tests where the linear learner claims the least: when, where, and whoever leads."""

from typing import Any

import torch

from neuclust.core import Feedback, Round
from neuclust.policies.auto.exploration import PROBED_FROM, ExplorationConfig
from neuclust.policies.auto.policy import Auto, AutoConfig
from neuclust.randomness import stream

DIM, ARMS = 6, 60


def sphere_round(t: int, positive: bool = False) -> Round:
    rows = torch.from_numpy(stream(5, "probe arms", t).standard_normal((ARMS, DIM)))
    rows = rows.abs() if positive else rows
    return Round(t, torch.arange(ARMS), rows / rows.norm(dim=1, keepdim=True), None, 3)


def taught(slates: int, positive: bool = False, **exploring: Any) -> Auto:
    """A policy that saw rewards rise along the first axis, with chances from 0.1 to 0.5."""
    policy = Auto(AutoConfig(exploring=ExplorationConfig(**exploring)), DIM, 3, seed=1)
    for t in range(1, slates + 1):
        round = sphere_round(t, positive)
        slate = policy.select(round)
        coins = torch.from_numpy(stream(6, "probe coins", t).random(3))
        rewards = (coins < 0.3 + 0.2 * round.profiles[slate.positions, 0]).double()
        policy.update(round, slate, Feedback(rewards, rewards.mean()))
    return policy


def chance(policy: Auto) -> float:
    assert policy.ensemble is not None
    return policy.config.exploring.probe_chance(policy.ensemble)


def test_probes_begin_late_fall_with_time_and_keep_to_their_cap() -> None:
    """Fails when a young leader is tested, when tests stay as frequent, or when `most` does not bind them."""
    early, later = taught(PROBED_FROM - 1), taught(PROBED_FROM + 10)
    assert chance(early) == 0.0
    assert 0.0 < chance(later) < 0.5
    assert chance(taught(PROBED_FROM + 10, most=0.01)) == 0.01
    assert chance(taught(PROBED_FROM + 10, probes=0.0)) == 0.0


def lowest_shown(policy: Auto, positive: bool, rounds: range) -> int:
    """In how many slates the linear learner's lowest arm is."""
    shown = 0
    for t in rounds:
        round = sphere_round(t, positive)
        slate, ensemble = policy.select(round), policy.ensemble
        assert ensemble is not None
        means = ensemble.learners["linear"].means(ensemble.blocks.read(round.contexts))
        shown += int(means.argmin()) in slate.positions.tolist()
    return shown


def test_the_arm_opposite_to_the_best_is_shown_and_none_where_no_arm_is() -> None:
    """Fails when probes go elsewhere, or when contexts of one sign, whose lowest arm is nobody's opposite, pay."""
    often: dict[str, Any] = {"probes": 1e6, "most": 1.0}
    assert lowest_shown(taught(PROBED_FROM, **often), False, range(200, 220)) == 20
    assert lowest_shown(taught(PROBED_FROM, positive=True, **often), True, range(200, 220)) == 0


def test_the_other_end_of_an_axis_is_tested_when_a_learner_of_squares_leads() -> None:
    """Fails when its own lowest mean is tested, which lies between both ends."""
    policy = taught(PROBED_FROM, probes=1e6, most=1.0)
    assert policy.ensemble is not None
    names = list(policy.ensemble.learners)
    lead = torch.tensor([20.0 * (name == "logistic") for name in names], dtype=torch.float64)
    policy.ensemble.log_weights = torch.log_softmax(lead, 0)
    assert policy.ensemble.leader == "logistic"
    assert lowest_shown(policy, False, range(200, 220)) == 20
