"""Logistic regression on feature blocks by Laplace's approximation, prior variances by type-II maximum likelihood."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, POSITIVE, check_ranges, checked
from neuclust.kernels.evidence import inverse_diagonal
from neuclust.kernels.logistic import newton
from neuclust.models.feature_net import RetrainConfig
from neuclust.models.state import take
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.learners.block_regression import BlockPrior, taken_variances
from neuclust.policies.auto.plays import Played, Plays

# prior variance of a block's contribution to the log-odds
PRIOR = {
    "constant": 1.0, "pooled": 2.0, "average": 2.0, "mask": 0.5, "pooled-square": 1.0, "squares": 1.0, "crosses": 1.0,
}  # fmt: skip
SLOPE = 1e-4  # ranks chances that round to 1 by their log-odds


def _often_at_first() -> RetrainConfig:
    return RetrainConfig(first_every=1, first_until=20, then_every=2, then_until=100, every=5)


@dataclass(frozen=True, slots=True)
@checked(tune_every=AT_LEAST_ONE)
class BlockLogisticConfig:
    """When it is refitted; an evidence step at fits after a multiple of `tune_every` slates, and its bounds."""

    refit: RetrainConfig = field(default_factory=_often_at_first)
    tune_every: int = 10
    least_variance: float = 1e-3
    most_variance: float = 3000.0

    def __post_init__(self) -> None:
        check_ranges(self, least_variance=(POSITIVE[0], self.most_variance))


class BlockLogistic:
    """P(r = 1) = 1/(1 + exp(−mᵀx)) on the blocks up to `last`, m the posterior mode; greedy."""

    def __init__(self, config: BlockLogisticConfig, blocks: FeatureBlocks, last: str) -> None:
        self.config = config
        self.prior = BlockPrior.leading(blocks, last, PRIOR)
        self.mean = torch.zeros(self.prior.size, dtype=torch.float64)

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
            bounds = self.config.least_variance, self.config.most_variance
            self.prior.step(self.mean, inverse_diagonal(factor), bounds)
            self._fit(plays, 2)

    def _fit(self, plays: Plays, steps: int) -> Tensor:
        self.mean, factor = newton(*plays.table(self.prior.size), self.prior.by_column, self.mean, steps)
        return factor

    def state_dict(self) -> dict[str, Tensor]:
        return {"mean": self.mean.clone(), "variances": self.prior.variances.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.mean = take(state, "mean", self.mean)
        self.prior.variances = taken_variances(state, self.prior.variances)
