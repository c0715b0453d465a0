"""Rewards as a function of a few learned directions of the context: a multi-index model (Ichimura and Lee, 1991).

r = wᵀφ(x) + noise,  φ(x) = [1, x, √(2/D) cos(Ωᵀ Pᵀx + β)],  Ω ~ N(0, I) (R, D) and β drawn once,  P (d, R).

The cosines are random Fourier features of a Gaussian process on Pᵀx. The weights w are integrated out, and P maximises
log p(r | P) + log p(P), P_ij ~ N(0, reach²), by gradient ascent (type-II maximum a posteriori). Several models with
other starts and features are averaged: each follows, beside the true directions, some that only fit its noise.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.kernels.jit import serves
from neuclust.kernels.scoring import arm_scores
from neuclust.models.bayes_linear import BayesLinear, log_evidence, rescale, track, with_constant
from neuclust.models.state import (
    Shape,
    expect,
    load_saved_state,
    nested,
    nested_shapes,
    saved_state,
    take,
    take_numbers,
    under,
)
from neuclust.policies.auto.features import FeatureBlocks, Features, scaled_inputs
from neuclust.policies.auto.learners import block_regression
from neuclust.policies.auto.learners.block_regression import BlockPrior, BlockRegressionConfig
from neuclust.policies.auto.learners.gradient_directions import Observed, gradient_directions, quadratic_weights
from neuclust.policies.auto.plays import Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling
from neuclust.randomness import stream

VARIANCES = (1.6, 1.6, 1.6)  # prior: of the constant, of the context and of the cosines, in log-odds
MOST_VARIANCE = 16.0  # more lets very long cosines act as a polynomial
START = 0.1  # standard deviation of P before the first ascent: so small that all cosines are nearly constant
LENGTHS = (0.3, 0.6)  # length scales of candidates, in typical lengths of a context
MOST_DIRECTIONS = 4  # up to which compiled loops compute the means
CANDIDATE_STEPS = 3  # times as many steps for a candidate, which has not been optimised yet
CLIMBED = 2_000  # contexts that gradients are computed on, at most
WORK = 6_000  # contexts times steps per update: what is left waits for the next one
STEP = 1_000  # contexts that a step costs as much as, beside its own
BETA_1, BETA_2 = 0.9, 0.999


@dataclass(frozen=True, slots=True)
@checked(
    directions=AT_LEAST_ONE, frequencies=AT_LEAST_ONE, members=(2, math.inf), steps=AT_LEAST_ONE, first=AT_LEAST_ONE,
    bonus=NON_NEGATIVE, reach=POSITIVE, rate=POSITIVE, growth=(math.nextafter(1.0, 2.0), math.inf),
)  # fmt: skip
class IndexConfig:
    """`directions` R, `frequencies` D, and the number of `members` averaged, plus `bonus` standard deviations of them.
    P takes `steps` steps of size `rate` whenever the number of slates, or a memory of them, has grown by the factor
    `growth`, first after `first` slates. `reach` is the prior standard deviation of the entries of P."""

    directions: int = 3
    frequencies: int = 64
    RENAMED: ClassVar[Mapping[str, str]] = {"waves": "frequencies"}
    members: int = 4
    bonus: float = 1.0
    reach: float = 0.5
    steps: int = 10
    rate: float = 0.1
    growth: float = 1.25
    first: int = 10


class SharedAdam:
    """Steps of Adam (Kingma and Ba, 2015) with one second moment for all entries."""

    def __init__(self, rate: float) -> None:
        self.rate, self.count, self.second = rate, 0, 0.0
        self.first = torch.zeros((), dtype=torch.float64)

    def step(self, gradient: Tensor) -> Tensor:
        self.count += 1
        self.first = BETA_1 * self.first + (1 - BETA_1) * gradient
        self.second = BETA_2 * self.second + (1 - BETA_2) * float(gradient.square().mean())
        size = math.sqrt(self.second / (1 - BETA_2**self.count))
        return self.first * (self.rate / (1 - BETA_1**self.count) / max(size, 1e-9))


class IndexModel:
    """One P, its random Fourier features, and the posterior of their weights."""

    saved = ("directions", "frequencies", "phases")

    def __init__(
        self, config: IndexConfig, regression: BlockRegressionConfig, dim: int, rng: np.random.Generator
    ) -> None:
        self.config, self.dim = config, dim
        self.regression = replace(regression, most_variance=min(regression.most_variance, MOST_VARIANCE))
        self.directions = torch.from_numpy(START * rng.standard_normal((dim, config.directions)))
        self.frequencies = torch.from_numpy(rng.standard_normal((config.directions, config.frequencies)))
        self.phases = torch.from_numpy(rng.uniform(0, 2 * math.pi, config.frequencies))
        self.amplitude = math.sqrt(2 / config.frequencies)
        self.prior = BlockPrior((1, dim, config.frequencies), VARIANCES, regression.noise)
        self.belief = self.prior.belief()

    def means(self, x: Tensor) -> Tensor:
        """Expected rewards of x (n, d)."""
        return self.columns(x) @ self.belief.mean

    def columns(self, x: Tensor) -> Tensor:
        """φ of x (n, d) -> (n, 1 + d + D)."""
        return self._columns(x, self._angles(x))

    def climb(self, data: Observed, adam: SharedAdam) -> None:
        """One step of gradient ascent in P, after an evidence step for the variances.

        Adam has one second moment for all of P: one per entry would move entries without a gradient as far as others.
        """
        angles = self._angles(data.x)
        columns = self._columns(data.x, angles)
        self.belief.rebuild(columns, data.sums, data.counts, data.energy)
        if data.scale.informed(float(data.counts.sum())):
            block_regression.evidence_step(self.regression, self.prior, self.belief, data.scale)
        gradient = self._evidence_gradient(data, angles, columns) - self.directions / self.config.reach**2
        self.directions = self.directions + adam.step(gradient)

    def rebuild(self, data: Observed) -> None:
        """The posterior of the weights given this data alone."""
        self.belief.rebuild(self.columns(data.x), data.sums, data.counts, data.energy)

    def log_posterior(self, data: Observed) -> float:
        """log p(r | P) + log p(P), up to a constant."""
        belief = BayesLinear(self.belief.prior, self.belief.noise_variance)
        belief.rebuild(self.columns(data.x), data.sums, data.counts, data.energy)
        return log_evidence(belief) - 0.5 * float((self.directions / self.config.reach).square().sum())

    def _angles(self, x: Tensor) -> Tensor:
        return x @ (self.directions @ self.frequencies).to(x.dtype) + self.phases.to(x.dtype)

    def _columns(self, x: Tensor, angles: Tensor) -> Tensor:
        return with_constant(torch.cat([x, self.amplitude * torch.cos(angles)], 1))

    def _evidence_gradient(self, data: Observed, angles: Tensor, columns: Tensor) -> Tensor:
        """∂ log p(r | P) / ∂P (d, R), by ∂ log p / ∂φ = ((s − cφᵀm) mᵀ − cφᵀΛ⁻¹) / σ² of each context."""
        kind, own, mean = columns.dtype, slice(1 + self.dim, None), self.belief.mean
        residual = data.sums - data.counts * (columns @ mean.to(kind))
        root = self.belief.solved.root
        spread = (columns @ (root.T @ root[:, own]).to(kind)) * data.counts.unsqueeze(1)
        pull = residual.unsqueeze(1) * mean[own].to(kind) - spread
        pull = pull * torch.sin(angles) * (-self.amplitude / self.belief.noise_variance)
        return (data.x.T @ pull).to(torch.float64) @ self.frequencies.T

    def state_dict(self) -> dict[str, Tensor]:
        return saved_state(self) | block_regression.regression_state(self.prior, self.belief)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        block_regression.load_regression(self.prior, self.belief, state)
        load_saved_state(self, state)


class Ascent:
    """A model on its way up, with what is left of its steps."""

    def __init__(self, model: IndexModel, steps: int) -> None:
        self.model, self.left, self.adam = model, steps, SharedAdam(model.config.rate)
        track(model.belief, False)  # every step rebuilds it

    def step(self, data: Observed) -> None:
        self.model.climb(data, self.adam)
        self.left -= 1

    def state_dict(self) -> dict[str, Tensor]:
        numbers = torch.tensor([self.left, self.adam.count, self.adam.second], dtype=torch.float64)
        return {"numbers": numbers, "first": self.adam.first.clone(), **nested("model", self.model.state_dict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        left, count, second = take_numbers(state, "numbers", 3)
        expect(left >= 1 and count >= 1 and second >= 0, "an ascent that has begun and not ended", (left, count))
        self.left, self.adam.count, self.adam.second = round(left), round(count), second
        self.adam.first = take(state, "first", self.model.directions)
        self.model.load_state_dict(under("model", state))


class IndexRegression:
    """Score: mean over the members + `bonus` standard deviations between them.
    Members are optimised in turn, each as a copy that takes its place at the end. When the number of slates has
    doubled, or as many came as the memory holds, candidates follow, one from a random start and one for each of
    `LENGTHS` from the gradient directions of a quadratic regression; each takes the place of the member of the least
    posterior if its own is larger. An update does a fixed amount of this work; what is left waits."""

    def __init__(
        self, config: IndexConfig, regression: BlockRegressionConfig, blocks: FeatureBlocks, seed: int, purpose: str
    ) -> None:
        self.config, self.regression, self.seed, self.purpose = config, regression, seed, purpose
        self.dim, self.scale = blocks.input_size - 1, blocks.input_length
        self._drawn = 0  # number of models made so far, which seeds the next one
        self.members = [self._fresh() for _ in range(config.members)]
        for member in self.members:
            track(member.belief, True)
        self._due, self._doubled = config.first, 2 * config.first
        self._turn = self._turns = 0  # whose turn it is, members before candidates, and at which number the turns end
        self._ascent: Ascent | None = None  # of the present turn
        self._stacked: list[NDArray[np.float64]] | None = None  # arguments of `cosine_sums` for what was learned last

    def _fresh(self) -> IndexModel:
        self._drawn += 1
        rng = stream(self.seed, f"{self.purpose} member {self._drawn}")
        return IndexModel(self.config, self.regression, self.dim, rng)

    def means(self, features: Features) -> Tensor:
        return self._each(features).mean(0)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        each = self._each(features)
        means = each.mean(0)
        spread = ((each - means).square().sum(0) / (len(each) - 1)).sqrt()  # several times quicker than torch.std
        return means + self.config.bonus * spread, means

    def _each(self, features: Features) -> Tensor:
        """(members, n)."""
        if not serves(features.rows) or self.config.directions > MOST_DIRECTIONS:
            x = scaled_inputs(features.inputs, self.scale)
            return torch.stack([member.means(x) for member in self.members])
        if self._stacked is None:
            each = zip(*map(self._coefficients, self.members), strict=True)
            self._stacked = [torch.stack(parts).numpy() for parts in each]
        return torch.from_numpy(arm_scores.cosine_sums(features.rows.numpy(), *self._stacked))

    def _coefficients(self, member: IndexModel) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A member's arguments of `cosine_sums`: directions beyond its own are 0, angles are in full turns."""
        mean, d, r = member.belief.mean, self.dim, self.config.directions
        linear, turns = (
            mean.new_zeros(1 + MOST_DIRECTIONS, 1 + d),
            mean.new_zeros(self.config.frequencies, MOST_DIRECTIONS),
        )
        linear[0, 0], linear[0, 1:] = mean[0], mean[1 : 1 + d] / self.scale
        linear[1 : 1 + r, 1:] = member.directions.T / self.scale
        turns[:, :r] = member.frequencies.T / (2 * math.pi)
        return linear, turns, member.amplitude * mean[1 + d :], member.phases / (2 * math.pi)

    def learn(self, played: Played, plays: Plays) -> None:
        self._stacked = None
        x = scaled_inputs(played.features.inputs, self.scale)
        for member in self.members:
            member.belief.observe(member.columns(x), played.rewards, played.exposures)
            member.prior.follow(member.belief, plays.scale)
        if self._turn == self._turns and plays.slates >= self._due:
            self._begin_turns(plays)
        if self._turn < self._turns:
            self._work(plays)

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:
        self._stacked = None
        for model in [*self.members, *([] if self._ascent is None else [self._ascent.model])]:
            rescale(model.belief, *change)
            model.prior.apply(model.belief, scale)

    def _begin_turns(self, plays: Plays) -> None:
        span = min(plays.slates, plays.capacity // plays.slate_size)
        self._due = plays.slates + max(1, int(span * (self.config.growth - 1)))
        self._turn, self._turns = 0, len(self.members)
        if plays.slates >= self._doubled:
            self._doubled = plays.slates + span
            self._turns += 1 + len(LENGTHS)

    def _work(self, plays: Plays) -> None:
        """Go on with the turns until `WORK` is done; the last piece may exceed it."""
        data, work = Observed.of(plays.held(CLIMBED), self.scale), WORK
        narrow = data.single()
        while work > 0 and self._turn < self._turns:
            self._ascent = self._ascent or self._begun(data)
            self._ascent.step(narrow)
            work -= STEP + len(data.x)
            if self._ascent.left == 0:
                self._end_turn(self._ascent.model, data, plays)
                work -= len(plays.contexts)

    def _begun(self, data: Observed) -> Ascent:
        """The ascent of the present turn."""
        candidate = self._turn - len(self.members)
        if candidate < 0:
            return Ascent(copy.deepcopy(self.members[self._turn]), self.config.steps)
        model = self._fresh()
        if candidate > 0:
            weights = quadratic_weights(data, self.regression, VARIANCES)
            start = gradient_directions(weights, data, self.config.directions)
            model.directions = start / LENGTHS[candidate - 1]
        return Ascent(model, CANDIDATE_STEPS * self.config.steps)

    def _end_turn(self, model: IndexModel, data: Observed, plays: Plays) -> None:
        place: int | None = self._turn
        if self._turn >= len(self.members):
            heights = [member.log_posterior(data) for member in self.members]
            place = heights.index(min(heights)) if model.log_posterior(data) > min(heights) else None
        if place is not None:
            model.rebuild(data if len(data.x) == len(plays.contexts) else Observed.of(plays.held(), self.scale))
            track(model.belief, True)
            self.members[place] = model
        self._ascent, self._turn = None, self._turn + 1

    def state_dict(self) -> dict[str, Tensor]:
        numbers = torch.tensor([self._due, self._doubled, self._drawn, self._turn, self._turns, len(self.members)])
        state = {"numbers": numbers}
        for m, member in enumerate(self.members):
            state |= nested(f"member.{m}", member.state_dict())
        return state | ({} if self._ascent is None else nested("ascent", self._ascent.state_dict()))

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        due, doubled, drawn, turn, turns, count = take(state, "numbers", torch.zeros(6, dtype=torch.int64)).tolist()
        expect(count == len(self.members), f"{len(self.members)} members of `index`", count)
        expect(
            min(due, doubled) >= 1 and drawn >= len(self.members), "times of ascents and a count of all models", drawn
        )
        expect(0 <= turn <= turns <= len(self.members) + 1 + len(LENGTHS), "turns of members and candidates", turn)
        for m, member in enumerate(self.members):
            member.load_state_dict(under(f"member.{m}", state))
        begun, self._ascent = under("ascent", state), None
        if begun:
            expect(turn < turns, "an ascent whose turn it is", f"one at turn {turn} of {turns}")
            self._ascent = Ascent(copy.deepcopy(self.members[0]), 1)
            self._ascent.load_state_dict(begun)
        self._due, self._doubled, self._drawn, self._turn, self._turns = due, doubled, drawn, turn, turns
        self._stacked = None


def index_shapes(config: IndexConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of such a learner holds at least."""
    dim = blocks.input_size - 1
    for m in range(config.members):
        yield f"member.{m}.directions", (dim, config.directions)
        yield f"member.{m}.frequencies", (config.directions, config.frequencies)
        yield from nested_shapes(f"member.{m}", block_regression.regression_shapes(1 + dim + config.frequencies))
