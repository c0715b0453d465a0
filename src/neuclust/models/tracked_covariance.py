"""A posterior N(m, Σ) of weights that follows observations by the formula of Sherman, Morrison and Woodbury, in O(p²),
where a new factor of the precision takes O(p³)."""

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from torch import Tensor

Floats = NDArray[np.float64]

MOST_UPDATES = 200  # slates after which rounding errors end with a new factor


class TrackedCovariance:
    """Σ as its lower triangle, the only part that is read, and m (p,)."""

    def __init__(self, lower: Floats, mean: Floats, updates: int = 0) -> None:
        self._lower, self._mean, self.updates = np.asfortranarray(lower), mean, updates
        self._latest: tuple[Tensor, Floats] | None = None  # features and their ΣXᵀ, until Σ changes

    @classmethod
    def of(cls, factor: Tensor, moment: Tensor) -> Self:
        """From the lower factor of the precision (p, p) and Λm (p,)."""
        lower, _ = lapack.dpotri(np.asfortranarray(factor.numpy()), lower=1, overwrite_c=1)
        return cls(lower, blas.dsymv(1.0, lower, moment.numpy(), lower=1))

    @property
    def mean(self) -> Tensor:
        return torch.from_numpy(self._mean)

    @property
    def variances(self) -> Tensor:
        """Diagonal of Σ, (p,)."""
        return torch.from_numpy(np.diagonal(self._lower).copy())

    def between(self, features: Tensor) -> Tensor:
        """XΣXᵀ of features (k, p) -> (k, k)."""
        return torch.from_numpy(features.numpy() @ self._spread(features))

    def _spread(self, features: Tensor) -> Floats:
        """ΣXᵀ (p, k); a slate is first predicted and then observed, and it takes most of the time of both."""
        if self._latest is None or self._latest[0] is not features:
            self._latest = features, blas.dsymm(1.0, self._lower, features.numpy().T, lower=1)
        return self._latest[1]

    def observe(self, features: Tensor, sums: Tensor, weights: Tensor) -> bool:
        """Λ grows by Σ w x xᵀ and Λm by Σ s x: features (k, p), sums s and weights w > 0 (k,).

        False where rounding errors have made Σ indefinite: it must be made again from the precision.
        """
        x, w = features.numpy(), weights.numpy()
        spread, self._latest = self._spread(features), None
        root, failed = lapack.dpotrf(x @ spread + np.diag(1 / w), lower=1)
        if failed:
            return False
        scaled = blas.dtrsm(1.0, root, spread, side=1, lower=1, trans_a=1)
        gap = lapack.dtrtrs(root, sums.numpy() / w - x @ self._mean, lower=1)[0]
        self._mean = self._mean + scaled @ gap
        self._lower = blas.dsyrk(-1.0, scaled, beta=1.0, c=self._lower, lower=1, overwrite_c=1)
        self.updates += 1
        return bool(np.isfinite(self._mean).all())

    def packed(self) -> Tensor:
        """All numbers, (p(p + 1)/2 + p + 1,)."""
        triangle = self._lower[np.tril_indices(len(self._mean))]
        return torch.from_numpy(np.concatenate([triangle, self._mean, [float(self.updates)]]))

    @classmethod
    def unpacked(cls, packed: Tensor, size: int) -> Self:
        numbers = packed.numpy()
        lower = np.zeros((size, size), order="F")
        lower[np.tril_indices(size)] = numbers[: -size - 1]
        return cls(lower, numbers[-size - 1 : -1].copy(), round(float(numbers[-1])))
