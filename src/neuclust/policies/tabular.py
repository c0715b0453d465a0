"""Mean rewards in tables: one per arm (CUCB), per cube of the context space (CC-MAB), per cell of a tree (ACC-UCB).

CUCB: Chen, Wang, Yuan (ICML 2013). CC-MAB: Chen, Xu, Lu (NeurIPS 2018). ACC-UCB: Nika, Elahi, Tekin (AISTATS 2020).
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.core import Feedback, Round, Slate
from neuclust.kernels.ranking import top
from neuclust.models.encoder import Encoder, EncoderConfig, encoded
from neuclust.models.mean_rewards import ContextTree, KeyedMeans
from neuclust.models.state import load_saved_state, saved_state
from neuclust.persistence import save_policy
from neuclust.policies.wiring import (
    check_update,
    learn_counts,
    optimistic_scores,
    optimistic_slate,
    readable,
    revise_counts,
    settle_encoder,
)
from neuclust.randomness import stream
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import ones, tie_rank, top_slate


@dataclass(frozen=True, slots=True)
@checked(bonus=NON_NEGATIVE)
class CountConfig:
    """`bonus` is c in √(c log t / n); arms never played come first, in random order unless `tie` is id."""

    bonus: float = 1.5
    tie: Literal["id", "random"] = "random"


class CountUCB:
    """S_t = top K of μ̂_i + √(3 log t / 2n_i), for n_i plays of arm i; +∞ where n_i = 0."""

    name = "cucb"
    save = save_policy
    saved = ("arms", "seed")

    def __init__(self, config: CountConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.arms = KeyedMeans()

    select, scores = optimistic_slate, optimistic_scores

    def beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and bonus of every arm, (n,) each."""
        counts, means = self.arms.of(round.arm_ids)
        bonuses = torch.sqrt(self.config.bonus * math.log(round.t) / counts.clamp(min=1))
        return means, torch.where(counts > 0, bonuses, torch.inf)

    update, revise, state_dict, load_state_dict = learn_counts, revise_counts, saved_state, load_saved_state


