"""Models of a slate's reward from its arms' rewards: the monotone network F, and a plain net."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, checked
from neuclust.kernels import fused, jit, monotone
from neuclust.kernels.initial import initial_network, network_shapes
from neuclust.kernels.monotone import MonotoneNetwork, slate_value
from neuclust.kernels.network import forward
from neuclust.kernels.training import Examples, Parameters, Projection, Steps
from neuclust.models.feature_net import AdamConfig, RetrainConfig, fit_network
from neuclust.models.fitting import LeastSquares, TrainingConfig, fit
from neuclust.models.history import History
from neuclust.models.state import Shape, load_saved_state, numbered_shapes, saved_state
from neuclust.models.watch import LearningWatch
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
@checked(width=AT_LEAST_ONE, depth=AT_LEAST_ONE, weight=NON_NEGATIVE)
class SlateModelConfig:
    """F's shape and use.

    scale `printed`: weights q(Θ); `calibrated`: q(Θ)·2/fan-in, so that F(1) ≈ 1 at the start.
    init `paper`: Θ ~ N(1/n, 1), b = 0; `monotone`: Θ ~ N(0, 1), b ~ U(±1/fan-in).
    biases `trained` start as `init` says, `drawn` at N(1/n, 1); `none` gives the printed number of parameters, Kn + n.
    `weight` is ω in Σv + ωKF; `train_input` what F is fitted on: predictions of the present arm net, those made
    when the slate was learned, or the realised arm rewards.
    """

    width: int = 15
    depth: int = 1
    transform: Literal["sigmoid", "softplus", "exp", "square", "abs"] = "sigmoid"
    scale: Literal["printed", "calibrated"] = "calibrated"
    init: Literal["paper", "monotone"] = "paper"
    biases: Literal["trained", "none", "drawn"] = "trained"
    relu_out: bool = False
    nonneg_bias: bool = False
    clamp_all: bool = False  # the authors' MovieLens code: every raw parameter clamped at 0 after each step
    weight: float = 1.0
    score: Literal["sum", "mean"] = "sum"
    input: Literal["mean", "optimistic"] = "mean"
    sort_input: bool = True
    relu_input: bool = True
    train_input: Literal["predicted", "predicted-then", "realised"] = "predicted"
    training: TrainingConfig = field(default_factory=TrainingConfig)


def slate_shapes(config: SlateModelConfig, slate_size: int) -> Iterator[tuple[str, Shape]]:
    """What a state of F for slates of this size holds at least."""
    return numbered_shapes("parameter", network_shapes(config.init, slate_size, config.width, config.depth))


class SlateModel:
    """F(r) for slates of K arm rewards, non-decreasing in each."""

    saved = ("net", "initial", "failures")

    def __init__(self, config: SlateModelConfig, slate_size: int, seed: int) -> None:
        self.config, self.slate_size = config, slate_size
        self.initial = initial_slate_network(config, slate_size, seed)
        self.net = self.initial
        self.watch = LearningWatch("the slate net")
        self.failures = 0

    def prepare(self, rewards: Tensor) -> Tensor:
        """What F reads of arm rewards (…, k ≤ K): rectified and sorted descending, unless configured otherwise, and
        zeros for the slots that stay empty."""
        inputs = monotone.slate_inputs(rewards, self.config.relu_input, self.config.sort_input)
        return _filled_up(inputs, self.slate_size)

    def value(self, rewards: Tensor) -> Tensor:
        """F of slates (…, K) -> (…)."""
        return slate_value(self.net, self.prepare(rewards))

    def score(self, values: Tensor, means: Tensor) -> Tensor:
        """V = Σv + ωK·F (or its average per arm) of slates with these v and f, (C, K) each: (C,).
        Non-decreasing in every entry. F reads f, or v where `input` is optimistic."""
        source = values if self.config.input == "optimistic" else means
        return monotone.slate_scores(values, self.value(source), self.config.weight, self.config.score == "mean")

    def train(self, history: History, predicted: Tensor, updates: int) -> None:
        """Fit F to all slates seen; `predicted` (u,) are the arm net's means of the history's contexts."""
        training = self.config.training
        if len(history.slate_rewards) == 0 or training.steps == 0 or not training.due(updates):
            return
        start = self.initial.parameters if training.start == "restart" else self.net.parameters
        result = fit(self._problem(history, predicted), start, training)
        self.failures += result.failed
        self.watch.trained(result.failed, history.slate_rewards.rows)
        self.net = self.net.with_parameters(result.parameters)

    def _problem(self, history: History, predicted: Tensor) -> LeastSquares:
        training = self.config.training
        rewards, target, counts = slates_seen(history, predicted, self.config.train_input)
        share, pull = training.weights(max(1, int(counts.sum())), self.config.width)
        examples = inputs, target, weight = Examples(self.prepare(rewards), target, counts * share)
        fusible = self.config.depth == 1 and training.engine == "auto" and jit.serves(*self.net.parameters)
        anchor = self.initial.parameters if training.anchor == "initial" else None

        def gradient(parameters: Parameters, _: int) -> Parameters:
            return monotone.slate_gradients(self.net.with_parameters(parameters), inputs, target, weight)

        def loss(parameters: Parameters) -> float:
            if fusible:
                return fused.slate_sums(self.net, parameters, examples)[0]
            error = slate_value(self.net.with_parameters(parameters), inputs) - target
            return 0.5 * float((weight * error * error).sum())

        def curvature(parameters: Parameters) -> float:
            if fusible:
                return fused.slate_sums(self.net, parameters, examples)[1]
            return float((weight * monotone.slate_gradient_norms(self.net.with_parameters(parameters), inputs)).sum())

        def at_once(start: Parameters, step: float) -> Parameters:
            limits = fused.Limits(self.config.clamp_all, self.config.nonneg_bias, self.config.biases != "none")
            return fused.descend_slate(self.net, start, examples, Steps(training.steps, step, pull, anchor), limits)

        project = slate_projection(self.config)
        return LeastSquares(gradient, loss, curvature, pull, anchor, project, at_once if fusible else None)

    state_dict, load_state_dict = saved_state, load_saved_state


def _filled_up(inputs: Tensor, slate_size: int) -> Tensor:
    """Inputs (…, k) with zeros up to K, (…, K)."""
    empty = slate_size - inputs.shape[-1]
    return torch.nn.functional.pad(inputs, (0, empty)) if empty else inputs


def slates_seen(history: History, predicted: Tensor, kind: str) -> tuple[Tensor, Tensor, Tensor]:
    """Arm rewards of the slates in a history (u, K), the slates' mean rewards (u,) and counts (u,).

    Arm rewards by `kind`: `predicted` (distinct contexts,), `predicted-then` (when the slate was learned), `realised`.
    """
    if kind == "predicted":
        groups, target, counts = history.slate_targets()
        return torch.cat([predicted, predicted.new_zeros(1)])[groups], target, counts  # an empty slot reads the last
    inputs = history.slate_arm_rewards.rows if kind == "realised" else history.slate_predictions.rows
    known = ~torch.isnan(inputs).any(1)  # a slate with an unseen arm reward has no realised input
    target = history.slate_rewards.rows[known]
    return inputs[known], target, torch.ones_like(target)


def initial_slate_network(config: SlateModelConfig, slate_size: int, seed: int) -> MonotoneNetwork:
    """Θ and b at the start, with the scale c_k of every layer."""
    rng = stream(seed, "slate network")
    sizes = [slate_size, *[config.width] * config.depth, 1]
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    centre = 1 / config.width if config.init == "paper" else 0.0
    weights = tuple(torch.from_numpy(centre + rng.standard_normal(shape)) for shape in shapes)
    biases = tuple(torch.from_numpy(_initial_bias(config, out, fan_in, rng)) for out, fan_in in shapes)
    if config.nonneg_bias:
        biases = tuple(bias.clamp(min=0) for bias in biases)
    scales = tuple(1.0 if config.scale == "printed" else 2 / fan_in for _, fan_in in shapes)
    return MonotoneNetwork(weights, biases, scales, config.transform, config.relu_out)


def _initial_bias(config: SlateModelConfig, out: int, fan_in: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if config.biases == "drawn":
        return 1 / config.width + rng.standard_normal(out)
    drawn = rng.uniform(-1, 1, out) / fan_in
    return drawn if config.init == "monotone" and config.biases == "trained" else np.zeros(out)


def slate_projection(config: SlateModelConfig) -> Projection | None:
    """What holds after every step, in place on weights and then biases; None where nothing has to."""
    weights, bare = config.depth + 1, config.biases == "none"
    if not (config.clamp_all or config.nonneg_bias or bare):
        return None

    def project(parameters: Parameters) -> None:
        for place, parameter in enumerate(parameters):
            if bare and place >= weights:
                parameter.zero_()  # biases that stay at 0: a net without them
            elif config.clamp_all or (config.nonneg_bias and place >= weights):
                parameter.clamp_(min=0)

    return project


@dataclass(frozen=True, slots=True)
@checked(width=AT_LEAST_ONE, depth=AT_LEAST_ONE)
class SlateNetConfig:
    """m units in L hidden layers; `train_input` is what stands for the arms' qualities when the net is fitted."""

    width: int = 16
    depth: int = 1
    train_input: Literal["realised", "predicted"] = "realised"
    adam: AdamConfig = field(default_factory=AdamConfig)
    retrain: RetrainConfig = field(default_factory=RetrainConfig)


