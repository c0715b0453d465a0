"""The arm model: network, history, training and confidence together, scoring arms and learning from them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, checked
from neuclust.core import Feedback, Round, Slate
from neuclust.kernels import fused
from neuclust.kernels.initial import initial_network, network_shapes
from neuclust.kernels.network import Factors, augment, gradient_factors, layers, output, scaled
from neuclust.kernels.pruning import Bounds
from neuclust.models.arm_scoring import ArmScorer, ArmScores, Choice
from neuclust.models.arm_training import arm_problem, fusible
from neuclust.models.confidence import ConfidenceConfig, build_confidence, confidence_shapes, feature_scale
from neuclust.models.contexts import full_at
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.models.fitting import TrainingConfig, fit
from neuclust.models.history import History
from neuclust.models.schedules import Progress, ScheduleConfig, exploration
from neuclust.models.state import (
    Shape,
    nested,
    nested_shapes,
    numbered,
    numbered_shapes,
    take_count,
    take_numbered,
    under,
)
from neuclust.models.watch import LearningWatch
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
@checked(width=AT_LEAST_ONE, depth=AT_LEAST_ONE)
class NetworkConfig:
    """m units in each of L hidden layers; `output_scale` √m (`root-width`) or 1 (`one`)."""

    width: int = 20
    depth: int = 1
    init: Literal["symmetric", "mirrored", "he", "torch-default"] = "mirrored"
    output_scale: Literal["root-width", "one"] = "root-width"

    @property
    def scale(self) -> float:
        return math.sqrt(self.width) if self.output_scale == "root-width" else 1.0


@dataclass(frozen=True, slots=True)
@checked()
class ArmModelConfig:
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    confidence: ConfidenceConfig = field(default_factory=ConfidenceConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def arm_shapes(config: ArmModelConfig, dim: int) -> Iterator[tuple[str, Shape]]:
    """What a state of such a model of arms with `dim` features holds at least."""
    network = config.network
    inputs = Encoder(config.encoder, dim, even=network.init == "symmetric").dim
    weights = []
    for name, shape in numbered_shapes("weight", network_shapes(network.init, inputs, network.width, network.depth)):
        yield name, shape  # one by one: a damaged manifest may ask for any number of layers
        weights.append(shape)
    yield from nested_shapes("confidence", confidence_shapes(config.confidence, weights))


class ArmModel:
    """f(x; θ) with its upper confidence bonus; `scores` reads, `observe` and `train` learn."""

    def __init__(self, config: ArmModelConfig, dim: int, slate_size: int, seed: int) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        network = config.network
        self.encoder = Encoder(config.encoder, dim, even=network.init == "symmetric")
        rng = stream(seed, "arm network")
        self.initial = initial_network(network.init, self.encoder.dim, network.width, network.depth, network.scale, rng)
        self.net = self.initial
        self.confidence = build_confidence(config.confidence, self.net)
        self.history = History(self.encoder.dim, slate_size)
        self._scorer = ArmScorer(self.encoder)
        self.watch = LearningWatch("the arm net")
        self.updates = 0
        self.failures = 0  # trainings that found no step that helped, ended in NaN or killed every unit

    # --- reading ---------------------------------------------------------------------------------------------

    def gamma(self) -> float:
        """γ_{t−1} for the coming round."""
        training, confidence = self.config.training, self.config.confidence
        step = training.step if training.step is not None else 1e-3  # the paper's, for Eq. 8 alone
        shrink = self.history.observations if training.loss_norm == "mean" else 1
        return exploration(
            self.config.schedule,
            Progress(
                t=self.updates,
                observations=self.history.observations,
                logdet=self.confidence.logdet if self.config.schedule.kind != "constant" else 0.0,
                ridge=confidence.ridge,
                width=self.config.network.width,
                depth=self.config.network.depth,
                step=step / max(1, shrink),
                steps=training.steps,
            ),
        )

    def scores(self, round: Round) -> ArmScores:
        """Means and bonuses of all arms; equal contexts are exactly equal."""
        return self._scorer.scores(self.net, self.confidence, round, self.gamma())

    def bounds(self, round: Round) -> Bounds | None:
        """Means and upper bounds that become exact where it matters; None where `scores` is less work."""
        return self._scorer.bounds(self.net, self.confidence, round, self.gamma())

    @property
    def last_choice(self) -> Choice | None:
        """How the widths of the last scores or bounds were found."""
        return self._scorer.last_choice

    def predict_history(self) -> Tensor:
        """f of every distinct context of the history, (u,)."""
        if fusible(self.net, self.config.training) and not self.net.bias:
            return fused.arm_means_and_norms(self.net, self.net.weights, self.history.sparse_contexts())[0]
        return self.predict(self.history.contexts.rows)

    def predict(self, contexts: Tensor) -> Tensor:
        """f of encoded contexts (n, d')."""
        inputs, _ = layers(self.net, augment(self.net, contexts))
        return output(self.net, inputs[-1])

    def encode(self, round: Round, positions: Tensor) -> Tensor:
        """Encoded contexts of the given arms with all columns, (k, d')."""
        return full_at(self.encoder, round, positions)

    # --- learning --------------------------------------------------------------------------------------------

    def observe(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        """Take in one slate: covariance first, at the parameters in force, then the history."""
        contexts = self.encode(round, slate.positions)
        seen = ~torch.isnan(feedback.arm_rewards)
        if bool(seen.any()):
            self.confidence.observe(self.features(contexts[seen]))  # first: it may refuse, and then nothing is learned
        self.encoder.settle(round)
        self.remember(contexts, feedback)

    def features(self, contexts: Tensor) -> Factors:
        """ĝ of encoded contexts (k, d')."""
        return scaled(gradient_factors(self.net, contexts), feature_scale(self.config.confidence, self.net))

    def remember(self, contexts: Tensor, feedback: Feedback) -> None:
        """Append contexts (K, d') and rewards to the history; with `after=sample`, train after each arm."""
        self.watch.see(feedback.arm_rewards)
        predictions = self.predict(contexts)
        rows = [self.history.row(context) for context in contexts]
        per_sample = self.config.training.after == "sample" and self.config.training.due(self.updates + 1)
        for row, reward in zip(rows, feedback.arm_rewards.tolist(), strict=True):
            if reward == reward:  # NaN: not observed, not learned
                self.history.observe_arm(row, reward)
                if per_sample:
                    self.fit()
        if not bool(torch.isnan(feedback.slate_reward)):
            self.history.observe_slate(rows, float(feedback.slate_reward), feedback.arm_rewards, predictions)

    def train(self) -> None:
        """Count the round and fit the net to the history, if it is time to."""
        self.updates += 1
        training = self.config.training
        if training.after == "round" and training.due(self.updates):
            self.fit()

    def fit(self) -> None:
        """J gradient steps on the regularised squared loss over everything observed."""
        training = self.config.training
        if self.history.observations == 0 or training.steps == 0:
            return
        start = self.initial.weights if training.start == "restart" else self.net.weights
        result = fit(arm_problem(self.net, self.initial, self.history, training, self.seed), start, training)
        self.net = replace(self.net, weights=result.parameters)
        contexts, target, _ = self.history.targets()
        dead = training.restarts(self.net, contexts, target)
        if dead:
            self.net = self.initial
        self.failures += result.failed + dead
        self.watch.trained(result.failed or dead, self.history.rewards.rows)

    # --- state -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        return {
            **numbered("weight", self.net.weights),
            **numbered("initial", self.initial.weights),
            "rho": self.encoder.saved_rho(),
            "updates": torch.tensor(self.updates),
            "failures": torch.tensor(self.failures),
            **nested("confidence", self.confidence.state_dict()),
            **nested("history", self.history.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        like = self.initial.weights
        self.net = replace(self.net, weights=take_numbered(state, "weight", like))
        self.initial = replace(self.net, weights=take_numbered(state, "initial", like))
        self.encoder.load_rho(state)
        self.updates, self.failures = take_count(state, "updates"), take_count(state, "failures")
        self.confidence.load_state_dict(under("confidence", state))
        self.history.load_state_dict(under("history", state))
