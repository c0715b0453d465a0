"""Bayesian linear regression on blocks of columns, prior variances by type-II maximum likelihood."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, check_ranges, checked
from neuclust.kernels.evidence import block_step
from neuclust.models.bayes_linear import BayesLinear
from neuclust.models.state import Shape, expect, nested, take, under
from neuclust.policies.auto.basis import Basis, BlockColumns
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.plays import Played, Plays

# prior variance of a block's contribution to a mean reward
PRIOR = {
    "constant": 0.1, "pooled": 0.1, "average": 0.1, "mask": 0.02, "pooled-square": 0.05, "squares": 0.05,
    "crosses": 0.05,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
@checked(noise=POSITIVE, every=AT_LEAST_ONE, steps=NON_NEGATIVE)
class BlockRegressionConfig:
    """Initial noise variance σ²; after every `every` slates `steps` evidence steps, clipped to the bounds."""

    noise: float = 0.2
    every: int = 10
    steps: int = 2
    least_variance: float = 1e-4
    most_variance: float = 10.0
    least_noise: float = 0.02
    most_noise: float = 0.3

    def __post_init__(self) -> None:
        above = POSITIVE[0]
        check_ranges(self, least_variance=(above, self.most_variance), least_noise=(above, self.most_noise))


class BlockPrior:
    """The block of each column, `of` (p,), and prior variances s (B,), of which the constant's stays."""

    def __init__(self, sizes: Sequence[int], variances: Sequence[float]) -> None:
        self.size = sum(sizes)
        self.of = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        self.variances = torch.tensor(variances, dtype=torch.float64)

    @classmethod
    def leading(cls, blocks: FeatureBlocks, last: str, prior: Mapping[str, float]) -> Self:
        """Of the feature blocks up to the one named `last`."""
        sizes = blocks.sizes(last)
        return cls(list(sizes.values()), [prior[name] for name in sizes])

    @property
    def by_column(self) -> Tensor:
        """s of every column, (p,)."""
        return self.variances[self.of]

    def step(self, mean: Tensor, variances: Tensor, bounds: tuple[float, float]) -> Tensor:
        """One evidence step; the number of weights the data determines per block, (B,)."""
        stepped, determined = block_step(mean, variances, self.variances, self.of, bounds)
        self.variances = torch.cat([self.variances[:1], stepped[1:]])
        return determined


def evidence_step(config: BlockRegressionConfig, prior: BlockPrior, belief: BayesLinear) -> None:
    """One fixed-point step (MacKay, 1992) towards the prior variances and the noise of the largest evidence."""
    bounds = config.least_variance, config.most_variance
    determined = prior.step(belief.mean, belief.variances(), bounds)
    noise = belief.data.residual(belief.mean) / max(1.0, belief.data.count - float(determined.sum()))
    belief.reweight(prior.by_column, min(max(noise, config.least_noise), config.most_noise))


def taken_variances(state: Mapping[str, Tensor], like: Tensor) -> Tensor:
    """Saved prior variances of blocks."""
    variances = take(state, "variances", like)
    expect(bool((variances > 0).all()), "variances above 0", variances.tolist())
    return variances


def regression_state(prior: BlockPrior, belief: BayesLinear) -> dict[str, Tensor]:
    """The state of a regression with a block prior."""
    return {"variances": prior.variances.clone(), **nested("belief", belief.state_dict())}


def load_regression(prior: BlockPrior, belief: BayesLinear, state: Mapping[str, Tensor]) -> None:
    """Set both from a saved state."""
    belief.load_state_dict(under("belief", state))
    prior.variances = taken_variances(state, prior.variances)


def regression_shapes(size: int) -> Iterator[tuple[str, Shape]]:
    """What a state of a regression on so many columns holds at least."""
    yield "belief.gram", (size, size)


class BlockRegression:
    """Score mᵀx + bonus·√(xᵀΛ⁻¹x), x the columns of `basis` in the blocks of `prior`."""

    def __init__(self, config: BlockRegressionConfig, prior: BlockPrior, basis: Basis, bonus: float) -> None:
        self.config, self.prior, self.basis, self.bonus = config, prior, basis, bonus
        self.belief = BayesLinear(prior.by_column, config.noise)

    @classmethod
    def leading(cls, config: BlockRegressionConfig, blocks: FeatureBlocks, last: str, bonus: float) -> Self:
        """On the feature blocks up to the one named `last`."""
        prior = BlockPrior.leading(blocks, last, PRIOR)
        return cls(config, prior, BlockColumns(prior.size), bonus)

    def means(self, features: Features) -> Tensor:
        return self.basis.dot(features, self.belief.mean)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        means = self.means(features)
        if self.bonus == 0:
            return means, means
        return means + self.bonus * self.belief.widths(self.basis(features)), means

    def learn(self, played: Played, plays: Plays) -> None:
        self.belief.observe(self.basis(played.features), played.rewards, played.exposures)
        if plays.slates % self.config.every == 0:
            for _ in range(self.config.steps):
                evidence_step(self.config, self.prior, self.belief)

    def state_dict(self) -> dict[str, Tensor]:
        return regression_state(self.prior, self.belief)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_regression(self.prior, self.belief, state)
