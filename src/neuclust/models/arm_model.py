"""The arm model: a network of expected rewards with its history, training and confidence widths."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, checked
from neuclust.core import Feedback, Round, Slate
from neuclust.kernels import fused, jit
from neuclust.kernels.initial import initial_network, network_shapes
from neuclust.kernels.network import Factors, Network, augment, forward, gradient_factors, scaled, squared_norms
from neuclust.kernels.pruning import Bounds
from neuclust.kernels.training import Parameters, Steps, arm_gradients, arm_objective
from neuclust.models.arm_scoring import ArmScorer, ArmScores, Choice
from neuclust.models.confidence import ConfidenceConfig, build_confidence, confidence_shapes, feature_scale
from neuclust.models.encoder import Encoder, EncoderConfig, full_at
from neuclust.models.fitting import LeastSquares, TrainingConfig, fit
from neuclust.models.history import History, Limits
from neuclust.models.schedules import Progress, ScheduleConfig, exploration
from neuclust.models.state import Shape, load_saved_state, nested_shapes, numbered_shapes, saved_state
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
    """`reads` masked: the net reads z = x ⊙ a of a round with a query a; profile: x itself, whatever is asked for."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    confidence: ConfidenceConfig = field(default_factory=ConfidenceConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    reads: Literal["masked", "profile"] = "masked"

    def view(self, round: Round) -> Round:
        """The round as the net reads it."""
        return replace(round, query=None) if self.reads == "profile" and round.query is not None else round

    def progress(self, observations: int, logdet: float) -> Progress:
        """What γ depends on after so many observed rewards."""
        training, network = self.training, self.network
        step = training.step if training.step is not None else 1e-3  # the paper's, for Eq. 8 alone
        step /= max(1, observations if training.loss_norm == "mean" else 1)
        ridge = self.confidence.ridge
        return Progress(observations, logdet, ridge, network.width, network.depth, step=step, steps=training.steps)


def arm_shapes(config: ArmModelConfig, dim: int) -> Iterator[tuple[str, Shape]]:
    """What a state of such a model of arms with `dim` features holds at least."""
    network = config.network
    inputs = Encoder(config.encoder, dim, even=network.init == "symmetric").dim
    weights = []
    for name, shape in numbered_shapes("weight", network_shapes(network.init, inputs, network.width, network.depth)):
        yield name, shape  # one by one: a damaged manifest may ask for any number of layers
        weights.append(shape)
    yield from nested_shapes("confidence", confidence_shapes(config.confidence, weights))


def arm_problem(net: Network, initial: Network, history: History, training: TrainingConfig, seed: int) -> LeastSquares:
    """L(θ) = Σ w_u (f(x_u; θ) − r̄_u)²/2 + (pull/2)‖θ − θ_0‖² over the distinct contexts of a history."""
    contexts, target, counts = history.targets()
    kept = int(counts.sum())
    share, pull = training.weights(kept, net.weights[-1].shape[1] - net.bias)
    x, weight = augment(net, contexts), counts * share

    def minibatch(weights: Parameters, index: int) -> Parameters:
        rng = stream(seed, f"minibatch {index}", history.observations)
        drawn = torch.from_numpy(rng.integers(kept, size=training.batch_size))
        if history.memory is None:
            batch, rewards = history.contexts.rows[history.seen.rows[drawn]], history.rewards.rows[drawn]
        else:  # observations are not kept: contexts in proportion to their counts, with their mean rewards
            place = torch.searchsorted(counts.cumsum(0), drawn.to(counts.dtype), right=True)
            batch, rewards = contexts[place], target[place]
        even = torch.full((len(drawn),), share * kept / len(drawn), dtype=batch.dtype)
        return arm_gradients(replace(net, weights=weights), augment(net, batch), rewards, even)

    def full_batch(weights: Parameters, _: int) -> Parameters:
        return arm_gradients(replace(net, weights=weights), x, target, weight)

    anchor = initial.weights if training.anchor == "initial" else None
    rows = _training_rows(net, history, x) if fusible(net, training) else None

    def loss(weights: Parameters) -> float:
        if rows is None:
            return float(arm_objective(replace(net, weights=weights), x, target, weight))
        means, _ = fused.arm_means_and_norms(net, weights, rows.rows)
        return 0.5 * float((weight * (means - target) ** 2).sum())

    def curvature(weights: Parameters) -> float:
        if rows is None:
            return float((weight * squared_norms(gradient_factors(replace(net, weights=weights), contexts))).sum())
        return float((weight * fused.arm_means_and_norms(net, weights, rows.rows)[1]).sum())

    def at_once(start: Parameters, step: float) -> Parameters:
        assert rows is not None
        return fused.descend_arm(net, start, rows, target, weight, Steps(training.steps, step, pull, anchor))

    gradient, whole = minibatch if training.optimizer == "sgd" else full_batch, None if rows is None else at_once
    return LeastSquares(gradient, loss, curvature, pull, anchor, fused=whole)


