"""NeuralLinear (Riquelme, Tucker, Snoek, ICLR 2018): Bayesian linear regression on a net's last hidden layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, check_ranges
from neuclust.core import Feedback, Round, Slate, check_round
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import top
from neuclust.models.bayes_linear import BayesLinearConfig
from neuclust.models.feature_net import FeatureNet, FeatureNetConfig, net_shapes
from neuclust.models.history import History
from neuclust.models.state import Shape, nested_shapes
from neuclust.persistence import save_policy
from neuclust.policies.auto.learners.net_regression import NetRegression
from neuclust.policies.wiring import check_update, failed_net_trainings, load_net_state, saved_state
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class NeuralLinearConfig:
    """`exploration` ts draws one weight vector per round, ucb adds `spread` standard deviations to the mean."""

    net: FeatureNetConfig = field(default_factory=FeatureNetConfig)
    posterior: BayesLinearConfig = field(default_factory=BayesLinearConfig)
    exploration: Literal["ts", "ucb"] = "ts"
    spread: float = 1.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_ranges(self, spread=NON_NEGATIVE)
        if self.net.depth < 1:
            raise ConfigError(f"neural-linear: expected a net with a hidden layer, got depth {self.net.depth}")


class NeuralLinear:
    """S_t = top K of w̃ᵀx_i (ts), w̃ ~ N(m, ν²Λ⁻¹), or of mᵀx_i + ν√(x_iᵀΛ⁻¹x_i) (ucb), x = [1, φ(z; θ)].

    Λ and m are the posterior of a linear regression of all rewards on x. Between trainings it grows by the played
    arms; after every training of θ the features have moved, and it is rebuilt from the whole history. Equal contexts
    have equal scores, since one draw serves all arms. A slate's `bonuses` are ν√(xᵀΛ⁻¹x), not the draw.
    """

    name = "neural-linear"
    save = save_policy
    saved = ("net", "posterior", "history", "seed", "updates")

    def __init__(self, config: NeuralLinearConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.net = FeatureNet(config.net, dim, seed)
        self.regression = NetRegression(self.net, config.posterior)
        self.posterior = self.regression.posterior
        self.history = History(self.net.inputs.dim, slate_size)
        self.updates = 0

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        x, columns, group = self.net.inputs.distinct(round)
        features = self.regression.features(x, columns)
        positions = top(
            self._scores(features, round.t)[group], tie_rank(round, self.config.tie, self.seed), self.slate_size
        )
        chosen = features[group[positions]]
        return Slate(positions, self.posterior.means(chosen), self.config.spread * self.posterior.widths(chosen))

    def _scores(self, features: Tensor, t: int) -> Tensor:
        """What arms with these features (n, m + 1) are ranked by in round t, (n,)."""
        if self.config.exploration == "ts":
            return features @ self.posterior.draw(stream(self.seed, "neural-linear", t), self.config.spread)
        return self.posterior.means(features) + self.config.spread * self.posterior.widths(features)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        rows = torch.tensor(self.net.remember(self.history, round, slate.positions, feedback.arm_rewards))
        self.updates += 1
        seen = ~torch.isnan(feedback.arm_rewards)
        self.regression.learn(self.history, rows[seen], feedback.arm_rewards[seen], self.updates)
        self.net.watch.speak()

    @staticmethod
    def saved_shapes(config: NeuralLinearConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        yield from nested_shapes("net", net_shapes(config.net, dim))
        yield "posterior.gram", (config.net.width + 1, config.net.width + 1)

    state_dict, load_state_dict = saved_state, load_net_state
    failed_trainings = property(failed_net_trainings)
