"""What was played and observed; a context played n times with mean reward r̄ is one training row of weight n."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from neuclust.kernels.rows import Rows, joined, no_rows, sparse_rows
from neuclust.models.state import check_indices, check_lengths, expect, take_rows

EMPTY = -1  # the context row of a slot that a slate of fewer than K arms leaves empty
ROUNDING = 1e-9  # relative: sums of the same rewards in another order


class GrowingTable:
    """Rows appended to one buffer that doubles when full."""

    def __init__(self, *shape: int, dtype: torch.dtype = torch.float64) -> None:
        self._buffer = torch.zeros(16, *shape, dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Tensor:
        """A view of what was appended."""
        return self._buffer[: self._count]

    def append(self, row: Tensor | float) -> None:
        if self._count == len(self._buffer):
            self._buffer = torch.cat([self._buffer, torch.zeros_like(self._buffer)])
        self._buffer[self._count] = row
        self._count += 1

    def taken(self, state: Mapping[str, Tensor], name: str, nan: bool = False) -> Tensor:
        """Saved rows that fit this table."""
        return take_rows(state, name, tuple(self._buffer.shape[1:]), self._buffer.dtype, nan)

    def load(self, rows: Tensor) -> None:
        self._buffer = torch.cat([rows.clone(), rows.new_zeros(16, *rows.shape[1:])])
        self._count = len(rows)


Check = Callable[[Mapping[str, Tensor]], None]


def load_tables(tables: Mapping[str, GrowingTable], state: Mapping[str, Tensor], check: Check, nan: str = "") -> None:
    """Fill tables with the rows saved under their names, checked together; the one called `nan` may hold NaN."""
    found = {name: table.taken(state, name, nan=name == nan) for name, table in tables.items()}
    check(found)
    for name, table in tables.items():
        table.load(found[name])


def found_among(ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of `wanted` (n,) that are among the distinct ids (m,), and where those stand: (k,), (k,)."""
    if len(ids) == 0:
        return ids, ids
    ascending, places = torch.sort(ids)
    place = torch.searchsorted(ascending, wanted).clamp(max=len(ids) - 1)
    positions = torch.nonzero(ascending[place] == wanted).flatten()
    return positions, places[place[positions]]