def fusible(net: Network, training: TrainingConfig) -> bool:
    """Whether all steps of a training run as one compiled loop."""
    wanted = training.engine == "auto" and training.optimizer == "gd" and len(net.weights) == 2
    return wanted and jit.serves(*net.weights)


def _training_rows(net: Network, history: History, x: Tensor) -> fused.SparseRows:
    """Rewarded contexts (u, in), augmented already; without biases they are kept from round to round."""
    known = history.sparse_contexts() if not net.bias else None
    return fused.SparseRows(x if known is None or len(known) != len(x) else known)


class ArmModel:
    """f(x; θ) with its upper confidence bonus; `scores` reads, `observe` and `train` learn."""

    saved = ("net", "initial", "rho", "updates", "failures", "confidence", "history")

    def __init__(self, config: ArmModelConfig, dim: int, slate_size: int, seed: int, slates: int | None = None) -> None:
        """`slates` is how many slates are kept for a model of slates; None: as many as contexts."""
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        network = config.network
        self.encoder = Encoder(config.encoder, dim, even=network.init == "symmetric")
        rng = stream(seed, "arm network")
        self.initial = initial_network(network.init, self.encoder.dim, network.width, network.depth, network.scale, rng)
        self.net = self.initial
        self.confidence = build_confidence(config.confidence, self.net)
        memory = config.training.memory
        self.history = History(self.encoder.dim, slate_size, Limits(memory, slates or memory, seed))
        self._scorer = ArmScorer(self.encoder)
        self.watch = LearningWatch("the arm net")
        self.updates = 0
        self.failures = 0  # trainings that found no step that helped, ended in NaN or killed every unit

    def gamma(self) -> float:
        """γ_{t−1} for the coming round."""
        schedule = self.config.schedule
        logdet = self.confidence.logdet if schedule.kind != "constant" else 0.0
        return exploration(schedule, self.config.progress(self.history.observations, logdet))

    def scores(self, round: Round) -> ArmScores:
        """Means and bonuses of all arms; equal contexts are exactly equal."""
        return self._scorer.scores(self.net, self.confidence, self.config.view(round), self.gamma())

    def bounds(self, round: Round) -> Bounds | None:
        """Means and upper bounds that become exact where it matters; None where `scores` is less work."""
        return self._scorer.bounds(self.net, self.confidence, self.config.view(round), self.gamma())

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
        return forward(self.net, contexts)

    def encode(self, round: Round, positions: Tensor) -> Tensor:
        """Encoded contexts of the given arms with all columns, (k, d')."""
        return full_at(self.encoder, self.config.view(round), positions)

    def observe(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        """Take in one slate: covariance first, at the parameters in force, then the history."""
        contexts = self.encode(round, slate.positions)
        seen = ~torch.isnan(feedback.arm_rewards)
        if bool(seen.any()):
            self.confidence.observe(self.features(contexts[seen]))  # first: it may refuse, and then nothing is learned
        self.settle(round)
        self.remember(contexts, feedback)

    def settle(self, round: Round) -> None:
        """Fix the scale of contexts by this round's."""
        self.encoder.settle(self.config.view(round))

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
        self.history.end_update()
        training = self.config.training
        if training.after == "round" and training.due(self.updates):
            self.fit()

    def fit(self) -> None:
        """J gradient steps on the regularised squared loss over what is kept of everything observed."""
        training = self.config.training
        contexts, target, _ = self.history.targets()
        if len(target) == 0 or training.steps == 0:
            return
        start = self.initial.weights if training.start == "restart" else self.net.weights
        result = fit(arm_problem(self.net, self.initial, self.history, training, self.seed), start, training)
        self.net = replace(self.net, weights=result.parameters)
        dead = training.restarts(self.net, contexts, target)
        if dead:
            self.net = self.initial
        self.failures += result.failed + dead
        self.watch.trained(result.failed or dead, target)

    state_dict, load_state_dict = saved_state, load_saved_state
