"""Contexts of a set, equal and parallel ones once: the kernel is homogeneous, so a ray of contexts is one context.

det(I + H/λ) is that of the folded set where every ray {a_k u} is replaced by √(Σ a_k²) u: the block of H that belongs
to it has rank one. Equal contexts are the special case √count · x.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.errors import DataError
from neuclust.randomness import stream

DIGITS = 12  # decimals to which directions are compared


@dataclass(frozen=True, slots=True)
class Folded:
    """Distinct rows of a set, and what folding left of it."""

    distinct: Tensor  # (u, d) distinct contexts that are not 0
    counts: Tensor  # (u,) how often each occurs
    rays: Tensor  # (r, d) one row per direction, as long as the root of its squared lengths, counted
    total: int  # rows of the set, zeros too

    @property
    def parallel(self) -> int:
        """Distinct contexts beyond the first of their direction: as many eigenvalues of H are 0."""
        return len(self.distinct) - len(self.rays)


def fold(contexts: Tensor) -> Folded:
    """The set folded; refused where fewer than two distinct contexts are left, since H then says nothing."""
    if contexts.ndim != 2 or len(contexts) == 0:
        raise DataError(f"expected contexts as rows of a matrix, got shape {tuple(contexts.shape)}; name more arms")
    if not bool(torch.isfinite(contexts).all()):
        raise DataError("expected finite contexts, got NaN or infinity; check the features")
    rows = contexts.to(torch.float64)
    rows = rows[rows.any(1)]
    first, group = equal_rows(rows.numpy() + 0.0)  # −0 is 0
    distinct, counts = rows[first], torch.bincount(group, minlength=len(first))
    if len(distinct) < 2:
        held = "they are all equal" if len(contexts) > 1 else "there is one"
        advice = "H is singular or 1 x 1 there: name more rounds, arms with different profiles, or another file"
        raise DataError(f"expected at least 2 distinct contexts that are not 0, got {len(distinct)} ({held}); {advice}")
    return Folded(distinct, counts, _rays(distinct, counts.to(torch.float64)), len(contexts))


def _rays(distinct: Tensor, counts: Tensor) -> Tensor:
    norms = torch.linalg.vector_norm(distinct, dim=1)
    leaders, group = equal_rows(np.round((distinct / norms[:, None]).numpy(), DIGITS) + 0.0)
    squares = torch.zeros(len(leaders), dtype=torch.float64)
    squares.index_add_(0, group, counts * norms**2)
    made: Tensor = distinct[leaders] / norms[leaders][:, None] * squares.sqrt()[:, None]
    return made


def equal_rows(rows: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    """The first row of every group of equal rows, and the group of every row, (u,) and (n,).

    By one hash of 64 bits per row, which sorts far faster than rows do; groups are then compared entry by entry.
    """
    bits = np.ascontiguousarray(rows).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    factors = stream(0, "rows").integers(1 << 62, size=rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = ((mixed ^ (mixed >> np.uint64(32))) * factors).sum(1, dtype=np.uint64)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][group.ravel()], rows):  # two rows with one hash
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return torch.from_numpy(first), torch.from_numpy(group.ravel())
