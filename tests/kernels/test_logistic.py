"""Newton's method for logistic regression against a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from neuclust.kernels.logistic import LONGEST, newton
from neuclust.randomness import stream

P = 4


def data(n: int = 60) -> tuple[Tensor, Tensor, Tensor]:
    rng = stream(1, "test logistic")
    x = torch.from_numpy(rng.standard_normal((n, P)))
    counts = torch.from_numpy(rng.integers(1, 4, n).astype(float))
    return x, torch.from_numpy(rng.binomial(counts.numpy().astype(int), 0.4).astype(float)), counts


PRIOR = torch.tensor([0.5, 2.0, 1.0, 0.1], dtype=torch.float64)
ZERO = torch.zeros(P, dtype=torch.float64)


def test_it_finds_the_most_probable_weights() -> None:
    x, sums, counts = data()

    def energy(m: np.ndarray) -> float:
        f = x.numpy() @ m
        return float(
            0.5 * (m**2 / PRIOR.numpy()).sum() - (sums.numpy() * f - counts.numpy() * np.logaddexp(0, f)).sum()
        )

    expected = minimize(energy, np.zeros(P), method="BFGS", options={"gtol": 1e-8}).x
    mean, factor = newton(x, sums, counts, PRIOR, ZERO, steps=20)
    assert mean.numpy() == pytest.approx(expected, abs=1e-3)
    chance = torch.sigmoid(x @ mean)
    precision = torch.diag(1 / PRIOR) + (x.T * counts * chance * (1 - chance)) @ x
    torch.testing.assert_close(factor @ factor.T, precision, rtol=0.02, atol=0.02)


def test_equal_rows_once_are_equal_rows_many_times() -> None:
    x, sums, counts = data(10)
    rows = torch.repeat_interleave(torch.arange(10), counts.long())
    share = torch.cat([torch.arange(int(c)) < int(s) for s, c in zip(sums, counts, strict=True)]).double()
    once = newton(x, sums, counts, PRIOR, ZERO, 3)[0]
    torch.testing.assert_close(once, newton(x[rows], share, torch.ones(len(rows)).double(), PRIOR, ZERO, 3)[0])


def test_no_step_moves_a_log_odds_further_than_allowed() -> None:
    """Two classes a line divides, under next to no prior: the best weights are far away."""
    x = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    sums, counts = torch.tensor([500.0, 0.0]).double(), torch.tensor([500.0, 500.0]).double()
    mean, loose = torch.zeros(1).double(), torch.tensor([1e6]).double()
    for _ in range(30):
        after, _ = newton(x, sums, counts, loose, mean, 1)
        assert float((after - mean).abs().max()) <= LONGEST + 1e-12
        mean = after
    assert float(mean) > LONGEST
    start = torch.ones(1).double()
    assert float(newton(x[:0], sums[:0], counts[:0], loose, start, 2)[0]) == 0  # nothing seen: back to the prior
