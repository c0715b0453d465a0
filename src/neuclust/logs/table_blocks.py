"""Tables without features of unchosen arms: arrays of logged and target propensities, many decisions at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neuclust.core import LARGEST
from neuclust.errors import DataError, brief
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.events import RunStart
from neuclust.logs.reader import Tolerance
from neuclust.logs.runs import Runs

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
ROWS = 500_000  # of a table in memory at once


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Names of the columns of a table."""

    decision: str
    arm: str
    slot: str
    reward: str
    propensity: str
    slate_reward: str | None = None
    time: str | None = None
    user: str | None = None
    targets: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[tuple[str, str | None], ...]:
        return ("time", self.time), ("user", self.user)

    @property
    def numeric(self) -> list[str]:
        """Columns that are read as numbers."""
        more = [name for name in (self.slate_reward, self.time) if name is not None]
        return [self.slot, self.reward, self.propensity, *more, *self.targets.values(), *self.features]

    @property
    def all(self) -> list[str]:
        """Every column once."""
        more = [] if self.user is None else [self.user]
        return list(dict.fromkeys([self.decision, self.arm, *self.numeric, *more]))


class TableBlock(NamedTuple):
    """b decisions of up to k slots; entries beyond a slate's end are 1 (chances) and NaN (rewards)."""

    logging: Floats  # (b, k) chance of the logged arm given the slots before it
    targets: dict[str, Floats]  # (b, k) by policy
    rewards: Floats  # (b, k) NaN: not observed
    slate_rewards: Floats  # (b,)
    slots: Flags  # (b, k) whether the slate has this slot


class _Piece(NamedTuple):
    """Whole decisions of a table: the block, the row of each one's first entry, and bad rows with their sentences."""

    block: TableBlock
    starts: Whole  # (b,) rows of the table, counted from 1
    keys: NDArray[np.uint64]  # (b,) of the decisions
    bad: list[tuple[int, int, str]]  # place in the block, row of the table, sentence


@dataclass(frozen=True, slots=True)
class TableLog(Runs):
    """A table of logged slots with propensities of targets as columns; `targets` are the names of those policies."""

    path: Path
    runs: Mapping[str, RunStart]
    skipped: int
    targets: tuple[str, ...]
    _table: "_Table" = field(repr=False)
    _bad: frozenset[int] = frozenset()  # decisions by the row they begin with

    def blocks(self) -> Iterator[TableBlock]:
        """All good decisions as arrays, about 500,000 rows at a time; the table is read anew by every call."""
        for piece in self._table.pieces():
            kept = ~np.isin(piece.starts, list(self._bad)) if self._bad else slice(None)
            block = piece.block
            targets = {name: values[kept] for name, values in block.targets.items()}
            yield TableBlock(
                block.logging[kept], targets, block.rewards[kept], block.slate_rewards[kept], block.slots[kept]
            )

    def decisions(self) -> Iterator[LoggedDecision]:
        """Refused: what else could have been shown is not in such a table."""
        said = "expected features of all eligible arms, which a policy needs to choose, got a table of shown arms only"
        advice = "give the policy's own propensities as targets=, or features= with rows of the arms not shown"
        raise DataError(f"{self.path}: {said}; {advice}")


def check_table(
    path: Path, frame: "polars.LazyFrame", columns: TableColumns, start: RunStart, first: int, tolerance: Tolerance
) -> TableLog:
    """The log of a table, after every row was checked: 16 bytes of memory per decision."""
    table = _Table(frame, columns, first, start.slate_size)
    skipped, bad = 0, set[int]()
    keys, starts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for piece in table.pieces():
        for place, row, sentence in piece.bad:
            tolerance.meet(f"{path}, row {row}: {sentence}", skipped)
            skipped += 1
            bad.add(int(piece.starts[place]))
        keys.append(piece.keys)
        starts.append(piece.starts)
    for row in _repeated(np.concatenate(keys), np.concatenate(starts)):
        said = "expected the rows of a decision together and every decision once, got its id again"
        tolerance.meet(f"{path}, row {row}: {said}; sort the table or number decisions anew", skipped)
        skipped += 1
        bad.add(row)
    runs = MappingProxyType({start.run: start})
    return TableLog(path, runs, skipped, tuple(columns.targets), table, frozenset(bad))


