"""Recorded rounds: which arms each of them offered, and what each of these paid."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.data.npz import Header
from neuclust.data.options import refuse_where
from neuclust.errors import DataError

ARRAYS = ("offer_starts", "offer_arms", "offer_rewards")


@dataclass(frozen=True, slots=True)
class Offers:
    """Round r offers the rows `arms[starts[r] : starts[r + 1]]`, ascending, with `rewards` of 0 or 1 beside them."""

    starts: NDArray[np.int64]  # (R + 1,) from 0 to M
    arms: NDArray[np.int64]  # (M,) rows of the dataset's arms
    rewards: NDArray[np.float32]  # (M,)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many arms each round offers, (R,)."""
        return np.diff(self.starts)

    def of(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The arms offered in the round at `row` and what they paid, (n,) each."""
        part = slice(self.starts[row], self.starts[row + 1])
        return self.arms[part], self.rewards[part]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As they stand in the `.npz`."""
        columns = (self.starts.astype("<i8"), self.arms.astype("<i8"), self.rewards.astype("<f4"))
        return dict(zip(ARRAYS, columns, strict=True))


def check_offers(offers: Offers, n_arms: int, n_rounds: int) -> None:
    """Refuse offers that do not fit their dataset."""
    starts, arms, rewards = offers.starts, offers.arms, offers.rewards
    if starts.shape != (n_rounds + 1,) or starts[0] != 0 or starts[-1] != len(arms):
        expected = f"{n_rounds + 1} numbers, one per round and the end, from 0 to {len(arms)}"
        found = f"{len(starts)} from {starts[0]} to {starts[-1]}" if len(starts) else "none"
        raise DataError(f"offer_starts: expected {expected}, got {found}")
    if (offers.sizes < 1).any():
        row = int(np.flatnonzero(offers.sizes < 1)[0])
        raise DataError(f"offer_starts[{row + 1}]: expected rounds that offer at least 1 arm, got {offers.sizes[row]}")
    if arms.min() < 0 or arms.max() >= n_arms:
        raise DataError(f"offer_arms: expected rows from 0 to {n_arms - 1}, got {arms.min()} to {arms.max()}")
    falls = np.diff(arms) <= 0
    falls[starts[1:-1] - 1] = False  # from the last arm of a round to the first of the next
    if falls.any():
        place = int(np.flatnonzero(falls)[0])
        found = f"{arms[place + 1]} after {arms[place]}"
        raise DataError(f"offer_arms[{place + 1}]: expected the arms of a round each once and ascending, got {found}")
    if rewards.shape != arms.shape:
        raise DataError(f"offer_rewards: expected one reward per offered arm, {len(arms)}, got {len(rewards)}")
    refuse_where((rewards != 0) & (rewards != 1), "offer_rewards", rewards, "0 or 1")


def check_offer_kinds(headers: Mapping[str, Header]) -> None:
    """Refuse some of the arrays without the others, and arrays of the wrong kind."""
    present = [name for name in ARRAYS if name in headers]
    if present and len(present) < len(ARRAYS):
        raise DataError(f"expected {', '.join(ARRAYS)} together or none of them, got only {', '.join(present)}")
    for name in present:
        what, kinds = ("numbers", "fiu") if name == "offer_rewards" else ("whole numbers", "iu")
        headers[name].expect(name, f"a vector of {what}", kinds, dimensions=1)


def offers_from(arrays: Mapping[str, NDArray[np.generic]]) -> Offers | None:
    """The offers among a file's arrays; None where there are none."""
    if ARRAYS[0] not in arrays:
        return None
    starts, arms, rewards = (arrays[name] for name in ARRAYS)
    return Offers(starts.astype(np.int64), arms.astype(np.int64), rewards.astype(np.float32))
