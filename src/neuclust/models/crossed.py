"""Several rounds whose features are products of functions of the arm and of the round, read by a linear model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import LARGEST
from neuclust.kernels.jit import serves
from neuclust.kernels.regions import group_rows
from neuclust.kernels.rows import entry_beliefs
from neuclust.kernels.scoring.function_table import FunctionTable
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
    rows: list[Index]  # R of (n_r,): the arms as rows of the table
    table: Callable[[], FunctionTable]  # a: (N, p), made when it is first asked for
    weights: Matrix  # w: (R, d)
    index: Index  # i: (d,), every one of 0 to p − 1 at least once
    slate_sizes: list[int]  # R of k_r
    keys: list[int]  # R keys of randomness

    def __len__(self) -> int:
        return len(self.arm_ids)

    @property
    def functions(self) -> FunctionTable:
        return self.table()

    def fits(self, dim: int, slate_size: int) -> bool:
        """Whether a policy of these sizes can play all rounds, with features of a size that can be computed with."""
        sizes = all(0 < k <= min(slate_size, len(ids)) for k, ids in zip(self.slate_sizes, self.arm_ids, strict=True))
        if not sizes or self.weights.shape != (len(self.arm_ids), dim):
            return False
        return float(self.functions.largest * np.abs(self.weights).max(initial=0.0)) <= LARGEST  # not for NaN


def crossed_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """θᵀz = (Sθ)ᵀa and √(zᵀFz) = √(aᵀ(S F Sᵀ)a) of every arm, (n_r,) each, round by round; θ (d,), F (d, d) symmetric.

    Equal features have equal numbers, so that ties stay ties.
    """
    return _sparse_beliefs(rounds, theta, form) if serves(theta, form) else _dense_beliefs(rounds, theta, form)


def _sparse_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """By compiled loops over the functions of an arm that are not 0, which are few where it has categories."""
    table = rounds.functions
    place, level = table.place[rounds.index], table.level[rounds.index]
    used = place >= 0
    for rows, weights in zip(rounds.rows, rounds.weights * level, strict=True):
        linear = np.bincount(place[used], (weights * theta.numpy())[used], table.size).astype(np.float64)
        own = added_by_place(form.numpy(), place, weights, table.size)
        read = np.bincount(place[used], (weights != 0)[used], table.size) > 0  # others tell no arms apart
        means, squares = entry_beliefs(table.entries(rows, read), linear, own)
        yield torch.from_numpy(means), torch.from_numpy(np.sqrt(np.maximum(squares, 0.0)))


def _dense_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """By library products; equal rows are computed once."""
    linear, square, features = theta.numpy(), form.numpy(), np.arange(len(rounds.index))
    spread = np.zeros((len(rounds.functions.place), len(features)))  # S, filled anew for every round
    for rows, weights in zip(rounds.rows, rounds.weights, strict=True):
        spread[rounds.index, features] = weights
        read = spread.any(1)  # functions that no feature of this round has tell no arms apart
        first, group = (each.numpy() for each in group_rows(torch.from_numpy(rounds.functions.dense(rows) * read)))
        values = rounds.functions.dense(rows[first])
        own = (spread @ square) @ spread.T
        means, squares = values @ (spread @ linear), np.einsum("ij,ij->i", values @ own, values)
        widths = np.sqrt(np.maximum(squares, 0.0))
        yield torch.from_numpy(means[group]), torch.from_numpy(widths[group])