class History:
    """Distinct encoded contexts with counts and reward sums, every observation, and every slate."""

    def __init__(self, dim: int, slate_size: int) -> None:
        self.contexts = GrowingTable(dim)
        self.counts = GrowingTable()
        self.sums = GrowingTable()
        self.seen = GrowingTable(dtype=torch.int64)  # observation -> context row
        self.rewards = GrowingTable()  # observation -> reward
        self.slate_rewards = GrowingTable()
        self.slate_arm_rewards = GrowingTable(slate_size)
        self.slate_predictions = GrowingTable(slate_size)  # means believed when the slate was learned
        self.groups = GrowingTable(slate_size, dtype=torch.int64)  # distinct slates: context rows in slate order
        self.group_counts = GrowingTable()
        self.group_sums = GrowingTable()
        self._sparse = no_rows(dim)
        self._row_of: dict[bytes, int] = {}
        self._group_of: dict[tuple[int, ...], int] = {}

    def row(self, context: Tensor) -> int:
        """The number of this context (d',), new or known."""
        context = context + 0.0  # −0 becomes 0, so that equal contexts have equal bytes
        key = context.numpy(force=True).tobytes()
        if key not in self._row_of:
            self._row_of[key] = len(self.contexts)
            self.contexts.append(context)
            self.counts.append(0.0)
            self.sums.append(0.0)
        return self._row_of[key]

    def observe_arm(self, row: int, reward: float) -> None:
        """One reward of one context."""
        self.counts.rows[row] += 1
        self.sums.rows[row] += reward
        self.seen.append(row)
        self.rewards.append(reward)

    def observe_slate(self, rows: list[int], reward: float, arm_rewards: Tensor, predictions: Tensor) -> None:
        """One slate, its reward, its arms' rewards and believed means; empty slots have rewards of 0."""
        empty = self.groups.rows.shape[1] - len(rows)
        self.slate_rewards.append(reward)
        self.slate_arm_rewards.append(_padded(arm_rewards, empty))
        self.slate_predictions.append(_padded(predictions, empty))
        key = (*rows, *[EMPTY] * empty)  # in slate order: F may read it unsorted
        if key not in self._group_of:
            self._group_of[key] = len(self.groups)
            self.groups.append(torch.tensor(key))
            self.group_counts.append(0.0)
            self.group_sums.append(0.0)
        self.group_counts.rows[self._group_of[key]] += 1
        self.group_sums.rows[self._group_of[key]] += reward

    @property
    def observations(self) -> int:
        """How many arm rewards were seen."""
        return len(self.rewards)

    def targets(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rewarded contexts (u, d'), their mean rewards (u,) and how often each was rewarded (u,)."""
        contexts, counts, sums = self.contexts.rows, self.counts.rows, self.sums.rows
        kept = counts > 0
        if not bool(kept.all()):
            contexts, counts, sums = contexts[kept], counts[kept], sums[kept]
        return contexts, sums / counts, counts

    def sparse_contexts(self) -> Rows:
        """All contexts as sparse rows; those already converted are kept. CPU, float64."""
        new = self.contexts.rows[len(self._sparse) :]
        if len(new):
            self._sparse = joined(self._sparse, sparse_rows(new.numpy()))
        return self._sparse

    def slate_targets(self) -> tuple[Tensor, Tensor, Tensor]:
        """Distinct slates as context rows (u, K), −1 in empty slots, their mean rewards (u,) and counts (u,)."""
        counts = self.group_counts.rows
        return self.groups.rows, self.group_sums.rows / counts, counts

    def state_dict(self) -> dict[str, Tensor]:
        return {name: table.rows.clone() for name, table in self._tables().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_tables(self._tables(), state, _check_tables, nan="slate_arm_rewards")  # some rewards may not be seen
        self._sparse = no_rows(self._sparse.width)
        contexts = self.contexts.rows.numpy(force=True)
        self._row_of = {contexts[i].tobytes(): i for i in range(len(contexts))}
        self._group_of = {tuple(key): i for i, key in enumerate(self.groups.rows.tolist())}

    def _tables(self) -> dict[str, GrowingTable]:
        return {name: value for name, value in vars(self).items() if isinstance(value, GrowingTable)}


def _padded(values: Tensor, empty: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, empty)) if empty else values


def _check_tables(tables: Mapping[str, Tensor]) -> None:
    """Refuse tables that cannot have grown together."""
    slates, groups = "slate_rewards slate_arm_rewards slate_predictions", "groups group_counts group_sums"
    for names in ("contexts counts sums", "seen rewards", slates, groups):
        check_lengths(**{name: tables[name] for name in names.split()})
    contexts, seen = len(tables["contexts"]), tables["seen"]
    check_indices("seen", seen, contexts)
    check_indices("groups", tables["groups"] - EMPTY, contexts - EMPTY)
    filled = tables["groups"] != EMPTY
    trailing = bool(filled[:, 0].all() and (filled[:, 1:] <= filled[:, :-1]).all())
    expect(trailing, "groups whose empty slots come last", "others")
    counted = torch.equal(torch.bincount(seen, minlength=contexts).to(torch.float64), tables["counts"])
    expect(counted, "counts of the contexts that were seen", "others")
    sums, sizes = (torch.zeros(contexts, dtype=torch.float64) for _ in range(2))
    sums.index_add_(0, seen, tables["rewards"])
    sizes.index_add_(0, seen, tables["rewards"].abs())
    summed = bool(((sums - tables["sums"]).abs() <= ROUNDING * (1 + sizes)).all())
    expect(summed, "sums of the rewards that were seen", "others")
    counted_slates, number = float(tables["group_counts"].sum()), len(tables["slate_rewards"])
    expect(counted_slates == number, f"group_counts of {number} slates", counted_slates)
    expect(bool((tables["group_counts"] > 0).all()), "group_counts above 0", "0 or less")
