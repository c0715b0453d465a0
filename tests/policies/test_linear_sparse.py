"""LinUCB among many arms with sparse contexts: the numbers of dense products, ties kept, the same when shown again."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neuclust.core import Feedback, Round
from neuclust.kernels import jit
from neuclust.models.encoder import EncoderConfig, full_at
from neuclust.policies import linear
from neuclust.policies.linear import LinearConfig, SharedLinUCB
from neuclust.randomness import stream

ARMS, DIM, K = 1500, 60, 5


def profiles() -> Tensor:
    """Three in sixty entries; every tenth arm equals the one before it."""
    rng = stream(3, "test sparse arms")
    table = torch.from_numpy(rng.random((ARMS, DIM)) * (rng.random((ARMS, DIM)) < 0.05))
    table[9::10] = table[8::10]
    return table


def asked(t: int, table: Tensor, masked: bool) -> Round:
    query = torch.from_numpy((stream(t, "test sparse query").random(DIM) < 0.4).astype(float)) if masked else None
    return Round(t, torch.arange(ARMS), table, query, K)


def learned(policy: SharedLinUCB, table: Tensor, masked: bool, rounds: int = 30) -> SharedLinUCB:
    for t in range(1, rounds + 1):
        round = asked(t, table, masked)
        slate = policy.select(round)
        coins = torch.from_numpy(stream(t, "test sparse coins").random(K))
        policy.update(round, slate, Feedback((coins < 0.5).double(), torch.tensor(0.5).double()))
    return policy


@pytest.mark.skipif(not jit.available, reason="the compiled loop needs Numba")
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("raw", [True, False])
def test_beliefs_are_those_of_dense_contexts(masked: bool, raw: bool) -> None:
    table = profiles()
    config = LinearConfig(EncoderConfig("raw" if raw else "scale", rho=2.0), alpha=0.7, ridge=0.3)
    policy = learned(SharedLinUCB(config, DIM, K), table, masked)
    round = asked(99, table, masked)
    means, bonuses = policy.beliefs(round)
    x = full_at(policy.encoder, round, torch.arange(ARMS))
    inverse = torch.linalg.inv(policy.matrix)
    assert torch.allclose(means, x @ (inverse @ policy.moment), rtol=1e-12, atol=1e-12)
    assert torch.allclose(bonuses, 0.7 * ((x @ inverse) * x).sum(1).sqrt(), rtol=1e-10, atol=1e-12)
    assert torch.equal(means[9::10], means[8::10])
    assert torch.equal(bonuses[9::10], bonuses[8::10])


@pytest.mark.parametrize("masked", [True, False])
def test_profiles_shown_again_give_the_same_bits_as_new_ones(masked: bool) -> None:
    table = profiles()
    policy = learned(SharedLinUCB(LinearConfig(), DIM, K), table, masked)
    again, new = policy.beliefs(asked(99, table, masked)), policy.beliefs(asked(99, table.clone(), masked))
    assert all(torch.equal(one, other) for one, other in zip(again, new, strict=True))


def test_slates_are_those_of_matrix_products(monkeypatch: pytest.MonkeyPatch) -> None:
    table = profiles()
    policy = learned(SharedLinUCB(LinearConfig(), DIM, K), table, masked=True)
    sparse = [policy.select(asked(t, table, True)).positions.tolist() for t in range(40, 60)]
    monkeypatch.setattr(linear, "FEW", -1)
    assert [policy.select(asked(t, table, True)).positions.tolist() for t in range(40, 60)] == sparse
