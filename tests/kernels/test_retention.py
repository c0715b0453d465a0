"""Which rows of a bounded table stay: the last used, and a sample of the others."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from neuclust.kernels.ranking import staying
from neuclust.randomness import stream


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 99))
def test_half_are_the_last_used_and_the_rest_have_the_largest_keys(limit: int, more: int, seed: int) -> None:
    rng = stream(seed, "test retention")
    last, keys = rng.permutation(limit + more), rng.random(limit + more)
    kept = staying(torch.from_numpy(last), torch.from_numpy(keys), limit).tolist()
    recent = sorted(range(limit + more), key=lambda row: -last[row])[: (limit + 1) // 2]
    others = sorted(set(range(limit + more)) - set(recent), key=lambda row: -keys[row])[: limit - len(recent)]
    assert kept == sorted([*recent, *others])


def test_the_old_half_is_an_even_sample_of_everything_before() -> None:
    """3,000 rows through a table of 20: every third of the life has its share, over 30 tables."""
    ages = []
    for seed in range(30):
        keys = torch.from_numpy(stream(seed, "test retention keys").random(3_000))
        rows = torch.arange(20)
        for new in range(20, 3_000, 10):
            rows = torch.cat([rows, torch.arange(new, new + 10)])
            rows = rows[staying(rows, keys[rows], 20)]
        assert rows[-10:].tolist() == list(range(2_990, 3_000))
        ages.extend(rows[:-10].tolist())
    shares = np.histogram(ages, bins=3, range=(0, 3_000))[0] / len(ages)
    assert np.abs(shares - 1 / 3).max() < 0.11  # four standard errors
