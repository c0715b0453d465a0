"""CC-MAB (Chen, Xu, Lu, NeurIPS 2018): mean rewards of equal cubes of the context space, explored on a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, POSITIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.kernels.ranking import top
from neuclust.models.contexts import encoded
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts, contexts_at
from neuclust.models.keyed_means import KeyedMeans
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, load_saved_state, saved_state
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class CubeConfig:
    """`horizon` T sets the number of cubes, `smoothness` is the Hölder exponent; the encoder must fill [0, 1].

    Contexts outside [0, 1] fall into the outermost cubes, or without `clip` (the authors' code) into further ones.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    horizon: int = 1000
    smoothness: float = 1.0
    clip: bool = True
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_ranges(self, horizon=AT_LEAST_ONE, smoothness=POSITIVE)


def parts_per_axis(horizon: int, smoothness: float, dim: int) -> int:
    """h_T = ⌈T^{1/(3α + D)}⌉."""
    return math.ceil(math.pow(horizon, 1 / (3 * smoothness + dim)))


def plays_wanted(t: int, smoothness: float, dim: int) -> float:
    """K(t) = t^{2α/(3α + D)} log t: a cube with no more plays than this is under-explored."""
    return math.pow(t, 2 * smoothness / (3 * smoothness + dim)) * math.log(t)


class CubeBandit:
    """K arms of under-explored cubes at random while there are K of them, otherwise the best cubes' arms.

    Cubes are named by a 64-bit hash Σ_j c_j w_j of their coordinates c, since h_T^D of them could not be numbered;
    coordinates of 0 add nothing, so that only active columns are read. With fewer than K under-explored arms all of
    them are played and the top K by mean fill the rest, the greedy oracle for any symmetric, monotone slate reward.
    """

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

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        counts, means = self.cubes.of(self._names(round, active_contexts(round)))
        under_explored = counts <= plays_wanted(round.t, self.config.smoothness, self.encoder.dim)
        positions = self._chosen(round, under_explored, means)
        return Slate(positions, means[positions], torch.zeros_like(means[positions]))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        names = self._names(round, contexts_at(round, slate.positions))
        self.encoder.settle(round)
        self.cubes.observe(names, feedback.arm_rewards)

    def _chosen(self, round: Round, under_explored: Tensor, means: Tensor) -> Tensor:
        candidates = torch.nonzero(under_explored).flatten()
        if len(candidates) >= self.slate_size:
            rng = stream(self.seed, "cc-mab", round.t)
            return candidates[torch.from_numpy(rng.choice(len(candidates), self.slate_size, replace=False))]
        others = torch.nonzero(~under_explored).flatten()
        rank = tie_rank(round, self.config.tie, self.seed)[others]
        return torch.cat([candidates, others[top(means[others], rank, self.slate_size - len(candidates))]])

    def _names(self, round: Round, contexts: Tensor) -> Tensor:
        """The name of each context's cube, (n,) int64; sums wrap around."""
        x, columns = encoded(self.encoder, round, contexts)
        coordinates = (x * self._parts).floor()
        if self.config.clip:
            coordinates = coordinates.clamp(0, self._parts - 1)
        with np.errstate(over="ignore"):
            return torch.from_numpy(coordinates.to(torch.int64).numpy() @ self._weights[columns].numpy())

    state_dict, load_state_dict = saved_state, load_saved_state
