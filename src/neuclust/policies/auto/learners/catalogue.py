"""Learners that share all data: each predicts rewards and scores arms in its own way; built by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.models.bayes_linear import BayesLinearConfig
from neuclust.models.encoder import EncoderConfig
from neuclust.models.feature_net import AdamConfig, FeatureNet, FeatureNetConfig, NetInputConfig, net_shapes
from neuclust.models.state import Shape, nested_shapes
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.fourier_features import LENGTHS, VARIANCES, WAVES, Waves
from neuclust.policies.auto.learners.block_logistic import BlockLogistic, BlockLogisticConfig
from neuclust.policies.auto.learners.block_regression import (
    BlockLayout,
    BlockRegression,
    BlockRegressionConfig,
    regression_shapes,
)
from neuclust.policies.auto.learners.index_regression import IndexConfig, IndexRegression, index_shapes
from neuclust.policies.auto.learners.local_regression import LocalRegression
from neuclust.policies.auto.learners.net_regression import NetRegression
from neuclust.policies.auto.plays import Played, Plays
from neuclust.randomness import stream


class Learner(Protocol):
    """Reads features of contexts; `learn` is called with every slate, which `plays` holds already."""

    def means(self, features: Features) -> Tensor:
        """Expected rewards, (n,)."""
        ...

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:
        """What arms are ranked by in round t, and their expected rewards: (n,), (n,)."""
        ...

    def learn(self, played: Played, plays: Plays) -> None: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None: ...


@dataclass(frozen=True, slots=True)
class NetLearnerConfig:
    """One net and its posterior; a round ranks by one draw of `spread` posterior standard deviations.

    `decay` is that of the net named `net`, `strong_decay` of the one named `stiff-net`.
    """

    width: int = 32
    decay: float = 5e-4
    strong_decay: float = 2.5e-3
    steps: int = 200
    rate: float = 3e-3
    spread: float = 1.0
    posterior: BayesLinearConfig = field(default_factory=BayesLinearConfig)

    def __post_init__(self) -> None:
        check_entries(self)
        if not self.spread >= 0:
            raise ConfigError(f"net.spread: expected a number of at least 0, got {self.spread}")
        if not self.strong_decay >= 0:
            raise ConfigError(f"net.strong_decay: expected a number of at least 0, got {self.strong_decay}")
        self.net  # noqa: B018 - refuses what no net can be made of

    @property
    def net(self) -> FeatureNetConfig:
        """Contexts come encoded, with a constant and what features share among their columns."""
        given = NetInputConfig(EncoderConfig("raw"), pooled=False, constant=0.0)
        adam = AdamConfig(rate=self.rate, steps=self.steps, decay=self.decay)
        return FeatureNetConfig(given, width=self.width, init="he", adam=adam)


class NetLearner:
    """w̃ᵀx, w̃ ~ N(m, spread²Λ⁻¹) drawn once a round, x = [1, φ(z; θ)]."""

    def __init__(self, config: NetLearnerConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> None:
        self.spread, self.seed, self.purpose = config.spread, seed, purpose
        net = FeatureNet(config.net, blocks.input_size, seed, purpose)
        self.regression = NetRegression(net, config.posterior)

    def means(self, features: Features) -> Tensor:
        return self.regression.posterior.means(self.regression.features(features.inputs))

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:
        x, belief = self.regression.features(features.inputs), self.regression.posterior
        return x @ belief.draw(stream(self.seed, f"{self.purpose} draw", t), self.spread), belief.means(x)

    def learn(self, played: Played, plays: Plays) -> None:
        self.regression.learn(plays.history, played.rows, played.rewards, plays.slates)

    @property
    def failures(self) -> int:
        """Trainings that ended in NaN or in a net without a live unit."""
        return self.regression.net.failures

    def state_dict(self) -> dict[str, Tensor]:
        return self.regression.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.regression.load_state_dict(state)


@dataclass(frozen=True, slots=True)
class LearnersConfig:
    """Options of the learners; each bonus is how many standard deviations that one adds to its means."""

    linear_bonus: float = 1.0
    local_bonus: float = 2.0
    waves_bonus: float = 1.0
    regression: BlockRegressionConfig = field(default_factory=BlockRegressionConfig)
    logistic: BlockLogisticConfig = field(default_factory=BlockLogisticConfig)
    net: NetLearnerConfig = field(default_factory=NetLearnerConfig)
    index: IndexConfig = field(default_factory=IndexConfig)

    def __post_init__(self) -> None:
        check_entries(self)
        bonuses = {name: getattr(self, name) for name in ("linear_bonus", "local_bonus", "waves_bonus")}
        for name, bonus in bonuses.items():
            if not bonus >= 0:
                raise ConfigError(f"{name}: expected a number of at least 0, got {bonus}")


def _stiff(config: LearnersConfig) -> NetLearnerConfig:
    return replace(config.net, decay=config.net.strong_decay)


Maker = Callable[[LearnersConfig, FeatureBlocks, int, str], Learner]


def _linear(config: LearnersConfig, blocks: FeatureBlocks, *_: int | str) -> Learner:
    return BlockRegression.leading(config.regression, blocks, "mask", config.linear_bonus)


def _local(config: LearnersConfig, blocks: FeatureBlocks, *_: int | str) -> Learner:
    assert blocks.places is not None  # `fitting_learners` leaves it out elsewhere
    return LocalRegression(config.regression, blocks.places, config.local_bonus)


def _waves(config: LearnersConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> Learner:
    waves = Waves.of(blocks, seed, purpose)
    return BlockRegression(config.regression, BlockLayout(waves.sizes, VARIANCES), waves, config.waves_bonus)


# name -> how it is made from the options, the blocks, a seed and a purpose for its random numbers
LEARNERS: dict[str, Maker] = {
    "linear": _linear,
    "local": _local,
    "quadratic": lambda config, blocks, *_: BlockRegression.leading(config.regression, blocks, "crosses", 0.0),
    "logistic": lambda config, blocks, *_: BlockLogistic(config.logistic, blocks, "crosses"),
    "additive": lambda config, blocks, *_: BlockLogistic(config.logistic, blocks, "squares"),
    "waves": _waves,
    "index": lambda config, blocks, seed, purpose: IndexRegression(
        config.index, config.regression, blocks, seed, purpose
    ),
    "net": lambda config, blocks, seed, purpose: NetLearner(config.net, blocks, seed, purpose),
    "stiff-net": lambda config, blocks, seed, purpose: NetLearner(_stiff(config), blocks, seed, purpose),
}


def learner_shapes(name: str, config: LearnersConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of the learner of this name holds at least."""
    if name in ("net", "stiff-net"):
        yield from nested_shapes("net", net_shapes(config.net.net, blocks.input_size))
        yield "posterior.gram", (config.net.width + 1, config.net.width + 1)
    elif name == "index":
        yield from index_shapes(config.index, blocks)
    elif name == "waves":
        yield from regression_shapes(blocks.input_size + WAVES * len(LENGTHS))
    elif name in ("linear", "quadratic"):
        yield from regression_shapes(sum(blocks.sizes("mask" if name == "linear" else "crosses").values()))
    elif name in ("logistic", "additive"):
        yield "mean", (sum(blocks.sizes("crosses" if name == "logistic" else "squares").values()),)


def learner_names(text: str) -> tuple[str, ...]:
    """`linear,net` as names; unknown ones and none at all are refused."""
    names = tuple(word.strip() for word in text.split(","))
    unknown = [name for name in names if name not in LEARNERS]
    if unknown or len(set(names)) < len(names):
        raise ConfigError(f"learners: expected some of {', '.join(LEARNERS)}, each at most once, got {text!r}")
    return names


def fitting_learners(names: Sequence[str], blocks: FeatureBlocks) -> list[str]:
    """Those that have something to say of such contexts.

    Without crosses the logistic learner is the additive one: a copy would only cost time; and there are too many
    directions for `index` to tell which count. Without clusters nothing is local. Where nobody is left the linear
    learner is.
    """
    left_out = set()
    if not blocks.crossed:
        left_out |= {"index", "logistic"} if "additive" in names else {"index"}
    if blocks.places is None:
        left_out.add("local")
    return [name for name in names if name not in left_out] or ["linear"]
