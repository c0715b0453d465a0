"""Exploration schedules against their formulas and a check of their sizes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from small_problems import play, small_environment

from neuclust.errors import ConfigError
from neuclust.models.schedules import Progress, ScheduleConfig, exploration, gamma_terms
from neuclust.registry import build_policy

AFTER_1000_ROUNDS = Progress(observations=5000, logdet=0.0, ridge=1.0, width=20, depth=1, step=1e-3, steps=40)


def test_constant_is_constant() -> None:
    assert exploration(ScheduleConfig(gamma=0.7), AFTER_1000_ROUNDS) == 0.7
    assert exploration(ScheduleConfig(gamma=0.7), replace(AFTER_1000_ROUNDS, observations=0)) == 0.7


@pytest.mark.parametrize("logdet", [0.0, 12.5])
def test_det_is_the_self_normalised_radius(logdet: float) -> None:
    config = ScheduleConfig("det", noise=0.4, confidence=0.05, norm_bound=2.0)
    expected = 0.4 * math.sqrt(logdet + 2 * math.log(1 / 0.05)) + math.sqrt(0.3) * 2
    assert exploration(config, replace(AFTER_1000_ROUNDS, logdet=logdet, ridge=0.3)) == pytest.approx(expected)


def test_theory_has_the_sizes_of_the_specification() -> None:
    config = ScheduleConfig("theory")
    first, second, third = gamma_terms(config, AFTER_1000_ROUNDS)
    assert first == pytest.approx(147, rel=0.01)
    assert second == pytest.approx(1.5e6, rel=0.04)
    assert third == pytest.approx(1.6e6, rel=0.04)
    assert exploration(config, AFTER_1000_ROUNDS) == pytest.approx(8e9, rel=0.03)


def test_theory_is_equation_8_written_out() -> None:
    config = ScheduleConfig(
        "theory", noise=0.4, confidence=0.05, norm_bound=2.0, c_1=0.5, c_gamma_1=0.1, c_gamma_2=0.2, c_gamma_3=0.3
    )
    n, lam, m, depth, eta, steps, logdet = 60, 0.3, 10, 2, 1e-2, 7, 3.3
    root = m ** (-1 / 6) * math.sqrt(math.log(m))
    g1 = math.sqrt(1 + 0.1 * n ** (7 / 6) * depth**4 * lam ** (-7 / 6) * root)
    g2 = 0.2 * n ** (5 / 3) * depth**4 * lam ** (-1 / 6) * root
    g3 = 0.3 * n ** (7 / 6) * depth**3.5 * lam ** (-7 / 6) * root * (1 + math.sqrt(n / lam))
    statistical = g1 * (0.4 * math.sqrt(logdet + g2 - 2 * math.log(0.05)) + math.sqrt(lam) * 2)
    optimisation = (1 - eta * m * lam) ** (steps / 2) * math.sqrt(n / lam) + g3
    expected = statistical + (lam + 0.5 * n * depth) * optimisation
    assert exploration(config, Progress(n, logdet, lam, m, depth, eta, steps)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["det", "theory"])
def test_gamma_zero_has_no_term_that_depends_on_the_round(kind: Any) -> None:
    config = ScheduleConfig(kind, noise=0.5, confidence=0.1, norm_bound=1.5)
    start = replace(AFTER_1000_ROUNDS, observations=0, ridge=2.0)
    assert exploration(config, start) == pytest.approx(0.5 * math.sqrt(-2 * math.log(0.1)) + math.sqrt(2) * 1.5)


@pytest.mark.parametrize("step", [0.05, 1.0])  # η m λ = 1 and 20
def test_theory_refuses_a_step_outside_its_range(step: float) -> None:
    with pytest.raises(ConfigError, match=r"lower training\.step"):
        exploration(ScheduleConfig("theory"), replace(AFTER_1000_ROUNDS, step=step))


@pytest.mark.parametrize("change", [{"gamma": -0.1}, {"confidence": 0.0}, {"confidence": 1.0}, {"gamma": math.nan}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"ScheduleConfig|expected a finite number"):
        ScheduleConfig(**change)


def test_the_bonus_of_a_running_policy_follows_its_log_determinant() -> None:
    environment = small_environment()
    policy: Any = build_policy("neuclust", environment=environment, clusters=4, overrides={"schedule.kind": "det"})
    radius = ScheduleConfig("det")
    for rounds in (range(0), range(1, 6)):
        play(policy, environment, rounds)
        logdet = policy.arms.confidence.logdet
        assert (logdet > 0) == (len(rounds) > 0)
        expected = radius.noise * math.sqrt(logdet - 2 * math.log(radius.confidence)) + radius.norm_bound
        assert policy.arms.gamma() == pytest.approx(expected)


def test_theory_uses_the_contraction_of_the_mean_loss() -> None:
    environment = small_environment()
    overrides = {"schedule.kind": "theory", "arms.training.step": "1e-2"}
    policy: Any = build_policy("cn-ucb", environment=environment, overrides=overrides)
    play(policy, environment, range(1, 3))
    width = policy.config.arms.network.width
    logdet = policy.arms.confidence.logdet
    progress = Progress(6, logdet, 1.0, width, 1, 1e-2 / 6, 40)
    assert policy.arms.gamma() == pytest.approx(exploration(ScheduleConfig("theory"), progress))
