"""NeUClust as a straightforward reader of the paper would write it in PyTorch: autograd, loops, an inverse.

One hidden layer, constant γ, the `paper` preset's choices. Nothing here is shared with the package but the
numbers both start from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

Parameters = list[Tensor]


@dataclass(frozen=True, slots=True)
class NaiveChoice:
    """What one selection gave: the widths of all arms (N,) and the K chosen ones, best first."""

    widths: Tensor
    positions: Tensor


@dataclass(slots=True)
class NaiveNeUClust:
    """Algorithm 2 with p × p matrices; `theta` = [W_0, W_1], `slate` = [Θ_0, Θ_1, b_0, b_1]."""

    theta: Parameters
    slate: Parameters
    labels: Tensor  # (N,) cluster of every arm
    gamma: float
    ridge: float
    step: float
    steps: int
    covariance: Tensor = field(init=False)  # Z, (p, p)
    theta_start: Parameters = field(init=False)
    slate_start: Parameters = field(init=False)
    contexts: list[Tensor] = field(default_factory=list)  # one (K, d) a round
    rewards: list[Tensor] = field(default_factory=list)  # one (K,) a round
    slate_rewards: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.theta, self.slate = _leaves(self.theta), _leaves(self.slate)
        self.theta_start = [w.detach().clone() for w in self.theta]
        self.slate_start = [w.detach().clone() for w in self.slate]
        size = sum(w.numel() for w in self.theta)
        self.covariance = self.ridge * torch.eye(size, dtype=torch.float64)

    def mean(self, x: Tensor) -> Tensor:
        """f(x) = √m W_1 σ(W_0 x)."""
        first, last = self.theta
        return math.sqrt(len(first)) * (torch.relu(x @ first.T) @ last[0])

    def slate_value(self, rewards: Tensor) -> Tensor:
        """F of arm means (…, K), rectified and sorted."""
        first, last, bias, last_bias = self.slate
        ordered = torch.sort(torch.relu(rewards), dim=-1, descending=True).values
        hidden = torch.relu(ordered @ torch.sigmoid(first).T + bias)
        return (hidden @ torch.sigmoid(last).T + last_bias).squeeze(-1)

    def gradient(self, x: Tensor) -> Tensor:
        """ĝ = ∇f(x)/√m of one context, (p,)."""
        parts = torch.autograd.grad(self.mean(x), self.theta)
        return torch.cat([part.flatten() for part in parts]) / math.sqrt(len(self.theta[0]))

    def select(self, x: Tensor) -> NaiveChoice:
        """The top K of the cluster with the best score, for contexts x (N, d)."""
        gradients = torch.stack([self.gradient(row) for row in x])
        inverse = torch.linalg.inv(self.covariance)
        widths = ((gradients @ inverse) * gradients).sum(1).clamp(min=0).sqrt()
        with torch.no_grad():
            means = self.mean(x)
            # nine digits: equal contexts may differ in the last bit of a product of matrices, and must tie
            scores = torch.round(means + self.gamma * widths, decimals=9)
            best, best_value = torch.zeros(0, dtype=torch.int64), -math.inf
            for cluster in range(int(self.labels.max()) + 1):
                chosen = self._top_of(cluster, scores)
                value = float(scores[chosen].sum() + len(chosen) * self.slate_value(means[chosen]))
                if value > best_value:
                    best, best_value = chosen, value
        return NaiveChoice(widths, best)

    def _top_of(self, cluster: int, scores: Tensor) -> Tensor:
        members = torch.nonzero(self.labels == cluster).flatten()
        return members[torch.argsort(scores[members], descending=True, stable=True)[: self.slate[0].shape[1]]]

    def update(self, contexts: Tensor, rewards: Tensor, slate_reward: float) -> None:
        """Z, the history, and J autograd steps for each net over all of it."""
        for row in contexts:
            gradient = self.gradient(row)
            self.covariance += torch.outer(gradient, gradient)
        self.contexts.append(contexts)
        self.rewards.append(rewards)
        self.slate_rewards.append(slate_reward)
        self._train_arms()
        self._train_slates()

    def _train_arms(self) -> None:
        x, r = torch.cat(self.contexts), torch.cat(self.rewards)
        self._descend(self.theta, self.theta_start, lambda: self.mean(x), r)

    def _train_slates(self) -> None:
        with torch.no_grad():
            predicted = self.mean(torch.stack(self.contexts))
        target = torch.tensor(self.slate_rewards, dtype=torch.float64)
        self._descend(self.slate, self.slate_start, lambda: self.slate_value(predicted), target)

    def _descend(self, weights: Parameters, start: Parameters, predict: Callable[[], Tensor], target: Tensor) -> None:
        optimizer = torch.optim.SGD(weights, lr=self.step)
        for _ in range(self.steps):
            optimizer.zero_grad()
            pull = len(weights[0]) * self.ridge * _distance(weights, start)
            torch.autograd.backward((((predict() - target) ** 2).sum() + pull) / (2 * len(target)))
            optimizer.step()


def _leaves(parameters: Parameters) -> Parameters:
    return [parameter.detach().clone().requires_grad_() for parameter in parameters]


def _distance(parameters: Parameters, start: Parameters) -> Tensor:
    return torch.stack([((p - s) ** 2).sum() for p, s in zip(parameters, start, strict=True)]).sum()
