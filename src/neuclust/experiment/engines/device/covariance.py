"""Z = λI + Σ ĝĝᵀ of R runs at once, and the squared widths it gives.

`PrimalBatch` keeps Z and Z⁻¹, (R, p, p). `DualBatch` keeps the past gradients as factors and the inverse of the
Cholesky factor of λI + ĜĜᵀ, so that every width is a matrix product and nothing waits for a triangular solve.
"""

from __future__ import annotations

import torch
from torch import Tensor

from neuclust.errors import StateError
from neuclust.experiment.engines.device.networks import RowFactors, per_run, row_gram

_BUDGET = {"cpu": 1 << 24, "cuda": 1 << 28}  # numbers in one intermediate block
_BLOCK = 1024  # rows of the inverse factor a product takes at once; what lies above the diagonal is skipped


class PrimalBatch:
    """Z and Z⁻¹ of every run; K new gradients cost O(K p²)."""

    def __init__(self, ridge: Tensor, width: int, dim: int, refresh: int) -> None:
        size = width * dim + width
        eye = torch.eye(size, dtype=ridge.dtype, device=ridge.device).expand(len(ridge), size, size)
        self._ridge, self._width, self._dim, self._refresh = ridge, width, dim, refresh
        self._matrix, self._inverse = eye * per_run(ridge, eye), eye / per_run(ridge, eye)
        self._broken = torch.zeros(len(ridge), dtype=torch.bool, device=ridge.device)

    def squares(self, factors: RowFactors, columns: Tensor) -> Tensor:
        """ĝᵀZ⁻¹ĝ of rows given on the input columns `columns`: (R, n)."""
        index = self._coordinates(columns)
        inverse = self._inverse[:, index[:, None], index]
        chunk = _chunk(inverse.device, len(inverse) * len(index))
        blocks = []
        for start in range(0, factors.deltas.shape[1], chunk):
            flat = factors.rows(start, start + chunk).flat()
            blocks.append(((flat @ inverse) * flat).sum(-1))
        return torch.cat(blocks, 1)

    def observe(self, factors: RowFactors, columns: Tensor) -> None:
        """Z += ĜᵀĜ and the matching Z⁻¹ by Woodbury."""
        index, features = self._coordinates(columns), factors.flat()
        whole = features.new_zeros(*features.shape[:2], self._matrix.shape[-1])
        whole[:, :, index] = features
        self._matrix.baddbmm_(whole.mT, whole)
        projected = whole @ self._inverse
        core = projected @ whole.mT
        core.diagonal(dim1=-2, dim2=-1).add_(1.0)
        half, fine = whitened(core, projected)
        self._inverse.baddbmm_(half.mT, half, alpha=-1)
        self._broken |= ~fine

    def refresh(self, updates: int) -> None:
        """Z⁻¹ anew every so many updates, so that rounding cannot pile up; the buffers stay where they are."""
        if updates % self._refresh == 0:
            factor, info = torch.linalg.cholesky_ex(self._matrix)
            self._inverse.copy_(torch.cholesky_inverse(factor))
            self._broken |= info > 0

    def check(self) -> None:
        """Refuse a covariance that is none any more; waits for the device."""
        _refuse(self._broken)

    def _coordinates(self, columns: Tensor) -> Tensor:
        units = torch.arange(self._width, device=columns.device)
        first = (units.unsqueeze(1) * self._dim + columns).flatten()
        return torch.cat([first, units + self._width * self._dim])


