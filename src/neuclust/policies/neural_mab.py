"""Neural-MAB (Lin, Yao, Zhang, Noh, Joe-Wong, HotMobile 2022), after its one-sentence description: a net for an arm's
quality, one for a slate's reward, and greedy slates. The `authors` presets are what the code published with NeUClust
runs under this name: one linear layer, a new Adam every round, the top K of its predictions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.core import Design, Feedback, Round, Slate
from neuclust.errors import ConfigError
from neuclust.kernels.ranking import greedy_slate, top
from neuclust.models.feature_net import FeatureNet, FeatureNetConfig, RetrainConfig, dropout_masks, net_shapes
from neuclust.models.fitting import TrainingConfig
from neuclust.models.state import Shape, nested_shapes, saved_state
from neuclust.persistence import save_policy
from neuclust.policies.wiring import check_update, failed_net_trainings, load_net_state, readable, settle_net
from neuclust.randomness import stream
from neuclust.slates import slate_model
from neuclust.slates.propensities import one_coin_slate
from neuclust.slates.rules import within_rules
from neuclust.slates.slate_model import SlateModel, SlateModelConfig, SlateNet, SlateNetConfig
from neuclust.slates.ties import ones, tie_rank


def _monotone_slates() -> SlateModelConfig:
    return SlateModelConfig(train_input="realised", training=TrainingConfig(train_every=10))


@dataclass(frozen=True, slots=True)
@checked(epsilon=NON_NEGATIVE)
class NeuralMABConfig:
    """`net` is f_A; f_B is `monotone` (`slate`), `plain` (`slate_net`), or `none`: the top K by quality.
    `shortcut`: the greedy slate of a monotone f_B is the top K by quality, without evaluating f_B. `epsilon` is c in
    ε_t = min(1, c/t), the chance of a slate at random. With `net.adam.dropout` one mask per round is used to select."""

    net: FeatureNetConfig = field(default_factory=lambda: FeatureNetConfig(retrain=RetrainConfig(first_every=1)))
    slate_kind: Literal["monotone", "plain", "none"] = "monotone"
    slate: SlateModelConfig = field(default_factory=_monotone_slates)
    slate_net: SlateNetConfig = field(default_factory=SlateNetConfig)
    shortcut: bool = True
    epsilon: float = 0.0
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        if self.shortcut and self.slate_kind == "plain":
            raise ConfigError("shortcut: expected slate_kind=monotone, got plain, whose greedy slate may be another")
        if self.slate_kind == "monotone" and not (self.slate.sort_input and self.slate.relu_input):
            raise ConfigError("slate: expected sort_input and relu_input, since a slate that grows has empty slots")


class NeuralMAB:
    """S = ∅; K times i* = argmax_{i ∉ S} f_B(s(S ∪ {i})) − f_B(s(S)), S ← S ∪ {i*}, s(S) = sorted q̂_S, zero-padded.
    q̂_i = f_A(x_i). Ties go to the larger q̂, then the smaller arm id."""

    name = "neural-mab"
    save = save_policy
    saved = ("net", "slates", "history", "seed", "updates")

    def __init__(self, config: NeuralMABConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.net = FeatureNet(config.net, dim, seed)  # f_A
        self.history = self.net.history(slate_size)
        self.slates: SlateModel | SlateNet | None = None  # f_B
        if config.slate_kind == "monotone":
            self.slates = SlateModel(config.slate, slate_size, seed)
        elif config.slate_kind == "plain":
            self.slates = SlateNet(config.slate_net, slate_size, seed)
        self.updates = 0

    def select(self, round: Round) -> Slate:
        qualities = self.scores(round)

        def greedy(some: Round) -> Slate:
            own = qualities if some is round else self.scores(some)
            positions = self._greedy(some, own)
            return Slate(positions, own[positions], torch.zeros_like(own[positions]), ones(len(positions)))

        positions = within_rules(round, greedy).positions
        chances, design = ones(len(positions)), Design("deterministic", tuple(positions.tolist()))
        if self.config.epsilon > 0:
            epsilon, rng = min(1.0, self.config.epsilon / round.t), stream(self.seed, "neural-mab", round.key)
            design = Design("one-coin", design.base, epsilon)
            positions, chances = one_coin_slate(positions, round, epsilon, rng)
        # the share of a dropout mask, or of ties broken at random, in the chances is not known
        known = self.config.net.adam.dropout == 0 and self.config.tie == "id"
        bonuses = torch.zeros(len(positions), dtype=torch.float64)
        if not known:
            return Slate(positions, qualities[positions], bonuses)
        return Slate(positions, qualities[positions], bonuses, chances, design=design)

    def scores(self, round: Round) -> Tensor:
        """q̂ of every arm, (n,)."""
        round = readable(self, round)
        x, columns, group = self.net.inputs.distinct(round)
        return self.net.predict(x, columns, self._mask(round.key))[group]

    def _greedy(self, round: Round, qualities: Tensor) -> Tensor:
        rank = tie_rank(round, self.config.tie, self.seed)
        if self.slates is None or self.config.shortcut:
            return top(qualities, rank, round.slate_size)
        return greedy_slate(self.slates.value, qualities, rank, round.slate_size)

    def _mask(self, key: int) -> Tensor | None:
        chance, rng = self.config.net.adam.dropout, stream(self.seed, "neural-mab dropout", key)
        mask = dropout_masks(chance, 1, self.config.net.width, rng)
        return None if mask is None else torch.from_numpy(mask[0]).to(torch.float64)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        round = round.read
        rows = self.net.remember(self.history, round, slate.positions, feedback.arm_rewards)
        if not bool(torch.isnan(feedback.slate_reward)):
            predicted = self.net.predict(self.history.contexts.rows[rows])
            self.history.observe_slate(rows, float(feedback.slate_reward), feedback.arm_rewards, predicted)
        self.updates += 1
        self.net.train(self.history, self.updates)
        if self.slates is not None:
            self.slates.train(self.history, self.net.predict(self.history.contexts.rows), self.updates)
        self.history.end_update()
        self.net.watch.speak()

    @staticmethod
    def saved_shapes(config: NeuralMABConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:
        """What a save holds at least."""
        yield from nested_shapes("net", net_shapes(config.net, dim))
        if config.slate_kind == "monotone":
            yield from nested_shapes("slates", slate_model.slate_shapes(config.slate, slate_size))
        if config.slate_kind == "plain":
            yield from nested_shapes("slates", slate_model.slate_net_shapes(config.slate_net, slate_size))

    settle, state_dict, load_state_dict = settle_net, saved_state, load_net_state
    failed_trainings = property(failed_net_trainings)
