"""One logged decision in memory: the round, how its slate was drawn, and what came back."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from neuclust.core import Round

Kind = Literal["deterministic", "sequential", "one-coin", "uniform", "unknown"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Design:
    """How a slate is drawn; `base` and `pool` are positions in the round.

    - deterministic: the base slate, for certain;
    - sequential: slot by slot around the base slate, by P(a | S) of `slates.propensities` with share, pool, anywhere;
    - one-coin: with probability `share` a slate drawn evenly from A(S) slot by slot, else the base slate;
    - uniform: every slot evenly from A(S);
    - unknown: nothing but the propensities of the logged slate is known, if those are.
    """

    kind: Kind
    base: tuple[int, ...] = ()
    share: float = 0.0  # ε
    pool: tuple[int, ...] = ()
    anywhere: float = 1.0
    sizes: tuple[int, ...] = ()  # |A(S)| before each slot of the logged slate


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision with everything that came back for it, late and partial feedback included."""

    id: str
    run: str
    round: Round  # arm ids, features and rules of the eligible arms
    slate: NDArray[np.int64]  # (k,) positions in the round, slot order
    propensities: Floats | None  # (k,) of each slot's arm given the slots before it; None: not known
    design: Design
    rewards: Floats  # (k,) NaN: not observed
    slate_reward: float  # NaN: not observed
    shown: NDArray[np.bool_] | None = None  # (k,) slots that were really seen; None: all
    time: float | None = None
    user: str | int | None = None
    version: str | None = None  # of the model that chose; it differs between rows where the policy learned
