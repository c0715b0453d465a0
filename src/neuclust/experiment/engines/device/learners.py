"""The histories of R runs and the losses of both networks on them, in buffers that never move."""

import torch
from torch import Tensor

from neuclust.experiment.engines.device import fused
from neuclust.kernels.monotone import MonotoneNetwork, slate_gradient_norms, slate_gradients, slate_inputs, slate_value
from neuclust.kernels.network import Network, forward, layer_factors, squared_norms
from neuclust.kernels.regions import group_rows
from neuclust.kernels.training import (
    SAMPLE,
    Examples,
    Parameters,
    Steps,
    arm_gradients,
    arm_objective,
    squared_loss,
    unresponsive,
)
from neuclust.slates.slate_model import SlateModelConfig, slate_projection


class ArmLoss:
    """Every arm played, in order: contexts (R, d', room) by column, rewards and weights (R, room)."""

    def __init__(self, net: Network, room: int) -> None:
        self._scale = net.scale
        self._data = _buffers(net.weights[0], net.weights[0].shape[-1], room)
        self.target, self.weight = self._data.target, self._data.weight

    def write(self, rows: Tensor, contexts: Tensor, columns: Tensor, rewards: Tensor) -> None:
        """K played arms per run into rows (K,): contexts (R, K, q) on the given columns, rewards (R, K)."""
        self._data.inputs[:, columns.unsqueeze(1), rows] = contexts.mT
        self.target.index_copy_(1, rows, rewards)

    def net(self, parameters: Parameters) -> Network:
        """The networks of all runs."""
        return Network(parameters, self._scale)

    def predict(self, parameters: Parameters, rows: int) -> Tensor:
        """f of the first rows, (R, rows)."""
        return forward(self.net(parameters), _first(self._data, rows).inputs)

    def loss(self, parameters: Parameters, rows: int) -> Tensor:
        return arm_objective(self.net(parameters), *_first(self._data, rows))

    def curvature(self, parameters: Parameters, rows: int) -> Tensor:
        x, _, weight = _first(self._data, rows)
        return (weight * squared_norms(layer_factors(self.net(parameters), x))).sum(-1)

    def gradient(self, parameters: Parameters, rows: int) -> Parameters:
        return arm_gradients(self.net(parameters), *_first(self._data, rows))

    def project(self, parameters: Parameters) -> None:
        """Arm weights may be anything."""

    def steps_at_once(self, parameters: Parameters, rows: int, steps: Steps) -> bool:
        """All steps by two kernels each, where that is possible and faster; says whether it was done."""
        if not fused.serves_arms(parameters):
            return False
        fused.arm_steps(self._data, parameters, rows, steps, self._scale)
        return True

    def unresponsive(self, parameters: Parameters, filled: Tensor) -> Tensor:
        """Runs that may have to restart (R,): all hidden units answer the first of the `filled` (1,) rows alike."""
        places = torch.arange(min(SAMPLE, self.target.shape[1]), device=filled.device)
        rows = torch.where(places < filled, places, 0)
        return unresponsive(self.net(parameters), self._data.inputs[:, :, rows].mT)

    def distinct(self, run: int, filled: int) -> tuple[Tensor, Tensor]:
        """Distinct contexts of one run (u, d') in order of first play and their mean rewards (u,), on the host."""
        contexts, rewards = self._data.inputs[run, :, :filled].T.cpu(), self.target[run, :filled].cpu()
        first, group = group_rows(contexts)
        sums, counts = (torch.zeros(len(first), dtype=torch.float64) for _ in range(2))
        sums.index_add_(0, group, rewards)
        counts.index_add_(0, group, torch.ones_like(rewards))
        return contexts[first], sums / counts


class SlateLoss:
    """Every slate played: what F reads of it (R, K, room) by arm, its reward and weight (R, room)."""

    def __init__(self, config: SlateModelConfig, net: MonotoneNetwork, room: int) -> None:
        self._config, self._net, self._project = config, net, slate_projection(config)
        self._data = _buffers(net.weights[0], net.weights[0].shape[-1], room)
        self.target, self.weight = self._data.target, self._data.weight

    def write(self, row: Tensor, rewards: Tensor) -> None:
        """The slate's reward in every run, (R,), into row (1,)."""
        self.target.index_copy_(1, row, rewards.unsqueeze(1))

    def read(self, rewards: Tensor) -> None:
        """F reads the slates so far by arm rewards (R, slates, K) as predicted now."""
        self._data.inputs[:, :, : rewards.shape[1]] = self._prepared(rewards).mT

    def value(self, parameters: Parameters, rewards: Tensor) -> Tensor:
        """F of slates (R, n, K), prepared here: (R, n)."""
        return slate_value(self._net.with_parameters(parameters), self._prepared(rewards))

    def loss(self, parameters: Parameters, rows: int) -> Tensor:
        inputs, target, weight = _first(self._data, rows)
        return squared_loss(slate_value(self._net.with_parameters(parameters), inputs), target, weight)

    def curvature(self, parameters: Parameters, rows: int) -> Tensor:
        inputs, _, weight = _first(self._data, rows)
        return (weight * slate_gradient_norms(self._net.with_parameters(parameters), inputs)).sum(-1)

    def gradient(self, parameters: Parameters, rows: int) -> Parameters:
        return slate_gradients(self._net.with_parameters(parameters), *_first(self._data, rows))

    def project(self, parameters: Parameters) -> None:
        if self._project is not None:
            self._project(parameters)

    def steps_at_once(self, parameters: Parameters, rows: int, steps: Steps) -> bool:
        """All steps by two kernels each, where that is possible; says whether it was done."""
        if self._project is not None or not fused.serves_slates(self._net.with_parameters(parameters)):
            return False
        fused.slate_steps(self._data, parameters, rows, steps, self._net.scales)
        return True

    def _prepared(self, rewards: Tensor) -> Tensor:
        return slate_inputs(rewards, self._config.relu_input, self._config.sort_input)


def _buffers(like: Tensor, dim: int, room: int) -> Examples:
    """Room for inputs (R, dim, room) by column, targets and weights (R, room)."""
    runs = len(like)
    return Examples(like.new_zeros(runs, dim, room), like.new_zeros(runs, room), like.new_zeros(runs, room))


def _first(data: Examples, rows: int) -> Examples:
    """The first rows, with inputs by row (R, rows, dim)."""
    return Examples(data.inputs[:, :, :rows].mT, data.target[:, :rows], data.weight[:, :rows])
