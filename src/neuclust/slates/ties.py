"""Who comes first among equals: the smaller arm id, or a random order drawn once a round."""

from __future__ import annotations

import torch
from torch import Tensor

from neuclust.core import Round
from neuclust.randomness import stream


def tie_rank(round: Round, rule: str, seed: int) -> Tensor:
    """A number for every arm (n,); among equal scores the smaller one wins."""
    if rule == "id":
        return round.arm_ids
    return torch.from_numpy(stream(seed, "ties", round.t).permutation(len(round.arm_ids)))
