"""Targets whose chances are columns of a Parquet log: importance weighting in one pass, in bounded memory.

A target is a column of lists, one chance per slot given the slots before it. For `iips` the log has `marginals`,
P(slot j holds the logged arm) under what ran, and the target its own, in the column TARGET_marginals.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, suggestion
from neuclust.evaluation.intervals.asymptotic import Moments
from neuclust.evaluation.slate_values import SlateValue

Floats = NDArray[np.float64]
BATCH = 200_000  # rows at once
KNOWN = ("ips", "snips", "iips")
CHANCES, MARGINALS, REWARDS, SLATE = "propensities", "marginals", "rewards", "slate_reward"
MOST_KEPT = 5  # of the largest weights


@dataclass(slots=True)
class Weighed:
    """One target under one estimator: moments of contributions and of their differences to what ran, and weights."""

    contributions: Moments | None = None
    differences: Moments | None = None
    weight: float = 0.0  # Σw
    squares: float = 0.0  # Σw²
    largest: tuple[float, ...] = ()

    def add(self, contributions: Floats, weights: Floats, values: Floats) -> None:
        """Contributions (n,), weights (n,) and what was earned (n,) of some rows."""
        self.contributions = _joined(self.contributions, contributions)
        self.differences = _joined(self.differences, contributions - values)
        self.weight += float(weights.sum())
        self.squares += float(weights @ weights)
        top = np.partition(weights, -MOST_KEPT)[-MOST_KEPT:] if len(weights) > MOST_KEPT else weights
        self.largest = tuple(sorted((*self.largest, *top.tolist()), reverse=True)[:MOST_KEPT])

    @property
    def ess(self) -> float:
        """(Σw)²/Σw²."""
        return self.weight**2 / self.squares if self.squares > 0 else 0.0


def _joined(moments: Moments | None, values: Floats) -> Moments:
    found = Moments.of(values)
    return found if moments is None else moments.merged(found)


@dataclass(slots=True)
class ColumnSums:
    """What the passes over a file give: moments of what ran, and of every target under every estimator."""

    logged: Moments
    span: tuple[float, float]  # of a slate's value
    targets: dict[tuple[str, str], Weighed]


def weigh_columns(
    path: Path,
    targets: Sequence[str],
    value: Callable[[int], SlateValue],
    estimators: Sequence[str] = KNOWN,
    watch: Callable[[int, int], None] = lambda *_: None,
) -> ColumnSums:
    """Go through the file once, or twice where `snips` needs its estimate first; `value` is made for k slots."""
    ratios = _ratios(path, targets, value) if "snips" in estimators else {}
    logged: Moments | None = None
    found = {(target, name): Weighed() for target in targets for name in estimators}
    span = value(1).range
    for start, rows, batch in batches(path, targets, "iips" in estimators):
        block = _Block.of(batch, path, start)
        own = value(block.slots.shape[1])
        worth = block.values(own, path, start)
        span = min(span[0], own.range[0]), max(span[1], own.range[1])
        logged = _joined(logged, worth)
        for (target, name), sums in found.items():
            contributions, weights = block.weighted(name, target, worth)
            if name == "snips":  # linearised around the ratio of sums
                ratio, mean = ratios[target]
                contributions = ratio + (contributions - ratio * weights) / mean
            sums.add(contributions, weights, worth)
        watch(start + len(worth), rows)
    if logged is None:
        raise DataError(f"{path}: expected decisions, got none; is this a log?")
    return ColumnSums(logged, span, found)


def _ratios(path: Path, targets: Sequence[str], value: Callable[[int], SlateValue]) -> dict[str, tuple[float, float]]:
    """Σw·r/Σw and the mean weight of every target."""
    sums = {target: np.zeros(3) for target in targets}
    for start, _, batch in batches(path, targets, False):
        block = _Block.of(batch, path, start)
        worth = block.values(value(block.slots.shape[1]), path, start)
        for target in targets:
            contributions, weights = block.weighted("ips", target, worth)
            sums[target] += [float(contributions.sum()), float(weights.sum()), len(worth)]
    return {target: _ratio(target, *each.tolist()) for target, each in sums.items()}


def _ratio(target: str, contributions: float, weights: float, rows: float) -> tuple[float, float]:
    if weights <= 0:
        raise DataError(f"snips: expected a row that {target!r:.100} could have shown, got none; this log cannot tell")
    return contributions / weights, weights / rows


def batches(path: Path, targets: Sequence[str], marginals: bool) -> Iterator[tuple[int, int, Any]]:
    """Row of the first, number of rows, and the columns that are needed of one batch after another."""
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


@dataclass(frozen=True, slots=True)
class _Block:
    """Lists of some rows as matrices (n, k), padded with ones (chances) and zeros (rewards)."""

    slots: NDArray[np.bool_]
    columns: Mapping[str, Floats]
    slate: Floats

    @classmethod
    def of(cls, batch: Any, path: Path, start: int) -> "_Block":
        lengths = batch[REWARDS].list.len().fill_null(0).to_numpy().astype(np.int64)
        slots = np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
        columns = {}
        for name in batch.columns:
            if name != SLATE:
                columns[name] = _matrix(batch[name], slots, lengths, name, f"{path}, row", start)
        slate = batch[SLATE].cast(float).to_numpy() if SLATE in batch.columns else np.full(len(lengths), math.nan)
        return cls(slots, columns, np.asarray(slate, np.float64))

    def values(self, value: SlateValue, path: Path, start: int) -> Floats:
        """What every slate was worth, (n,)."""
        value.check(self.columns[REWARDS], self.slate)
        found = value.of(self.columns[REWARDS], self.slate)
        if np.isnan(found).any():
            row = start + int(np.isnan(found).argmax()) + 1
            raise DataError(f"{path}, row {row}: expected an observed reward, got none; leave such rows out")
        return found

    def weighted(self, estimator: str, target: str, worth: Floats) -> tuple[Floats, Floats]:
        """Contributions (n,) and weights (n,)."""
        if estimator == "iips":
            ratios = np.where(self.slots, self.columns[f"{target}_{MARGINALS}"] / self.columns[MARGINALS], 0.0)
            return (ratios * self.columns[REWARDS]).sum(1), ratios.sum(1) / np.maximum(self.slots.sum(1), 1)
        weights = np.prod(self.columns[target] / self.columns[CHANCES], axis=1)
        return weights * worth, weights


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
