"""Top K overall and in every cluster, with ties broken by arm id and never by rounding or chance."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels import compiled
from neuclust.kernels.jit import serves


def unsound() -> StateError:
    """The error for scores that are not finite: they cannot be ranked, and loops that compare them never end."""
    return StateError("expected finite learned scores, got NaN or infinity; load a sound save or begin anew")


def sound(scores: Tensor) -> Tensor:
    """The scores, refused where any is NaN; infinite ones mark arms not yet played or excluded."""
    if len(scores) and bool(torch.isnan(scores.max())):
        raise unsound()
    return scores


def first_largest(values: Tensor) -> int:
    """Index of the largest value, the first of equals."""
    return int(torch.nonzero(sound(values) == values.max())[0])


def sort_positions(scores: Tensor, rank: Tensor) -> Tensor:
    """Positions by (−score, rank): (n,) -> (n,)."""
    by_rank = torch.argsort(rank, stable=True)
    return by_rank[torch.argsort(scores[by_rank], descending=True, stable=True)]


def top(scores: Tensor, rank: Tensor, k: int) -> Tensor:
    """The k best positions by (−score, rank), best first; only candidates near the top are sorted."""
    if k == 0:  # the compiled pass keeps at least one
        return torch.zeros(0, dtype=torch.int64, device=scores.device)
    sound(scores)
    if serves(scores, rank):
        one = np.zeros(len(scores), np.int64)
        return torch.from_numpy(compiled.top_of_groups(scores.numpy(), rank.numpy(), one, 1, k)[0])
    threshold = torch.topk(scores, k).values[-1]
    candidates = torch.nonzero(scores >= threshold).flatten()
    return candidates[sort_positions(scores[candidates], rank[candidates])[:k]]


def cluster_table(labels: Tensor, clusters: int) -> Tensor:
    """Members of every cluster as rows, (clusters, largest), padded with −1."""
    if serves(labels):
        return torch.from_numpy(compiled.group_table(labels.numpy(), clusters))
    order = torch.argsort(labels, stable=True)
    sizes = torch.bincount(labels, minlength=clusters)
    starts = torch.cumsum(sizes, 0) - sizes
    slots = torch.arange(int(sizes.max()), device=labels.device)
    filled = slots < sizes.unsqueeze(1)
    table = torch.full(filled.shape, -1, dtype=torch.int64, device=labels.device)
    table[filled] = order[(starts.unsqueeze(1) + slots)[filled]]
    return table


def top_of_clusters(scores: Tensor, rank: Tensor, labels: Tensor, table: Tensor, k: int) -> Tensor:
    """The k best positions of every cluster by (−score, rank), best first, of k members or more each: (clusters, k)."""
    sound(scores)
    if serves(scores, rank, labels):
        return torch.from_numpy(compiled.top_of_groups(scores.numpy(), rank.numpy(), labels.numpy(), len(table), k))
    padded = torch.where(table >= 0, scores[table.clamp(min=0)], scores.new_tensor(-torch.inf))
    threshold = torch.topk(padded, k, dim=1).values[:, -1]
    candidates = torch.nonzero(scores >= threshold[labels]).flatten()
    order = candidates[sort_positions(scores[candidates], rank[candidates])]
    order = order[torch.argsort(labels[order], stable=True)]
    sizes = torch.bincount(labels[order], minlength=len(table))
    starts = torch.cumsum(sizes, 0) - sizes
    return order[starts.unsqueeze(1) + torch.arange(k, device=scores.device)]


def greedy_slate(value: Callable[[Tensor], Tensor], qualities: Tensor, rank: Tensor, k: int) -> Tensor:
    """K positions, each the largest marginal contribution i* = argmax_{i ∉ S} F(S ∪ {i}) − F(S): (n,) -> (k,).

    `value` maps slates of qualities (m, k), zeros in empty slots, to F (m,). Ties, up to rounding, go to the larger
    quality and then the smaller rank, so that a non-decreasing F gives the top K by quality.
    """
    order = sort_positions(sound(qualities), rank)
    ranked = qualities[order]
    distinct, group = torch.unique_consecutive(ranked, return_inverse=True)  # equal qualities contribute alike
    slates = distinct.new_zeros(len(distinct), k)
    free = torch.ones(len(order), dtype=torch.bool, device=order.device)
    chosen = []
    for slot in range(k):
        slates[:, slot] = distinct
        worth = torch.where(free, value(slates)[group], -torch.inf)
        best = sound(worth).max()
        first = int(torch.nonzero(worth >= best - 1e-12 * (1 + best.abs()))[0])
        chosen.append(first)
        free[first] = False
        slates[:, slot] = ranked[first]
    return order[chosen]


def staying(last: Tensor, keys: Tensor, limit: int) -> Tensor:
    """Of n > limit rows with last uses (n,) and random keys (n,): the ⌈limit/2⌉ last used ones and, of the others,
    those with the largest keys; ascending, (limit,). Rows keep their keys, so that the latter are a sample without
    replacement of all rows that ever were among the others."""
    recent = torch.argsort(last, stable=True, descending=True)
    used, others = recent[: (limit + 1) // 2], recent[(limit + 1) // 2 :]
    drawn = others[torch.argsort(keys[others], stable=True, descending=True)[: limit - len(used)]]
    return torch.sort(torch.cat([used, drawn])).values
