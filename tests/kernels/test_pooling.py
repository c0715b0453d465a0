"""Partial pooling against root finding, brute-force weights and a naive fixed share."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import expit, logit

from neuclust.kernels.evidence import fixed_share, gaussian_weights, shift_posterior, shifted_chances
from neuclust.randomness import stream


@pytest.mark.parametrize("rate", [0.005, 0.02, 0.2, 0.6, 0.95])
@pytest.mark.parametrize("spread", [0.2, 0.7, 1.4])
def test_the_mode_solves_its_equation_at_every_rate(rate: float, spread: float) -> None:
    rng = stream(0, "test pooling", 1)
    for n, shift in [(1, 0.0), (5, -2.0), (60, 2.0), (2000, 1.0), (2000, -3.0)]:
        rewards = float(rng.binomial(n, expit(logit(rate) + shift)))
        (mode,), (width,) = shift_posterior(np.array([[rewards], [n * rate], [float(n)]]), spread)

        def slope(b: float, rewards: float = rewards, n: int = n) -> float:
            return rewards - n * float(expit(logit(rate) + b)) - b / spread**2

        assert mode == pytest.approx(brentq(slope, -40, 40), abs=1e-8)
        chance = float(expit(logit(rate) + mode))
        assert width == pytest.approx((n * chance * (1 - chance) + spread**-2) ** -0.5, rel=1e-8)


def test_where_chances_differ_the_mode_is_near_that_of_every_observation() -> None:
    rng = stream(0, "test pooling", 2)
    for rate in (0.01, 0.1, 0.5, 0.9):
        p = expit(logit(rate) + 0.5 * rng.normal(size=2000))
        rewards = float((rng.random(2000) < expit(logit(p) + 1)).sum())
        (mode,), _ = shift_posterior(np.array([[rewards], [p.sum()], [2000.0]]), 1.0)

        def slope(b: float, rewards: float = rewards, p: np.ndarray[tuple[int], np.dtype[np.float64]] = p) -> float:
            return rewards - float(expit(logit(p) + b).sum()) - b

        exact = brentq(slope, -40, 40)
        assert 0.9 * exact < mode < exact + 0.01  # never further from 0


def test_groups_without_observations_and_several_spreads_at_once() -> None:
    sums = np.array([[0.0, 3.0], [0.0, 1.0], [0.0, 10.0]])
    modes, widths = shift_posterior(sums, np.array([[0.5], [1.0]]))
    assert modes.shape == widths.shape == (2, 2)
    assert np.allclose(modes[:, 0], 0)
    assert np.allclose(widths[:, 0], [0.5, 1.0])
    assert 0 < modes[0, 1] < modes[1, 1]  # the wider prior shrinks less
    assert np.allclose(modes[1], shift_posterior(sums, 1.0)[0])


def test_shifted_chances() -> None:
    p, b = np.array([0.005, 0.5, 0.95]), np.array([1.0, -2.0, 0.3])
    assert np.allclose(shifted_chances(p, b), expit(logit(p) + b))


def test_gaussian_weights_minimise_the_penalised_squares() -> None:
    rng = stream(0, "test pooling", 3)
    x, y, start = rng.normal(size=(20, 3)), rng.normal(size=20), np.array([0.0, 1.0, 0.0])
    rows = np.concatenate([x, np.eye(3) / 0.5])
    wanted = np.linalg.lstsq(rows, np.concatenate([y, start / 0.5]), rcond=None)[0]
    both = gaussian_weights(np.stack([x.T @ x] * 2), np.stack([x.T @ y] * 2), start, 0.5)
    assert np.allclose(both, wanted)


def test_fixed_share_is_bayes_with_a_return_to_the_first_weights() -> None:
    weights, first = torch.tensor([0.7, 0.2, 0.1]).double(), torch.tensor([0.5, 0.3, 0.2]).double()
    evidence = torch.tensor([-3.0, -1.0, -2.0]).double()
    bayes = weights * evidence.exp() / (weights * evidence.exp()).sum()
    for share in (0.0, 0.25):
        found = fixed_share(weights.log(), evidence, first, share).exp()
        assert torch.allclose(found, (1 - share) * bayes + share * first)
