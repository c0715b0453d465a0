"""Do arms of one group pay less together? What each further rewarded arm of a group adds, and the slate it asks for.

A slate's reward usually depends on how many of its arms were rewarded alone. Where R = Σ_groups w(j_g) instead, j_g
rewarded arms in group g and w concave, the top K is no longer best. Three accounts of R are compared:

- "groups": R = Σ_j β_j n_j with n_j the number of groups with at least j rewarded arms, β falling and >= 0;
- "one group": the same with all arms in one group, that is any concave function of the number of rewarded arms;
- "count": a free mean for each number of rewarded arms, K + 1 cells.

"Groups" is believed only where it beats both others, see `advantage`. A slate without rewarded arms pays nothing in
the first two: were their level free, slates that all pay about the same (the first success counts, say) would be
told by the level, and what is left would often look like groups. A world with another level is told by "count", and
the top K is played.

Rewards between 0 and 1: n_j is the sum over groups of the group's j-th largest reward, which is the same number for
rewards of 0 and 1 and keeps Σ_j n_j = Σ_i r_i, so the mean of the rewards is told exactly; the cell is the rounded Σ r.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import unsound
from neuclust.models.state import expect, take

Floats = NDArray[np.float64]

TIE = 1e-12  # gains this close are equal
NEGLIGIBLE = 1e-10  # of the largest: a direction never seen, a weight that is not used


@dataclass(frozen=True, slots=True)
class SlateWorthConfig:
    """Groups matter after `at_least` slates, where that account is `margin` nats ahead and the last step is below
    `flattest` times the first. R is taken to be known to `floor` only: exact rewards must not make hair splitting pay.
    """

    at_least: int = 20
    margin: float = 5.0
    floor: float = 0.02
    flattest: float = 0.9

    def __post_init__(self) -> None:
        check_entries(self)
        if self.at_least < 2:
            raise ConfigError(f"slate worth: expected at_least of 2 slates or more, got {self.at_least}; 20 is usual")
        if not (self.margin >= 0 and self.floor > 0):
            raise ConfigError(
                "slate worth: expected a margin of 0 nats or more and a floor above 0, got "
                f"{self.margin} and {self.floor}; 5 and 0.02 are usual"
            )
        if not 0 < self.flattest <= 1:
            raise ConfigError(f"slate worth: expected flattest above 0 up to 1, got {self.flattest}; 0.9 is usual")


@dataclass(frozen=True, slots=True)
class Account:
    """Σ of squared residuals, and how many free numbers they cost."""

    squares: float
    parameters: int

    def score(self, slates: int, floor: float) -> float:
        """Log-likelihood under Gaussian residuals less ½ log n a parameter.

        The floor is added, not a bound: once groups are believed the slates played hardly tell the accounts apart,
        and a bound would let the mean of the squares sink to it and what was learned be lost.
        """
        variance = self.squares / slates + floor**2
        return -0.5 * slates * math.log(variance) - 0.5 * self.parameters * math.log(slates)


def group_features(labels: Tensor, rewards: Tensor) -> Tensor:
    """n_j: the sum over groups of the group's j-th largest reward, (K,), (K,) -> (K,)."""
    falling, order = rewards.sort(descending=True, stable=True)
    groups = labels[order]
    earlier = (groups[:, None] == groups[None, :]).tril(-1).sum(1)
    return torch.zeros_like(falling).index_add_(0, earlier, falling)


def falling_fit(gram: Floats, moments: Floats) -> tuple[Floats, int]:
    """β (m,) >= 0 and falling with the least βᵀGβ − 2βᵀm, and how many different positive values it has.

    β_j = Σ_{i>=j} d_i turns the constraints into d >= 0. Directions never seen are left out of the root of G:
    rounding must not make steps of them.
    """
    sums = np.triu(np.ones_like(gram))
    sizes, axes = np.linalg.eigh(sums.T @ gram @ sums)
    seen = sizes > NEGLIGIBLE * max(float(sizes[-1]), 0.0)
    if not seen.any():
        return np.zeros_like(moments), 0
    root, axes = np.sqrt(sizes[seen]), axes[:, seen]
    steps, _ = nnls(root[:, None] * axes.T, (axes.T @ sums.T @ moments) / root, maxiter=100 * len(moments))
    return sums @ steps, int((steps > NEGLIGIBLE * steps.max()).sum())


def advantage(groups: Account, one_group: Account, count: Account, slates: int, floor: float) -> float:
    """By how many nats "groups" beats the better of the others.

    The table pays for no more parameters than "groups" does: it is to be beaten by fit. Otherwise a world of counts
    whose labels hardly differ would be told more cheaply by the few steps than by K + 1 cells.
    """
    table = Account(count.squares, min(count.parameters, groups.parameters))
    return groups.score(slates, floor) - max(one_group.score(slates, floor), table.score(slates, floor))


