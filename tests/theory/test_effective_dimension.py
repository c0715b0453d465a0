"""The effective dimension by every method on the same 2,000 contexts, against one plain determinant."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream
from neuclust.theory import effective_dimension as dimension
from neuclust.theory import pivoting, remainder
from neuclust.theory.folding import Folded, equal_rows, fold
from neuclust.theory.lanczos import Probing, quadrature
from neuclust.theory.ntk import TangentKernel
from neuclust.theory.pivoting import low_rank, pivots

RIDGE = 0.7
KERNEL = TangentKernel(2)


def contexts(n: int = 2000, seed: int = 0) -> Tensor:
    """Masked profiles in the shape of MovieLens, some of them twice and some multiples of others."""
    rng = stream(seed, "contexts of a dimension")
    rows = 0.3 * rng.random((n, 12)) * (rng.random((n, 12)) < 0.4)
    rows[: n // 20] = rows[n // 20 : n // 10]
    rows[n // 10 : n // 10 + n // 20] = 0.5 * rows[n // 5 : n // 5 + n // 20]
    rows[-3:] = 0.0
    return torch.from_numpy(rows)


def naive_logdet(rows: Tensor, kernel: TangentKernel, ridge: float) -> float:
    """log det(I + H/λ) of all rows, nothing folded."""
    sign, value = np.linalg.slogdet(np.eye(len(rows)) + kernel(rows).numpy() / ridge)
    assert sign == 1
    return float(value)


@pytest.fixture(scope="module")
def folded() -> Folded:
    return fold(contexts())


@pytest.fixture(scope="module")
def truth() -> float:
    return naive_logdet(contexts(), KERNEL, RIDGE) / float(np.log(1 + 2000 / RIDGE))


def test_the_exact_value_is_that_of_the_whole_matrix(folded: Folded, truth: float) -> None:
    found = dimension.exact(folded, KERNEL, RIDGE)
    assert found.value == pytest.approx(truth, rel=1e-9)
    assert found.low == found.high == found.value


def test_the_bracket_contains_the_exact_value_and_narrows_with_the_rank(folded: Folded, truth: float) -> None:
    found = [dimension.bracket(folded, KERNEL, RIDGE, rank) for rank in (30, 200, 600)]
    for estimate, part in found:
        assert estimate.low < truth < estimate.high
        assert str(part.rank) in estimate.error
    assert [part.rank for _, part in found] == [30, 200, 600]
    widths = [(estimate.high - estimate.low) / truth for estimate, _ in found]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.02


def test_a_bracket_from_some_columns_contains_the_exact_value(
    folded: Folded, truth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a million contexts get: moments of the remainder from random columns instead of all pairs."""
    certain, _ = dimension.bracket(folded, KERNEL, RIDGE, 200)
    monkeypatch.setattr(pivoting, "ALL", 500)
    found, _ = dimension.bracket(folded, KERNEL, RIDGE, 200)
    assert "200 columns" in found.error
    assert found.low < truth < found.high
    assert found.high - found.low < 2 * (certain.high - certain.low)
    assert certain.error.startswith("certain")


def test_the_ends_of_the_remainder_hold_for_any_spectrum() -> None:
    rng = stream(0, "spectra")
    for scale in (0.01, 1.0, 30.0):
        x = scale * rng.random(50) ** 4
        found = remainder.ends(float(x.sum()), float((x**2).sum()), 50, 1.0)
        assert found.low <= np.log1p(x).sum() <= found.high
    equal = remainder.ends(50 * 0.3, 50 * 0.09, 50, 1.0)
    assert equal.low == pytest.approx(equal.high)  # equal eigenvalues: both ends are the value
    assert remainder.ends(0.0, 0.0, 50, 1.0) == remainder.Remainder(0.0, 0.0, 0)


def test_lanczos_is_within_its_stated_error(folded: Folded, truth: float) -> None:
    found, made = dimension.lanczos(folded, KERNEL, RIDGE, probing=Probing(12, 20))
    assert found.low <= truth <= found.high
    assert 0 < made.error < 0.01 * made.value
    assert found.value == pytest.approx(truth, rel=0.02)


