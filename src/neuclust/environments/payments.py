"""Slate rewards whose arms pay by their slot, or amounts of money: how arm rewards are drawn, and the slate's mean."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from neuclust.environments.rewards import Outcomes, top_by_mean
from neuclust.errors import ConfigError
from neuclust.kernels.bernoulli import poisson_binomial

SPREAD = 0.5  # s.d. of the logarithm of an amount around its item's price
RETURNED = 0.15  # share of the purchases that come back
HANDLING = 0.3  # what a return costs, as a share of the price
NET = 1.0 - RETURNED * (1.0 + HANDLING)  # what a purchase brings on average, as a share of the price


@runtime_checkable
class DrawsRewards(Protocol):
    """A slate reward that draws its arms' rewards itself. Without it an arm pays 1 with chance μ, else 0."""

    def drawn(self, coins: Tensor, means: Tensor, rows: Tensor) -> Tensor:
        """Rewards (K,) for uniform coins (K,), in slot order, of the arms with means and catalogue rows (K,)."""
        ...


@dataclass(frozen=True, slots=True)
class PositionBias:
    """The share of rewarded arms where slot j is looked at with chance λ_j = δ^{j−1}: r_j = 1[U < λ_j μ_j].

    An arm that was not looked at pays 0, and nothing tells it from one that was not liked. The best slate is the K
    largest means in falling order, since Σ λ_j μ_j of a falling λ is largest so.
    """

    slate_size: int
    persistence: float = 0.7  # δ

    def __post_init__(self) -> None:
        if not 0.0 < self.persistence <= 1.0 or self.slate_size < 1:
            raise ConfigError(f"position bias: expected a persistence in (0, 1] and at least 1 slot, got {self}")

    @property
    def name(self) -> str:
        return f"position-bias:{self.persistence:g}"

    @property
    def looks(self) -> Tensor:
        """λ, (K,)."""
        return self.persistence ** torch.arange(self.slate_size, dtype=torch.float64)

    def drawn(self, coins: Tensor, means: Tensor, rows: Tensor) -> Tensor:  # noqa: ARG002
        return (coins < self.looks * means).to(torch.float64)

    def realised(self, arm_rewards: Tensor, labels: Tensor) -> float:  # noqa: ARG002
        return float(arm_rewards.mean())

    def outcomes(self, means: Tensor, labels: Tensor) -> Outcomes:  # noqa: ARG002
        counts = torch.arange(self.slate_size + 1, dtype=torch.float64)
        return counts / self.slate_size, poisson_binomial(self.looks * means)

    def best(self, means: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor:  # noqa: ARG002
        return top_by_mean(means, arm_ids, self.slate_size)

    def seen(self, arm_rewards: Tensor) -> Tensor:
        return arm_rewards


@dataclass(frozen=True, slots=True)
class Amounts:
    """The mean of amounts: an arm is bought with chance p, then a share ρ of the purchases comes back.

    r = price · exp(σz − σ²/2) of a purchase that is kept, −h · price of one that is returned, else 0, so that
    μ = p · price · (1 − ρ(1 + h)). One coin U decides: kept where U < p(1 − ρ), with z = Φ⁻¹(U / p(1 − ρ)), returned
    where U < p.
    """

    slate_size: int
    prices: Tensor  # (N,) of the catalogue

    @property
    def name(self) -> str:
        return "amounts"

    def drawn(self, coins: Tensor, means: Tensor, rows: Tensor) -> Tensor:
        prices = self.prices[rows]
        bought = means / (NET * prices)
        kept = bought * (1.0 - RETURNED)
        ranks = (coins / kept).clamp(torch.finfo(torch.float64).tiny, 1.0 - torch.finfo(torch.float64).eps)
        amounts = prices * torch.exp(SPREAD * torch.special.ndtri(ranks) - SPREAD**2 / 2)
        returns = torch.where(coins < bought, -HANDLING * prices, 0.0)
        return torch.where(coins < kept, amounts, returns)

    def realised(self, arm_rewards: Tensor, labels: Tensor) -> float:  # noqa: ARG002
        return float(arm_rewards.mean())

    def outcomes(self, means: Tensor, labels: Tensor) -> Outcomes:  # noqa: ARG002
        """The expected amount alone, with chance 1: amounts have a density. Clipped regret is then max(0, u* − u)."""
        return means.mean().reshape(1), means.new_ones(1)

    def best(self, means: Tensor, labels: Tensor, arm_ids: Tensor) -> Tensor:  # noqa: ARG002
        return top_by_mean(means, arm_ids, self.slate_size)

    def seen(self, arm_rewards: Tensor) -> Tensor:
        return arm_rewards


def draw(pays: object, coins: Tensor, means: Tensor, rows: Tensor) -> Tensor:
    """Arm rewards (K,) of a slate: those the slate reward draws itself, else r = 1[U < μ]."""
    return pays.drawn(coins, means, rows) if isinstance(pays, DrawsRewards) else (coins < means).to(torch.float64)
