"""Bayesian linear regression on a net's last hidden layer, rebuilt whenever the net was trained."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from neuclust.models.bayes_linear import BayesLinear, BayesLinearConfig, with_constant
from neuclust.models.feature_net import FeatureNet
from neuclust.models.history import History
from neuclust.models.state import nested, under
from neuclust.policies.auto.features import shortened

LONGEST = 1e3  # one outlier of a million would leave no digits for all other weights


class NetRegression:
    """The belief N(m, Λ⁻¹) about rewards as a linear function of x = [1, φ(z; θ)].

    Between trainings of θ it grows by what was played; after a training the features have moved, and it is rebuilt
    from the whole history.
    """

    def __init__(self, net: FeatureNet, config: BayesLinearConfig) -> None:
        self.net = net
        self.posterior = BayesLinear.of(config, net.config.width + 1)

    def features(self, inputs: Tensor, columns: Tensor | None = None) -> Tensor:
        """[1, φ] of encoded contexts, φ of length at most 1,000: (n, d') -> (n, m + 1)."""
        return with_constant(shortened(self.net.features(inputs, columns), LONGEST))

    def learn(self, history: History, rows: Tensor, rewards: Tensor, t: int) -> None:
        """Take in rewards (k,) of the history's rows (k,), which holds them already, at the t-th update."""
        if self.net.train(history, t):
            self._rebuild(history)
        elif len(rewards):
            self.posterior.observe(self.features(history.contexts.rows[rows]), rewards)

    def _rebuild(self, history: History) -> None:
        contexts, means, counts = history.targets()
        rewards = history.rewards.rows
        self.posterior.rebuild(self.features(contexts), means * counts, counts, float(rewards @ rewards))

    def state_dict(self) -> dict[str, Tensor]:
        return {**nested("net", self.net.state_dict()), **nested("posterior", self.posterior.state_dict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.net.load_state_dict(under("net", state))
        self.posterior.load_state_dict(under("posterior", state))