def test_the_standard_error_is_what_seeds_differ_by() -> None:
    rows = fold(contexts(200)).rays
    matrix = KERNEL(rows)
    truth = naive_logdet(rows, KERNEL, RIDGE)
    runs = [quadrature(lambda v: matrix @ v, len(rows), RIDGE, None, Probing(10, 25, seed)) for seed in range(40)]
    misses = np.array([(run.value - truth) / run.error for run in runs])
    assert np.abs(misses).mean() < 1.3  # 0.85 for Student's t of 9 degrees
    assert 0.6 < misses.std() < 1.8
    assert np.mean(np.abs(misses) < 3) >= 0.9


def test_all_steps_without_random_probes_give_the_form_itself() -> None:
    rows = fold(contexts(60)).rays
    matrix = KERNEL(rows)
    found = quadrature(lambda v: matrix @ v, len(rows), RIDGE, pivots(rows, KERNEL, 60)[1], Probing(2, 60))
    assert found.value == pytest.approx(naive_logdet(rows, KERNEL, RIDGE), rel=1e-6)
    assert found.error < 1e-4


def test_the_remaining_trace_is_that_of_the_matrix_less_its_low_rank_part() -> None:
    rows = fold(contexts(160)).rays
    chosen, factor = pivots(rows, KERNEL, 20)
    whole = KERNEL(rows)
    corner = torch.linalg.inv(whole[chosen][:, chosen])
    rest = whole - whole[:, chosen] @ corner @ whole[chosen]
    part = low_rank(rows, KERNEL, rows[chosen])
    assert part.left == pytest.approx(float(rest.trace()), rel=1e-5)
    torch.testing.assert_close(factor @ factor.T, whole - rest, rtol=1e-6, atol=1e-8)
    assert len(set(chosen.tolist())) == 20


def test_equal_and_parallel_contexts_fold_without_changing_the_determinant() -> None:
    rows = contexts(120)
    found = fold(rows)
    assert found.total == 120
    assert len(found.distinct) < 120
    assert found.parallel > 0
    assert int(found.counts.sum()) == int(rows.any(1).sum())
    assert naive_logdet(found.rays, KERNEL, RIDGE) == pytest.approx(naive_logdet(rows, KERNEL, RIDGE), rel=1e-9)


def test_growth_is_of_random_parts_each_with_its_own_logarithm(folded: Folded) -> None:
    found = dimension.growth(folded, KERNEL, RIDGE, (50, 100, 10**6))
    assert [n for n, _ in found] == [50, 100]
    order = stream(0, "growth of the dimension").permutation(len(folded.distinct))
    for n, value in found:
        part = folded.distinct[torch.from_numpy(order[:n])]
        assert value == pytest.approx(naive_logdet(part, KERNEL, RIDGE) / np.log(1 + n / RIDGE), rel=1e-9)


def test_the_running_one_is_the_log_determinant_of_what_was_played() -> None:
    assert dimension.running(3.0, 20, 2.0) == pytest.approx(3.0 / np.log(11.0))
    assert dimension.running(0.0, 0, 2.0) == 0.0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (torch.ones(1, 3), "there is one"),
        (torch.ones(9, 3), "all equal"),
        (torch.zeros(9, 3), "got 0"),
        (torch.tensor([[1.0, float("nan")], [1.0, 2.0]]), "finite"),
        (torch.ones(0, 3), "name more arms"),
    ],
)
def test_sets_that_say_nothing_are_refused(rows: Tensor, said: str) -> None:
    with pytest.raises(DataError, match=said):
        fold(rows)


def test_sizes_that_cannot_be_are_refused(folded: Folded) -> None:
    with pytest.raises(DataError, match="at most"):
        dimension.exact_logdet(torch.ones(dimension.MOST_EXACT + 1, 2), KERNEL, RIDGE)
    with pytest.raises(ConfigError, match="ridge"):
        dimension.exact(folded, KERNEL, 0.0)
    with pytest.raises(ConfigError, match="probes"):
        Probing(1, 3)


def test_equal_rows_are_those_of_a_sort_by_entries() -> None:
    rows = np.round(stream(0, "equal rows").standard_normal((400, 3)), 0) + 0.0
    first, group = equal_rows(rows)
    wanted = np.unique(rows, axis=0)
    assert len(first) == len(wanted) < 400
    np.testing.assert_array_equal(rows[first][group], rows)
    assert len(np.unique(rows[first], axis=0)) == len(first)
