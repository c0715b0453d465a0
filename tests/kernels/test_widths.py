"""Pure width formulas against explicit matrices: Woodbury, the dual identity, log-determinants, diagonals."""

from __future__ import annotations

import math

import naive_reference as naive
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels.network import Factors, Network, flatten, gradient_factors, gram
from neuclust.kernels.widths import (
    cholesky_rows,
    definite_cholesky,
    diagonal_gain,
    diagonal_squares,
    dual_forms,
    explored_directions,
    narrowing,
    primal_forms,
    refactored,
    solve_lower,
    woodbury_,
)
from neuclust.randomness import stream

RIDGES = (0.3, 3.0)


def rows(n: int, p: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(stream(seed, "test features").standard_normal((n, p)))


def small_factors(n: int, seed: int) -> Factors:
    rng = stream(1, "test width net")
    net = Network((torch.from_numpy(rng.standard_normal((4, 3))), torch.from_numpy(rng.standard_normal((1, 4)))), 2.0)
    return gradient_factors(net, rows(n, 3, seed))


@pytest.mark.parametrize("ridge", RIDGES)
def test_woodbury_equals_the_direct_inverse_and_determinant(ridge: float) -> None:
    past, new, index = rows(11, 6), rows(4, 6, seed=1), torch.tensor([0, 2, 3, 5])
    new[:, [1, 4]] = 0.0
    before, after = naive.covariance(past, ridge), naive.covariance(torch.cat([past, new]), ridge)
    inverse = torch.linalg.inv(before)
    gain = woodbury_(inverse, index, new[:, index])
    torch.testing.assert_close(inverse, torch.linalg.inv(after), rtol=0, atol=1e-12)
    assert gain is not None
    assert float(gain) == pytest.approx(naive.logdet(after, ridge) - naive.logdet(before, ridge), abs=1e-11)


@pytest.mark.parametrize("ridge", RIDGES)
def test_many_woodbury_updates_stay_with_the_direct_inverse(ridge: float) -> None:
    z, inverse, total = ridge * torch.eye(7, dtype=torch.float64), torch.eye(7, dtype=torch.float64) / ridge, 0.0
    for t in range(150):
        new = rows(3, 7, seed=t)
        z += new.T @ new
        gain = woodbury_(inverse, torch.arange(7), new)
        assert gain is not None
        total += float(gain)
    torch.testing.assert_close(inverse, torch.linalg.inv(z), rtol=1e-9, atol=1e-13)
    assert total == pytest.approx(naive.logdet(z, ridge), rel=1e-11)


@pytest.mark.parametrize("ridge", RIDGES)
def test_primal_and_dual_forms_are_one_matrix(ridge: float) -> None:
    past, queries = small_factors(9, seed=2), small_factors(6, seed=3)
    features, asked = flatten(past), flatten(queries).reshape(2, 3, -1)
    inverse = torch.linalg.inv(naive.covariance(features, ridge))
    expected = asked @ inverse @ asked.transpose(1, 2)
    torch.testing.assert_close(primal_forms(inverse, asked), expected, rtol=0, atol=1e-12)
    factor = torch.linalg.cholesky(ridge * torch.eye(9, dtype=torch.float64) + gram(past, past))
    cross, inner = asked @ features.T, asked @ asked.transpose(1, 2)
    torch.testing.assert_close(dual_forms(factor, cross, inner, ridge), expected, rtol=0, atol=1e-10)


def test_the_dual_form_without_history_is_the_norm_over_the_ridge() -> None:
    inner = rows(2, 9).reshape(2, 3, 3)
    empty = torch.zeros(0, 0, dtype=torch.float64)
    torch.testing.assert_close(
        dual_forms(empty, torch.zeros(2, 3, 0, dtype=torch.float64), inner, 0.3), inner / 0.3, rtol=1e-15, atol=0
    )


@pytest.mark.parametrize("ridge", RIDGES)
def test_a_cholesky_factor_grown_row_by_row_is_the_whole_one(ridge: float) -> None:
    features = rows(12, 5)
    target = ridge * torch.eye(12, dtype=torch.float64) + features @ features.T
    factor = torch.zeros(0, 0, dtype=torch.float64)
    for start in range(0, 12, 3):
        stop = start + 3
        left, right = cholesky_rows(factor, target[start:stop, :start], target[start:stop, start:stop].clone())
        grown = torch.zeros(stop, stop, dtype=torch.float64)
        grown[:start, :start], grown[start:, :start], grown[start:, start:] = factor, left, right
        factor = grown
    torch.testing.assert_close(factor, torch.linalg.cholesky(target), rtol=0, atol=1e-12)
    logdet = 2 * float(torch.log(torch.diagonal(factor)).sum()) - 12 * math.log(ridge)
    assert logdet == pytest.approx(naive.logdet(naive.covariance(features, ridge), ridge), abs=1e-11)


def test_diagonal_squares_and_gains_equal_the_elementwise_formula() -> None:
    past, queries = small_factors(8, seed=4), small_factors(5, seed=5)
    diagonal = 0.3 + (flatten(past) ** 2).sum(0)
    blocks = tuple(0.3 + gain for gain in diagonal_gain(past))
    torch.testing.assert_close(naive.flat(blocks), diagonal, rtol=1e-13, atol=0)
    expected = (flatten(queries) ** 2 / diagonal).sum(1)
    torch.testing.assert_close(diagonal_squares(queries, blocks), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (torch.diag(torch.tensor([1.0, -1.0])), "ridge"),
        (torch.tensor([[1.0, 1.0], [1.0, 1.0 - 1e-6]]), "ridge"),
        (torch.tensor([[1.0, 2e4], [2e4, 1e8]]), "differ by a factor of 1e.04; scale the features"),
        (torch.full((2, 2), torch.nan), "not finite"),
    ],
)
def test_a_lost_definiteness_is_said_and_never_papered_over(bad: Tensor, said: str) -> None:
    with pytest.raises(StateError, match=said):
        definite_cholesky(bad.to(torch.float64))


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from(RIDGES))
def test_more_observations_never_widen(seed: int, n: int, ridge: float) -> None:
    features, query = rows(n + 1, 5, seed), rows(1, 5, seed + 1).reshape(1, 1, 5)
    few = primal_forms(torch.linalg.inv(naive.covariance(features[:n], ridge)), query)
    many = primal_forms(torch.linalg.inv(naive.covariance(features, ridge)), query)
    assert float(many) <= float(few) * (1 + 1e-10)


