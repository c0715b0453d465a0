"""Small prepared problems, made of nothing but profiles and queries."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers


def dataset_of(name: str, arms: NDArray[Any], rounds: NDArray[Any], offers: Offers | None = None) -> ProfileDataset:
    """Arms (N, d) and rounds (R, d) numbered from 0, with features a, b, c, …"""
    return ProfileDataset(
        name=name,
        arms=arms.astype(np.float32),
        rounds=rounds.astype(np.float32),
        arm_ids=np.arange(len(arms)),
        round_ids=np.arange(len(rounds)),
        features=tuple(ascii_lowercase[: arms.shape[1]]),
        offers=offers,
    )
