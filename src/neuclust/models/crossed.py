"""Several rounds whose features are products of functions of the arm and of the round, read by a linear model."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import LARGEST
from neuclust.kernels.jit import serves
from neuclust.kernels.regions import group_rows
from neuclust.kernels.rows import linear_beliefs, sparse_rows
from neuclust.kernels.scoring.masked_scores import added_by_place

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CrossedRounds:
    """R rounds without rules; feature c of an arm in round r is z_c = a_{i_c}(arm) · w_rc, that is z = S_rᵀa.

    S_r (p, d) has w_rc at (i_c, c). Functions of arms are few where crosses are many: a quadratic form of z is one of
    a, and costs p² per arm instead of d².
    """

    arm_ids: list[Index]  # R of (n_r,), every arm once
    rows: list[Index]  # R of (n_r,): the arms as rows of `functions`
    functions: Matrix  # a: (N, p)
    weights: Matrix  # w: (R, d)
    index: Index  # i: (d,), every one of 0 to p − 1 at least once
    slate_sizes: list[int]  # R of k_r

    def fits(self, dim: int, slate_size: int) -> bool:
        """Whether a policy of these sizes can play all rounds, with features of a size that can be computed with."""
        sizes = all(0 < k <= min(slate_size, len(ids)) for k, ids in zip(self.slate_sizes, self.arm_ids, strict=True))
        if not sizes or self.weights.shape != (len(self.arm_ids), dim):
            return False
        return float(np.abs(self.functions).max(initial=0.0) * np.abs(self.weights).max()) <= LARGEST  # not for NaN


def crossed_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """θᵀz = (Sθ)ᵀa and √(zᵀFz) = √(aᵀ(S F Sᵀ)a) of every arm, (n_r,) each, round by round; θ (d,), F (d, d) symmetric.

    Equal features have equal numbers, so that ties stay ties.
    """
    return _sparse_beliefs(rounds, theta, form) if serves(theta, form) else _dense_beliefs(rounds, theta, form)


def _sparse_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """By compiled loops over the functions of an arm that are not 0, which are few where it has categories."""
    size, index = rounds.functions.shape[1], rounds.index
    for rows, weights in zip(rounds.rows, rounds.weights, strict=True):
        read = np.bincount(index[weights != 0], minlength=size) > 0  # others tell no arms apart
        arms = sparse_rows(rounds.functions.take(rows, axis=0) * read)
        linear = np.bincount(index, weights * theta.numpy(), size).astype(np.float64)
        means, squares = linear_beliefs(arms, linear, added_by_place(form.numpy(), index, weights, size))
        yield torch.from_numpy(means), torch.from_numpy(np.sqrt(np.maximum(squares, 0.0)))


def _dense_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """By library products; equal rows are computed once."""
    linear, square, features = theta.numpy(), form.numpy(), np.arange(len(rounds.index))
    told_apart = len(group_rows(torch.from_numpy(rounds.functions))[0]) == len(rounds.functions)
    spread = np.zeros((rounds.functions.shape[1], len(features)))  # S, filled anew for every round
    for rows, weights in zip(rounds.rows, rounds.weights, strict=True):
        spread[rounds.index, features] = weights
        values, group = rounds.functions.take(rows, axis=0), None
        reads = spread.any(1)
        if not (told_apart and reads.all()):  # functions that no feature of this round has tell no arms apart
            values, group = _once(values * reads)
        own = (spread @ square) @ spread.T
        means, squares = values @ (spread @ linear), np.einsum("ij,ij->i", values @ own, values)
        widths = np.sqrt(np.maximum(squares, 0.0))
        if group is not None:
            means, widths = means[group], widths[group]
        yield torch.from_numpy(means), torch.from_numpy(widths)


def _once(values: Matrix) -> tuple[Matrix, Index]:
    """Distinct rows, and for each row its place among them."""
    first, group = (each.numpy() for each in group_rows(torch.from_numpy(values)))
    return values[first], group
