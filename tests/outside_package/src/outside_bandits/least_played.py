"""A policy with a configuration and a preset of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.persistence import save_policy


@dataclass(frozen=True, slots=True)
class LeastPlayedConfig:
    """`worth` is how many plays one rewarded play makes up for."""

    worth: float = 3.0


class LeastPlayed:
    """The arms with the fewest plays, less a bonus for those that were rewarded."""

    name = "least-played"
    presets: ClassVar = {"default": LeastPlayedConfig(), "fair": LeastPlayedConfig(worth=0.0)}
    save = save_policy

    def __init__(self, config: LeastPlayedConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self._plays: Counter[int] = Counter()
        self._paid: Counter[int] = Counter()

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        ids = round.arm_ids.tolist()
        scores = torch.tensor([self.config.worth * self._paid[arm] - self._plays[arm] for arm in ids])
        chosen = torch.argsort(scores, descending=True, stable=True)[: self.slate_size]
        return Slate(chosen, scores[chosen], torch.zeros(self.slate_size))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_feedback(round, slate, feedback)
        for arm, reward in zip(round.arm_ids[slate.positions].tolist(), feedback.arm_rewards.tolist(), strict=True):
            if not math.isnan(reward):
                self._plays[arm] += 1
                self._paid[arm] += int(reward > 0)

    def state_dict(self) -> dict[str, Tensor]:
        arms = list(self._plays)
        return {
            "arms": torch.tensor(arms, dtype=torch.int64),
            "plays": torch.tensor([self._plays[arm] for arm in arms], dtype=torch.int64),
            "paid": torch.tensor([self._paid[arm] for arm in arms], dtype=torch.int64),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        arms = state["arms"].tolist()
        self._plays = Counter(dict(zip(arms, state["plays"].tolist(), strict=True)))
        self._paid = Counter(dict(zip(arms, state["paid"].tolist(), strict=True)))
