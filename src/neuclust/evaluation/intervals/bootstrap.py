"""The studentised bootstrap of a mean with Poisson counts, which reads every row once and keeps only sums.

Row i counts C_ib ~ Poisson(1) times in resample b, so that a log of any length is resampled while it is read, chunk by
chunk. With N_b = Σ_i C_ib, T_b = (m_b − x̄)/√(v_b/N_b) is made from Σ_i C_ib·x_i and Σ_i C_ib·x_i², and the interval is
x̄ − s/√n·quantile(T, 1 ∓ α/2). Studentising makes it accurate to second order, skewness included.
"""

from functools import cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.intervals.interval import (
    EQUAL,
    Floats,
    Interval,
    Span,
    checked_level,
    checked_values,
    interval,
)
from neuclust.randomness import stream

RESAMPLES = 999
CHUNK = 2048  # rows whose counts are in memory at once
STEPS = 1 << 16  # of the table that turns 16 random bits into a count
REASON = "studentised Poisson bootstrap of independent rows"


@cache
def _count_table() -> NDArray[np.uint8]:
    """Counts of Poisson(1) at the middles of 2¹⁶ equal steps of probability; a mean of 1 to four digits."""
    from scipy.stats import poisson

    return np.asarray(poisson.ppf((np.arange(STEPS) + 0.5) / STEPS, 1.0), np.uint8)


class PoissonBootstrap:
    """Sums over resamples, (..., B) each, of contributions that come in chunks (..., n′); logs side by side in leading
    dimensions share the counts."""

    def __init__(self, resamples: int = RESAMPLES, seed: int = 0) -> None:
        if resamples < 100:
            raise ConfigError(f"expected at least 100, got {resamples}; 999 is usual", field="resamples")
        self.resamples, self.seed, self.rows, self.chunks = resamples, seed, 0, 0
        self._table = _count_table()
        self._counts = np.zeros(resamples)
        self._shift: Floats | None = None  # near the mean: squares of large equal numbers would cancel
        self._sums: list[Floats] = []  # Σx, Σx², ΣCx, ΣCx²

    def add(self, values: ArrayLike) -> Self:
        """Read contributions (..., n′)."""
        x = checked_values(values)
        if self._shift is None:
            self._shift = x.mean(-1, keepdims=True)
            self._sums = [np.zeros(x.shape[:-1]) for _ in range(2)] + [np.zeros((*x.shape[:-1], self.resamples))] * 2
        if x.shape[:-1] != self._shift.shape[:-1]:
            got = f"got {x.shape[:-1]} after {self._shift.shape[:-1]}"
            raise DataError(f"bootstrap: expected chunks of the same logs, {got}; use one bootstrap for each log")
        for start in range(0, x.shape[-1], CHUNK):
            self._add(x[..., start : start + CHUNK] - self._shift)
        return self

    def _add(self, gaps: Floats) -> None:
        rng, n = stream(self.seed, "bootstrap", self.chunks), gaps.shape[-1]
        counts = self._table[rng.integers(0, STEPS, (n, self.resamples), np.uint16)].astype(np.float64)
        squares = gaps * gaps
        parts = gaps.sum(-1), squares.sum(-1), gaps @ counts, squares @ counts
        self._sums = [total + part for total, part in zip(self._sums, parts, strict=True)]
        self._counts += counts.sum(0)
        self.rows, self.chunks = self.rows + n, self.chunks + 1

    def interval(self, level: float = 0.95, span: Span | None = None) -> Interval:
        """The interval of the mean of everything read, (...)."""
        tail = (1 - checked_level(level)) / 2
        if self._shift is None:
            raise DataError("bootstrap: expected at least one row, got none; add contributions first")
        if self.rows == 1:
            far = np.full(self._shift.shape[:-1], np.inf)
            return interval(-far, far, "bootstrap", "one row has no spread, so every value is possible", span)
        first, second, drawn, drawn_squares = self._sums
        mean = first / self.rows
        error = np.sqrt(np.maximum(second / self.rows - mean**2, 0) / self.rows)
        low, high = np.quantile(_studentised(mean, drawn, drawn_squares, self._counts), [tail, 1 - tail], axis=-1)
        centre = mean + self._shift[..., 0]
        reason = REASON if error.any() else EQUAL
        return interval(centre - error * high, centre - error * low, "bootstrap", reason, span)


def _studentised(mean: Floats, drawn: Floats, squares: Floats, counts: Floats) -> Floats:
    """T of every resample, (..., B); infinite where a resample misses all that varies, on the side of its mean."""
    size = np.maximum(counts, 1)
    means = drawn / size
    errors = np.sqrt(np.maximum(squares / size - means**2, 0) / size)
    gaps = means - mean[..., None]
    tiny = 1e-9 * np.abs(gaps)
    return np.asarray(gaps / np.where(errors > tiny, errors, np.where(tiny > 0, tiny, 1.0)))


def bootstrap(
    values: ArrayLike, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0, span: Span | None = None
) -> Interval:
    """The studentised bootstrap interval of the mean of independent contributions (..., n); equal seeds, equal ends."""
    return PoissonBootstrap(resamples, seed).add(values).interval(level, span)
