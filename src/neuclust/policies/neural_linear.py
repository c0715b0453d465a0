"""Linear exploration on a net's last hidden layer: NeuralLinear (Riquelme, Tucker, Snoek, ICLR 2018) and Neural-LinUCB
(Xu, Wen, Zhao, Gu, ICLR 2022)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, POSITIVE, checked
from neuclust.core import Feedback, Round, Slate
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import top
from neuclust.models.bayes_linear import BayesLinear, BayesLinearConfig, NetRegression
from neuclust.models.feature_net import FeatureNet, FeatureNetConfig, RetrainConfig, net_shapes
from neuclust.models.state import Shape, nested_shapes, saved_state
from neuclust.persistence import save_policy
from neuclust.policies.wiring import (
    check_update,
    failed_net_trainings,
    load_net_state,
    optimistic_scores,
    optimistic_slate,
    readable,
    settle_net,
)
from neuclust.randomness import stream
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import ones, tie_rank


@dataclass(frozen=True, slots=True)
@checked(spread=NON_NEGATIVE)
class NeuralLinearConfig:
    """`exploration` ts draws one weight vector per round, ucb adds `spread` standard deviations to the mean."""

    net: FeatureNetConfig = field(default_factory=FeatureNetConfig)
    posterior: BayesLinearConfig = field(default_factory=BayesLinearConfig)
    exploration: Literal["ts", "ucb"] = "ts"
    spread: float = 1.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        if self.net.depth < 1:
            raise ConfigError(f"neural-linear: expected a net with a hidden layer, got depth {self.net.depth}")


class NeuralLinear:
    """S_t = top K of w̃ᵀx_i (ts), w̃ ~ N(m, ν²Λ⁻¹), or of mᵀx_i + ν√(x_iᵀΛ⁻¹x_i) (ucb), x = [1, φ(z; θ)].
    Λ and m are the posterior of a linear regression of all rewards on x, rebuilt after every training of θ. One draw
    serves all arms of a round. A slate's `bonuses` are ν√(xᵀΛ⁻¹x), not the draw."""

    name = "neural-linear"
    save = save_policy
    saved = ("net", "posterior", "history", "seed", "updates")

    def __init__(self, config: NeuralLinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.net = FeatureNet(config.net, dim, seed)
        self.regression = NetRegression(self.net, config.posterior)
        self.posterior = self.regression.posterior
        self.history = self.net.history(slate_size)
        self.updates = 0

    @keeps_rules
    def select(self, round: Round) -> Slate:
        features, group, scores = self._scored(readable(self, round))
        positions = top(scores, tie_rank(round, self.config.tie, self.seed), round.slate_size)
        chosen = features[group[positions]]
        certain = ones(len(positions)) if self.config.exploration == "ucb" and self.config.tie == "id" else None
        means, bonuses = self.posterior.means(chosen), self.config.spread * self.posterior.widths(chosen)
        return Slate(positions, means, bonuses, certain)

    def scores(self, round: Round) -> Tensor:
        """What arms are ranked by in this round, (n,)."""
        return self._scored(readable(self, round))[2]

    def _scored(self, round: Round) -> tuple[Tensor, Tensor, Tensor]:
        """Features of distinct contexts (u, m + 1), the context of every arm (n,), and the scores of arms (n,)."""
        x, columns, group = self.net.inputs.distinct(round)
        features = self.regression.features(x, columns)
        return features, group, self._scores(features, round.key)[group]

    def _scores(self, features: Tensor, key: int) -> Tensor:
        """What arms with these features (n, m + 1) are ranked by in the round of this key, (n,)."""
        if self.config.exploration == "ts":
            return features @ self.posterior.draw(stream(self.seed, "neural-linear", key), self.config.spread)
        return self.posterior.means(features) + self.config.spread * self.posterior.widths(features)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        rows = torch.tensor(self.net.remember(self.history, round, slate.positions, feedback.arm_rewards))
        self.updates += 1
        seen = ~torch.isnan(feedback.arm_rewards)
        self.regression.learn(self.history, rows[seen], feedback.arm_rewards[seen], self.updates)
        self.history.end_update()
        self.net.watch.speak()

    @staticmethod
    def saved_shapes(config: NeuralLinearConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        yield from nested_shapes("net", net_shapes(config.net, dim))
        yield "posterior.gram", (config.net.width + 1, config.net.width + 1)

    settle, state_dict, load_state_dict = settle_net, saved_state, load_net_state
    failed_trainings = property(failed_net_trainings)


@dataclass(frozen=True, slots=True)
@checked(ridge=POSITIVE, alpha=NON_NEGATIVE)
class NeuralLinUCBConfig:
    """A_0 = ridge·I; α multiplies the width; w is trained every H = `net.retrain.every` rounds.
    head `bandit` fits the hidden layers alone, below the present θ̂ (the paper keeps the θ̂ of every past round);
    `own` also fits an output layer, which is not used otherwise."""

    net: FeatureNetConfig = field(default_factory=lambda: FeatureNetConfig(retrain=RetrainConfig.always(10)))
    alpha: float = 0.3
    ridge: float = 1.0
    head: Literal["bandit", "own"] = "bandit"
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        if self.net.depth < 1:
            raise ConfigError(f"neural-linucb: expected a net with a hidden layer, got depth {self.net.depth}")
        if self.head == "bandit" and self.net.init == "torch-default":
            raise ConfigError("head=bandit has no bias, got net.init=torch-default; use uniform or head=own")


class NeuralLinUCB:
    """S_t = top K of θ̂ᵀφ(x_i; w) + α√(φᵀA⁻¹φ), θ̂ = A⁻¹b; A += Σ_S φφᵀ, b += Σ_S r φ, w trained every H rounds.
    φ is the last hidden layer. A and b keep the features of the time of play; NeuralLinear rebuilds them."""

    name = "neural-linucb"
    save = save_policy
    saved = ("net", "ridge", "history", "seed", "updates")

    def __init__(self, config: NeuralLinUCBConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.net = FeatureNet(config.net, dim, seed)
        self.history = self.net.history(slate_size)
        prior = torch.full((config.net.width,), 1 / config.ridge, dtype=torch.float64)
        self.ridge = BayesLinear(prior, noise_variance=1.0)  # precision A, moment b, mean θ̂
        self.updates = 0

    select, scores = optimistic_slate, optimistic_scores

    def beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and bonus of every arm, (n,) each."""
        x, columns, group = self.net.inputs.distinct(round)
        features = self.net.features(x, columns)
        return self.ridge.means(features)[group], (self.config.alpha * self.ridge.widths(features))[group]

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        seen = ~torch.isnan(feedback.arm_rewards)
        if bool(seen.any()):
            features = self.net.features(self.net.inputs.at(round, slate.positions)[seen])
            self.ridge.observe(features, feedback.arm_rewards[seen])  # first: it may refuse
        self.net.remember(self.history, round, slate.positions, feedback.arm_rewards)
        self.updates += 1
        self.net.train(self.history, self.updates, self.ridge.mean if self.config.head == "bandit" else None)
        self.history.end_update()
        self.net.watch.speak()

    @staticmethod
    def saved_shapes(config: NeuralLinUCBConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        yield from nested_shapes("net", net_shapes(config.net, dim))
        yield "ridge.gram", (config.net.width, config.net.width)

    settle, state_dict, load_state_dict = settle_net, saved_state, load_net_state
    failed_trainings = property(failed_net_trainings)
