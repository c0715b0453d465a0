"""Mean rewards by key, and by cell of a binary tree of [0, 1]^D, split in halves along the longest side."""

from collections.abc import Mapping

import torch
from torch import Tensor

from neuclust.models.history import GrowingTable, load_tables
from neuclust.models.state import check_lengths, expect, take_ids, take_rows

_NONE = -1


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
        self._keys, place = torch.unique(torch.cat([self._keys, keys[seen]]), return_inverse=True)
        zeros = torch.zeros(len(self._keys), dtype=torch.float64)
        self._sums = zeros.index_add(0, place, torch.cat([self._sums, new]))
        self._counts = zeros.index_add(0, place, torch.cat([self._counts, torch.ones_like(new)]))

    def correct(self, keys: Tensor, differences: Tensor) -> None:
        """Rewards of known keys (k,) turn out to differ by these amounts (k,)."""
        place = torch.searchsorted(self._keys, keys).clamp(max=max(0, len(self._keys) - 1))
        known = self._keys[place] == keys if len(self._keys) else torch.zeros_like(keys, dtype=torch.bool)
        self._sums = self._sums.index_add(0, place[known], differences[known])

    def totals(self) -> tuple[float, float]:
        """The sum of all rewards seen, and their number."""
        return float(self._sums.sum()), float(self._counts.sum())

    def state_dict(self) -> dict[str, Tensor]:
        return {"keys": self._keys, "counts": self._counts, "sums": self._sums}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        keys, counts, sums = take_ids(state, "keys"), take_rows(state, "counts", ()), take_rows(state, "sums", ())
        check_lengths(keys=keys, counts=counts, sums=sums)
        expect(bool((keys[1:] > keys[:-1]).all()), "keys in ascending order", "another one")
        expect(bool((counts > 0).all()), "counts above 0", "0 or less")
        self._keys, self._counts, self._sums = keys, counts, sums


class ContextTree:
    """Cells by number, 0 the whole cube; the children of a cell have successive numbers.
    A split halves the longest side, the lowest axis among equals: at depth h axis h mod D, of length 2^{−⌊h/D⌋}."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._depth = GrowingTable(dtype=torch.int64)
        self._parent = GrowingTable(dtype=torch.int64)
        self._child = GrowingTable(dtype=torch.int64)  # the lower half; the upper one follows it
        self._middle = GrowingTable()  # where the cell is or would be split
        self._counts = GrowingTable()
        self._sums = GrowingTable()
        self._add(depth=0, parent=_NONE)

    def __len__(self) -> int:
        return len(self._depth)

    def leaves(self, x: Tensor, columns: Tensor) -> Tensor:
        """The leaf of each context, given on its non-zero columns: x (n, q), columns (q,) -> (n,)."""
        place = torch.full((self.dim,), len(columns), dtype=torch.int64)  # other axes read the zero column
        place[columns] = torch.arange(len(columns))
        padded = torch.cat([x, x.new_zeros(len(x), 1)], 1)
        cells, walking = torch.zeros(len(x), dtype=torch.int64), torch.arange(len(x))
        while True:
            walking = walking[self._child.rows[cells[walking]] != _NONE]
            if len(walking) == 0:
                return cells
            here = cells[walking]
            values = padded[walking, place[self._depth.rows[here] % self.dim]]
            cells[walking] = self._child.rows[here] + (values >= self._middle.rows[here]).to(torch.int64)

    def statistics(self, cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Depth, plays and mean reward (0 without plays) of the given cells, each (n,) float64."""
        counts, sums = self._counts.rows[cells], self._sums.rows[cells]
        return self._depth.rows[cells].to(torch.float64), counts, sums / counts.clamp(min=1)

    def parents(self, cells: Tensor) -> Tensor:
        """The cell each was split from; −1 for the whole cube."""
        return self._parent.rows[cells]

    def observe(self, cells: Tensor, rewards: Tensor) -> None:
        """Count one reward for each cell (k,)."""
        self._counts.rows.index_add_(0, cells, torch.ones_like(rewards))
        self._sums.rows.index_add_(0, cells, rewards)

    def split(self, cell: int) -> None:
        """Halve a leaf; its own statistics stay, its children start afresh."""
        self._child.rows[cell] = len(self)
        for _ in range(2):
            self._add(int(self._depth.rows[cell]) + 1, cell)

    def _add(self, depth: int, parent: int) -> None:
        entries = (depth, parent, _NONE, 0.0, 0.0, 0.0)
        for table, entry in zip(self._tables().values(), entries, strict=True):
            table.append(entry)
        self._middle.rows[-1] = self._low(len(self) - 1, depth % self.dim) + 0.5 * 2.0 ** -(depth // self.dim)

    def _low(self, cell: int, axis: int) -> float:
        """The lower end of a cell on an axis: the last middle along it whose upper half the path took."""
        parent = int(self._parent.rows[cell])
        while parent != _NONE:
            upper = cell != int(self._child.rows[parent])
            if upper and int(self._depth.rows[parent]) % self.dim == axis:
                return float(self._middle.rows[parent])
            cell, parent = parent, int(self._parent.rows[parent])
        return 0.0

    def _tables(self) -> dict[str, GrowingTable]:
        return {name[1:]: value for name, value in vars(self).items() if isinstance(value, GrowingTable)}

    def state_dict(self) -> dict[str, Tensor]:
        return {name: table.rows.clone() for name, table in self._tables().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_tables(self._tables(), state, _check_cells)


def _check_cells(tables: Mapping[str, Tensor]) -> None:
    """Refuse cells that are no tree: a walk down would not end, or end elsewhere."""
    check_lengths(**tables)
    depth, parent, child = tables["depth"], tables["parent"], tables["child"]
    cells = torch.arange(len(depth))
    split = cells[child != _NONE]
    lower = child[split]
    grown = len(cells) > 0 and bool(((lower > split) & (lower + 1 < len(cells))).all())
    expect(grown, "cells whose children come after them", "others")
    expected_parent, expected_depth = torch.full_like(parent, _NONE), torch.zeros_like(depth)
    for half in (lower, lower + 1):
        expected_parent[half], expected_depth[half] = split, depth[split] + 1
    tree = torch.equal(parent, expected_parent) and torch.equal(depth, expected_depth)
    expect(tree, "a tree of cells", "cells that do not belong together")
    expect(bool((tables["counts"] >= 0).all()), "counts of at least 0", "less")