@dataclass(frozen=True, slots=True)
@checked(horizon=AT_LEAST_ONE, smoothness=POSITIVE)
class CubeConfig:
    """`horizon` T sets the number of cubes, `smoothness` is the Hölder exponent; the encoder must fill [0, 1].
    Contexts outside [0, 1] fall into the outermost cubes, or without `clip` (the authors' code) into further ones."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    horizon: int = 1000
    smoothness: float = 1.0
    clip: bool = True
    tie: Literal["id", "random"] = "id"


def parts_per_axis(horizon: int, smoothness: float, dim: int) -> int:
    """h_T = ⌈T^{1/(3α + D)}⌉."""
    return math.ceil(math.pow(horizon, 1 / (3 * smoothness + dim)))


def plays_wanted(t: int, smoothness: float, dim: int) -> float:
    """K(t) = t^{2α/(3α + D)} log t: a cube with no more plays than this is under-explored."""
    return math.pow(t, 2 * smoothness / (3 * smoothness + dim)) * math.log(t)


class CubeBandit:
    """K arms of under-explored cubes at random while there are K of them, otherwise the best cubes' arms.
    With fewer than K under-explored arms all of them are played and the top arms by mean fill the rest, the greedy
    oracle for any symmetric, monotone slate reward. The h_T^D cubes are named by a 64-bit hash Σ_j c_j w_j of their
    coordinates c, to which columns of 0 add nothing."""

    name = "cc-mab"
    save = save_policy
    saved = ("cubes", "rho", "seed")

    def __init__(self, config: CubeConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.cubes = KeyedMeans()
        self._parts = parts_per_axis(config.horizon, config.smoothness, self.encoder.dim)
        # one seed for all: a cube's name is no part of what is learned
        weights = stream(0, "cube names").integers(-(2**63), 2**63, self.encoder.dim)
        self._weights = torch.from_numpy(weights | 1)  # odd: no coordinate is ever lost

    @keeps_rules
    def select(self, round: Round) -> Slate:
        round = readable(self, round)
        counts, means = self.cubes.of(self._names(round))
        under_explored = counts <= plays_wanted(round.t, self.config.smoothness, self.encoder.dim)
        positions, chances = self._chosen(round, under_explored, means)
        return Slate(positions, means[positions], torch.zeros_like(means[positions]), chances)

    def scores(self, round: Round) -> Tensor:
        """Mean reward of every arm's cube, (n,)."""
        return self.cubes.of(self._names(readable(self, round)))[1]

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        names = self._names(round, slate.positions)
        self.encoder.settle(round)
        self.cubes.observe(names, feedback.arm_rewards)

    def _chosen(self, round: Round, under_explored: Tensor, means: Tensor) -> tuple[Tensor, Tensor | None]:
        """Positions and propensities, (k,) each: 1/c, 1/(c − 1), … where k of c under-explored arms are drawn."""
        candidates, k = torch.nonzero(under_explored).flatten(), round.slate_size
        if len(candidates) >= k:
            rng = stream(self.seed, "cc-mab", round.key)
            drawn = candidates[torch.from_numpy(rng.choice(len(candidates), k, replace=False))]
            return drawn, 1 / torch.arange(len(candidates), len(candidates) - k, -1, dtype=torch.float64)
        others = torch.nonzero(~under_explored).flatten()
        rank = tie_rank(round, self.config.tie, self.seed)[others]
        chosen = torch.cat([candidates, others[top(means[others], rank, k - len(candidates))]])
        return chosen, ones(k) if self.config.tie == "id" else None

    def _names(self, round: Round, positions: Tensor | None = None) -> Tensor:
        """The name of each context's cube, (n,) int64; sums wrap around."""
        x, columns = encoded(self.encoder, round, positions)
        coordinates = (x * self._parts).floor()
        if self.config.clip:
            coordinates = coordinates.clamp(0, self._parts - 1)
        with np.errstate(over="ignore"):
            return torch.from_numpy(coordinates.to(torch.int64).numpy() @ self._weights[columns].numpy())

    settle, state_dict, load_state_dict = settle_encoder, saved_state, load_saved_state


_CHILDREN = 2  # N_c


@dataclass(frozen=True, slots=True)
@checked(horizon=AT_LEAST_ONE, v1=POSITIVE, v2=POSITIVE, rho=POSITIVE)
class AdaptiveCellConfig:
    """A cell of depth h has a diameter of at most v1·ρ^h and holds a ball of radius v2·ρ^h.
    None: what halving the longest side of [0, 1]^D gives, ρ = 2^{−1/D}, v1 = 2√D, v2 = ¼. Arms of one cell tie."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    horizon: int = 1000
    v1: float | None = None
    v2: float | None = None
    rho: float | None = None
    tie: Literal["id", "random"] = "random"


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

    @keeps_rules
    def select(self, round: Round) -> Slate:
        means, indices = self._beliefs(readable(self, round))
        rule = self.config.tie if len(self.tree) > 1 else "random"
        rank, bonuses = tie_rank(round, rule, self.seed), (indices - means).clamp(min=0)
        return top_slate(means, bonuses, rank, round.slate_size, scores=indices, certain=rule == "id")

    def scores(self, round: Round) -> Tensor:
        """The index of every arm, (n,)."""
        return self._beliefs(readable(self, round))[1]

    def _beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and index of every arm, (n,) each."""
        leaves, group = torch.unique(self.tree.leaves(*encoded(self.encoder, round)), return_inverse=True)
        means, indices = self._indices(leaves)
        return means[group], indices[group]

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        leaves = self.tree.leaves(*encoded(self.encoder, round, slate.positions))
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

    settle, state_dict, load_state_dict = settle_encoder, saved_state, load_saved_state
