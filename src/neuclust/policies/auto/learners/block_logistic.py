"""Bayesian logistic regression on feature blocks by an online Laplace approximation (Spiegelhalter, Lauritzen, 1990).

Every observation enters the posterior as the Gaussian one that has the slope and curvature of its likelihood at the
posterior mode. While there are few, all of them are linearised again at later modes; then their sums are kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from scipy.special import expit, logit
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, check_ranges, checked
from neuclust.kernels.bernoulli import STILL, damped, linearised, posterior_mode
from neuclust.models.bayes_linear import BayesLinear, prediction_covariance, rescale
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.learners.block_regression import BlockPrior, due, load_regression, regression_state
from neuclust.policies.auto.plays import Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling

CONSTANT = 10.0  # prior variance of the constant: log-odds of rare clicks are far below 0
SLOPE = 1e-4  # ranks chances that round to 1 by their log-odds
GROWTH = 1.1  # of the number of slates, between two times that all are linearised again
FARTHEST = 30.0  # mean log-odds around which chances are read on another range
SPARE = 1.05  # times the most that is held, before all of it fades: a new factor after every slate would take long
STEPS = 3  # of Newton's method at most, each time


@dataclass(frozen=True, slots=True)
@checked(tune_every=AT_LEAST_ONE, exact=NON_NEGATIVE)
class BlockLogisticConfig:
    """All observations are linearised again while there are at most `exact`; an evidence step for the prior variances
    after every `tune_every` slates, and its bounds."""

    exact: int = 1500
    tune_every: int = 10
    least_variance: float = 1e-3
    most_variance: float = 3000.0

    def __post_init__(self) -> None:
        check_ranges(self, least_variance=(POSITIVE[0], self.most_variance))


class BlockLogistic:
    """P(r = 1) = 1/(1 + exp(−mᵀx)) on the blocks up to `last`, m the mean of the posterior N(m, Λ⁻¹); greedy. Earlier
    observations fade so that Σ w, w = p(1 − p), stays at most `memory` per column: log-odds are then known to about
    1/√(2 memory), whatever the number of features, the slate size and the level of rewards."""

    def __init__(self, config: BlockLogisticConfig, blocks: FeatureBlocks, last: str, memory: float = math.inf) -> None:
        self.config = config
        self.prior = BlockPrior.leading(blocks, last)
        self._most = memory * self.prior.size  # Σ w
        self.prior.variances[0] = CONSTANT
        self.belief = BayesLinear(self.prior.by_column, 1.0, tracked=True)

    def means(self, features: Features) -> Tensor:
        return torch.sigmoid(self.belief.means(features.columns(self.prior.size)))

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        odds = features.dot(self.belief.mean)
        chances = torch.sigmoid(odds)
        return chances + SLOPE * odds, chances

    def learn(self, played: Played, plays: Plays) -> None:
        self._observe(played)
        t, held = plays.slates, self.belief.data.count
        if held < self._most and plays.observations <= min(self.config.exact, plays.capacity) and grown(t):
            self._linearise_again(plays)
        if held > SPARE * self._most:
            rescale(self.belief, 1.0, 0.0, self._most / held)
        if plays.informed and due(t, self.config.tune_every):
            bounds = self.config.least_variance, self.config.most_variance
            self.prior.step(self.belief.mean, self.belief.variances(), bounds)
            self.belief.reweight(self.prior.by_column, 1.0)

    def _observe(self, played: Played) -> None:
        """Add one slate, linearised at the mode given it and all before."""
        x, sums, counts = played.features.columns(self.prior.size), played.rewards, played.exposures
        odds = posterior_mode(self.belief.means(x), prediction_covariance(self.belief, x), sums, counts)
        self.belief.observe(x, *linearised(odds, sums, counts))

    def _linearise_again(self, plays: Plays) -> None:
        """Newton's method on all observations, each step a regression on them linearised at the last."""
        held = plays.held()
        x = held.features.columns(self.prior.size)
        odds = self.belief.means(x)
        for _ in range(STEPS):
            self.belief.rebuild(x, *linearised(odds, held.sums, held.counts), 0.0)
            wanted = self.belief.means(x)
            if float((wanted - odds).abs().max()) < STILL:
                break
            odds = damped(odds, wanted)

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:  # noqa: ARG002
        """To first order around the mean log-odds f̄ = logit p̄: f becomes logit p̄' + κ(f − f̄), p̄' = slope · p̄ + shift,
        κ = slope · p̄(1 − p̄)/(p̄'(1 − p̄')), and an observation weighs as much as one of chance p̄' does."""
        gram = self.belief.data.gram
        if gram[0, 0] == 0:
            return
        mean = min(max(float(gram[0] @ self.belief.mean / gram[0, 0]), -FARTHEST), FARTHEST)
        before = float(expit(mean))
        after = change.slope * before + change.shift
        weight = after * (1 - after) / (before * (1 - before))
        slope = change.slope / weight
        rescale(self.belief, slope, float(logit(after)) - slope * mean, weight)

    def state_dict(self) -> dict[str, Tensor]:
        return regression_state(self.prior, self.belief)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_regression(self.prior, self.belief, state)


def grown(t: int) -> bool:
    """Whether the t-th slate takes their number past a power of `GROWTH`."""
    return t == 1 or math.floor(math.log(t, GROWTH)) > math.floor(math.log(t - 1, GROWTH))
