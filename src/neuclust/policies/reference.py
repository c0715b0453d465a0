"""References: uniform at random, the oracle that knows every mean, and one slate kept throughout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.core import Round, Slate, check_round
from neuclust.errors import StateError
from neuclust.models.state import check_lengths, expect, take_rows, take_whole
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank, top_slate

Averages = tuple[Tensor, Tensor]  # arm ids (N,), average means (N,)


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """Nothing to configure."""


class Uniform:
    """K of n arms, every slate equally likely."""

    name = "uniform"
    save = save_policy
    saved = ("seed",)

    def __init__(self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        n, k = len(round.arm_ids), self.slate_size
        chosen = stream(self.seed, "uniform", round.t).choice(n, size=k, replace=False)
        zeros = torch.zeros(k, dtype=torch.float64)
        return Slate(torch.from_numpy(chosen), zeros, zeros, probabilities=torch.full_like(zeros, 1 / n))

    update, state_dict, load_state_dict = check_update, saved_state, load_saved_state  # nothing is learned


class Oracle:
    """The K arms with the largest true means: the optimum for any symmetric, monotone slate reward."""

    name = "oracle"
    save = save_policy
    saved = ("seed",)

    def __init__(
        self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0, *, means: Callable[[Round], Tensor]
    ) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self._means = means

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        means = self._means(round)
        return top_slate(means, torch.zeros_like(means), tie_rank(round, "id", self.seed), self.slate_size)

    update, state_dict, load_state_dict = check_update, saved_state, load_saved_state  # nothing is learned


class Static:
    """The K offered arms with the largest average true mean: one slate for all rounds that offer every arm.

    `averages` = (arm ids (N,), average means (N,)). Arms that are not among them count as 0.
    """

    name = "static"
    save = save_policy
    saved = ("seed", "ids", "averages")

    def __init__(
        self, config: ReferenceConfig, dim: int, slate_size: int, seed: int = 0, *, averages: Averages | None = None
    ) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.ids, self.averages = torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64)
        if averages is not None:
            order = torch.argsort(averages[0])
            self.ids, self.averages = averages[0][order], averages[1][order]

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        averages = self._of(round.arm_ids)
        return top_slate(averages, torch.zeros_like(averages), tie_rank(round, "id", self.seed), self.slate_size)

    update, state_dict = check_update, saved_state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        ids, averages = take_rows(state, "ids", (), torch.int64), take_rows(state, "averages", ())
        check_lengths(ids=ids, averages=averages)
        expect(bool((ids[1:] >= ids[:-1]).all()), "ids in ascending order", "another one")
        self.seed, self.ids, self.averages = take_whole(state, "seed"), ids, averages

    def _of(self, arm_ids: Tensor) -> Tensor:
        if len(self.ids) == 0:
            raise StateError("static: expected the arms' average means, got none; pass averages= or load a save")
        place = torch.searchsorted(self.ids, arm_ids).clamp(max=len(self.ids) - 1)
        return torch.where(self.ids[place] == arm_ids, self.averages[place], 0.0)
