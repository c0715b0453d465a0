"""NeuralLinear (Riquelme, Tucker, Snoek, ICLR 2018): Bayesian linear regression on a net's last hidden layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import top
from neuclust.models.bayes_linear import BayesLinearConfig
from neuclust.models.feature_net import FeatureNet, FeatureNetConfig, net_shapes
from neuclust.models.history import History
from neuclust.models.state import Shape, nested, nested_shapes, take_count, take_whole, under
from neuclust.persistence import save_policy
from neuclust.policies.auto.learners.net_regression import NetRegression
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank


@dataclass(frozen=True, slots=True)
class NeuralLinearConfig:
    """`exploration` ts draws one weight vector a round, ucb adds `spread` standard deviations to the mean."""

    net: FeatureNetConfig = field(default_factory=FeatureNetConfig)
    posterior: BayesLinearConfig = field(default_factory=BayesLinearConfig)
    exploration: Literal["ts", "ucb"] = "ts"
    spread: float = 1.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_entries(self)
        if self.net.depth < 1:
            raise ConfigError(f"neural-linear: expected a net with a hidden layer, got depth {self.net.depth}")
        if not self.spread >= 0:
            raise ConfigError(f"spread: expected a number of at least 0, got {self.spread}")


class NeuralLinear:
    """S_t = top K of w̃ᵀx_i (ts), w̃ ~ N(m, ν²Λ⁻¹), or of mᵀx_i + ν√(x_iᵀΛ⁻¹x_i) (ucb), x = [1, φ(z; θ)].

    Λ and m are the posterior of a linear regression of all rewards on x. Between trainings it grows by the played
    arms; after every training of θ the features have moved, and it is rebuilt from the whole history. Equal contexts
    have equal scores, since one draw serves all arms. A slate's `bonuses` are ν√(xᵀΛ⁻¹x), not the draw.
    """

    name = "neural-linear"
    save = save_policy

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
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
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

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "seed": torch.tensor(self.seed),
            "updates": torch.tensor(self.updates),
            **self.regression.state_dict(),
            **nested("history", self.history.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.regression.load_state_dict(state)
        self.history.load_state_dict(under("history", state))
        self.seed = self.net.seed = take_whole(state, "seed")
        self.updates = take_count(state, "updates")

    @property
    def failed_trainings(self) -> int:
        """How many fits of the net blew up."""
        return self.net.failures
