"""Selection of R runs at once: equal contexts, the top K of every cluster, the best cluster."""

import torch
from torch import Tensor

_ODD = (-0x61C8864680B583EB, -0x40A7B892E31B1A47)  # odd 64-bit numbers with well mixed bits


def representatives(rows: Tensor) -> Tensor:
    """For every row of (n, q) the first row equal to it, (n,), by hashes; different rows of one hash stay apart."""
    n, width = rows.shape
    own = torch.arange(n, device=rows.device)
    if width == 0:
        return torch.zeros_like(own)
    bits = (rows + 0.0).view(torch.int64)  # + 0.0 turns −0 into 0: equal numbers, equal bits
    column = torch.arange(1, 2 * width, 2, device=rows.device) * _ODD[0]
    mixed = (bits ^ (bits >> 32)) * column
    mixed = (mixed ^ (mixed >> 29)) * _ODD[1]
    keys, order = torch.sort((mixed ^ (mixed >> 32)).sum(1), stable=True)
    starts = torch.ones(n, dtype=torch.bool, device=rows.device)
    starts[1:] = keys[1:] != keys[:-1]
    first = order[torch.cummax(torch.where(starts, own, 0), 0).values]
    found = torch.empty_like(order)
    found[order] = first
    return torch.where((rows[found] == rows).all(1), found, own)


def top_of_table(scores: Tensor, table: Tensor, k: int) -> Tensor:
    """The k best members of every row of `table` (C, L; −1 where empty) by (−score, place in the row): (R, C, k)."""
    left = torch.where(table >= 0, scores[:, table.clamp(min=0)], -torch.inf)
    chosen = []
    for _ in range(k):  # of equal values argmax finds the first, which a partial sort does not promise
        place = left.argmax(-1, keepdim=True)
        left.scatter_(-1, place, -torch.inf)
        chosen.append(place)
    places = torch.cat(chosen, -1)
    return torch.gather(table.expand(len(scores), *table.shape), 2, places)


def first_alike(rows: Tensor) -> Tensor:
    """For every row of few rows (R, C, q) the first of its run equal to it: (R, C)."""
    same = (rows.unsqueeze(2) == rows.unsqueeze(1)).all(-1)
    return same.to(torch.int64).argmax(-1)


def at(values: Tensor, positions: Tensor) -> Tensor:
    """values (R, n) at positions (R, …) -> (R, …)."""
    return torch.gather(values, 1, positions.flatten(1)).view(positions.shape)


def row_at(rows: Tensor, index: Tensor) -> Tensor:
    """rows (R, C, K) at index (R,) -> (R, K)."""
    return rows[torch.arange(len(rows), device=rows.device), index]
