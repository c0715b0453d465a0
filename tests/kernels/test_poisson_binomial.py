import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.kernels.bernoulli import poisson_binomial

chances = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8)


def enumerated(means: list[float]) -> list[float]:
    """P(j coins come up), by going through all 2^K outcomes."""
    totals = [0.0] * (len(means) + 1)
    for outcome in itertools.product((0, 1), repeat=len(means)):
        totals[sum(outcome)] += math.prod(h if up else 1 - h for h, up in zip(means, outcome, strict=True))
    return totals


@settings(deadline=None)
@given(chances)
def test_equals_the_enumeration_of_all_outcomes(means: list[float]) -> None:
    assert poisson_binomial(torch.tensor(means, dtype=torch.float64)).tolist() == pytest.approx(
        enumerated(means), abs=1e-12
    )


@settings(deadline=None)
@given(chances)
def test_is_a_distribution_with_the_right_mean(means: list[float]) -> None:
    tally = poisson_binomial(torch.tensor(means, dtype=torch.float64))
    assert float(tally.sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(tally.min()) >= -1e-15
    assert float(tally @ torch.arange(len(means) + 1.0, dtype=torch.float64)) == pytest.approx(sum(means), abs=1e-10)


def test_the_paper_tail_for_five_equal_coins() -> None:
    h = math.tanh(5 / 4)
    tail = float(poisson_binomial(torch.full((5,), h, dtype=torch.float64))[4:].sum())
    assert tail == pytest.approx(5 * h**4 * (1 - h) + h**5, abs=1e-14)
    assert tail == pytest.approx(0.832039, abs=5e-7)


def test_leading_dimensions_are_independent_slates() -> None:
    means = torch.rand(3, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = poisson_binomial(means)
    assert together.shape == (3, 4, 7)
    assert all(torch.equal(together[i, j], poisson_binomial(means[i, j])) for i in range(3) for j in range(4))


def test_leaves_its_argument_and_answers_in_double_precision() -> None:
    means = torch.tensor([0.0, 1.0, 1.0], dtype=torch.float32)
    assert poisson_binomial(means).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert poisson_binomial(means).dtype == torch.float64
    assert means.tolist() == [0.0, 1.0, 1.0]
