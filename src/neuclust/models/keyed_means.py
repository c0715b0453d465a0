"""Mean rewards by a whole number: an arm's id, or the name of a cell of the context space."""

from collections.abc import Mapping

import torch
from torch import Tensor

from neuclust.models.state import check_lengths, expect, take_rows


class KeyedMeans:
    """Counts and reward sums of the keys seen so far, ascending by key; all others count as never seen."""

    def __init__(self) -> None:
        self._keys = torch.zeros(0, dtype=torch.int64)
        self._counts = torch.zeros(0, dtype=torch.float64)
        self._sums = torch.zeros(0, dtype=torch.float64)

    def of(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """How often each key (n,) was seen and its mean reward, 0 where never: (n,) and (n,) float64."""
        if len(self._keys) == 0:
            return torch.zeros(len(keys), dtype=torch.float64), torch.zeros(len(keys), dtype=torch.float64)
        place = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        known = self._keys[place] == keys
        counts = torch.where(known, self._counts[place], 0.0)
        return counts, torch.where(known, self._sums[place] / self._counts[place], 0.0)

    def observe(self, keys: Tensor, rewards: Tensor) -> None:
        """Count one reward for each key (k,), NaN ones not."""
        seen = ~torch.isnan(rewards)
        new = rewards[seen]
        merged, place = torch.unique(torch.cat([self._keys, keys[seen]]), return_inverse=True)
        counts = torch.cat([self._counts, torch.ones_like(new)])
        zeros = torch.zeros(len(merged), dtype=torch.float64)
        self._keys = merged
        self._sums = zeros.index_add(0, place, torch.cat([self._sums, new]))
        self._counts = zeros.index_add(0, place, counts)

    def state_dict(self) -> dict[str, Tensor]:
        return {"keys": self._keys, "counts": self._counts, "sums": self._sums}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        keys = take_rows(state, "keys", (), torch.int64)
        counts, sums = take_rows(state, "counts", ()), take_rows(state, "sums", ())
        check_lengths(keys=keys, counts=counts, sums=sums)
        expect(bool((keys[1:] > keys[:-1]).all()), "keys in ascending order", "another one")
        expect(bool((counts > 0).all()), "counts above 0", "0 or less")
        self._keys, self._counts, self._sums = keys, counts, sums
