"""Equal rows found once, activation patterns told apart, and g(x) = J_D x inside a region."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_problems import PATHS, path
from torch import Tensor

from neuclust.kernels.network import Network, augment, flatten, gradient_factors, layers
from neuclust.kernels.regions import group_rows, pattern_rows, region_basis
from neuclust.randomness import stream


def check_groups(rows: Tensor, engine: str) -> None:
    with path(engine):
        first, group = group_rows(rows)
    distinct, inverse = np.unique((rows + 0).numpy() + 0, axis=0, return_inverse=True)
    assert len(first) == len(distinct)
    assert torch.equal(rows[first][group] + 0, rows + 0)
    partners = {(int(a), int(b)) for a, b in zip(group, inverse.reshape(-1), strict=True)}
    assert len(partners) == len(distinct)  # one to one with numpy's groups
    for g, position in enumerate(first.tolist()):
        assert position == int(torch.nonzero(group == g)[0])  # the first of its kind


@pytest.mark.parametrize("engine", PATHS)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 5))
def test_group_rows_equals_numpy_unique(engine: str, seed: int, n: int, d: int) -> None:
    values = stream(seed, "test rows").choice([0.0, -0.0, 0.5, 1.0, -1.0, 3.3, 1e-300], size=(n, d))
    check_groups(torch.from_numpy(values), engine)


@pytest.mark.parametrize("engine", PATHS)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 3))
def test_group_rows_of_integers_equals_numpy_unique(engine: str, seed: int, n: int, d: int) -> None:
    check_groups(torch.from_numpy(stream(seed, "test rows").integers(-2, 3, size=(n, d))), engine)


@pytest.mark.parametrize("engine", PATHS)
def test_minus_zero_is_zero(engine: str) -> None:
    with path(engine):
        first, group = group_rows(torch.tensor([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]], dtype=torch.float64))
    assert group[0] == group[1] != group[2]
    assert len(first) == 2


@pytest.mark.parametrize("engine", PATHS)
def test_rows_that_differ_in_the_last_bit_stay_apart(engine: str) -> None:
    value = torch.tensor([[0.1], [float(np.nextafter(0.1, 1))], [0.1]], dtype=torch.float64)
    with path(engine):
        _, group = group_rows(value)
    assert group[0] == group[2] != group[1]


@pytest.mark.parametrize("engine", PATHS)
def test_rows_without_columns_are_all_equal(engine: str) -> None:
    with path(engine):
        first, group = group_rows(torch.zeros(4, 0, dtype=torch.float64))
    assert first.tolist() == [0]
    assert group.tolist() == [0, 0, 0, 0]


def test_group_rows_leaves_its_input_alone() -> None:
    rows = torch.tensor([[-0.0], [0.0]], dtype=torch.float64)
    group_rows(rows)
    assert math.copysign(1, float(rows[0, 0])) == -1


def test_group_rows_serves_very_wide_rows() -> None:
    rows = torch.zeros(3, 40_000, dtype=torch.float64)
    rows[1, 39_999] = 1.0
    assert group_rows(rows)[1].tolist() in ([0, 1, 0], [1, 0, 1])


@pytest.mark.parametrize("units", [3, 52, 53, 130])
def test_patterns_are_equal_exactly_where_all_signs_are(units: int) -> None:
    rng = stream(units, "test patterns")
    z = torch.from_numpy(rng.choice([-1.0, 0.0, 2.0], size=(40, units)))
    z = torch.cat([z, z[:10] * 5, z[:5].index_fill(1, torch.tensor([units - 1]), 9.0)])
    signs = (z > 0).numpy()
    codes = pattern_rows((z[:, : units // 2], z[:, units // 2 :]))
    _, group = group_rows(codes)
    assert len(set(group.tolist())) == len({row.tobytes() for row in signs})
    for i in range(40, 50):
        assert group[i] == group[i - 40]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_inside_a_region_the_gradient_is_linear_in_the_input(depth: int, bias: bool) -> None:
    rng = stream(depth, "test region net")
    sizes = [4, *[6] * depth, 1]
    shapes = [(sizes[i + 1], sizes[i] + bias) for i in range(depth + 1)]
    net = Network(tuple(torch.from_numpy(rng.standard_normal(s)) for s in shapes), 1.3, bias)
    x = torch.from_numpy(rng.standard_normal((30, 4)))
    full = augment(net, x)
    _, preactivations = layers(net, full)
    gates = tuple((z > 0).to(torch.float64) for z in preactivations)
    basis = flatten(region_basis(net, gates, full.shape[1]))  # (30, q, p)
    expected = flatten(gradient_factors(net, x))
    torch.testing.assert_close((full.unsqueeze(1) @ basis).squeeze(1), expected, rtol=0, atol=1e-11)
