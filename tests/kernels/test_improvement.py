"""Expected improvement against an integral."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from neuclust.kernels.improvement import expected_improvement


@pytest.mark.parametrize("gap", [-0.3, 0.0, 0.02, 0.4, 3.0])
@pytest.mark.parametrize("spread", [0.05, 0.3])
def test_it_is_the_mean_of_what_exceeds_the_bound(gap: float, spread: float) -> None:
    bound = 0.7
    found = expected_improvement(np.array([gap]), np.array([spread]))
    density = norm(bound - gap, spread)
    top = max(bound, bound - gap) + 12 * spread
    wanted, _ = quad(lambda x: (x - bound) * density.pdf(x), bound, top, epsabs=1e-14, points=[max(bound, bound - gap)])
    assert found[0] == pytest.approx(wanted, rel=1e-6, abs=1e-12)
    assert found[0] >= 0
