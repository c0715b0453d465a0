"""Top K overall and in every cluster, with ties broken by arm id and never by rounding or chance."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neuclust.kernels import compiled
from neuclust.kernels.jit import serves


def sort_positions(scores: Tensor, rank: Tensor) -> Tensor:
    """Positions by (−score, rank): (n,) -> (n,)."""
    by_rank = torch.argsort(rank, stable=True)
    return by_rank[torch.argsort(scores[by_rank], descending=True, stable=True)]


def top(scores: Tensor, rank: Tensor, k: int) -> Tensor:
    """The k best positions by (−score, rank), best first; only candidates near the top are sorted."""
    if serves(scores, rank):
        one = np.zeros(len(scores), np.int64)
        return torch.from_numpy(compiled.top_of_groups(scores.numpy(), rank.numpy(), one, 1, k)[0])
    threshold = torch.topk(scores, k).values[-1]
    candidates = torch.nonzero(scores >= threshold).flatten()
    return candidates[sort_positions(scores[candidates], rank[candidates])[:k]]


def cluster_table(labels: Tensor, clusters: int) -> Tensor:
    """Members of every cluster as rows, (clusters, largest), padded with −1."""
    order = torch.argsort(labels, stable=True)
    sizes = torch.bincount(labels, minlength=clusters)
    starts = torch.cumsum(sizes, 0) - sizes
    slots = torch.arange(int(sizes.max()), device=labels.device)
    filled = slots < sizes.unsqueeze(1)
    table = torch.full(filled.shape, -1, dtype=torch.int64, device=labels.device)
    table[filled] = order[(starts.unsqueeze(1) + slots)[filled]]
    return table


def top_of_clusters(scores: Tensor, rank: Tensor, labels: Tensor, table: Tensor, k: int) -> Tensor:
    """The k best positions of every cluster by (−score, rank), best first: (clusters, k).

    Every cluster must have at least k members. A first pass finds each cluster's k-th score; only arms
    that reach it are sorted, ties included.
    """
    if serves(scores, rank, labels):
        best = compiled.top_of_groups(scores.numpy(), rank.numpy(), labels.numpy(), len(table), k)
        return torch.from_numpy(best)
    padded = torch.where(table >= 0, scores[table.clamp(min=0)], scores.new_tensor(-torch.inf))
    threshold = torch.topk(padded, k, dim=1).values[:, -1]
    candidates = torch.nonzero(scores >= threshold[labels]).flatten()
    order = candidates[sort_positions(scores[candidates], rank[candidates])]
    order = order[torch.argsort(labels[order], stable=True)]
    sizes = torch.bincount(labels[order], minlength=len(table))
    starts = torch.cumsum(sizes, 0) - sizes
    return order[starts.unsqueeze(1) + torch.arange(k, device=scores.device)]
