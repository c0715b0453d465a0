"""Z = λI + Σ ĝĝᵀ of R runs at once, and the squared widths it gives.

`PrimalBatch` keeps Z and Z⁻¹, `DualBatch` the past gradients and the inverse Cholesky factor of λI + ĜĜᵀ. Both mark
runs whose last update lost precision as `stale`; `mend` repeats that update for them as the single run does.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from neuclust.kernels.network import Factors, flatten, gram, squared_norms
from neuclust.kernels.training import per_run
from neuclust.kernels.widths import definite_cholesky, woodbury_holds

_BUDGET = {"cpu": 1 << 24, "cuda": 1 << 28}  # numbers in one intermediate block
_BLOCK = 1024  # rows of the inverse factor per product; what lies above the diagonal is skipped


class PrimalBatch:
    """Z and Z⁻¹ of every run; K new gradients cost O(K p²)."""

    def __init__(self, ridge: Tensor, width: int, dim: int, refresh: int) -> None:
        size = width * dim + width
        eye = torch.eye(size, dtype=ridge.dtype, device=ridge.device).expand(len(ridge), size, size)
        self._width, self._dim, self._refresh = width, dim, refresh
        self._matrix, self._inverse = eye * per_run(ridge, eye), eye / per_run(ridge, eye)
        self.stale = torch.zeros(len(ridge), dtype=torch.bool, device=ridge.device)
        self.logdet, self._empty = torch.zeros_like(ridge), size * torch.log(ridge)  # log det Z/det λI, log det λI

    def squares(self, factors: Factors, columns: Tensor) -> Tensor:
        """ĝᵀZ⁻¹ĝ of rows given on the input columns `columns`: (R, n)."""
        index = self._coordinates(columns)
        inverse = self._inverse[:, index[:, None], index]

        def block(rows: Factors) -> Tensor:
            flat = flatten(rows)
            return ((flat @ inverse) * flat).sum(-1)

        return _by_blocks(factors, len(inverse) * len(index), block)

    def observe(self, factors: Factors, columns: Tensor) -> None:
        """Z += ĜᵀĜ and the matching Z⁻¹ by Woodbury."""
        index, features = self._coordinates(columns), flatten(factors)
        whole = features.new_zeros(*features.shape[:2], self._matrix.shape[-1])
        whole[:, :, index] = features
        self._matrix.baddbmm_(whole.mT, whole)
        projected = whole @ self._inverse
        core = projected @ whole.mT
        core.diagonal(dim1=-2, dim2=-1).add_(1.0)
        half, definite, gain = whitened(core, projected)
        self._inverse.baddbmm_(half.mT, half, alpha=-1)
        self.logdet += gain
        self.stale |= ~(definite & woodbury_holds(core))

    def refresh(self, updates: int) -> None:
        """Z⁻¹ from Z every so many updates, so that rounding cannot pile up; the buffers stay where they are."""
        if updates % self._refresh == 0:
            factor, info = torch.linalg.cholesky_ex(self._matrix)
            self._inverse.copy_(torch.cholesky_inverse(factor))
            self.logdet.copy_(log_determinant(factor) - self._empty)
            self.stale |= info > 0

    def mend(self) -> None:
        """Z⁻¹ from Z for the stale runs; waits for the device."""
        for run in _taken(self.stale):
            factor = definite_cholesky(self._matrix[run])
            self._inverse[run] = torch.cholesky_inverse(factor)
            self.logdet[run] = log_determinant(factor) - self._empty[run]

    def _coordinates(self, columns: Tensor) -> Tensor:
        units = torch.arange(self._width, device=columns.device)
        first = (units.unsqueeze(1) * self._dim + columns).flatten()
        return torch.cat([first, units + self._width * self._dim])


class DualBatch:
    """Past gradients as factors and L⁻¹ for LLᵀ = λI + ĜĜᵀ, with room for `room` gradients per run."""

    def __init__(self, ridge: Tensor, width: int, dim: int, room: int) -> None:
        def buffer(*shape: int) -> Tensor:
            return ridge.new_zeros(len(ridge), room, *shape)

        self._ridge, self._count = ridge, 0
        self._past = Factors((buffer(dim), buffer(width)), (buffer(width), buffer(1)))
        self._inverse = buffer(room)
        self._latest: tuple[slice, Tensor, Tensor, Tensor] | None = None  # what the last update computed
        self.stale = torch.zeros(len(ridge), dtype=torch.bool, device=ridge.device)
        self.logdet = torch.zeros_like(ridge)  # log det(I + ĜĜᵀ/λ)

    def squares(self, factors: Factors, columns: Tensor) -> Tensor:
        """(κ − ‖L⁻¹k‖²)/λ of rows given on the input columns `columns`: (R, n)."""
        past = self._seen(columns)

        def block(rows: Factors) -> Tensor:
            return squared_norms(rows) - self._explained(gram(rows, past))

        return _by_blocks(factors, len(self._ridge) * max(1, self._count), block) / self._ridge.unsqueeze(1)

    def observe(self, factors: Factors, columns: Tensor) -> None:
        """Append K gradients: L⁻¹ grows by [−M L_21 L⁻¹, M] with M = L_22⁻¹."""
        n, new = self._count, factors.deltas[0].shape[1]
        known, rows = self._inverse[:, :n, :n], slice(n, n + new)
        left = gram(factors, self._seen(columns)) @ known.mT
        corner = gram(factors, factors)
        corner.diagonal(dim1=-2, dim2=-1).add_(self._ridge.unsqueeze(1))
        rest = corner - left @ left.mT
        eye = torch.eye(new, dtype=corner.dtype, device=corner.device).expand_as(corner)
        inverse, definite, gain = whitened(rest, eye)
        self.logdet += torch.where(definite, gain - new * torch.log(self._ridge), 0.0)
        self._latest = rows, left @ known, rest, torch.diagonal(corner, dim1=-2, dim2=-1)
        self._append(slice(None), inverse)
        self.stale |= ~definite
        self._past.inputs[0][:, rows, columns] = factors.inputs[0]
        self._past.inputs[1][:, rows] = factors.inputs[1]
        for buffer, delta in zip(self._past.deltas, factors.deltas, strict=True):
            buffer[:, rows] = delta
        self._count += new

    def refresh(self, updates: int) -> None:
        """Nothing to do: rows of L⁻¹ are computed once and never changed."""

    def mend(self) -> None:
        """The last rows of L⁻¹ again for the stale runs; waits for the device."""
        for run in _taken(self.stale):
            assert self._latest is not None
            _, _, rest, sizes = self._latest
            factor = definite_cholesky(rest[run], sizes[run])
            self.logdet[run] += log_determinant(factor) - len(factor) * torch.log(self._ridge[run])
            eye = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
            self._append(slice(run, run + 1), torch.linalg.solve_triangular(factor, eye, upper=False).unsqueeze(0))

    def _append(self, runs: slice, inverse: Tensor) -> None:
        assert self._latest is not None
        rows, left, _, _ = self._latest
        self._inverse[runs, rows, : rows.start] = -inverse @ left[runs]
        self._inverse[runs, rows, rows] = inverse

    def _seen(self, columns: Tensor) -> Factors:
        past = self._past.rows(0, self._count)
        return Factors((past.inputs[0][:, :, columns], past.inputs[1]), past.deltas)

    def _explained(self, cross: Tensor) -> Tensor:
        """‖L⁻¹k‖² of every row of cross (R, n, past): (R, n)."""
        total = cross.new_zeros(cross.shape[:2])
        for start in range(0, self._count, _BLOCK):
            stop = min(start + _BLOCK, self._count)
            half = cross[:, :, :stop] @ self._inverse[:, start:stop, :stop].mT
            total += torch.linalg.vector_norm(half, dim=-1).square()
        return total


def whitened(core: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L⁻¹·rows for core = LLᵀ (R, K, K) and rows (R, K, p), whether each core was definite (R,), and log det core (R,).

    By Gaussian elimination: library factorisations of small matrices wait for the device or cannot be recorded.
    """
    size = core.shape[-1]
    joined = torch.cat([core, rows], -1)
    for k in range(size - 1):
        shares = joined[:, k + 1 :, k] / joined[:, k, k].unsqueeze(1)
        joined[:, k + 1 :] -= shares.unsqueeze(-1) * joined[:, k].unsqueeze(1)
    pivots = joined.diagonal(dim1=-2, dim2=-1)[:, :size]
    definite = (pivots > 0).all(1)
    logdet = torch.where(definite.unsqueeze(1), pivots, 1.0).log().sum(1)
    return joined[:, :, size:] / pivots.clamp(min=0).sqrt().unsqueeze(-1), definite, logdet


def log_determinant(factor: Tensor) -> Tensor:
    """log det LLᵀ of factors L (…, p, p): (…)."""
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _by_blocks(factors: Factors, numbers_per_row: int, block: Callable[[Factors], Tensor]) -> Tensor:
    """`block`, which maps b gradients to (R, b), of all n gradients: (R, n)."""
    total = factors.deltas[0].shape[1]
    size = max(1, _BUDGET.get(factors.deltas[0].device.type, 1 << 24) // max(1, numbers_per_row))
    return torch.cat([block(factors.rows(start, start + size)) for start in range(0, total, size)], 1)


def _taken(flags: Tensor) -> Iterator[int]:
    """The runs that are marked, unmarked from then on."""
    marked = torch.nonzero(flags).flatten().tolist()
    flags.zero_()
    yield from marked
