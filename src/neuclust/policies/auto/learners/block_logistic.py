"""Logistic regression on feature blocks by Laplace's approximation, prior variances told by the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.kernels.evidence import inverse_diagonal
from neuclust.kernels.logistic import newton
from neuclust.models.feature_net import RetrainConfig
from neuclust.models.state import take
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.learners.block_regression import BlockLayout, taken_variances
from neuclust.policies.auto.plays import Played, Plays

# variance of what a block adds to the log-odds, before anything was seen
PRIOR = {
    "constant": 1.0, "pooled": 2.0, "average": 2.0, "mask": 0.5, "pooled-square": 1.0, "squares": 1.0, "crosses": 1.0,
}  # fmt: skip
SLOPE = 1e-4  # chances that round to 1 are still told apart by their log-odds


def _often_at_first() -> RetrainConfig:
    return RetrainConfig(first_every=1, first_until=20, then_every=2, then_until=100, every=5)


@dataclass(frozen=True, slots=True)
class BlockLogisticConfig:
    """When it is fitted anew; an evidence step at every fit after a multiple of `tune_every` slates, and its bounds."""

    refit: RetrainConfig = field(default_factory=_often_at_first)
    tune_every: int = 10
    least_variance: float = 1e-3
    most_variance: float = 3000.0

    def __post_init__(self) -> None:
        check_entries(self)
        if self.tune_every < 1 or not 0 < self.least_variance <= self.most_variance:
            raise ConfigError(
                "logistic: expected tune_every >= 1 and variances above 0 in order, got "
                f"{self.tune_every} and {self.least_variance} to {self.most_variance}"
            )


class BlockLogistic:
    """P(r = 1) = 1/(1 + exp(−mᵀx)) on the blocks up to `last`, with m the most probable weights; greedy."""

    def __init__(self, config: BlockLogisticConfig, blocks: FeatureBlocks, last: str) -> None:
        self.config = config
        self.layout = BlockLayout.leading(blocks, last, PRIOR)
        self.mean = torch.zeros(self.layout.size, dtype=torch.float64)

    def means(self, features: Features) -> Tensor:
        return torch.sigmoid(features.dot(self.mean))

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        odds = features.dot(self.mean)
        chances = torch.sigmoid(odds)
        return chances + SLOPE * odds, chances

    def learn(self, played: Played, plays: Plays) -> None:  # noqa: ARG002
        t = plays.slates
        if not self.config.refit.due(t):
            return
        factor = self._fit(plays, 3 if t < 50 else 2)
        if t % self.config.tune_every == 0:
            self.layout.step(
                self.mean, inverse_diagonal(factor), (self.config.least_variance, self.config.most_variance)
            )
            self._fit(plays, 2)

    def _fit(self, plays: Plays, steps: int) -> Tensor:
        self.mean, factor = newton(*plays.table(self.layout.size), self.layout.prior, self.mean, steps)
        return factor

    def state_dict(self) -> dict[str, Tensor]:
        return {"mean": self.mean.clone(), "variances": self.layout.variances.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.mean = take(state, "mean", self.mean)
        self.layout.variances = taken_variances(state, self.layout.variances)
