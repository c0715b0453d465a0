"""A mean over seeds with its standard error, when it can be told from chance, and how both are written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

FEW_SEEDS = 5  # a standard error from fewer pairs is too rough to be counted in
NOISE = 2.0  # standard errors


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its standard error s/√n; None from one seed, which has no spread."""

    mean: float
    error: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error of one number per seed."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return Estimate(fmean(values), error)


def is_within_noise(difference: Estimate) -> bool:
    """|difference| < 2 standard errors, or no difference at all."""
    return difference.error is not None and (difference.mean == 0.0 or abs(difference.mean) < NOISE * difference.error)


def decimals(value: float) -> int:
    """As many as a reader can use: 320.1, 13.42, 0.213."""
    size = abs(value)
    return 1 if size >= 100 else 2 if size >= 1 else 3


def number(value: float) -> str:
    return f"{value:.{decimals(value)}f}"


def with_error(value: Estimate, sign: bool = False, pm: str = " ± ") -> str:
    """`13.42 ± 0.81`, both with the decimals of the mean."""
    places = decimals(value.mean)
    mean = f"{value.mean:{'+' if sign else ''}.{places}f}"
    return mean if value.error is None else f"{mean}{pm}{value.error:.{places}f}"


def counted(amount: int, one: str, many: str = "") -> str:
    """`1 seed`, `3 seeds`, `2 policies`."""
    return f"{amount} {one if amount == 1 else many or f'{one}s'}"


def sentence(text: str) -> str:
    """A clause as a sentence: its first letter large, a full stop at its end."""
    return f"{text[0].upper()}{text[1:]}."
