"""What was played and observed; a context played n times with mean reward r̄ is one training row of weight n."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.kernels.ranking import staying
from neuclust.kernels.rows import Rows, joined, no_rows, sparse_rows
from neuclust.models.state import check_indices, check_lengths, expect, take_count, take_rows
from neuclust.randomness import stream

EMPTY = -1  # the context row of a slot that a slate of fewer than K arms leaves empty
ROUNDING = 1e-9  # relative: sums of the same rewards in another order
SPARE = 8  # a table grows by an eighth beyond its limit before rows leave it, so that leaving costs little per update


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

    def keep(self, index: Tensor) -> None:
        """Only these rows, in this order."""
        self.load(self.rows[index])


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


@dataclass(frozen=True, slots=True)
class Limits:
    """How many distinct contexts and slates a history keeps, None for all; `seed` draws which of the old ones."""

    contexts: int | None = None
    slates: int | None = None
    seed: int = 0


class Retention:
    """The update in which every row of some tables was last used, and a random key per row; `limit` None keeps all."""

    def __init__(self, limit: int | None, *tables: GrowingTable) -> None:
        self.limit, self._tables = limit, tables
        self.last = GrowingTable(dtype=torch.int64)
        self.keys = GrowingTable()

    def add(self, update: int, key: float) -> None:
        """One row more."""
        self.last.append(update)
        self.keys.append(key)

    def staying(self) -> Tensor | None:
        """The rows that stay, where others have to leave."""
        if self.limit is None or len(self.last) <= self.limit + self.limit // SPARE:
            return None
        return staying(self.last.rows, self.keys.rows, self.limit)

    def keep(self, rows: Tensor) -> None:
        """Only these rows of all tables."""
        for table in (*self._tables, self.last, self.keys):
            table.keep(rows)


class Memory:
    """What a bounded history knows beside its rows: how many updates and observations there were, Σr² of every context,
    and what decides which rows stay. Contexts and slates new in one update have one key, and stay or leave together."""

    def __init__(self, limits: Limits, history: "History") -> None:
        self.seed = limits.seed
        self.updates, self.observations = 0, 0
        self.squares = GrowingTable()
        self.contexts = Retention(limits.contexts, history.contexts, history.counts, history.sums, self.squares)
        self.groups = Retention(limits.slates, history.groups, history.group_counts, history.group_sums)
        slates = history.slate_rewards, history.slate_arm_rewards, history.slate_predictions
        self.slates = Retention(limits.slates, *slates)

    def added(self, rows: Retention) -> None:
        """One row more, used in the present update."""
        rows.add(self.updates, float(stream(self.seed, "memory", self.updates).random()))

    def tables(self) -> dict[str, GrowingTable]:
        """Every table, under the name it is saved by."""
        parts = {"context": self.contexts, "group": self.groups, "slate": self.slates}
        last = {f"{name}_last": part.last for name, part in parts.items()}
        return {"squares": self.squares, **last, **{f"{name}_keys": part.keys for name, part in parts.items()}}


class History:
    """Distinct encoded contexts with counts and reward sums, every observation, and every slate.

    With limits, contexts and slates leave by the rule of `kernels.ranking.staying`, distinct slates also with one of
    their contexts, and observations are only counted. A context that stays keeps its count and sum."""

    def __init__(self, dim: int, slate_size: int, limits: Limits | None = None) -> None:
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
        bounded = limits is not None and (limits.contexts is not None or limits.slates is not None)
        self.memory = Memory(limits, self) if limits is not None and bounded else None
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
            if self.memory is not None:
                self.memory.squares.append(0.0)
                self.memory.added(self.memory.contexts)
        row = self._row_of[key]
        if self.memory is not None:
            self.memory.contexts.last.rows[row] = self.memory.updates
        return row

    def observe_arm(self, row: int, reward: float) -> None:
        """One reward of one context."""
        self.counts.rows[row] += 1
        self.sums.rows[row] += reward
        if self.memory is not None:
            self.memory.squares.rows[row] += reward * reward
            self.memory.observations += 1
            return
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
            if self.memory is not None:
                self.memory.added(self.memory.groups)
        group = self._group_of[key]
        self.group_counts.rows[group] += 1
        self.group_sums.rows[group] += reward
        if self.memory is not None:
            self.memory.groups.last.rows[group] = self.memory.updates
            self.memory.added(self.memory.slates)

    def end_update(self) -> None:
        """All of one update is in: what is above the limits leaves. Rows have other numbers afterwards."""
        if self.memory is None:
            return
        self.memory.updates += 1
        contexts, moved = self.memory.contexts.staying(), False
        if contexts is not None:
            place = torch.full((len(self.contexts) + 1,), EMPTY - 1)  # of a context that leaves
            place[contexts], place[EMPTY] = torch.arange(len(contexts)), EMPTY
            groups = place[self.groups.rows]
            self.memory.contexts.keep(contexts)
            self.groups.load(groups)
            self.memory.groups.keep(torch.nonzero((groups >= EMPTY).all(1)).flatten())
            moved = True
        for part in (self.memory.groups, self.memory.slates):
            rows = part.staying()
            if rows is not None:
                part.keep(rows)
                moved = True
        if moved:
            self._number_rows()

    @property
    def observations(self) -> int:
        """How many arm rewards were seen."""
        return len(self.rewards) if self.memory is None else self.memory.observations

    @property
    def energy(self) -> float:
        """Σr² of the rewards that are kept."""
        return float(self.rewards.rows @ self.rewards.rows if self.memory is None else self.memory.squares.rows.sum())

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
        state = {name: table.rows.clone() for name, table in self._tables().items()}
        if self.memory is not None:
            state["updates"] = torch.tensor(self.memory.updates)
            state["observations"] = torch.tensor(self.memory.observations)
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if self.memory is not None:
            updates, observations = take_count(state, "updates"), take_count(state, "observations")
        check = _check_tables if self.memory is None else _check_bounded_tables
        load_tables(self._tables(), state, check, nan="slate_arm_rewards")  # some rewards may not be seen
        if self.memory is not None:
            self.memory.updates, self.memory.observations = updates, observations
        self._number_rows()

    def _number_rows(self) -> None:
        """The numbers of contexts and of distinct slates, from the tables."""
        contexts = self.contexts.rows.numpy(force=True)
        self._sparse = no_rows(self._sparse.width)
        self._row_of = {contexts[i].tobytes(): i for i in range(len(contexts))}
        self._group_of = {tuple(key): i for i, key in enumerate(self.groups.rows.tolist())}

    def _tables(self) -> dict[str, GrowingTable]:
        tables = {name: value for name, value in vars(self).items() if isinstance(value, GrowingTable)}
        return tables if self.memory is None else tables | self.memory.tables()


def _padded(values: Tensor, empty: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, empty)) if empty else values


def _check_tables(tables: Mapping[str, Tensor]) -> None:
    """Refuse tables that cannot have grown together."""
    _check_rows(tables, "slate_rewards slate_arm_rewards slate_predictions", "seen rewards")
    contexts, seen = len(tables["contexts"]), tables["seen"]
    check_indices("seen", seen, contexts)
    counted = torch.equal(torch.bincount(seen, minlength=contexts).to(torch.float64), tables["counts"])
    expect(counted, "counts of the contexts that were seen", "others")
    sums, sizes = (torch.zeros(contexts, dtype=torch.float64) for _ in range(2))
    sums.index_add_(0, seen, tables["rewards"])
    sizes.index_add_(0, seen, tables["rewards"].abs())
    summed = bool(((sums - tables["sums"]).abs() <= ROUNDING * (1 + sizes)).all())
    expect(summed, "sums of the rewards that were seen", "others")
    counted_slates, number = float(tables["group_counts"].sum()), len(tables["slate_rewards"])
    expect(counted_slates == number, f"group_counts of {number} slates", counted_slates)


def _check_bounded_tables(tables: Mapping[str, Tensor]) -> None:
    """Refuse tables that cannot have been kept together."""
    slates = "slate_rewards slate_arm_rewards slate_predictions slate_last slate_keys"
    _check_rows(tables, slates, "contexts squares context_last context_keys", "groups group_last group_keys")
    expect(bool((tables["counts"] >= 0).all()), "counts of at least 0", "less")
    # (Σr)² ≤ nΣr²
    sums, most = tables["sums"] ** 2, tables["counts"] * tables["squares"]
    expect(bool((sums <= most + ROUNDING * (1 + most)).all()), "squares of the rewards in sums", "smaller ones")


def _check_rows(tables: Mapping[str, Tensor], *together: str) -> None:
    """Tables with as many rows as one another, and distinct slates of contexts that are there."""
    for names in ("contexts counts sums", "groups group_counts group_sums", *together):
        check_lengths(**{name: tables[name] for name in names.split()})
    check_indices("groups", tables["groups"] - EMPTY, len(tables["contexts"]) - EMPTY)
    filled = tables["groups"] != EMPTY
    trailing = bool(filled[:, 0].all() and (filled[:, 1:] <= filled[:, :-1]).all())
    expect(trailing, "groups whose empty slots come last", "others")
    expect(bool((tables["group_counts"] > 0).all()), "group_counts above 0", "0 or less")
