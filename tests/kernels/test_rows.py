"""Sparse rows, tiles and columns hold what the dense matrix holds, and compute what the library computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neuclust.kernels import jit
from neuclust.kernels.columns import BLOCK, SHARED, Columns, forward_columns, widths_columns
from neuclust.kernels.jit import Floats
from neuclust.kernels.network import Network, augment, forward, gradient_factors, layers, squared_norms
from neuclust.kernels.regions import group_rows, pattern_rows
from neuclust.kernels.rows import distinct, forward_norms, joined, masked, no_rows, sparse_rows
from neuclust.kernels.tiles import TILE, tile_rows
from neuclust.randomness import stream

pytestmark = pytest.mark.skipif(not jit.available, reason="Numba is not installed: there are no compiled loops")


def sparse_matrix(seed: int, n: int, d: int) -> Floats:
    return stream(seed, "test sparse").choice([0.0, 0.0, 0.0, 1.0, -0.5, 2.5], size=(n, d))


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 9))
def test_rows_and_their_parts_are_those_of_the_matrix(seed: int, n: int, d: int) -> None:
    dense = sparse_matrix(seed, n, d)
    rows = sparse_rows(dense)
    assert np.array_equal(rows.dense(np.arange(n)), dense)
    assert np.array_equal(
        joined(joined(no_rows(d), rows), rows).dense(np.arange(2 * n)), np.concatenate([dense, dense])
    )
    query = sparse_matrix(seed + 1, 1, d)[0]
    active = np.nonzero(query)[0]
    found = masked(rows, active, query[active], 3.0)
    assert np.array_equal(found.dense(np.arange(n)), dense[:, active] * query[active] / 3.0)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 4))
def test_distinct_rows_are_those_of_the_dense_way_in_the_same_order(seed: int, n: int, d: int) -> None:
    dense = sparse_matrix(seed, n, d)
    rows, group = distinct(sparse_rows(dense))
    first, expected = group_rows(torch.from_numpy(dense))
    assert group.tolist() == expected.tolist()
    assert np.array_equal(rows.dense(np.arange(len(rows))), dense[first.numpy()])


@pytest.mark.parametrize("bias", [False, True])
def test_means_and_norms_are_those_of_the_network(bias: bool) -> None:
    rng = stream(0, "test forward")
    weights = (rng.standard_normal((7, 5 + bias)), rng.standard_normal((1, 7 + bias)))
    net = Network(tuple(map(torch.from_numpy, weights)), 1.7, bias)
    x = torch.from_numpy(sparse_matrix(3, 25, 5))
    rows = sparse_rows(augment(net, x).numpy())
    means, norms = forward_norms(rows, np.ascontiguousarray(weights[0].T), weights[1][0], net.scale, bias)
    torch.testing.assert_close(torch.from_numpy(means), forward(net, x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(torch.from_numpy(norms), squared_norms(gradient_factors(net, x)), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 11))
def test_tiles_hold_every_row_once(seed: int, n: int, d: int) -> None:
    dense = sparse_matrix(seed, n, d)
    tiles = tile_rows(sparse_rows(dense))
    again, seen = np.zeros((n, d + TILE)), []
    for t in range(len(tiles.starts) - 1):
        for lane in range(TILE):
            row = tiles.order[TILE * t + lane]
            seen.append(row)
            for b in range(tiles.starts[t], tiles.starts[t + 1]):
                assert len(set(tiles.columns[b])) == TILE
                if row >= 0:
                    again[row, tiles.columns[b]] += tiles.values[b, :, lane]
                else:
                    assert not tiles.values[b, :, lane].any()
    assert sorted(row for row in seen if row >= 0) == list(range(n))
    assert np.array_equal(again[:, :d], dense)
    assert not again[:, d:].any()
    assert np.array_equal(
        tiles.placed(np.arange(1, n + 1, dtype=np.float64))[tiles.order >= 0], tiles.order[tiles.order >= 0] + 1.0
    )


@pytest.mark.parametrize("width", [5, 62, 63, 130])
@pytest.mark.parametrize("n", [1, BLOCK, BLOCK + 3, SHARED + 5])
def test_scores_by_column_are_those_by_row(n: int, width: int) -> None:
    rng = stream(n, "test columns")
    profiles, query = rng.random((6, n)), rng.standard_normal(3)
    active = np.array([0, 2, 5])
    x = Columns(profiles, active, query, 2.5)
    dense = torch.from_numpy((profiles[active] * query[:, None] / 2.5).T.copy())
    w0, w1 = rng.standard_normal((3, width)), rng.standard_normal(width)
    means, first, region = forward_columns(x, w0, w1, 1.3)
    net = Network((torch.from_numpy(w0.T.copy()), torch.from_numpy(w1[None])), 1.3)
    torch.testing.assert_close(torch.from_numpy(means), forward(net, dense), rtol=1e-11, atol=1e-11)
    places, groups = group_rows(pattern_rows(layers(net, dense)[1]))
    assert (first.tolist(), region.tolist()) == (places.tolist(), groups.tolist())
    assert np.allclose(x.at(first), dense[first])
    root = rng.standard_normal((len(first), 3, 3))
    forms = torch.from_numpy(root @ root.transpose(0, 2, 1))
    expected = torch.einsum("ni,nij,nj->n", dense, forms[region], dense).sqrt()
    torch.testing.assert_close(torch.from_numpy(widths_columns(x, forms.numpy(), region)), expected)


def test_equal_contexts_by_column_are_equal_to_the_last_bit_wherever_they_stand() -> None:
    n = BLOCK + 37
    x = Columns(np.repeat([[0.3], [1.7], [2.9]], n, 1), np.arange(3), np.array([0.7, 1.1, 0.9]), 5.0)
    rng = stream(1, "test columns")
    means, first, region = forward_columns(x, rng.standard_normal((3, 40)), rng.standard_normal(40), 1.3)
    assert len(set(means.tolist())) == len(first) == 1
    root = rng.standard_normal((3, 3))
    assert len(set(widths_columns(x, (root @ root.T)[None], region).tolist())) == 1