def slate_net_shapes(config: SlateNetConfig, slate_size: int) -> Iterator[tuple[str, Shape]]:
    """What a state of such a net for slates of this size holds at least."""
    return numbered_shapes("weight", network_shapes("torch-default", slate_size, config.width, config.depth))


class SlateNet:
    """R̂ = f_B(s), s = a slate's qualities, rectified, sorted descending and padded with zeros to K; any net f_B."""

    saved = ("net",)

    def __init__(self, config: SlateNetConfig, slate_size: int, seed: int) -> None:
        self.config, self.slate_size, self.seed = config, slate_size, seed
        rng = stream(seed, "slate net")
        self.net = self.initial = initial_network("torch-default", slate_size, config.width, config.depth, 1.0, rng)

    def prepare(self, qualities: Tensor) -> Tensor:
        """s of qualities (…, k ≤ K), zeros where a slot is empty."""
        return _filled_up(torch.sort(torch.relu(qualities), dim=-1, descending=True).values, self.slate_size)

    def value(self, qualities: Tensor) -> Tensor:
        """R̂ of slates (n, K) -> (n,)."""
        return forward(self.net, self.prepare(qualities))

    def train(self, history: History, predicted: Tensor, updates: int) -> None:
        """Fit to all slates observed, if due; `predicted` (u,) are the qualities of the history's contexts."""
        qualities, target, counts = slates_seen(history, predicted, self.config.train_input)
        if not self.config.retrain.due(updates) or len(target) == 0 or self.config.adam.steps == 0:
            return
        rng = stream(self.seed, "slate net training", updates)
        start = self.initial if self.config.adam.start == "restart" else self.net
        self.net = fit_network(start, (self.prepare(qualities), target, counts), self.config.adam, rng)

    state_dict, load_state_dict = saved_state, load_saved_state