def _repeated(keys: NDArray[np.uint64], starts: Whole) -> list[int]:
    """First rows of decisions whose key came before."""
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1]) + 1
    return sorted(starts[order[again]].tolist())


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as pieces of whole decisions."""

    frame: "polars.LazyFrame"
    columns: TableColumns
    first: int  # the number of the first slot
    width: int  # k

    def pieces(self) -> Iterator[_Piece]:
        import polars as pl

        rest: pl.DataFrame | None = None
        done = 0
        chosen = self.frame.select(self.columns.all)
        for batch in chosen.collect_batches(chunk_size=ROWS, maintain_order=True, lazy=True):
            whole = batch if rest is None else pl.concat([rest, batch])
            ids = whole[self.columns.decision]
            other = np.flatnonzero((ids != ids[-1]).fill_null(True).to_numpy()) if len(ids) else np.zeros(0, np.int64)
            kept = int(other[-1]) + 1 if len(other) else 0  # rows of whole decisions
            if kept:
                yield self._piece(whole[:kept], done)
            rest, done = whole[kept:], done + kept
        if rest is not None and len(rest):
            yield self._piece(rest, done)

    def _piece(self, rows: "polars.DataFrame", before: int) -> _Piece:
        columns, ids = self.columns, rows[self.columns.decision]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (ids != ids.shift(1)).fill_null(True).to_numpy()[1:]
        group, starts = np.cumsum(new) - 1, np.flatnonzero(new)
        slot = _numbers(rows, columns.slot) - self.first
        bad = self._bad_rows(rows, group, slot)
        place = np.where(np.isfinite(slot) & (slot >= 0) & (slot < self.width), slot, 0).astype(np.int64)
        shape = len(starts), self.width

        def spread(name: str, empty: float) -> Floats:
            table = np.full(shape, empty)
            table[group, place] = _numbers(rows, name)
            return table

        slots = np.zeros(shape, np.bool_)
        slots[group, place] = True
        rewards = spread(columns.reward, np.nan)
        worth = np.where(slots, rewards, 0.0).sum(1)
        if columns.slate_reward is not None:
            worth = _numbers(rows, columns.slate_reward)[starts]
        targets = {name: spread(column, 1.0) for name, column in columns.targets.items()}
        block = TableBlock(spread(columns.propensity, 1.0), targets, rewards, worth, slots)
        keys = ids.hash().to_numpy()[starts]
        told = [(int(group[row]), before + row + 1, said) for row, said in sorted(bad.items())]
        return _Piece(block, before + starts + 1, keys, told)

    def _bad_rows(self, rows: "polars.DataFrame", group: Whole, slot: Floats) -> dict[int, str]:
        """Rows that cannot be read, each with the first thing that is wrong."""
        columns, found = self.columns, dict[int, str]()

        def refuse(wrong: Flags, wanted: str, column: str, advice: str) -> None:
            for row in np.flatnonzero(wrong).tolist():
                found.setdefault(row, f"expected {wanted}, got {brief(rows[column][row])}; {advice}")

        chance = _numbers(rows, columns.propensity)
        refuse(~((chance > 0) & (chance <= 1)), "propensities above 0 and at most 1", columns.propensity, "correct it")
        for name, column in columns.targets.items():
            share = _numbers(rows, column)
            refuse(~((share >= 0) & (share <= 1)), f"propensities of {name} from 0 to 1", column, "correct it")
        for column in [columns.reward, *([] if columns.slate_reward is None else [columns.slate_reward])]:
            refuse(np.abs(_numbers(rows, column)) > LARGEST, "finite rewards", column, "empty is what was not seen")
        sizes = np.bincount(group)[group]
        outside = ~((slot >= 0) & (slot < sizes) & (slot == np.floor(slot)))
        refuse(outside | _twice(group, slot), "each slot of the slate once, without gaps", columns.slot, "number them")
        codes = rows[columns.arm].rank("dense").fill_null(0).to_numpy()
        refuse(_twice(group, codes), "every arm of a slate once", columns.arm, "drop one of them")
        refuse(rows[columns.arm].is_null().to_numpy(), "the arm of a slot", columns.arm, "give one")
        refuse(rows[columns.decision].is_null().to_numpy(), "the id of a decision", columns.decision, "give one")
        return found


def _numbers(rows: "polars.DataFrame", name: str) -> Floats:
    """A column as float64, NaN where it is empty."""
    import polars as pl

    values: Floats = rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values


def _twice(group: Whole, value: NDArray[Any]) -> Flags:
    """Entries whose value came before in their group: (n,) bool."""
    order = np.lexsort((value, group))
    same = (group[order][1:] == group[order][:-1]) & (value[order][1:] == value[order][:-1])
    found = np.zeros(len(group), np.bool_)
    found[order[1:][same]] = True
    return found