class DualBatch:
    """Past gradients as factors and L⁻¹ for LLᵀ = λI + ĜĜᵀ, with room for `room` gradients a run."""

    def __init__(self, ridge: Tensor, width: int, dim: int, room: int) -> None:
        self._ridge, self._count = ridge, 0
        self._past = RowFactors(
            ridge.new_zeros(len(ridge), room, dim),
            ridge.new_zeros(len(ridge), room, width),
            ridge.new_zeros(len(ridge), room, width),
        )
        self._inverse = ridge.new_zeros(len(ridge), room, room)
        self._broken = torch.zeros(len(ridge), dtype=torch.bool, device=ridge.device)

    def squares(self, factors: RowFactors, columns: Tensor) -> Tensor:
        """(κ − ‖L⁻¹k‖²)/λ of rows given on the input columns `columns`: (R, n)."""
        past = self._seen(columns)
        chunk = _chunk(self._inverse.device, len(self._ridge) * max(1, self._count))
        blocks = []
        for start in range(0, factors.deltas.shape[1], chunk):
            rows = factors.rows(start, start + chunk)
            blocks.append(rows.squared_norms() - self._explained(row_gram(rows, past)))
        return torch.cat(blocks, 1) / self._ridge.unsqueeze(1)

    def observe(self, factors: RowFactors, columns: Tensor) -> None:
        """Append K gradients: L⁻¹ grows by [−M L_21 L⁻¹, M] with M = L_22⁻¹."""
        n, new = self._count, factors.deltas.shape[1]
        known = self._inverse[:, :n, :n]
        left = row_gram(factors, self._seen(columns)) @ known.mT
        corner = row_gram(factors, factors) - left @ left.mT
        corner.diagonal(dim1=-2, dim2=-1).add_(self._ridge.unsqueeze(1))
        eye = torch.eye(new, dtype=corner.dtype, device=corner.device).expand_as(corner)
        inverse, fine = whitened(corner, eye)
        self._broken |= ~fine
        self._inverse[:, n : n + new, :n] = -inverse @ (left @ known)
        self._inverse[:, n : n + new, n : n + new] = inverse
        self._past.inputs[:, n : n + new, columns] = factors.inputs
        self._past.deltas[:, n : n + new], self._past.last[:, n : n + new] = factors.deltas, factors.last
        self._count += new

    def refresh(self, updates: int) -> None:
        """Nothing to do: rows of L⁻¹ are computed once and never changed."""

    def check(self) -> None:
        """Refuse a covariance that is none any more; waits for the device."""
        _refuse(self._broken)

    def _seen(self, columns: Tensor) -> RowFactors:
        past = self._past.rows(0, self._count)
        return RowFactors(past.inputs[:, :, columns], past.deltas, past.last)

    def _explained(self, cross: Tensor) -> Tensor:
        """‖L⁻¹k‖² of every row of cross (R, n, past): (R, n)."""
        total = cross.new_zeros(cross.shape[:2])
        for start in range(0, self._count, _BLOCK):
            stop = min(start + _BLOCK, self._count)
            half = cross[:, :, :stop] @ self._inverse[:, start:stop, :stop].mT
            total += torch.linalg.vector_norm(half, dim=-1).square()
        return total


def whitened(core: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """L⁻¹·rows for core = LLᵀ (R, K, K) and rows (R, K, p), and whether each core was definite (R,).

    Plain elimination, K steps: library factorisations of such small matrices wait for the device or cannot be
    recorded.
    """
    size = core.shape[-1]
    joined = torch.cat([core, rows], -1)
    for k in range(size - 1):
        shares = joined[:, k + 1 :, k] / joined[:, k, k].unsqueeze(1)
        joined[:, k + 1 :] -= shares.unsqueeze(-1) * joined[:, k].unsqueeze(1)
    pivots = joined.diagonal(dim1=-2, dim2=-1)[:, :size]
    return joined[:, :, size:] / pivots.clamp(min=0).sqrt().unsqueeze(-1), (pivots > 0).all(1)


def _chunk(device: torch.device, numbers_a_row: int) -> int:
    return max(1, _BUDGET.get(device.type, 1 << 24) // max(1, numbers_a_row))


def _refuse(broken: Tensor) -> None:
    if bool(broken.any()):
        raise StateError(
            "the gradient covariance lost positive definiteness: expected finite gradients and a ridge large "
            "enough for them; raise confidence.ridge or lower the training step"
        )
