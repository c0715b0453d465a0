"""A small ReLU net trained by Adam at intervals, whose last hidden layer serves as features of a context."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, BELOW_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.core import Round
from neuclust.errors import ConfigError
from neuclust.kernels.adam import Floats, adam
from neuclust.kernels.initial import initial_network, network_shapes
from neuclust.kernels.network import Network, augment, layers, output, restrict
from neuclust.kernels.training import finite, lifeless
from neuclust.models.encoder import Encoder, EncoderConfig, distinct, encoded
from neuclust.models.history import History, Limits
from neuclust.models.state import Shape, load_saved_state, numbered_shapes, saved_state
from neuclust.models.watch import LearningWatch
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
@checked()
class NetInputConfig:
    """What the net reads of a context z: [φ(z), Σa, constant], without the constant where it is 0.
    Σa is the mean of z's non-zero entries where the round has a query (a = z/‖z‖₀), the sum of z otherwise."""

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig("raw"))
    pooled: bool = True
    constant: float = 0.5


@dataclass(frozen=True, slots=True)
@checked(
    rate=(POSITIVE[0], 1),  # a step of Adam moves a weight by the rate
    steps=NON_NEGATIVE, batch_size=AT_LEAST_ONE, decay=NON_NEGATIVE, dropout=(0, BELOW_ONE),
)  # fmt: skip
class AdamConfig:
    """`steps` steps of Adam on minibatches of `batch_size` observations (None: all) of mean squared error + decay ‖θ‖².
    `dropout` leaves each last hidden unit out with this chance, one mask per step. start `warm` continues from the
    present weights, `restart` from the initial ones; moments are fresh."""

    rate: float = 3e-3
    steps: int = 200
    batch_size: int | None = 256
    decay: float = 1e-3
    dropout: float = 0.0
    start: Literal["warm", "restart"] = "warm"


@dataclass(frozen=True, slots=True)
@checked(first_every=AT_LEAST_ONE, then_every=AT_LEAST_ONE, every=AT_LEAST_ONE)
class RetrainConfig:
    """Train after every `first_every` updates up to `first_until`, then `then_every` to `then_until`, then `every`."""

    first_every: int = 2
    first_until: int = 20
    then_every: int = 5
    then_until: int = 100
    every: int = 10

    @classmethod
    def always(cls, every: int) -> Self:
        """The same distance throughout."""
        return cls(first_until=0, then_until=0, every=every)

    def due(self, t: int) -> bool:
        """Whether to train after the t-th update."""
        if t <= self.first_until:
            return t % self.first_every == 0
        return t % (self.then_every if t <= self.then_until else self.every) == 0


@dataclass(frozen=True, slots=True)
@checked(width=AT_LEAST_ONE, depth=NON_NEGATIVE, memory=AT_LEAST_ONE)
class FeatureNetConfig:
    """m units in each of L hidden layers (L = 0: a linear model), what they read, how and when they are trained.
    `memory` distinct contexts, and as many slates, are kept for training, as by `TrainingConfig`; None keeps all."""

    input: NetInputConfig = field(default_factory=NetInputConfig)
    width: int = 32
    depth: int = 1
    init: Literal["uniform", "he", "torch-default"] = "uniform"  # torch-default is uniform with biases
    adam: AdamConfig = field(default_factory=AdamConfig)
    retrain: RetrainConfig = field(default_factory=RetrainConfig)
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.depth == 0 and self.adam.dropout > 0:
            raise ConfigError("net: dropout leaves out hidden units, but depth is 0; use depth 1 or dropout 0")


def fit_network(
    net: Network, data: tuple[Tensor, Tensor, Tensor], config: AdamConfig, rng: np.random.Generator, head: bool = True
) -> Network:
    """`net` after training on data = (x, target, counts): rows x (u, d') seen counts (u,) times with mean target (u,).
    A minibatch draws rows in proportion to their counts. Training that ends in NaN returns `net` itself."""
    x, target, counts = data
    rows, y = augment(net, x).numpy().astype(np.float32), target.numpy().astype(np.float32)
    masks = dropout_masks(config.dropout, config.steps, net.weights[-1].shape[1] - net.bias, rng)
    batches = _batches(rows, y, counts.numpy(), config, rng)
    trained = adam(net, batches, rate=config.rate, decay=config.decay, head=head, masks=masks)
    return trained if finite(trained.weights) else net  # NaN weights could never be scored or trained again


