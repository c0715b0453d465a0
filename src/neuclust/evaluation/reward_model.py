"""A reward model of arms that never saw the rows it is used on: ridge regression with cross-fitting, by sums."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RIDGE = 1.0  # weight of the prior, in observations


def with_constant(contexts: Floats) -> Floats:
    """[1, z], (n, d) -> (n, d + 1)."""
    return np.concatenate([np.ones((len(contexts), 1)), contexts], 1)


@dataclass(slots=True)
class RewardModel:
    """r ≈ wᵀ[1, z] with w = (λI + XᵀX)⁻¹ Xᵀr, one w per block of rows.

    `others`: a block's w is fitted on all rows outside it, as for a log of a fixed policy (Chernozhukov et al., 2018).
    `earlier`: on the rows before it alone, so that it is predictable, which martingale intervals need.
    """

    dim: int
    blocks: int
    use: Literal["others", "earlier"] = "others"
    _gram: Floats = field(init=False)
    _moment: Floats = field(init=False)
    _weights: dict[int, Floats] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._gram = np.zeros((self.blocks, self.dim + 1, self.dim + 1))
        self._moment = np.zeros((self.blocks, self.dim + 1))

    def observe(self, block: int, contexts: Floats, rewards: Floats) -> None:
        """Add a slate's contexts (k, d) and rewards (k,) to a block; unobserved rewards are NaN."""
        seen = ~np.isnan(rewards)
        x = with_constant(contexts[seen])
        self._gram[block] += x.T @ x
        self._moment[block] += x.T @ rewards[seen]
        self._weights.clear()

    def means(self, block: int, contexts: Floats) -> Floats:
        """Predicted rewards of contexts (n, d) for a row of a block: (n,)."""
        if block not in self._weights:
            rows = [b for b in range(self.blocks) if (b < block if self.use == "earlier" else b != block)]
            gram = self._gram[rows].sum(0) + RIDGE * np.eye(self.dim + 1)
            self._weights[block] = np.linalg.solve(gram, self._moment[rows].sum(0))
        return with_constant(contexts) @ self._weights[block]
