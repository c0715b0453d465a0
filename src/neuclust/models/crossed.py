"""Several rounds whose features are products of functions of the arm and of the round, read by a linear model."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.core import LARGEST
from neuclust.kernels.regions import group_rows


@dataclass(frozen=True, slots=True)
class CrossedRounds:
    """R rounds without rules; feature c of an arm in round r is z_c = a_{i_c}(arm) · w_rc, that is z = S_rᵀa.

    S_r (p, d) has w_rc at (i_c, c). Functions of arms are few where crosses are many: quadratic forms of z are forms of
    a, which are p²/d² times as dear.
    """

    arm_ids: list[Tensor]  # R of (n_r,) int64, every arm once
    functions: list[Tensor]  # a: R of (n_r, p)
    weights: Tensor  # w: (R, d)
    index: Tensor  # i: (d,) int64, 0 to p − 1
    slate_sizes: list[int]  # R of k_r, at most n_r

    def fits(self, dim: int, slate_size: int) -> bool:
        """Whether a policy of these sizes can play all rounds, with features of a size that can be computed with."""
        sizes = all(0 < k <= min(slate_size, len(ids)) for k, ids in zip(self.slate_sizes, self.arm_ids, strict=True))
        if not sizes or self.weights.shape != (len(self.arm_ids), dim):
            return False
        largest = max((float(each.abs().max()) for each in self.functions if each.numel()), default=0.0)
        return largest * float(self.weights.abs().max()) <= LARGEST  # not for NaN


def crossed_beliefs(rounds: CrossedRounds, theta: Tensor, form: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """θᵀz and √(zᵀFz) of every arm, (n_r,) each, round by round; θ (d,), F (d, d).

    Equal features are computed once, so that ties stay ties.
    """
    (count, d), p = rounds.weights.shape, rounds.functions[0].shape[1]
    spread = rounds.weights.new_zeros(count, p, d)
    spread[:, rounds.index, torch.arange(d)] = rounds.weights  # S
    forms = (spread.view(count * p, d) @ form).view(count, p, d) @ spread.mT  # S F Sᵀ: (R, p, p)
    thetas = spread @ theta  # (R, p)
    used = (spread != 0).any(2)  # functions that this round's features do not have tell no arms apart
    for functions, own, weights, reads in zip(rounds.functions, forms, thetas, used, strict=True):
        values = functions if bool(reads.all()) else functions * reads
        first, group = group_rows(values)
        once = values if len(first) == len(values) else values[first]
        means, widths = once @ weights, (once @ own).mul_(once).sum(1).clamp_(min=0).sqrt_()
        yield (means, widths) if once is values else (means[group], widths[group])
