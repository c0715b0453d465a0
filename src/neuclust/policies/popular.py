"""The most popular arms: smoothed mean rewards per arm, no features; the baseline every shop has."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.core import Round, Slate, check_round
from neuclust.models.mean_rewards import KeyedMeans
from neuclust.models.state import load_saved_state, saved_state
from neuclust.persistence import save_policy
from neuclust.policies.wiring import learn_counts, revise_counts
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import tie_rank, top_slate


@dataclass(frozen=True, slots=True)
@checked(smoothing=NON_NEGATIVE)
class PopularConfig:
    """`smoothing` is m: every arm counts as if it had been played m times more, with the mean reward of all plays."""

    smoothing: float = 10.0
    tie: Literal["id", "random"] = "id"


class Popular:
    """S_t = top K of (Σ r_i + m r̄) / (n_i + m), for n_i plays of arm i, r̄ = (Σ r + 1) / (n + 2) over all n plays.
    Arms never played have r̄, which is above 0 (Laplace's rule of succession): they come before those that were played
    and did worse than the average, also while nothing was rewarded."""

    name = "popular"
    save = save_policy
    saved = ("arms", "seed")

    def __init__(self, config: PopularConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = KeyedMeans()

    @keeps_rules
    def select(self, round: Round) -> Slate:
        means, rank = self.scores(round), tie_rank(round, self.config.tie, self.seed)
        certain = self.config.tie == "id"
        return top_slate(means, torch.zeros_like(means), rank, round.slate_size, certain=certain)

    def scores(self, round: Round) -> Tensor:
        """The smoothed mean reward of every arm, (n,)."""
        check_round(round, self.dim, self.slate_size)
        (counts, means), m = self.arms.of(round.arm_ids), self.config.smoothing
        total, plays = self.arms.totals()
        overall = (total + 1) / (plays + 2)
        return torch.where(counts + m > 0, (counts * means + m * overall) / (counts + m).clamp(min=1e-300), overall)

    update, revise, state_dict, load_state_dict = learn_counts, revise_counts, saved_state, load_saved_state
