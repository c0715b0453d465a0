"""The arm model: network, history, training and confidence together, scoring arms and learning from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate
from neuclust.errors import ConfigError
from neuclust.kernels import fused, jit
from neuclust.kernels.columns import forward_columns, widths_columns
from neuclust.kernels.initial import initial_network, network_shapes
from neuclust.kernels.network import (
    Factors,
    Network,
    augment,
    gradient_factors,
    layer_factors,
    layers,
    output,
    restrict,
    scaled,
    squared_norms,
)
from neuclust.kernels.pruning import Bounds
from neuclust.kernels.regions import find_regions, group_rows
from neuclust.kernels.training import Parameters, Steps, arm_gradients, arm_objective
from neuclust.models.confidence import (
    ConfidenceConfig,
    FullConfidence,
    build_confidence,
    confidence_shapes,
    feature_scale,
)
from neuclust.models.contenders import MANY, Choice, contenders, pruning_pays
from neuclust.models.encoder import Encoder, EncoderConfig, active_contexts, contexts_at
from neuclust.models.fitting import LeastSquares, TrainingConfig, fit
from neuclust.models.history import History
from neuclust.models.schedules import Progress, ScheduleConfig, exploration
from neuclust.models.score_cache import ShownProfiles
from neuclust.models.state import Shape, nested, nested_shapes, take, take_count, under
from neuclust.models.watch import LearningWatch
from neuclust.randomness import stream

MANY_ARMS = 1024  # from which compiled loops by column pay


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """m units in each of L hidden layers; `output_scale` √m (`root-width`) or 1 (`one`)."""

    width: int = 20
    depth: int = 1
    init: Literal["symmetric", "mirrored", "he", "torch-default"] = "mirrored"
    output_scale: Literal["root-width", "one"] = "root-width"

    def __post_init__(self) -> None:
        check_entries(self)
        if self.width < 1 or self.depth < 1:
            raise ConfigError(f"network: expected width and depth of at least 1, got {self.width} and {self.depth}")

    @property
    def scale(self) -> float:
        return math.sqrt(self.width) if self.output_scale == "root-width" else 1.0


@dataclass(frozen=True, slots=True)
class ArmModelConfig:
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    confidence: ConfidenceConfig = field(default_factory=ConfidenceConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        check_entries(self)


@dataclass(frozen=True, slots=True)
class ArmScores:
    """f, γw and v = f + γw of every arm of a round, each (n,)."""

    means: Tensor
    bonuses: Tensor

    @property
    def optimistic(self) -> Tensor:
        return self.means + self.bonuses


def arm_shapes(config: ArmModelConfig, dim: int) -> Iterator[tuple[str, Shape]]:
    """What a state of such a model of arms with `dim` features holds at least."""
    network, weights = config.network, []
    inputs = Encoder(config.encoder, dim, even=network.init == "symmetric").dim
    for i, shape in enumerate(network_shapes(network.init, inputs, network.width, network.depth)):
        yield f"weight.{i}", shape
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
        self.last_choice: Choice | None = None  # how the widths of the last scores or bounds were found
        self._shown = ShownProfiles()
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
        found = self._by_columns(round)
        return found if found is not None else self._by_rows(round)

    def _by_rows(self, round: Round) -> ArmScores:
        """Equal contexts are computed once."""
        contexts = active_contexts(round)
        first, group = group_rows(contexts)
        means, widths = self._evaluate(contexts[first], round, len(group))
        return ArmScores(means[group], self.gamma() * widths[group])

    def _by_columns(self, round: Round) -> ArmScores | None:
        """Many arms with few active columns in few activation regions; None where they are not."""
        columns, full = round.active, self._full(round)
        if full is None or len(columns) > MANY or len(round.arm_ids) < MANY_ARMS:
            return None
        net, x = restrict(self.net, columns), self._shown.columns(round, self._divisor(round))
        w0, w1 = np.ascontiguousarray(net.weights[0].numpy().T), net.weights[1][0].numpy()
        means, first, region = forward_columns(x, w0, w1, float(net.scale))
        if not full.by_regions(len(x), len(columns), len(first)):
            return None
        forms = full.region_forms(net, torch.from_numpy(x.at(first)), columns)
        widths = widths_columns(x, forms.numpy(), region)
        self.last_choice = Choice("regions", len(x), len(x), len(columns), len(columns) * len(first))
        return ArmScores(torch.from_numpy(means), torch.from_numpy(self.gamma() * widths))

    def bounds(self, round: Round) -> Bounds | None:
        """Means and upper bounds that become exact where it matters; None where `scores` is less work."""
        full = self._full(round)
        if full is None or not pruning_pays(full, len(round.arm_ids), len(round.active)):
            return None
        contexts, group = self._shown.contexts(round, self._divisor(round))
        columns = round.active
        net = restrict(self.net, columns)
        bounds, self.last_choice = contenders(net, contexts, group, full, columns, self.gamma())
        return bounds

    def _full(self, round: Round) -> FullConfidence | None:
        """The covariance of one hidden layer without biases under an encoder that keeps zeros; None for others."""
        config, encoder = self.config, self.config.encoder
        plain = encoder.kind in ("raw", "scale") and not encoder.duplicate
        simple = config.network.depth == 1 and not self.net.bias and config.confidence.form == "full"
        served = jit.serves(round.profiles, self.net.weights[0])
        return self.confidence if plain and simple and served and isinstance(self.confidence, FullConfidence) else None

    def _divisor(self, round: Round) -> float:
        return self.encoder.scale_of(round) if self.config.encoder.kind == "scale" else 1.0

    def predict_history(self) -> Tensor:
        """f of every distinct context of the history, (u,)."""
        if self._fusible() and not self.net.bias:
            return fused.arm_means_and_norms(self.net, self.net.weights, self.history.sparse_contexts())[0]
        return self.predict(self.history.contexts.rows)

    def predict(self, contexts: Tensor) -> Tensor:
        """f of encoded contexts (n, d')."""
        inputs, _ = layers(self.net, augment(self.net, contexts))
        return output(self.net, inputs[-1])

    def encode(self, round: Round, positions: Tensor) -> Tensor:
        """Encoded contexts of the given arms with all columns, (k, d')."""
        return self.encoder.full(contexts_at(round, positions), round.active, self.encoder.scale_of(round))

    def _evaluate(self, z: Tensor, round: Round, arms: int) -> tuple[Tensor, Tensor]:
        x, columns = self.encoder.encode(z, round.active, self.encoder.scale_of(round))
        if self.net.bias:
            columns = torch.cat([columns, columns.new_tensor([self.encoder.dim])])
        net = restrict(self.net, columns)
        x = augment(net, x)
        regions = find_regions(net, x)
        rows, q, count = len(x), x.shape[1], len(regions.first)
        shared = self.confidence.by_regions(rows, q, count)
        self.last_choice = Choice("regions" if shared else "direct", arms, rows, q, q * count if shared else rows)
        return regions.means, self.confidence.widths(net, x, regions, columns)

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
        result = fit(self._problem(), start, training)
        self.net = self._with(result.parameters)
        contexts, target, _ = self.history.targets()
        dead = training.restarts(self.net, contexts, target)
        if dead:
            self.net = self.initial
        self.failures += result.failed + dead
        self.watch.trained(result.failed or dead, self.history.rewards.rows)

    def _with(self, weights: Parameters) -> Network:
        return Network(weights, self.net.scale, self.net.bias)

    def _problem(self) -> LeastSquares:
        training, history = self.config.training, self.history
        contexts, target, counts = history.targets()
        share, pull = training.weights(history.observations, self.config.network.width)
        x, weight = augment(self.net, contexts), counts * share

        def minibatch(weights: Parameters, index: int) -> Parameters:
            rng = stream(self.seed, f"minibatch {index}", history.observations)
            chosen = torch.from_numpy(rng.integers(history.observations, size=training.batch_size))
            batch = augment(self.net, history.contexts.rows[history.seen.rows[chosen]])
            even = torch.full((len(chosen),), share * history.observations / len(chosen), dtype=batch.dtype)
            return arm_gradients(self._with(weights), batch, history.rewards.rows[chosen], even)

        def full_batch(weights: Parameters, _: int) -> Parameters:
            return arm_gradients(self._with(weights), x, target, weight)

        anchor = self.initial.weights if training.anchor == "initial" else None
        rows = self._training_rows(x) if self._fusible() else None

        def loss(weights: Parameters) -> float:
            if rows is None:
                return float(arm_objective(self._with(weights), x, target, weight))
            means, _ = fused.arm_means_and_norms(self.net, weights, rows.rows)
            return 0.5 * float((weight * (means - target) ** 2).sum())

        def curvature(weights: Parameters) -> float:
            if rows is None:
                return float((weight * squared_norms(layer_factors(self._with(weights), x))).sum())
            return float((weight * fused.arm_means_and_norms(self.net, weights, rows.rows)[1]).sum())

        def at_once(start: Parameters, step: float) -> Parameters:
            assert rows is not None
            return fused.descend_arm(self.net, start, rows, target, weight, Steps(training.steps, step, pull, anchor))

        return LeastSquares(
            gradient=minibatch if training.optimizer == "sgd" else full_batch,
            loss=loss,
            curvature=curvature,
            pull=pull,
            anchor=anchor,
            fused=at_once if rows is not None else None,
        )

    def _training_rows(self, x: Tensor) -> fused.SparseRows:
        """Rewarded contexts (u, in), augmented already; without biases they are kept from round to round."""
        known = self.history.sparse_contexts() if not self.net.bias else None
        return fused.SparseRows(x if known is None or len(known) != len(x) else known)

    def _fusible(self) -> bool:
        training = self.config.training
        wanted = training.engine == "auto" and training.optimizer == "gd" and self.config.network.depth == 1
        return wanted and jit.serves(*self.net.weights)

    # --- state -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        state = {f"weight.{i}": weight for i, weight in enumerate(self.net.weights)}
        state |= {f"initial.{i}": weight for i, weight in enumerate(self.initial.weights)}
        state["rho"] = self.encoder.saved_rho()
        state["updates"], state["failures"] = torch.tensor(self.updates), torch.tensor(self.failures)
        return {
            **state,
            **nested("confidence", self.confidence.state_dict()),
            **nested("history", self.history.state_dict()),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        shapes = list(enumerate(self.initial.weights))
        self.net = self._with(tuple(take(state, f"weight.{i}", like) for i, like in shapes))
        self.initial = self._with(tuple(take(state, f"initial.{i}", like) for i, like in shapes))
        self.encoder.load_rho(state)
        self.updates, self.failures = take_count(state, "updates"), take_count(state, "failures")
        self.confidence.load_state_dict(under("confidence", state))
        self.history.load_state_dict(under("history", state))
