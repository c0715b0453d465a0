"""Evidence steps against the log evidence they climb."""

from __future__ import annotations

import torch

from neuclust.kernels.evidence import block_step, inverse_diagonal
from neuclust.models.bayes_linear import BayesLinear, log_evidence
from neuclust.randomness import stream

BLOCKS = torch.tensor([0, 0, 0, 1, 1, 2])
NOISE = 0.3


def model(variances: torch.Tensor) -> BayesLinear:
    rng = stream(3, "test evidence")
    x = torch.from_numpy(rng.standard_normal((200, 6)))
    weights = torch.tensor([1.0, -2.0, 0.5, 0.1, 0.05, -0.7], dtype=torch.float64)
    belief = BayesLinear(variances[BLOCKS], NOISE)
    belief.observe(x, x @ weights + NOISE**0.5 * torch.from_numpy(rng.standard_normal(200)))
    return belief


def test_the_diagonal_of_the_inverse() -> None:
    a = torch.from_numpy(stream(0, "test inverse").standard_normal((5, 5)))
    matrix = a @ a.T + torch.eye(5, dtype=torch.float64)
    found = inverse_diagonal(torch.linalg.cholesky(matrix))
    torch.testing.assert_close(found, torch.linalg.inv(matrix).diagonal())


def test_the_fixed_point_has_the_largest_evidence() -> None:
    """Fails when γ or the energy of a block is computed from another block's weights."""
    variances = torch.full((3,), 0.1, dtype=torch.float64)
    for _ in range(200):
        belief = model(variances)
        variances, _ = block_step(belief.mean, belief.variances(), variances, BLOCKS, (1e-8, 1e8))
    best = log_evidence(model(variances))
    for block in range(3):
        for factor in (0.8, 1.25):
            other = variances.clone()
            other[block] *= factor
            assert log_evidence(model(other)) < best


def test_what_the_data_determines_is_between_nothing_and_every_weight() -> None:
    variances = torch.tensor([0.1, 1e-6, 10.0], dtype=torch.float64)
    belief = model(variances)
    stepped, determined = block_step(belief.mean, belief.variances(), variances, BLOCKS, (1e-3, 0.5))
    assert bool((determined >= 0).all() and (determined <= torch.tensor([3, 2, 1])).all())
    assert float(determined[1]) < 0.01 < float(determined[0])
    assert bool((stepped >= 1e-3).all() and (stepped <= 0.5).all())
