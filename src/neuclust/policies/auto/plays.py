"""The data of an ensemble: distinct contexts with their features, and rewards slate by slate."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from neuclust.models.history import GrowingTable, History, load_tables
from neuclust.models.state import check_lengths, expect, nested, take_numbers, under
from neuclust.policies.auto.features import FeatureBlocks, Features


@dataclass(frozen=True, slots=True)
class RewardScale:
    """The level p̄ of the rewards, their mean, and the unit that makes rewards of 1 % and of 60 % alike."""

    level: float = 0.5

    @property
    def unit(self) -> float:
        """p̄(1 − p̄): the variance of rewards of 0 and 1, and what a change of the log-odds by 1 adds to their mean."""
        level = min(self.level, 0.5)
        return level * (1 - level)


@dataclass(frozen=True, slots=True)
class Played:
    """The arms of one slate whose rewards were observed: features, rewards (k,), rows of the history (k,)."""

    features: Features
    rewards: Tensor
    rows: Tensor


class Plays:
    """All observations; equal contexts once, with their features side by side."""

    def __init__(self, blocks: FeatureBlocks, slate_size: int) -> None:
        self.slate_size = slate_size
        self.history = History(blocks.input_size, slate_size)  # its contexts are the net's inputs
        self.contexts = GrowingTable(blocks.dim)  # z of every row of the history
        self._features = GrowingTable(blocks.size)  # all blocks of every row
        self._ends = GrowingTable(dtype=torch.int64)  # observations after every slate
        self.rewards, self.count = 0.0, 0.0  # Σr and the number of all observations

    @property
    def scale(self) -> RewardScale:
        """Of all rewards, from a prior of one arm that paid ½."""
        return RewardScale((self.rewards + 0.5) / (self.count + 1.0))

    @property
    def information(self) -> float:
        """n p̄(1 − p̄): for rare clicks their number."""
        return self.count * self.scale.unit

    @property
    def slates(self) -> int:
        """Number of slates."""
        return len(self._ends)

    def add(self, z: Tensor, features: Features, rewards: Tensor) -> Played:
        """Add contexts z (k, d) with rewards (k,)."""
        rows = [self._row(i, z, features) for i in range(len(z))]
        for row, reward in zip(rows, rewards.tolist(), strict=True):
            self.history.observe_arm(row, reward)
        self._ends.append(self.history.observations)
        self.rewards, self.count = self.rewards + float(rewards.sum()), self.count + len(rewards)
        return Played(features, rewards, torch.tensor(rows))

    def _row(self, i: int, z: Tensor, features: Features) -> int:
        row = self.history.row(features.inputs[i])
        if row == len(self.contexts):
            self.contexts.append(z[i])
            self._features.append(features.matrix[i])
        return row

    def table(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Distinct features on the leading columns (u, size), sums of rewards (u,) and counts (u,)."""
        return self._features.rows[:, :size], self.history.sums.rows, self.history.counts.rows

    def latest(self, slates: int) -> list[tuple[Tensor, Tensor]]:
        """Contexts and rewards of the last slates, oldest first."""
        ends = [0, *self._ends.rows.tolist()][-slates - 1 :]
        seen, rewards = self.history.seen.rows, self.history.rewards.rows
        return [(self.contexts.rows[seen[start:end]], rewards[start:end].clone()) for start, end in pairwise(ends)]

    def state_dict(self) -> dict[str, Tensor]:
        tables = {name: table.rows.clone() for name, table in self._tables().items()}
        numbers = torch.tensor([self.rewards, self.count], dtype=torch.float64)
        return nested("history", self.history.state_dict()) | tables | {"numbers": numbers}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.history.load_state_dict(under("history", state))
        load_tables(self._tables(), state, self._check)
        self.rewards, self.count = take_numbers(state, "numbers", 2)

    def _tables(self) -> dict[str, GrowingTable]:
        return {"contexts": self.contexts, "features": self._features, "ends": self._ends}

    def _check(self, tables: Mapping[str, Tensor]) -> None:
        check_lengths(contexts=tables["contexts"], features=tables["features"], history=self.history.contexts.rows)
        steps = torch.diff(tables["ends"], prepend=tables["ends"].new_zeros(1))
        whole = bool((steps > 0).all()) and int(steps.sum()) == self.history.observations
        expect(whole, f"ends that rise to {self.history.observations} observations", tables["ends"].tolist()[-3:])
