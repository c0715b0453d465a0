"""One logged decision in memory: the round, how its slate was drawn, and what came back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.core import Design, Round

__all__ = ["Design", "LoggedDecision"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision with everything that came back for it, late and partial feedback included."""

    id: str
    run: str
    round: Round  # arm ids, features and rules of the eligible arms
    slate: NDArray[np.int64]  # (k,) positions in the round, slot order
    propensities: Floats | None  # (k,) of each slot's arm given the slots before it; None: not known
    design: Design
    sizes: tuple[int, ...]  # |A(S)| before each slot (`slates.rules.option_counts`)
    rewards: Floats  # (k,) NaN: not observed
    slate_reward: float  # NaN: not observed
    shown: NDArray[np.bool_] | None = None  # (k,) slots that were really seen; None: all
    time: float | None = None
    user: str | int | None = None
    version: str | None = None  # of the model that chose; it differs between rows where the policy learned
