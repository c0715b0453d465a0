"""Rewards as a function of a few directions of the context, which are learned too (a multi-index model).

r = wᵀφ(x) + noise,  φ(x) = [1, x, √(2/D) cos(Ωᵀ Pᵀx + β)],  Ω ~ N(0, I) (R, D) and β drawn once,  P (d, R).

The waves are those of a Gaussian process on Pᵀx. The weights w are integrated out as in every Bayesian regression, and
P climbs h(P) = log p(r | P) + log p(P), P_ij ~ N(0, reach²). What changes along two directions out of twenty takes a
net thousands of rewards to find and this model hundreds. Members with other starts and other waves are averaged: each
follows, beside the true directions, some that only fit its noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.models.bayes_linear import BayesLinear
from neuclust.models.state import Shape, expect, nested, nested_shapes, take, under
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.learners.block_regression import (
    BlockLayout,
    BlockRegression,
    BlockRegressionConfig,
    evidence_step,
    regression_shapes,
    taken_variances,
)
from neuclust.policies.auto.plays import Played, Plays
from neuclust.randomness import stream

VARIANCES = (0.1, 0.1, 0.1)  # of the constant, of the context and of the waves, before anything was seen
MOST_VARIANCE = 1.0  # rewards lie between 0 and 1; more is a polynomial made of very long waves
START = 0.1  # size of the entries of P before the first climb: so small that all waves are one constant
LENGTHS = (0.3, 0.6)  # over which a guess may change, in typical lengths of a context
SINGLE_FROM = 5_000  # contexts of a round: from here on their many cosines are taken in single precision
NEWCOMER = 3  # times as many steps for a member that has not climbed yet
MOMENTUM, MEMORY = 0.9, 0.999


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """`directions` R, `waves` D, and how many `members` are averaged; their standard deviation counts `bonus` times.

    P climbs `steps` steps of size `rate` whenever the number of slates has grown by `growth`, first after `first`
    slates. `reach` is the size of the entries of P thought likely.
    """

    directions: int = 3
    waves: int = 64
    members: int = 4
    bonus: float = 1.0
    reach: float = 0.5
    steps: int = 10
    rate: float = 0.1
    growth: float = 1.1
    first: int = 10

    def __post_init__(self) -> None:
        check_entries(self)
        if min(self.directions, self.waves, self.steps, self.first) < 1 or self.members < 2:
            raise ConfigError(
                "index: expected directions, waves, steps and first of at least 1 and at least 2 members, got "
                f"{self.directions}, {self.waves}, {self.steps}, {self.first} and {self.members}"
            )
        if not (self.bonus >= 0 and self.reach > 0 and self.rate > 0 and self.growth > 1):
            raise ConfigError(
                "index: expected bonus >= 0, reach > 0, rate > 0 and growth > 1, got "
                f"{self.bonus}, {self.reach}, {self.rate} and {self.growth}"
            )


@dataclass(frozen=True, slots=True)
class Observed:
    """Distinct contexts x (u, d), sums of their rewards (u,), how often each was seen (u,), and Σr²."""

    x: Tensor
    sums: Tensor
    counts: Tensor
    energy: float

    def single(self) -> Observed:
        """In single precision: products over all observations take most of the time, and 7 digits of them do."""
        return Observed(self.x.float(), self.sums.float(), self.counts.float(), self.energy)


class Member:
    """One P, its waves, and the belief about their weights."""

    def __init__(
        self, config: IndexConfig, regression: BlockRegressionConfig, dim: int, rng: np.random.Generator
    ) -> None:
        self.config, self.dim = config, dim
        self.regression = replace(regression, most_variance=min(regression.most_variance, MOST_VARIANCE))
        self.directions = torch.from_numpy(START * rng.standard_normal((dim, config.directions)))
        self.frequencies = torch.from_numpy(rng.standard_normal((config.directions, config.waves)))
        self.phases = torch.from_numpy(rng.uniform(0, 2 * math.pi, config.waves))
        self.layout = BlockLayout((1, dim, config.waves), VARIANCES)
        self.belief = BayesLinear(self.layout.prior, regression.noise)

    def means(self, x: Tensor) -> Tensor:
        """Expected rewards of x (n, d), computed in its precision."""
        return (self.columns(x) @ self.belief.mean.to(x.dtype)).to(torch.float64)

    def columns(self, x: Tensor) -> Tensor:
        """φ of x (n, d) -> (n, 1 + d + D)."""
        return self._columns(x, self._angles(x))

    def observe(self, x: Tensor, rewards: Tensor) -> None:
        self.belief.observe(self.columns(x), rewards)

    def climb(self, seen: Observed, steps: int) -> None:
        """Better directions and variances for what was seen.

        Adam with one step size for all of P: one for each entry would move those the rewards say nothing about as far
        as those they are full of, and few true directions would drown in many wrong ones.
        """
        narrow, pace = seen.single(), Pace(self.config.rate)
        for _ in range(steps):
            angles = self._angles(narrow.x)
            columns = self._columns(narrow.x, angles)
            self.belief.rebuild(columns, narrow.sums, narrow.counts, narrow.energy)
            evidence_step(self.regression, self.layout, self.belief)
            slope = self._evidence_slope(narrow, angles, columns) - self.directions / self.config.reach**2
            self.directions = self.directions + pace.step(slope)
        self.belief.rebuild(self.columns(seen.x), seen.sums, seen.counts, seen.energy)

    def height(self) -> float:
        """h(P), but for a constant."""
        return self.belief.log_evidence() - 0.5 * float((self.directions / self.config.reach).square().sum())

    def _angles(self, x: Tensor) -> Tensor:
        return x @ (self.directions @ self.frequencies).to(x.dtype) + self.phases.to(x.dtype)

    def _columns(self, x: Tensor, angles: Tensor) -> Tensor:
        return torch.cat([x.new_ones(len(x), 1), x, self._amplitude * torch.cos(angles)], 1)

    @property
    def _amplitude(self) -> float:
        return math.sqrt(2 / self.config.waves)

    def _evidence_slope(self, seen: Observed, angles: Tensor, columns: Tensor) -> Tensor:
        """∂ log p(r | P) / ∂P (d, R), by ∂ log p / ∂φ = ((s − cφᵀm) mᵀ − cφᵀΛ⁻¹) / σ² of each context."""
        kind, own, mean = columns.dtype, slice(1 + self.dim, None), self.belief.mean
        missed = seen.sums - seen.counts * (columns @ mean.to(kind))
        spread = (columns @ self.belief.covariance()[:, own].to(kind)) * seen.counts.unsqueeze(1)
        pull = missed.unsqueeze(1) * mean[own].to(kind) - spread
        pull = pull * torch.sin(angles) * (-self._amplitude / self.belief.noise_variance)
        return (seen.x.T @ pull).to(torch.float64) @ self.frequencies.T

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "directions": self.directions.clone(),
            "frequencies": self.frequencies.clone(),
            "phases": self.phases.clone(),
            "variances": self.layout.variances.clone(),
            **nested("belief", self.belief.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.belief.load_state_dict(under("belief", state))
        self.directions = take(state, "directions", self.directions)
        self.frequencies = take(state, "frequencies", self.frequencies)
        self.phases = take(state, "phases", self.phases)
        self.layout.variances = taken_variances(state, self.layout.variances)


class Pace:
    """Steps of Adam (Kingma and Ba, 2015) that share one second moment."""

    def __init__(self, rate: float) -> None:
        self.rate, self._count = rate, 0
        self._first: Tensor | None = None
        self._second = 0.0

    def step(self, slope: Tensor) -> Tensor:
        self._count += 1
        first = torch.zeros_like(slope) if self._first is None else self._first
        self._first = MOMENTUM * first + (1 - MOMENTUM) * slope
        self._second = MEMORY * self._second + (1 - MEMORY) * float(slope.square().mean())
        size = math.sqrt(self._second / (1 - MEMORY**self._count))
        return self._first * (self.rate / (1 - MOMENTUM**self._count) / max(size, 1e-9))


@dataclass(frozen=True, slots=True)
class Bends:
    """[1, x, x_i x_j for i <= j]: columns of the regression that guesses directions."""

    scale: float

    def __call__(self, features: Features) -> Tensor:
        x = scaled_inputs(features.inputs, self.scale)
        i, j = torch.triu_indices(x.shape[1], x.shape[1])
        return torch.cat([x.new_ones(len(x), 1), x, x[:, i] * x[:, j]], 1)

    def dot(self, features: Features, weights: Tensor) -> Tensor:
        return self(features) @ weights


class IndexRegression:
    """Mean over the members, and `bonus` standard deviations between them.

    When the number of slates has doubled newcomers climb too, one from anywhere and one for each of `LENGTHS` from
    where a quadratic function of the context bends most; the highest members stay.
    """

    def __init__(
        self, config: IndexConfig, regression: BlockRegressionConfig, blocks: FeatureBlocks, seed: int, purpose: str
    ) -> None:
        self.config, self.regression, self.seed, self.purpose = config, regression, seed, purpose
        self.dim, self.scale = blocks.input_size - 1, blocks.input_length
        self._born = 0
        self.members = [self._fresh() for _ in range(config.members)]
        self._due, self._doubled = config.first, 2 * config.first
        bends = BlockLayout((1, self.dim, self.dim * (self.dim + 1) // 2), VARIANCES)
        self.guide = BlockRegression(regression, bends, Bends(self.scale), bonus=0.0)

    def _fresh(self) -> Member:
        self._born += 1
        rng = stream(self.seed, f"{self.purpose} member {self._born}")
        return Member(self.config, self.regression, self.dim, rng)

    def means(self, features: Features) -> Tensor:
        return self._each(features).mean(0)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        each = self._each(features)
        means = each.mean(0)
        return means + self.config.bonus * each.std(0), means

    def _each(self, features: Features) -> Tensor:
        """(members, n)."""
        x = scaled_inputs(features.inputs, self.scale)
        given = x.float() if len(x) >= SINGLE_FROM else x
        return torch.stack([member.means(given) for member in self.members])

    def learn(self, played: Played, plays: Plays) -> None:
        self.guide.learn(played, plays)
        if plays.slates >= self._due:
            self._due = max(plays.slates + 1, int(plays.slates * self.config.growth))
            self._refit(plays)
            return
        x = scaled_inputs(played.features.inputs, self.scale)
        for member in self.members:
            member.observe(x, played.rewards)

    def _refit(self, plays: Plays) -> None:
        contexts, means, counts = plays.history.targets()
        rewards = plays.history.rewards.rows
        x = scaled_inputs(contexts, self.scale)
        seen = Observed(x, means * counts, counts, float(rewards @ rewards))
        for member in self.members:
            member.climb(seen, self.config.steps)
        if plays.slates >= self._doubled:
            self._doubled = 2 * plays.slates
            newcomers = self._newcomers(seen)
            for newcomer in newcomers:
                newcomer.climb(seen, NEWCOMER * self.config.steps)
            ranked = sorted([*self.members, *newcomers], key=Member.height, reverse=True)
            self.members = ranked[: self.config.members]

    def _newcomers(self, seen: Observed) -> list[Member]:
        newcomers = [self._fresh() for _ in range(1 + len(LENGTHS))]
        guess = bent_directions(self.guide.belief.mean, seen, self.config.directions)
        for newcomer, length in zip(newcomers[1:], LENGTHS, strict=True):
            newcomer.directions = guess / length
        return newcomers

    def state_dict(self) -> dict[str, Tensor]:
        state = {"numbers": torch.tensor([self._due, self._doubled, self._born, len(self.members)])}
        for m, member in enumerate(self.members):
            state |= nested(f"member.{m}", member.state_dict())
        return state | nested("guide", self.guide.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        due, doubled, born, members = take(state, "numbers", torch.zeros(4, dtype=torch.int64)).tolist()
        expect(members == len(self.members), f"{len(self.members)} members of `index`", members)
        expect(min(due, doubled) >= 1 and born >= members, "times to climb and newcomers that were counted", born)
        self._due, self._doubled, self._born = due, doubled, born
        for m, member in enumerate(self.members):
            member.load_state_dict(under(f"member.{m}", state))
        self.guide.load_state_dict(under("guide", state))


def index_shapes(config: IndexConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of such a learner holds at least."""
    dim = blocks.input_size - 1
    yield from nested_shapes("guide", regression_shapes(1 + dim + dim * (dim + 1) // 2))
    for m in range(config.members):
        yield f"member.{m}.directions", (dim, config.directions)
        yield f"member.{m}.frequencies", (config.directions, config.waves)
        yield from nested_shapes(f"member.{m}", regression_shapes(1 + dim + config.waves))


def scaled_inputs(inputs: Tensor, scale: float) -> Tensor:
    """What nets read, without its constant and of typical length 1: (n, d + 1) -> (n, d)."""
    return inputs[:, :-1] / scale


def bent_directions(weights: Tensor, seen: Observed, count: int) -> Tensor:
    """The directions a quadratic function changes along: weights of `Bends` (p,) -> (d, count).

    Leading eigenvectors of the mean outer product of its slopes where arms were played, each as long as the root of
    its share of the first; directions there are none of are 0.
    """
    d = seen.x.shape[1]
    bend = weights.new_zeros(d, d)
    bend[tuple(torch.triu_indices(d, d))] = weights[1 + d :]
    slopes = weights[1 : 1 + d] + seen.x @ (bend + bend.T)
    values, vectors = torch.linalg.eigh((slopes.T * seen.counts) @ slopes)
    found = min(d, count)
    shares = values[-found:].clamp(min=0) / values[-1].clamp(min=1e-12)
    directions = weights.new_zeros(d, count)
    directions[:, count - found :] = vectors[:, -found:] * shares.sqrt()
    return directions