def _batches(
    rows: Floats, y: Floats, counts: np.ndarray[tuple[int], np.dtype[np.float64]], config: AdamConfig,
    rng: np.random.Generator,
) -> Iterator[tuple[Floats, Floats, Floats | float]]:  # fmt: skip
    n = counts.sum()
    if config.batch_size is None or n <= config.batch_size:
        share = (counts / n).astype(np.float32)
        yield from ((rows, y, share) for _ in range(config.steps))
        return
    size = (config.steps, config.batch_size)
    if bool((counts == np.round(counts)).all()):
        owner = np.repeat(np.arange(len(counts)), counts.astype(np.int64))  # observation -> its distinct row
        picks = owner[rng.integers(len(owner), size=size)]
    else:
        picks = rng.choice(len(counts), size=size, p=counts / n)
    for pick in picks:
        yield rows[pick], y[pick], 1 / config.batch_size


def dropout_masks(chance: float, count: int, units: int, rng: np.random.Generator) -> Floats | None:
    """Masks of the last hidden layer, (count, m): 0, or 1/(1 − p) so that the expected activation stays; None at 0."""
    if chance == 0:
        return None
    kept = rng.random((count, units)) >= chance
    return (kept / (1 - chance)).astype(np.float32)


class NetInputs:
    """Encodes a round's contexts for the net, on the columns that can be non-zero or on all of them."""

    def __init__(self, config: NetInputConfig, dim: int) -> None:
        self.config = config
        self.encoder = Encoder(config.encoder, dim, even=False)
        self.dim = self.encoder.dim + int(config.pooled) + int(config.constant != 0)

    def distinct(self, round: Round) -> tuple[Tensor, Tensor, Tensor]:
        """Distinct contexts encoded (u, q'), the numbers of their columns (q',), every arm's row (n,)."""
        x, columns, group = distinct(self.encoder, round)
        return (*self._extended(round, x, columns), group)

    def at(self, round: Round, positions: Tensor) -> Tensor:
        """The given arms' contexts with all columns, (k, d')."""
        x, columns = self._extended(round, *encoded(self.encoder, round, positions))
        out = x.new_zeros(len(x), self.dim)
        out[:, columns] = x
        return out

    def _extended(self, round: Round, x: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Encoded contexts (n, q') with the pooled column and the constant, and the numbers of all columns."""
        blocks = [x]
        if self.config.pooled:
            blocks.append(pooled(x, masked=round.query is not None))
        if self.config.constant != 0:
            blocks.append(x.new_full((len(x), 1), self.config.constant))
        extra = torch.arange(self.encoder.dim, self.dim, dtype=columns.dtype)
        return torch.cat(blocks, 1), torch.cat([columns, extra])


def pooled(x: Tensor, masked: bool) -> Tensor:
    """Σ_j a_j with a = x/‖x‖₀ where contexts are masked and a = x where they are not: (n, q) -> (n, 1)."""
    total = x.sum(1, keepdim=True)
    return total / (x != 0).sum(1, keepdim=True).clamp(min=1) if masked else total


def net_shapes(config: FeatureNetConfig, dim: int) -> Iterator[tuple[str, Shape]]:
    """What a state of such a net on `dim` features holds at least."""
    inputs = NetInputs(config.input, dim).dim
    return numbered_shapes("weight", network_shapes(config.init, inputs, config.width, config.depth))


class FeatureNet:
    """φ(x; w), the last hidden layer, and f = W_L φ; `train` fits both to a history when it is due."""

    saved = ("net", "initial", "rho", "failures")

    def __init__(self, config: FeatureNetConfig, dim: int, seed: int, purpose: str = "feature net") -> None:
        self.config, self.seed, self.purpose = config, seed, purpose
        self.inputs = NetInputs(config.input, dim)
        self.encoder = self.inputs.encoder
        rng = stream(seed, purpose)
        self.initial = initial_network(config.init, self.inputs.dim, config.width, config.depth, 1.0, rng)
        self.net = self.initial
        self.watch = LearningWatch("the net")
        self.failures = 0  # trainings that ended in NaN or in a net without a live unit

    def features(self, x: Tensor, columns: Tensor | None = None) -> Tensor:
        """φ of encoded contexts (n, d'), or (n, q') on some columns, without the constant of biases: (n, m)."""
        net = self._on(columns)
        hidden = layers(net, augment(net, x))[0][-1]
        return hidden[:, :-1] if net.bias else hidden

    def predict(self, x: Tensor, columns: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """f of encoded contexts, (n,); `mask` (m,) multiplies φ."""
        net = self._on(columns)
        hidden = layers(net, augment(net, x))[0][-1]
        if mask is not None:
            hidden[:, : len(mask)] *= mask
        return output(net, hidden)

    def _on(self, columns: Tensor | None) -> Network:
        """The net for inputs that are given on these columns only."""
        if columns is None:
            return self.net
        bias = [columns.new_tensor([self.inputs.dim])] if self.net.bias else []
        return restrict(self.net, torch.cat([columns, *bias]))

    def history(self, slate_size: int) -> History:
        """An empty history of what the net reads."""
        return History(self.inputs.dim, slate_size, Limits(self.config.memory, self.config.memory, self.seed))

    def remember(self, history: History, round: Round, positions: Tensor, rewards: Tensor) -> list[int]:
        """Append the slate's contexts to the history with the rewards that were seen; their rows, in slate order."""
        contexts = self.inputs.at(round, positions)
        self.encoder.settle(round)
        self.watch.see(rewards)
        rows = [history.row(context) for context in contexts]
        for row, reward in zip(rows, rewards.tolist(), strict=True):
            if not math.isnan(reward):  # not observed, not learned
                history.observe_arm(row, reward)
        return rows

    def train(self, history: History, t: int, head: Tensor | None = None) -> bool:
        """Fit to all rewards observed if due after the t-th update; returns whether it was.
        A `head` (m,) is used as the output layer, and only the layers below are trained."""
        if not self.due(t):
            return False
        data = history.targets()
        if len(data[1]) == 0:
            return False
        self.fit(data, t, head)
        return True

    def due(self, t: int) -> bool:
        """Whether to train after the t-th update."""
        return self.config.retrain.due(t) and self.config.adam.steps > 0

    def fit(self, data: tuple[Tensor, Tensor, Tensor], t: int, head: Tensor | None = None) -> None:
        """Fit to data = (x (u, d'), mean rewards (u,), counts (u,)) after the t-th update."""
        start = self.initial if self.config.adam.start == "restart" else self.net
        if head is not None:
            start = replace(start, weights=(*start.weights[:-1], head.reshape(1, -1)))
        rng = stream(self.seed, f"{self.purpose} training", t)
        x, target, _ = data
        self.net = fit_network(start, data, self.config.adam, rng, head=head is None)
        failed, dead = self.net is start, lifeless(self.net, x, target)
        self.failures += failed + dead
        if dead:
            self._restart(data, t)
        self.watch.trained(failed or dead, target)

    def _restart(self, data: tuple[Tensor, Tensor, Tensor], t: int) -> None:
        """Another draw of initial weights, trained at once; untrained where training kills it too."""
        config, rng = self.config, stream(self.seed, f"{self.purpose} again", t)
        fresh = initial_network(config.init, self.inputs.dim, config.width, config.depth, 1.0, rng)
        trained = fit_network(fresh, data, config.adam, rng)
        self.net = fresh if lifeless(trained, *data[:2]) else trained

    state_dict, load_state_dict = saved_state, load_saved_state
