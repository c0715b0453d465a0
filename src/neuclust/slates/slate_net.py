"""A plain net from the qualities of a slate's arms to the slate's reward, which need not be monotone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, checked
from neuclust.kernels.initial import initial_network, network_shapes
from neuclust.kernels.network import forward
from neuclust.models.feature_net import AdamConfig, RetrainConfig, fit_network
from neuclust.models.history import History
from neuclust.models.state import Shape, numbered, numbered_shapes, take_numbered
from neuclust.randomness import stream
from neuclust.slates.slate_model import slates_seen


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
    """R̂ = f_B(s), s = a slate's qualities, rectified, sorted descending and padded with zeros to K."""

    def __init__(self, config: SlateNetConfig, slate_size: int, seed: int) -> None:
        self.config, self.seed = config, seed
        rng = stream(seed, "slate net")
        self.initial = initial_network("torch-default", slate_size, config.width, config.depth, 1.0, rng)
        self.net = self.initial

    def prepare(self, qualities: Tensor) -> Tensor:
        """s of qualities (…, K), zeros where a slot is empty."""
        return torch.sort(torch.relu(qualities), dim=-1, descending=True).values

    def value(self, qualities: Tensor) -> Tensor:
        """R̂ of slates (n, K) -> (n,)."""
        return forward(self.net, self.prepare(qualities))

    def train(self, history: History, predicted: Tensor, updates: int) -> None:
        """Fit to all slates seen, if it is time to; `predicted` (u,) are the qualities of the history's contexts."""
        qualities, target, counts = slates_seen(history, predicted, self.config.train_input)
        if not self.config.retrain.due(updates) or len(target) == 0 or self.config.adam.steps == 0:
            return
        rng = stream(self.seed, "slate net training", updates)
        start = self.initial if self.config.adam.start == "restart" else self.net
        self.net = fit_network(start, (self.prepare(qualities), target, counts), self.config.adam, rng)

    def state_dict(self) -> dict[str, Tensor]:
        return numbered("weight", self.net.weights)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.net = replace(self.net, weights=take_numbered(state, "weight", self.net.weights))
