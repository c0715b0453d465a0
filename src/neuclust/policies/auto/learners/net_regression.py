"""Thompson sampling on a net's last hidden layer."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.kernels.jit import serves
from neuclust.kernels.scoring import arm_scores, masked_scores
from neuclust.models.bayes_linear import LONGEST, BayesLinearConfig, NetRegression, rescale
from neuclust.models.encoder import EncoderConfig
from neuclust.models.feature_net import AdamConfig, FeatureNet, FeatureNetConfig, NetInputConfig
from neuclust.models.state import load_saved_state, saved_state
from neuclust.policies.auto.features import NET_CONSTANT, FeatureBlocks, Features
from neuclust.policies.auto.plays import Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
@checked(spread=NON_NEGATIVE)
class NetLearnerConfig:
    """The net, its training, and the posterior of its output weights."""

    width: int = 32
    decay: float = 2.5e-3
    steps: int = 200
    rate: float = 3e-3
    spread: float = 1.0
    posterior: BayesLinearConfig = field(default_factory=lambda: BayesLinearConfig(1.6, 0.8))

    def __post_init__(self) -> None:
        self.net  # noqa: B018 - refuses what no net can be made of

    @property
    def net(self) -> FeatureNetConfig:
        """Contexts come encoded, with a constant and what features share among their columns."""
        given = NetInputConfig(EncoderConfig("raw"), pooled=False, constant=0.0)
        adam = AdamConfig(rate=self.rate, steps=self.steps, decay=self.decay)
        return FeatureNetConfig(given, width=self.width, init="he", adam=adam)


class NetLearner:
    """Thompson sampling: w̃ᵀx, w̃ ~ N(m, spread²Λ⁻¹) drawn once per round, x = [1, φ(z; θ)]."""

    saved = ("net", "posterior")

    def __init__(self, config: NetLearnerConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> None:
        self.config, self.spread, self.seed, self.purpose = config, config.spread, seed, purpose
        self.regression = NetRegression(FeatureNet(config.net, blocks.input_size, seed, purpose), config.posterior)
        self.net, self.posterior = self.regression.net, self.regression.posterior
        self._apply_prior(RewardScale())

    def means(self, features: Features) -> Tensor:
        return self._outputs(features, self.posterior.mean.unsqueeze(0))[0]

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:
        rng = stream(self.seed, f"{self.purpose} draw", t)
        weights = torch.stack([self.posterior.draw(rng, self.spread), self.posterior.mean])
        scores, means = self._outputs(features, weights)
        return scores, means

    def _outputs(self, features: Features, weights: Tensor) -> Tensor:
        """[1, φ] of every context times weights (V, m + 1): (V, n)."""
        if not features.sparse and not serves(features.x):
            return weights @ self.regression.features(features.inputs).T
        hidden = self.net.net.weights[0].clone()
        hidden[:, -1] *= NET_CONSTANT
        if features.sparse:
            layers = np.ascontiguousarray(hidden.numpy().T), weights.numpy()
            return torch.from_numpy(masked_scores.relu_values(features.merged, *layers, LONGEST))
        arrays = features.rows.numpy(), hidden.numpy(), weights.numpy(), LONGEST
        return torch.from_numpy(arm_scores.relu_outputs(*arrays))

    def learn(self, played: Played, plays: Plays) -> None:
        self._apply_prior(plays.scale)
        features, belief = self.regression.features, self.posterior
        if not self.net.due(plays.slates):
            belief.observe(features(played.features.inputs), played.rewards, played.exposures)
            return
        held = plays.held()
        inputs = held.features.inputs
        self.net.fit((inputs, held.sums / held.counts, held.counts), plays.slates)
        belief.rebuild(features(inputs), held.sums, held.counts, held.energy)

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:
        rescale(self.posterior, *change)
        self._apply_prior(scale)

    def _apply_prior(self, scale: RewardScale) -> None:
        """The prior in units of the rewards, as that of a block regression."""
        prior = torch.full_like(self.posterior.prior, self.config.posterior.prior_variance * scale.unit**2)
        self.posterior.reweight(prior, self.config.posterior.noise_variance * scale.unit)

    @property
    def failures(self) -> int:
        """Trainings that ended in NaN or in a net without a live unit."""
        return self.net.failures

    state_dict, load_state_dict = saved_state, load_saved_state
