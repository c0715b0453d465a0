"""CN-TS and NeuralTS against plain autograd gradients and the distribution of the largest of M normals."""

from __future__ import annotations

import math
from typing import Any

import naive_reference as naive
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from small_problems import play, small_environment

from neuclust.errors import ConfigError
from neuclust.models.arm_model import ArmModelConfig, NetworkConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.models.encoder import EncoderConfig
from neuclust.models.schedules import ScheduleConfig
from neuclust.policies.combinatorial_neural import (
    CombinatorialNeuralTS,
    CombinatorialSamplingConfig,
    largest_normal,
    samples_needed,
)
from neuclust.randomness import stream
from neuclust.registry import POLICIES

DIM, K, M, RIDGE, NU = 6, 3, 8, 4.0, 0.6


@pytest.mark.parametrize(("slate_size", "samples"), [(1, 1), (4, 28), (5, 32), (10, 45), (20, 58)])
def test_the_number_of_samples_follows_the_formula(slate_size: int, samples: int) -> None:
    assert samples_needed(slate_size) == samples
    assert CombinatorialNeuralTS(CombinatorialSamplingConfig(), DIM, slate_size).samples == samples


@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 60))
def test_the_largest_of_m_normals_has_its_distribution(u: float, samples: int) -> None:
    """P(max ≤ x) = Φ(x)^M."""
    x = largest_normal(np.array([u]), samples)
    assert float(ndtr(float(x[0]))) ** samples == pytest.approx(u, rel=1e-6)


def test_no_uniform_gives_an_infinite_draw() -> None:
    ends = largest_normal(np.array([0.0, np.nextafter(1.0, 0.0)]), 32)
    assert bool(torch.isfinite(ends).all())


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_selection_equals_sampling_from_explicit_gaussians(form: Any) -> None:
    """Fails when σ² forgets λ (`spread = scores.bonuses`), when M is left out, or when one draw serves all arms."""
    arms = ArmModelConfig(
        EncoderConfig("scale", rho=5.0),
        NetworkConfig(width=M),
        ConfidenceConfig(form=form, ridge=RIDGE),
        ScheduleConfig("constant", gamma=NU),
    )
    environment = small_environment()
    policy = CombinatorialNeuralTS(CombinatorialSamplingConfig(arms, samples=7), DIM, K, seed=3)
    z = RIDGE * torch.eye(M * DIM + M, dtype=torch.float64)
    for t in range(1, 9):
        round = environment.round(t)
        weights, xs = policy.arms.net.weights, list(round.contexts / 5)
        f = [float(naive.forward(weights, x, math.sqrt(M))) for x in xs]
        g = [naive.gradient(weights, x, math.sqrt(M)) / math.sqrt(M) for x in xs]
        sigma = [math.sqrt(RIDGE) * naive.width(z, one) for one in g]
        normal = largest_normal(stream(3, "cn-ts", t).random(len(xs)), 7).tolist()
        scores = [a + NU * s * n for a, s, n in zip(f, sigma, normal, strict=True)]
        slate = policy.select(round)
        expected = naive.top(scores, round.arm_ids.tolist(), range(len(xs)), K)
        assert slate.positions.tolist() == expected
        assert slate.bonuses.tolist() == pytest.approx([NU * sigma[i] for i in expected], abs=1e-9)
        policy.update(round, slate, environment.play(round, slate))
        for i in expected:
            gain = torch.outer(g[i], g[i])
            z = z + (gain if form == "full" else torch.diag(torch.diag(gain)))


def test_neural_ts_is_one_sample_of_a_diagonal_covariance() -> None:
    config = POLICIES["neural-ts"].presets["default"]
    assert (config.samples, config.arms.confidence.form) == (1, "diagonal")
    assert POLICIES["neural-ucb"].presets["default"].arms.confidence.form == "diagonal"


def test_without_spread_it_is_greedy() -> None:
    environment = small_environment()
    arms = ArmModelConfig(schedule=ScheduleConfig("constant", gamma=0.0))
    policy = CombinatorialNeuralTS(CombinatorialSamplingConfig(arms), DIM, K)
    play(policy, environment, range(1, 6))
    round = environment.round(6)
    means = policy.arms.scores(round).means.tolist()
    assert policy.select(round).positions.tolist() == naive.top(means, round.arm_ids.tolist(), range(len(means)), K)


def test_no_samples_are_refused() -> None:
    with pytest.raises(ConfigError, match="samples: expected a number of at least 1"):
        CombinatorialSamplingConfig(samples=0)
