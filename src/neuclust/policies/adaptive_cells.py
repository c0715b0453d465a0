"""ACC-UCB (Nika, Elahi, Tekin, AISTATS 2020): optimism over a tree of cells that is refined where arms are played."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, POSITIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.models.context_tree import ContextTree
from neuclust.models.contexts import encoded
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts, contexts_at
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.slates.ties import tie_rank, top_slate

_CHILDREN = 2  # N_c


@dataclass(frozen=True, slots=True)
class AdaptiveCellConfig:
    """A cell of depth h has a diameter of at most v1·ρ^h and holds a ball of radius v2·ρ^h.

    None takes what halving the longest side of [0, 1]^D gives: ρ = 2^{−1/D}, v1 = 2√D, v2 = ¼. Arms of one
    cell are equals, so `tie` is random.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    horizon: int = 1000
    v1: float | None = None
    v2: float | None = None
    rho: float | None = None
    tie: Literal["id", "random"] = "random"

    def __post_init__(self) -> None:
        check_ranges(self, horizon=AT_LEAST_ONE, v1=POSITIVE, v2=POSITIVE, rho=POSITIVE)


class AdaptiveCellUCB:
    """Index of an arm in leaf x of depth h with parent p: b(x) + N_c (v1/v2) v1ρ^h, where
    b(x) = min{μ̂_x + c(T_x), μ̂_p + c(T_p) + v1ρ^{h−1}} + v1ρ^h and c(n) = √(2 log T / n).

    S_t = top K; a played leaf with c(T_x) ≤ v1ρ^h is split. The whole cube, before its split, gives K arms at random.
    Contexts outside [0, 1] belong to the outermost cells.
    """

    name = "acc-ucb"
    save = save_policy
    saved = ("tree", "rho", "seed")

    def __init__(self, config: AdaptiveCellConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        size = self.encoder.dim
        self.tree = ContextTree(size)
        self._v1 = 2 * math.sqrt(size) if config.v1 is None else config.v1
        self._v2 = 0.25 if config.v2 is None else config.v2
        self._shrink = 2 ** (-1 / size) if config.rho is None else config.rho

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        leaves, group = torch.unique(self._leaves(round, active_contexts(round)), return_inverse=True)
        means, indices = (values[group] for values in self._indices(leaves))
        rule = self.config.tie if len(self.tree) > 1 else "random"
        bonuses = (indices - means).clamp(min=0)
        return top_slate(means, bonuses, tie_rank(round, rule, self.seed), self.slate_size, scores=indices)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        leaves = self._leaves(round, contexts_at(round, slate.positions))
        self.encoder.settle(round)
        seen = ~torch.isnan(feedback.arm_rewards)
        self.tree.observe(leaves[seen], feedback.arm_rewards[seen])
        played = torch.unique(leaves[seen])
        depth, counts, _ = self.tree.statistics(played)
        for leaf in played[self._radius(counts) <= self._diameter(depth)].tolist():
            self.tree.split(leaf)

    def _indices(self, leaves: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (the parent's where a leaf was never played) and index of the given leaves, each (c,)."""
        depth, counts, means = self.tree.statistics(leaves)
        parents = self.tree.parents(leaves)
        _, parent_counts, parent_means = self.tree.statistics(parents.clamp(min=0))
        own = means + self._radius(counts)
        inherited = parent_means + self._radius(parent_counts) + self._diameter(depth - 1)
        inherited = torch.where(parents >= 0, inherited, torch.inf)
        diameter = self._diameter(depth)
        bound = torch.minimum(own, inherited) + diameter
        believed = torch.where((counts == 0) & (parents >= 0), parent_means, means)
        return believed, bound + _CHILDREN * (self._v1 / self._v2) * diameter

    def _radius(self, counts: Tensor) -> Tensor:
        """c(n) = √(2 log T / n); ∞ without plays."""
        return torch.where(counts > 0, torch.sqrt(2 * math.log(self.config.horizon) / counts.clamp(min=1)), torch.inf)

    def _diameter(self, depth: Tensor) -> Tensor:
        """v1·ρ^h."""
        return self._v1 * self._shrink**depth

    def _leaves(self, round: Round, contexts: Tensor) -> Tensor:
        return self.tree.leaves(*encoded(self.encoder, round, contexts))

    state_dict, load_state_dict = saved_state, load_saved_state
