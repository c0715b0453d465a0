"""Bayesian linear regression on feature blocks whose prior variances, and the noise, are told by the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.kernels.evidence import block_step
from neuclust.models.bayes_linear import BayesLinear
from neuclust.models.state import Shape, expect, nested, take, under
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.plays import Played, Plays

# variance of what a block adds to a mean reward, before anything was seen
PRIOR = {
    "constant": 0.1, "pooled": 0.1, "average": 0.1, "mask": 0.02, "pooled-square": 0.05, "squares": 0.05,
    "crosses": 0.05,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockRegressionConfig:
    """Noise variance to begin with; `steps` evidence steps after every `every` slates, kept inside bounds."""

    noise: float = 0.2
    every: int = 10
    steps: int = 2
    least_variance: float = 1e-4
    most_variance: float = 10.0
    least_noise: float = 0.02
    most_noise: float = 0.3

    def __post_init__(self) -> None:
        check_entries(self)
        ordered = 0 < self.least_variance <= self.most_variance and 0 < self.least_noise <= self.most_noise
        if not ordered or not self.noise > 0 or self.every < 1 or self.steps < 0:
            raise ConfigError(
                "regression: expected noise and bounds above 0 in order, every >= 1 and steps >= 0, got noise "
                f"{self.noise}, variances {self.least_variance} to {self.most_variance}, noise {self.least_noise} to "
                f"{self.most_noise}, every {self.every} and steps {self.steps}"
            )


class BlockLayout:
    """Which column belongs to which block: `of` (p,), and prior variances s (B,), of which the constant's stays."""

    def __init__(self, sizes: Sequence[int], variances: Sequence[float]) -> None:
        self.size = sum(sizes)
        self.of = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        self.variances = torch.tensor(variances, dtype=torch.float64)

    @classmethod
    def leading(cls, blocks: FeatureBlocks, last: str, prior: Mapping[str, float]) -> BlockLayout:
        """The blocks of a context up to the one named `last`."""
        sizes = blocks.sizes(last)
        return cls(list(sizes.values()), [prior[name] for name in sizes])

    @property
    def prior(self) -> Tensor:
        """s of every weight, (p,)."""
        return self.variances[self.of]

    def step(self, mean: Tensor, variances: Tensor, bounds: tuple[float, float]) -> Tensor:
        """One evidence step; the number of weights the data determines, a block (B,)."""
        stepped, determined = block_step(mean, variances, self.variances, self.of, bounds)
        self.variances = torch.cat([self.variances[:1], stepped[1:]])
        return determined


def evidence_step(config: BlockRegressionConfig, layout: BlockLayout, belief: BayesLinear) -> None:
    """Prior variances and noise that explain better what was seen, inside the bounds of `config`."""
    bounds = config.least_variance, config.most_variance
    determined = layout.step(belief.mean, belief.variances(), bounds)
    noise = belief.residual() / max(1.0, belief.count - float(determined.sum()))
    belief.weigh(layout.prior, min(max(noise, config.least_noise), config.most_noise))


def taken_variances(state: Mapping[str, Tensor], like: Tensor) -> Tensor:
    """Saved prior variances of blocks."""
    variances = take(state, "variances", like)
    expect(bool((variances > 0).all()), "variances above 0", variances.tolist())
    return variances


def regression_shapes(size: int) -> Iterator[tuple[str, Shape]]:
    """What a state of a regression on so many columns holds at least."""
    yield "belief.gram", (size, size)


class Columns(Protocol):
    """What a regression reads of contexts."""

    def __call__(self, features: Features) -> Tensor:
        """(n, p)."""
        ...

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        """Columns times weights (p,) -> (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class Leading:
    """The leading `size` columns of the blocks."""

    size: int

    def __call__(self, features: Features) -> Tensor:
        return features.columns(self.size)

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        return features.dot(weights)


class BlockRegression:
    """mᵀx, or mᵀx + bonus·√(xᵀΛ⁻¹x), x = `columns` of a context in the blocks of `layout`."""

    def __init__(self, config: BlockRegressionConfig, layout: BlockLayout, columns: Columns, bonus: float) -> None:
        self.config, self.layout, self.columns, self.bonus = config, layout, columns, bonus
        self.belief = BayesLinear(self.layout.prior, config.noise)

    @classmethod
    def leading(cls, config: BlockRegressionConfig, blocks: FeatureBlocks, last: str, bonus: float) -> BlockRegression:
        """On the blocks of a context up to the one named `last`."""
        layout = BlockLayout.leading(blocks, last, PRIOR)
        return cls(config, layout, Leading(layout.size), bonus)

    def means(self, features: Features) -> Tensor:
        return self.columns.dot(features, self.belief.mean)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        means = self.means(features)
        if self.bonus == 0:
            return means, means
        return means + self.bonus * self.belief.widths(self.columns(features)), means

    def learn(self, played: Played, plays: Plays) -> None:
        self.belief.observe(self.columns(played.features), played.rewards)
        if plays.slates % self.config.every == 0:
            self._tune()

    def _tune(self) -> None:
        for _ in range(self.config.steps):
            evidence_step(self.config, self.layout, self.belief)

    def state_dict(self) -> dict[str, Tensor]:
        return {"variances": self.layout.variances.clone(), **nested("belief", self.belief.state_dict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.belief.load_state_dict(under("belief", state))
        self.layout.variances = taken_variances(state, self.layout.variances)
