"""Which rows of a bounded table stay: one half the last used, the other a sample of all that were ever in it."""

import torch
from torch import Tensor


def staying(last: Tensor, keys: Tensor, limit: int) -> Tensor:
    """Of n > limit rows with last uses (n,) and random keys (n,): the ⌈limit/2⌉ last used ones and, of the others,
    those with the largest keys; ascending, (limit,). Rows keep their keys, so that the latter are a sample without
    replacement of all rows that ever were among the others."""
    recent = torch.argsort(last, stable=True, descending=True)
    used, others = recent[: (limit + 1) // 2], recent[(limit + 1) // 2 :]
    drawn = others[torch.argsort(keys[others], stable=True, descending=True)[: limit - len(used)]]
    return torch.sort(torch.cat([used, drawn])).values
