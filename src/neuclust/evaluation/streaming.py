"""Targets whose chances stand in the log: importance weighting block by block, in bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuclust.errors import DataError
from neuclust.evaluation.columns import Block, Floats
from neuclust.evaluation.intervals.asymptotic import Moments
from neuclust.evaluation.slate_values import SlateValue

KNOWN = ("ips", "snips", "iips")
MOST_KEPT = 5  # of the largest weights
Blocks = Callable[[], Iterator[Block]]  # the rows of a log, from the first again with every call


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
class Sums:
    """What the passes over a file give: moments of what ran, and of every target under every estimator."""

    logged: Moments
    span: tuple[float, float]  # of a slate's value
    targets: dict[tuple[str, str], Weighed]


def weigh(
    blocks: Blocks,
    targets: Sequence[str],
    value: Callable[[int], SlateValue],
    estimators: Sequence[str] = KNOWN,
    watch: Callable[[int, int], None] = lambda *_: None,
) -> Sums:
    """Go through the rows once, or twice where `snips` needs its estimate first; `value` is made for k slots."""
    ratios = _ratios(blocks, targets, value) if "snips" in estimators else {}
    logged: Moments | None = None
    found = {(target, name): Weighed() for target in targets for name in estimators}
    span = value(1).range
    for block in blocks():
        own = value(block.slots.shape[1])
        worth = values_of(block, own)
        span = min(span[0], own.range[0]), max(span[1], own.range[1])
        logged = _joined(logged, worth)
        for (target, name), sums in found.items():
            contributions, weights = weighted(block, name, target, worth)
            if name == "snips":  # linearised around the ratio of sums
                ratio, mean = ratios[target]
                contributions = ratio + (contributions - ratio * weights) / mean
            sums.add(contributions, weights, worth)
        watch(block.start + len(worth), block.rows)
    if logged is None:
        raise DataError("log: expected decisions, got none; is this a log?")
    return Sums(logged, span, found)


def values_of(block: Block, value: SlateValue) -> Floats:
    """What every slate was worth, (n,)."""
    value.check(block.rewards, block.slate)
    found = value.of(block.rewards, block.slate)
    if np.isnan(found).any():
        row = block.start + int(np.isnan(found).argmax()) + 1
        raise DataError(f"{block.place}, row {row}: expected an observed reward, got none; leave such rows out")
    return found


def weighted(block: Block, estimator: str, target: str, worth: Floats) -> tuple[Floats, Floats]:
    """Contributions (n,) and weights (n,)."""
    if estimator == "iips":
        if block.marginals is None:
            raise DataError(f"{block.place}: iips: expected slot marginals, got none; use ips or snips")
        ratios = np.where(block.slots, block.target_marginals[target] / block.marginals, 0.0)
        return (ratios * block.rewards).sum(1), ratios.sum(1) / np.maximum(block.slots.sum(1), 1)
    weights = np.prod(block.targets[target] / block.chances, axis=1)
    return weights * worth, weights


def _ratios(
    blocks: Blocks, targets: Sequence[str], value: Callable[[int], SlateValue]
) -> dict[str, tuple[float, float]]:
    """Σw·r/Σw and the mean weight of every target."""
    sums = {target: np.zeros(3) for target in targets}
    for block in blocks():
        worth = values_of(block, value(block.slots.shape[1]))
        for target in targets:
            contributions, weights = weighted(block, "ips", target, worth)
            sums[target] += [float(contributions.sum()), float(weights.sum()), len(worth)]
    return {target: _ratio(target, *each.tolist()) for target, each in sums.items()}


def _ratio(target: str, contributions: float, weights: float, rows: float) -> tuple[float, float]:
    if weights <= 0:
        raise DataError(f"snips: expected a row that {target!r:.100} could have shown, got none; this log cannot tell")
    return contributions / weights, weights / rows
