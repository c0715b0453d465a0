"""The top K arms by score; among equal scores the smaller arm id, or an order drawn at random once per round."""

import torch
from torch import Tensor

from neuclust.core import Round, Slate
from neuclust.kernels.ranking import top
from neuclust.randomness import stream


def tie_rank(round: Round, rule: str, seed: int) -> Tensor:
    """A number for every arm (n,); among equal scores the smaller one wins."""
    if rule == "id":
        return round.arm_ids
    return torch.from_numpy(stream(seed, "ties", round.key).permutation(len(round.arm_ids)))


def top_slate(
    means: Tensor, bonuses: Tensor, rank: Tensor, k: int, scores: Tensor | None = None, certain: bool = True
) -> Slate:
    """The k arms with the largest scores, mean + bonus where none are given; all (n,), ties by rank.
    Not `certain`: scores or ties were drawn at random, so that the chances of the slate are not known."""
    positions = top(means + bonuses if scores is None else scores, rank, k)
    return Slate(positions, means[positions], bonuses[positions], ones(k) if certain else None)


def ones(k: int) -> Tensor:
    """Propensities of k slots that leave nothing to chance, (k,)."""
    return torch.ones(k, dtype=torch.float64)
