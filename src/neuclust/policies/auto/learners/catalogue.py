"""The learners of an ensemble by name: each predicts rewards and scores arms from the same data."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.errors import ConfigError
from neuclust.models.feature_net import net_shapes
from neuclust.models.state import Shape, nested_shapes
from neuclust.policies.auto.features import MOST_COMPILED, FeatureBlocks, Features
from neuclust.policies.auto.learners import block_regression as blocked
from neuclust.policies.auto.learners.block_logistic import BlockLogistic, BlockLogisticConfig
from neuclust.policies.auto.learners.block_regression import BlockRegression
from neuclust.policies.auto.learners.forest_regression import ForestRegression, forest_shapes
from neuclust.policies.auto.learners.index_regression import IndexConfig, IndexRegression, index_shapes
from neuclust.policies.auto.learners.local_regression import LocalRegression
from neuclust.policies.auto.learners.net_regression import NetLearner, NetLearnerConfig
from neuclust.policies.auto.plays import Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling


class Learner(Protocol):
    """A model of rewards; `learn` is called after every slate, which `plays` holds already."""

    def means(self, features: Features) -> Tensor:
        """Expected rewards of a slate's contexts, which `learn` reads next, (n,)."""
        ...

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:
        """Scores that rank arms in round t, and expected rewards: (n,), (n,)."""
        ...

    def learn(self, played: Played, plays: Plays) -> None: ...

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:
        """Read all rewards on another range, where they have another scale."""
        ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None: ...


@dataclass(frozen=True, slots=True)
@checked(linear_bonus=NON_NEGATIVE, local_bonus=NON_NEGATIVE)
class LearnersConfig:
    """Options of the learners. Each bonus is the number of standard deviations added to that learner's means; those
    without one are greedy, or have an option of their own."""

    linear_bonus: float = 1.0
    local_bonus: float = 2.0
    regression: blocked.BlockRegressionConfig = field(default_factory=blocked.BlockRegressionConfig)
    logistic: BlockLogisticConfig = field(default_factory=BlockLogisticConfig)
    net: NetLearnerConfig = field(default_factory=NetLearnerConfig)
    index: IndexConfig = field(default_factory=IndexConfig)


Maker = Callable[[LearnersConfig, FeatureBlocks, int, str], Learner]

# the last feature block of learners that read feature blocks
LAST_BLOCK = {"linear": "mask", "logistic": "crosses", "additive": "squares", "recent": "squares"}

# Σ p(1 − p) per column that learners hold at most: log-odds known to about 0.18, and to about 0.35 with a quarter of it
MEMORY = {"additive": 16.0, "recent": 4.0}


def _fading(name: str, config: LearnersConfig, blocks: FeatureBlocks) -> Learner:
    """Without crosses `additive` is the only logistic learner but `recent`, and forgets nothing."""
    memory = MEMORY[name] if blocks.crossed or name == "recent" else math.inf
    return BlockLogistic(config.logistic, blocks, LAST_BLOCK[name], memory)


def _local(config: LearnersConfig, blocks: FeatureBlocks) -> Learner:
    assert blocks.clusters is not None  # `fitting_learners` leaves it out elsewhere
    return LocalRegression(config.regression, blocks.clusters, config.local_bonus)


# name -> constructor from the options c, the feature blocks b, a seed s and a purpose p for its random numbers
LEARNERS: dict[str, Maker] = {
    "linear": lambda c, b, *_: BlockRegression(c.regression, b, LAST_BLOCK["linear"], c.linear_bonus),
    "local": lambda c, b, *_: _local(c, b),
    "logistic": lambda c, b, *_: BlockLogistic(c.logistic, b, LAST_BLOCK["logistic"]),
    "additive": lambda c, b, *_: _fading("additive", c, b),
    "recent": lambda c, b, *_: _fading("recent", c, b),
    "index": lambda c, b, s, p: IndexRegression(c.index, c.regression, b, s, p),
    "forest": lambda c, b, s, p: ForestRegression(b, s, p),  # noqa: ARG005
    "net": lambda c, b, s, p: NetLearner(c.net, b, s, p),
}


def learner_shapes(name: str, config: LearnersConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of the learner of this name holds at least."""
    if name == "net":
        yield from nested_shapes("net", net_shapes(config.net.net, blocks.input_size))
        yield "posterior.gram", (config.net.width + 1, config.net.width + 1)
    elif name == "forest":
        yield from forest_shapes()
    elif name == "index":
        yield from index_shapes(config.index, blocks)
    elif name in LAST_BLOCK:
        size = sum(blocks.sizes(LAST_BLOCK[name]).values())
        yield from blocked.regression_shapes(size)


def checked_names(text: str) -> str:
    """`linear,net`; unknown names, equal ones and none at all are refused."""
    names = [word.strip() for word in text.split(",")]
    if not set(names) <= set(LEARNERS) or len(set(names)) < len(names):
        raise ConfigError(f"learners: expected some of {', '.join(LEARNERS)}, each at most once, got {text!r}")
    return ",".join(names)


def fitting_learners(names: str, blocks: FeatureBlocks) -> list[str]:
    """The learners out of `linear,net` that apply to such contexts; `linear` where none does.
    Without crosses `logistic` equals `additive`, and there are too many directions for `index`. Without clusters there
    is no `local`."""
    given, left_out = names.split(","), set()
    if not blocks.crossed:
        left_out |= {"index", "logistic"} if "additive" in given else {"index"}
    if blocks.clusters is None:
        left_out.add("local")
    if blocks.dim > MOST_COMPILED:
        left_out.add("forest")
    return [name for name in given if name not in left_out] or ["linear"]
