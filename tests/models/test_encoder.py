"""Encoders: magnitudes kept or lost as named, unit norms where promised, columns as numbered."""

from __future__ import annotations

import math
from typing import Any

import naive_reference as naive
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_problems import random_round
from torch import Tensor

from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts
from neuclust.randomness import stream

KINDS = ("raw", "scale", "unit", "lift")


def masked(n: int, d: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Contexts (n, d) with a zero row, and the columns that may be non-zero."""
    rng = stream(seed, "test contexts")
    active = torch.from_numpy(rng.permutation(d)[: max(1, d // 2)]).sort().values
    z = torch.zeros(n, d, dtype=torch.float64)
    z[:, active] = torch.from_numpy(rng.random((n, len(active))))
    z[0] = 0.0
    return z, active


@pytest.mark.parametrize("duplicate", [False, True])
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 7))
def test_encoding_the_active_columns_is_encoding_all(kind: Any, even: bool, duplicate: bool, seed: int, d: int) -> None:
    config = EncoderConfig(kind, rho=4.0, duplicate=duplicate)
    encoder = Encoder(config, d, even=even)
    z, active = masked(5, d, seed)
    x = encoder.full(z[:, active], active, 4.0)
    expected = torch.stack([naive.encode(config, row, 4.0, even) for row in z])
    assert x.shape == (5, encoder.dim)
    torch.testing.assert_close(x, expected, rtol=0, atol=1e-14)
    values, columns = encoder.encode(z[:, active], active, 4.0)
    assert torch.equal(x[:, columns], values)
    assert len(set(columns.tolist())) == len(columns)
    assert not even or encoder.dim % 2 == 0


@pytest.mark.parametrize("duplicate", [False, True])
@pytest.mark.parametrize("kind", ["unit", "lift"])
def test_unit_and_lift_have_norm_one(kind: Any, duplicate: bool) -> None:
    encoder = Encoder(EncoderConfig(kind, rho=3.0, duplicate=duplicate), 6, even=False)
    z, active = masked(9, 6)
    norms = encoder.full(z[:, active], active, 3.0).norm(dim=1)
    expected = torch.ones(9, dtype=torch.float64)
    expected[0] = 1.0 if kind == "lift" else 0.0  # only the lift puts an empty context on the sphere
    torch.testing.assert_close(norms, expected)


def test_lift_keeps_what_unit_loses() -> None:
    z = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
    active = torch.arange(2)
    unit = Encoder(EncoderConfig("unit"), 2, even=False).full(z, active, 9.0)
    lift = Encoder(EncoderConfig("lift", rho=9.0), 2, even=False).full(z, active, 9.0)
    torch.testing.assert_close(unit[0], unit[1])
    assert not torch.allclose(lift[0], lift[1])
    assert float(lift[0, 2]) == pytest.approx(math.sqrt(1 - 5 / 81))


def test_lift_refuses_a_context_longer_than_rho_and_says_how_long_it_is() -> None:
    encoder = Encoder(EncoderConfig("lift", rho=1.0), 2, even=False)
    with pytest.raises(DataError, match=r"encoder\.rho = 1, got 5; raise it"):
        encoder.encode(torch.tensor([[3.0, 4.0]], dtype=torch.float64), torch.arange(2), 1.0)


@given(st.integers(0, 10**6), st.booleans())
def test_an_automatic_rho_bounds_every_context_of_its_round(seed: int, asked: bool) -> None:
    query = torch.tensor([2.0, 0.0, -3.0], dtype=torch.float64) if asked else None
    round = random_round(1, 8, 3, 2, seed, query)
    rho = Encoder(EncoderConfig("scale", rho=None), 3, even=False).scale_of(round)
    assert float(round.contexts.norm(dim=1).max()) <= rho * (1 + 1e-12)
    lift = Encoder(EncoderConfig("lift", rho=None), 3, even=False)
    lift.encode(active_contexts(round), round.active, lift.scale_of(round))


@pytest.mark.parametrize("query", [None, torch.zeros(3, dtype=torch.float64)])
def test_an_automatic_rho_of_an_empty_round_is_a_usable_number(query: Tensor | None) -> None:
    round = Round(1, torch.arange(4), torch.zeros(4, 3, dtype=torch.float64), query, 2)
    assert Encoder(EncoderConfig("scale", rho=None), 3, even=False).scale_of(round) == 1.0


def test_a_configured_rho_is_used_whatever_the_round() -> None:
    assert Encoder(EncoderConfig("scale", rho=7.0), 3, even=False).scale_of(random_round(1, 4, 3, 2)) == 7.0


def test_active_contexts_are_the_active_columns_of_the_contexts() -> None:
    round = random_round(1, 5, 4, 2, query=torch.tensor([0.0, 2.0, 0.0, -1.0], dtype=torch.float64))
    assert torch.equal(active_contexts(round), round.contexts[:, [1, 3]])
    assert round.active.tolist() == [1, 3]
    plain = random_round(1, 5, 4, 2)
    assert torch.equal(active_contexts(plain), plain.profiles)
    assert plain.active.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("rho", [0.0, -1.0, math.nan])
def test_a_rho_that_is_not_positive_is_refused(rho: float) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.rho|EncoderConfig\.rho"):
        EncoderConfig("scale", rho=rho)
