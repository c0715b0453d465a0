"""The learners of an ensemble by name: each predicts rewards and scores arms from the same data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, check_ranges
from neuclust.errors import ConfigError
from neuclust.models.feature_net import net_shapes
from neuclust.models.state import Shape, nested_shapes
from neuclust.policies.auto.basis import FOURIER_VARIANCES, FREQUENCIES, LENGTH_SCALES, FourierFeatures
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.learners.block_logistic import BlockLogistic, BlockLogisticConfig
from neuclust.policies.auto.learners.block_regression import (
    BlockPrior,
    BlockRegression,
    BlockRegressionConfig,
    regression_shapes,
)
from neuclust.policies.auto.learners.index_regression import IndexConfig, IndexRegression, index_shapes
from neuclust.policies.auto.learners.local_regression import LocalRegression
from neuclust.policies.auto.learners.net_regression import NetLearner, NetLearnerConfig
from neuclust.policies.auto.plays import Played, Plays


class Learner(Protocol):
    """A model of rewards; `learn` is called after every slate, which `plays` holds already."""

    def means(self, features: Features) -> Tensor:
        """Expected rewards, (n,)."""
        ...

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:
        """Scores that rank arms in round t, and expected rewards: (n,), (n,)."""
        ...

    def learn(self, played: Played, plays: Plays) -> None: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None: ...


@dataclass(frozen=True, slots=True)
class LearnersConfig:
    """Options of the learners; each bonus is the number of standard deviations added to that learner's means."""

    RENAMED: ClassVar[Mapping[str, str]] = {"waves_bonus": "fourier_bonus"}

    linear_bonus: float = 1.0
    local_bonus: float = 2.0
    fourier_bonus: float = 1.0
    regression: BlockRegressionConfig = field(default_factory=BlockRegressionConfig)
    logistic: BlockLogisticConfig = field(default_factory=BlockLogisticConfig)
    net: NetLearnerConfig = field(default_factory=NetLearnerConfig)
    index: IndexConfig = field(default_factory=IndexConfig)

    def __post_init__(self) -> None:
        check_ranges(self, linear_bonus=NON_NEGATIVE, local_bonus=NON_NEGATIVE, fourier_bonus=NON_NEGATIVE)


Maker = Callable[[LearnersConfig, FeatureBlocks, int, str], Learner]

# the last feature block of learners that read feature blocks
LAST_BLOCK = {"linear": "mask", "quadratic": "crosses", "logistic": "crosses", "additive": "squares"}


def _local(config: LearnersConfig, blocks: FeatureBlocks, *_: int | str) -> Learner:
    assert blocks.clusters is not None  # `fitting_learners` leaves it out elsewhere
    return LocalRegression(config.regression, blocks.clusters, config.local_bonus)


def _fourier(config: LearnersConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> Learner:
    basis = FourierFeatures.of(blocks, seed, purpose)
    return BlockRegression(config.regression, BlockPrior(basis.sizes, FOURIER_VARIANCES), basis, config.fourier_bonus)


def _regression(last: str, bonus: Callable[[LearnersConfig], float]) -> Maker:
    return lambda config, blocks, *_: BlockRegression.leading(config.regression, blocks, last, bonus(config))


def _logistic(last: str) -> Maker:
    return lambda config, blocks, *_: BlockLogistic(config.logistic, blocks, last)


def _net(config: LearnersConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> Learner:
    return NetLearner(config.net, blocks, seed, purpose)


def _stiff_net(config: LearnersConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> Learner:
    return NetLearner(replace(config.net, decay=config.net.strong_decay), blocks, seed, purpose)


def _index(config: LearnersConfig, blocks: FeatureBlocks, seed: int, purpose: str) -> Learner:
    return IndexRegression(config.index, config.regression, blocks, seed, purpose)


# name -> constructor from the options, the feature blocks, a seed and a purpose for its random numbers
LEARNERS: dict[str, Maker] = {
    "linear": _regression(LAST_BLOCK["linear"], lambda config: config.linear_bonus),
    "local": _local,
    "quadratic": _regression(LAST_BLOCK["quadratic"], lambda _: 0.0),
    "logistic": _logistic(LAST_BLOCK["logistic"]),
    "additive": _logistic(LAST_BLOCK["additive"]),
    "fourier": _fourier,
    "index": _index,
    "net": _net,
    "stiff-net": _stiff_net,
}

# earlier names of learners: they still label random streams, which fix every number, and tensors of saves
SAVED_AS = {"fourier": "waves"}


def learner_shapes(name: str, config: LearnersConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of the learner of this name holds at least."""
    if name in ("net", "stiff-net"):
        yield from nested_shapes("net", net_shapes(config.net.net, blocks.input_size))
        yield "posterior.gram", (config.net.width + 1, config.net.width + 1)
    elif name == "index":
        yield from index_shapes(config.index, blocks)
    elif name == "fourier":
        yield from regression_shapes(blocks.input_size + FREQUENCIES * len(LENGTH_SCALES))
    elif name in LAST_BLOCK:
        size = sum(blocks.sizes(LAST_BLOCK[name]).values())
        yield from [("mean", (size,))] if name in ("logistic", "additive") else regression_shapes(size)


def learner_names(text: str) -> tuple[str, ...]:
    """`linear,net` as names; unknown ones and none at all are refused."""
    names = tuple(word.strip() for word in text.split(","))
    unknown = [name for name in names if name not in LEARNERS]
    if unknown or len(set(names)) < len(names):
        raise ConfigError(f"learners: expected some of {', '.join(LEARNERS)}, each at most once, got {text!r}")
    return names


def fitting_learners(names: Sequence[str], blocks: FeatureBlocks) -> list[str]:
    """The learners that apply to such contexts; `linear` where none does.

    Without crosses the logistic learner equals the additive one, and there are too many directions for `index`. Without
    clusters there is no `local`.
    """
    left_out = set()
    if not blocks.crossed:
        left_out |= {"index", "logistic"} if "additive" in names else {"index"}
    if blocks.clusters is None:
        left_out.add("local")
    return [name for name in names if name not in left_out] or ["linear"]
