"""Rows of a log with targets' chances as columns, as matrices: lists of a Parquet log, or a long table.

A target of a Parquet log is a column of lists, one chance per slot given the slots before it. For `iips` the log has
`marginals`, P(slot j holds the logged arm) under what ran, and the target its own, in the column TARGET_marginals.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, suggestion
from neuclust.extras import extra
from neuclust.logs.table_blocks import TableLog

Floats = NDArray[np.float64]
BATCH = 200_000  # rows at once
CHANCES, MARGINALS, REWARDS, SLATE = "propensities", "marginals", "rewards", "slate_reward"


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows as matrices (n, k), padded with ones (chances) and zeros (rewards)."""

    slots: NDArray[np.bool_]
    chances: Floats
    rewards: Floats
    slate: Floats  # (n,)
    targets: Mapping[str, Floats]
    place: str  # of the log
    start: int  # rows before these
    rows: int  # of the log
    marginals: Floats | None = None
    target_marginals: Mapping[str, Floats] = field(default_factory=dict)


def table_blocks(log: TableLog) -> Iterator[Block]:
    """Blocks of a long table with one row per decision and slot; it has no marginals."""
    start = 0
    for block in log.blocks():
        rewards = np.where(block.slots, block.rewards, 0.0)
        yield Block(block.slots, block.logging, rewards, block.slate_rewards, block.targets, str(log.path), start, 0)
        start += len(block.rewards)


def parquet_blocks(path: Path, targets: Sequence[str], marginals: bool) -> Iterator[Block]:
    """Blocks of a Parquet log, one row per decision."""
    for start, rows, batch in _batches(path, targets, marginals):
        lengths = batch[REWARDS].list.len().fill_null(0).to_numpy().astype(np.int64)
        slots = np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
        lists = [name for name in batch.columns if name != SLATE]
        found = {name: _matrix(batch[name], slots, lengths, name, f"{path}, row", start) for name in lists}
        slate = batch[SLATE].cast(float).to_numpy() if SLATE in batch.columns else np.full(len(lengths), math.nan)
        yield Block(
            slots, found[CHANCES], found[REWARDS], np.asarray(slate, np.float64),
            {target: found[target] for target in targets}, str(path), start, rows, found.get(MARGINALS),
            {target: found[f"{target}_{MARGINALS}"] for target in targets} if marginals else {},
        )  # fmt: skip


def _batches(path: Path, targets: Sequence[str], marginals: bool) -> Iterator[tuple[int, int, Any]]:
    """Row of the first, number of rows, and the columns that are needed of one batch after another."""
    with extra("reading Parquet"):
        import polars as pl

    try:
        frame = pl.scan_parquet(path)
        known = frame.collect_schema().names()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: expected a Parquet file, could not read it ({error!s:.200})") from None
    needed = [CHANCES, REWARDS, *targets]
    needed += [MARGINALS, *(f"{target}_{MARGINALS}" for target in targets)] if marginals else []
    for name in needed:
        if name not in known:
            raise DataError(f"{path}: expected a column {name!r:.100}, and there is none; {suggestion(name, known)}")
    frame = frame.filter(pl.col("event") == "decision") if "event" in known else frame
    columns = [*needed, *([SLATE] if SLATE in known else [])]
    rows, start = int(frame.select(pl.len()).collect().item()), 0
    for batch in frame.select(columns).collect_batches(chunk_size=BATCH, maintain_order=True):
        yield start, rows, batch
        start += len(batch)


def _matrix(
    column: Any, slots: NDArray[np.bool_], lengths: NDArray[np.int64], name: str, place: str, start: int
) -> Floats:
    """Lists as rows of (n, k); a list of another length, a missing number and an impossible chance are refused."""
    own = column.list.len().fill_null(0).to_numpy().astype(np.int64)
    if (own != lengths).any():
        at = int((own != lengths).argmax())
        got = f"got {own[at]} for {lengths[at]} rewards"
        raise DataError(f"{place} {start + at + 1}: expected one number per slot in {name!r:.100}, {got}")
    filled = np.full(slots.shape, 0.0 if name == REWARDS else 1.0)
    filled[slots] = column.explode(empty_as_null=False).cast(float).to_numpy()
    if name != REWARDS:
        _check_chances(filled, name, place, start)
    return filled


def _check_chances(chances: Floats, name: str, place: str, start: int) -> None:
    """Chances of what was shown are above 0; a target's may be 0."""
    shown = name in (CHANCES, MARGINALS)
    bad = ~((chances <= 1.0) & ((chances > 0.0) if shown else (chances >= 0.0)))
    if bad.any():
        at = int(bad.any(1).argmax())
        wanted = "above 0 and at most 1" if shown else "from 0 to 1"
        got = f"got {chances[at][bad[at]][0]:g}"
        raise DataError(f"{place} {start + at + 1}: expected chances {wanted} in {name!r:.100}, {got}")
