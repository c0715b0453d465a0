"""Contexts of a set, equal and parallel ones once: the kernel is homogeneous, so a ray of contexts is one context.

det(I + H/λ) is that of the folded set where every ray {a_k u} is replaced by √(Σ a_k²) u: the block of H that belongs
to it has rank one. Equal contexts are the special case √count · x.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuclust.errors import DataError

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
    distinct, counts = torch.unique(rows, dim=0, return_counts=True)
    present = distinct.any(1)
    distinct, counts = distinct[present], counts[present]
    if len(distinct) < 2:
        held = "they are all equal" if len(contexts) > 1 else "there is one"
        advice = "H is singular or 1 x 1 there: name more rounds, arms with different profiles, or another file"
        raise DataError(f"expected at least 2 distinct contexts that are not 0, got {len(distinct)} ({held}); {advice}")
    return Folded(distinct, counts, _rays(distinct, counts.to(torch.float64)), len(contexts))


def _rays(distinct: Tensor, counts: Tensor) -> Tensor:
    norms = torch.linalg.vector_norm(distinct, dim=1)
    rounded = np.round((distinct / norms[:, None]).numpy(), DIGITS) + 0.0
    _, first, group = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    squares = torch.zeros(len(first), dtype=torch.float64)
    squares.index_add_(0, torch.from_numpy(group.ravel()), counts * norms**2)
    leaders = torch.from_numpy(first)
    made: Tensor = distinct[leaders] / norms[leaders][:, None] * squares.sqrt()[:, None]
    return made