@pytest.mark.parametrize("n", [0, 5, 256, 257, 700])
def test_blocked_solves_of_a_view_equal_the_library(n: int) -> None:
    buffer = torch.zeros(n + 40, n + 40, dtype=torch.float64)
    buffer[:n, :n] = rows(n, n, seed=2).tril() / 20
    buffer.diagonal().add_(2)
    factor, right = buffer[:n, :n], rows(n, 3)
    expected = torch.linalg.solve_triangular(factor.contiguous(), right, upper=False)
    torch.testing.assert_close(solve_lower(factor, right), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("ridge", RIDGES)
def test_narrowing_is_exact_or_a_bound_below_the_cutoff(ridge: float, early: bool) -> None:
    past, new = rows(600, 40), rows(30, 40, seed=1)
    factor = definite_cholesky(ridge * torch.eye(600, dtype=torch.float64) + past @ past.T)
    expected = primal_forms(torch.linalg.inv(naive.covariance(past, ridge)), new.unsqueeze(1)).flatten()
    cutoff = torch.full((30,), -torch.inf, dtype=torch.float64)
    cutoff[10:20], cutoff[20:] = expected[10:20] * 1.5, (new[20:] ** 2).sum(1) * 10
    squares, exact = narrowing(
        factor, lambda alive, part: past[part] @ new[alive].T, (new**2).sum(1), cutoff, ridge, early
    )
    assert bool((squares >= expected * (1 - 1e-9)).all())
    assert bool((squares[20:] < cutoff[20:]).all())
    assert not bool(exact[20:].any())
    if early:
        assert not bool(exact.any())
        assert bool((squares[:10] < (new[:10] ** 2).sum(1) / ridge).all())
    else:
        assert bool(exact[:10].all())
        assert bool((exact | (squares < cutoff)).all())
        torch.testing.assert_close(squares[exact], expected[exact], rtol=1e-6, atol=0)


@pytest.mark.parametrize("rank", [1, 4, 12])
def test_explored_directions_bound_widths_now_and_later(rank: int) -> None:
    rng = stream(rank, "explored directions")
    ridge, past, later, queries = 0.7, *(torch.from_numpy(rng.standard_normal((n, 12))) for n in (30, 10, 50))
    matrix = ridge * torch.eye(12, dtype=torch.float64) + past.T @ past
    basis = explored_directions(matrix, ridge, rank)
    bound = queries.square().sum(1) / ridge - (queries @ basis).square().sum(1)
    now = (queries * torch.linalg.solve(matrix, queries.T).T).sum(1)
    after = (queries * torch.linalg.solve(matrix + later.T @ later, queries.T).T).sum(1)
    assert bool((bound >= now - 1e-12).all())
    assert bool((bound >= after).all())
    if rank == 12:  # all directions: nothing is left to bound
        torch.testing.assert_close(bound, now)


def test_woodbury_leaves_a_step_alone_that_rounding_would_make_of() -> None:
    """1 beside 1e16: the difference of inverses has no digit left."""
    inverse, index = torch.eye(3, dtype=torch.float64), torch.arange(3)
    huge = torch.tensor([[1e8, 2.0, 1e-8]], dtype=torch.float64)
    assert woodbury_(inverse, index, huge) is None
    assert torch.equal(inverse, torch.eye(3, dtype=torch.float64))
    grown, again, logdet = refactored(torch.eye(3, dtype=torch.float64), index, huge)
    torch.testing.assert_close(grown, torch.eye(3, dtype=torch.float64) + huge.T @ huge)
    assert logdet == pytest.approx(math.log(1 + 1e16 + 4))
    assert float(huge[0] @ again @ huge[0]) == pytest.approx(1.0, rel=1e-6)


def test_a_ridge_lost_in_rounding_is_put_back() -> None:
    x = 1e8 * rows(2, 5, 3)
    lost = torch.eye(5, dtype=torch.float64) + x.T @ x
    factor = definite_cholesky(lost)
    torch.testing.assert_close(factor @ factor.T, lost, rtol=1e-10, atol=1e6)
