"""Diminishing returns within groups: what each further rewarded arm of a group adds, and the slate that follows.

Usually a slate's reward depends on its number of rewarded arms alone. Where R = Σ_groups w(j_g) instead, with j_g
rewarded arms in group g and w concave, the top K is no longer optimal. Three models of R are compared:

- groups: R = Σ_j β_j n_j, n_j the number of groups with at least j rewarded arms, β non-increasing and >= 0;
- one group: the same with all arms in one group, that is any concave function of the number of rewarded arms;
- count: a free mean for each number of rewarded arms, K + 1 cells.

The first is used only where it beats both others, see `evidence_gain`. In the first two a slate without rewarded arms
pays 0: a free intercept would absorb rewards that hardly vary, and the remainder would often look like groups. Where
such a slate does pay, "count" fits best, and the top K is played. For rewards between 0 and 1, n_j is the sum over
groups of the group's j-th largest reward, with Σ_j n_j = Σ_i r_i, and the cell is the rounded Σ r.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, POSITIVE, checked
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import unsound
from neuclust.models.state import expect, take

Floats = NDArray[np.float64]

TIE = 1e-12  # gains this close are equal
ESTIMATED = 20  # steps are estimated again whenever the number of slates has grown by one part in so many
NEGLIGIBLE = 1e-10  # of the largest: a direction never seen, a weight that is not used


@dataclass(frozen=True, slots=True)
@checked(at_least=(2, math.inf), margin=NON_NEGATIVE, floor=POSITIVE, flattest=(POSITIVE[0], 1))
class MarginalGainsConfig:
    """Groups matter after `at_least` slates, where their model is `margin` nats ahead and the last gain is below
    `flattest` times the first. `floor` is added to the residual standard deviation, so that exact rewards do not turn
    negligible differences into evidence."""

    at_least: int = 20
    margin: float = 5.0
    floor: float = 0.02
    flattest: float = 0.9


def group_features(labels: Tensor, rewards: Tensor) -> Tensor:
    """n_j: the sum over groups of the group's j-th largest reward, (K,), (K,) -> (K,)."""
    falling, order = rewards.sort(descending=True, stable=True)
    groups = labels[order]
    earlier = (groups[:, None] == groups[None, :]).tril(-1).sum(1)
    return torch.zeros_like(falling).index_add_(0, earlier, falling)


def non_increasing_fit(gram: Floats, moments: Floats) -> tuple[Floats, int]:
    """argmin βᵀGβ − 2βᵀm over non-increasing β (m,) >= 0, and its number of distinct positive values.
    β_j = Σ_{i>=j} d_i turns the constraints into d >= 0 (non-negative least squares). Directions without data are left
    out of the root of G, where rounding would give them weight."""
    sums = np.triu(np.ones_like(gram))
    sizes, axes = np.linalg.eigh(sums.T @ gram @ sums)
    seen = sizes > NEGLIGIBLE * max(float(sizes[-1]), 0.0)
    if not seen.any():
        return np.zeros_like(moments), 0
    root, axes = np.sqrt(sizes[seen]), axes[:, seen]
    differences, _ = nnls(root[:, None] * axes.T, (axes.T @ sums.T @ moments) / root, maxiter=100 * len(moments))
    return sums @ differences, int((differences > NEGLIGIBLE * differences.max()).sum())


@dataclass(frozen=True, slots=True)
class Fit:
    """Σ of squared residuals, and the number of free parameters."""

    squares: float
    parameters: int

    def log_evidence(self, slates: int, floor: float) -> float:
        """Gaussian log-likelihood − ½ log n per parameter (BIC; Schwarz, 1978)."""
        # added, not a bound: slates played because groups matter hardly distinguish the models, and with a bound the
        # mean of the squares would sink to it and the evidence be lost
        variance = self.squares / slates + floor**2
        return -0.5 * slates * math.log(variance) - 0.5 * self.parameters * math.log(slates)


def evidence_gain(groups: Fit, one_group: Fit, count: Fit, slates: int, floor: float) -> float:
    """Log evidence of "groups" minus that of the better of the others, in nats.
    "count" is charged for no more parameters than "groups": where counts decide and labels hardly differ, a few gains
    would otherwise be cheaper than K + 1 cells."""
    table = Fit(count.squares, min(count.parameters, groups.parameters))
    best = max(one_group.log_evidence(slates, floor), table.log_evidence(slates, floor))
    return groups.log_evidence(slates, floor) - best