class SlateWorth:
    """Learns from slates what the 1st, 2nd, … rewarded arm of a group adds. Memory O(K²), whatever the number seen."""

    def __init__(self, config: SlateWorthConfig, slate_size: int) -> None:
        if slate_size < 1:
            raise ConfigError(f"slate worth: expected slates of at least 1 arm, got {slate_size}")
        self.config, self.slate_size = config, slate_size
        # row 0: the groups as they are, row 1: all arms in one group
        self._gram = torch.zeros(2, slate_size, slate_size, dtype=torch.float64)
        self._moments = torch.zeros(2, slate_size, dtype=torch.float64)
        # of the slates with c rewarded arms: how many, ΣR and ΣR²
        self._cells = torch.zeros(3, slate_size + 1, dtype=torch.float64)
        self._steps: Tensor | None = None
        self._fresh = True  # the steps belong to what was seen so far

    def observe(self, labels: Tensor, arm_rewards: Tensor, slate_reward: float) -> None:
        """A slate's labels and rewards (K,); one with anything unseen (NaN) or fewer arms is skipped."""
        labels, rewards = labels.cpu(), arm_rewards.detach().cpu().double()
        seen = math.isfinite(slate_reward) and bool((rewards.isfinite() & labels.isfinite()).all())
        if len(rewards) != self.slate_size or not seen:
            return
        rewards = rewards.clamp(0.0, 1.0)
        features = torch.stack([group_features(labels, rewards), group_features(torch.zeros_like(labels), rewards)])
        self._gram += features[:, :, None] * features[:, None, :]
        self._moments += features * slate_reward
        self._cells[:, round(float(rewards.sum()))] += torch.tensor(
            [1.0, slate_reward, slate_reward**2], dtype=torch.float64
        )
        self._fresh = False

    @property
    def steps(self) -> Tensor | None:
        """What the 1st, 2nd, … rewarded arm of one group adds, (K,), falling from 1; None: play the top K.

        Steps never seen are taken to be the last one seen, the most that falling steps allow: they will be tried.
        """
        if not self._fresh:
            self._steps, self._fresh = self._believed(), True
        return None if self._steps is None else self._steps.clone()

    def _believed(self) -> Tensor | None:
        if not bool(torch.isfinite(self._cells).all()):
            raise unsound()
        slates, config = int(self._cells[0].sum()), self.config
        if slates < config.at_least:
            return None
        (weights, groups), (_, one_group) = self._fitted(0), self._fitted(1)
        first, last = float(weights[0]), float(weights[-1])
        if not last < config.flattest * first:
            return None
        if advantage(groups, one_group, self._counted(), slates, config.floor) <= config.margin:
            return None
        return torch.from_numpy(weights / first)

    def _fitted(self, row: int) -> tuple[Floats, Account]:
        """β (K,) of one row, constant after the last j ever seen, and how well it tells R."""
        slates = float(self._cells[0].sum())
        gram, moments = self._gram[row].numpy() / slates, self._moments[row].numpy() / slates
        known = max(int(np.count_nonzero(np.diag(gram))), 1)  # n_j falls with j: those seen come first
        some, parameters = falling_fit(gram[:known, :known], moments[:known])
        weights = np.pad(some, (0, self.slate_size - known), mode="edge")
        squares = float(self._cells[2].sum()) / slates - 2 * weights @ moments + weights @ gram @ weights
        return weights, Account(slates * max(float(squares), 0.0), parameters)

    def _counted(self) -> Account:
        number, total, squares = self._cells[:, self._cells[0] > 0]
        return Account(max(float((squares - total**2 / number).sum()), 0.0), len(number))

    def state_dict(self) -> dict[str, Tensor]:
        return {"gram": self._gram.clone(), "moments": self._moments.clone(), "cells": self._cells.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moments = take(state, "gram", self._gram), take(state, "moments", self._moments)
        cells = take(state, "cells", self._cells)
        expect(bool((cells[0] >= 0).all()), "cells with numbers of slates of at least 0", "less")
        self._gram, self._moments, self._cells = gram, moments, cells
        self._fresh = False


def assemble_groups(means: Tensor, labels: Tensor, steps: Tensor, rank: Tensor, k: int) -> Tensor:
    """Positions (k,) of the slate with the largest expected Σ_groups w(j_g), w's steps falling and >= 0.

    n independent arms with means, labels and rank (n,) and steps (>= k,). Greedy is exact: adding an arm to a group
    whose hits H are known in distribution gains μ E steps[H]; a group's best arms are its largest means, in that
    order their gains never rise, and groups do not influence each other. Equal gains go to the smaller rank.
    """
    values, ranks = means.detach().cpu().double().clamp(0.0, 1.0).numpy(), rank.cpu().numpy()
    order = np.lexsort((ranks, -values, labels.cpu().numpy()))
    chosen = _greedy(values[order], ranks[order], _starts(labels.cpu().numpy()[order]), _prefix(steps, k), k)
    return torch.from_numpy(order[chosen]).to(means.device)


def _prefix(steps: Tensor, k: int) -> Floats:
    return np.asarray(steps[:k].detach().cpu().double().numpy())


def _starts(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each run of equal labels begins, and the end: (G + 1,)."""
    return np.concatenate([[0], np.flatnonzero(np.diff(groups)) + 1, [len(groups)]])


def _greedy(values: Floats, ranks: NDArray[np.int64], starts: NDArray[np.int64], steps: Floats, k: int) -> list[int]:
    """The arms, sorted by group and falling mean, taken k times by the largest gain: only heads of groups compete."""
    heads, ends = starts[:-1].copy(), starts[1:]
    gains = values[heads] * steps[0]
    hits: dict[int, Floats] = {}
    chosen: list[int] = []
    for _ in range(min(k, len(values))):
        tied = np.flatnonzero(gains >= gains.max() - TIE)
        group = int(tied[np.argmin(ranks[heads[tied]])])
        arm = int(heads[group])
        chosen.append(arm)
        hits[group] = _after(hits.get(group, np.eye(1, k)[0]), float(values[arm]))
        heads[group] += 1
        if heads[group] < ends[group]:
            gains[group] = values[heads[group]] * (hits[group] @ steps)
        else:
            gains[group], heads[group] = -np.inf, arm  # nobody is left; the head must stay a position
    return chosen


def _after(hits: Floats, chance: float) -> Floats:
    """The distribution of the number of hits, (k,), after one more arm; k hits need no place: the slate is full."""
    moved = np.concatenate([[0.0], hits[:-1]])
    return hits * (1 - chance) + moved * chance