class MarginalGains:
    """Estimates from slates what the 1st, 2nd, … rewarded arm of a group adds, in O(K²) memory."""

    def __init__(self, config: MarginalGainsConfig, slate_size: int) -> None:
        if slate_size < 1:
            raise ConfigError(f"expected at least 1 arm, got {slate_size}", field="slate_size")
        self.config, self.slate_size = config, slate_size
        # row 0: the groups as they are, row 1: all arms in one group
        self._gram = torch.zeros(2, slate_size, slate_size, dtype=torch.float64)
        self._moments = torch.zeros(2, slate_size, dtype=torch.float64)
        # of the slates with c rewarded arms: how many, ΣR and ΣR²
        self._cells = torch.zeros(3, slate_size + 1, dtype=torch.float64)
        self.steps: Tensor | None = None
        """What the 1st, 2nd, … rewarded arm of a group adds, (K,), non-increasing from 1; None: play the top K.
        Steps without data equal the last one with data, their upper bound, and so are tried (optimism)."""

    def observe(self, labels: Tensor, arm_rewards: Tensor, slate_reward: float) -> None:
        """A slate's labels and rewards (K,); a slate with anything unobserved (NaN) or fewer arms is skipped."""
        labels, rewards = labels.cpu(), arm_rewards.detach().cpu().double()
        seen = math.isfinite(slate_reward) and bool((rewards.isfinite() & labels.isfinite()).all())
        if len(rewards) != self.slate_size or not seen:
            return
        rewards = rewards.clamp(0.0, 1.0)
        features = torch.stack([group_features(labels, rewards), rewards.sort(descending=True).values])
        self._gram += features[:, :, None] * features[:, None, :]
        self._moments += features * slate_reward
        powers = torch.tensor([1.0, slate_reward, slate_reward**2], dtype=torch.float64)
        self._cells[:, round(float(rewards.sum()))] += powers
        slates = int(self._cells[0].sum())
        if slates % max(1, slates // ESTIMATED) == 0:
            self.steps = self._estimate()

    def _estimate(self) -> Tensor | None:
        if not bool(torch.isfinite(self._cells).all()):
            raise unsound()
        slates, config = int(self._cells[0].sum()), self.config
        if slates < config.at_least:
            return None
        (weights, groups), (_, one_group) = self._fitted(0), self._fitted(1)
        falling = float(weights[-1]) < config.flattest * float(weights[0])
        if not falling or evidence_gain(groups, one_group, self._counted(), slates, config.floor) <= config.margin:
            return None
        return torch.from_numpy(weights / float(weights[0]))

    def _fitted(self, row: int) -> tuple[Floats, Fit]:
        """β (K,) of one row, constant after the last j with data, and its fit to R."""
        slates = float(self._cells[0].sum())
        gram, moments = self._gram[row].numpy() / slates, self._moments[row].numpy() / slates
        known = max(int(np.count_nonzero(np.diag(gram))), 1)  # n_j falls with j: those with data come first
        some, parameters = non_increasing_fit(gram[:known, :known], moments[:known])
        weights = np.pad(some, (0, self.slate_size - known), mode="edge")
        squares = float(self._cells[2].sum()) / slates - 2 * weights @ moments + weights @ gram @ weights
        return weights, Fit(slates * max(float(squares), 0.0), parameters)

    def _counted(self) -> Fit:
        number, total, squares = self._cells[:, self._cells[0] > 0]
        return Fit(max(float((squares - total**2 / number).sum()), 0.0), len(number))

    def state_dict(self) -> dict[str, Tensor]:
        state = {"gram": self._gram.clone(), "moments": self._moments.clone(), "cells": self._cells.clone()}
        return state if self.steps is None else state | {"steps": self.steps.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moments = take(state, "gram", self._gram), take(state, "moments", self._moments)
        cells = take(state, "cells", self._cells)
        expect(bool((cells[0] >= 0).all()), "cells with numbers of slates of at least 0", "less")
        self.steps = take(state, "steps", self._moments[0]) if "steps" in state else None
        self._gram, self._moments, self._cells = gram, moments, cells


def assemble_groups(means: Tensor, labels: Tensor, steps: Tensor, rank: Tensor, k: int) -> Tensor:
    """Positions (k,) of the slate with the largest expected Σ_groups w(j_g), w of non-increasing steps >= 0.
    n independent arms with means, labels and rank (n,), steps (>= k,). Greedy is exact: adding an arm to a group with
    H rewarded arms so far gains μ E steps[H]; the best arms of a group are those of the largest means, in that order
    their gains never rise, and groups are independent. Equal gains go to the smaller rank."""
    values, ranks = means.detach().cpu().double().clamp(0.0, 1.0).numpy(), rank.cpu().numpy()
    order = np.lexsort((ranks, -values, labels.cpu().numpy()))
    sorted_labels = labels.cpu().numpy()[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(sorted_labels)) + 1, [len(order)]])
    gains = np.asarray(steps[:k].detach().cpu().double().numpy())
    return torch.from_numpy(order[_greedy(values[order], ranks[order], starts, gains, k)]).to(means.device)


def _greedy(values: Floats, ranks: NDArray[np.int64], starts: NDArray[np.int64], steps: Floats, k: int) -> list[int]:
    """The k largest gains in turn, of arms sorted by group and falling mean: only the next of each group competes."""
    heads, ends = starts[:-1].copy(), starts[1:]
    gains = values[heads] * steps[0]
    hits: dict[int, Floats] = {}  # by group: the distribution of its number of rewarded arms so far, (k,)
    chosen: list[int] = []
    for _ in range(min(k, len(values))):
        tied = np.flatnonzero(gains >= gains.max() - TIE)
        group = int(tied[np.argmin(ranks[heads[tied]])])
        arm = int(heads[group])
        chosen.append(arm)
        before, chance = hits.get(group, np.eye(1, k)[0]), float(values[arm])
        hits[group] = before * (1 - chance) + np.concatenate([[0.0], before[:-1]]) * chance
        heads[group] += 1
        if heads[group] < ends[group]:
            gains[group] = values[heads[group]] * (hits[group] @ steps)
        else:
            gains[group], heads[group] = -np.inf, arm  # the group is used up; its head must stay a valid row
    return chosen
