"""The histories of R runs and the losses of both networks on them, in buffers that never move."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from neuclust.experiment.engines.device import fused
from neuclust.experiment.engines.device.networks import (
    ArmPass,
    Parameters,
    SlateShape,
    arm_pass,
    row_factors,
    slate_norms,
    slate_pass,
    slate_slopes,
)
from neuclust.slates.slate_model import SlateModelConfig, slate_projection


class ArmLoss:
    """Every arm played, in order: contexts (R, d', room) by column, rewards (R, room)."""

    def __init__(self, runs: int, dim: int, room: int, scale: float, device: torch.device) -> None:
        self._scale = scale
        self.contexts = torch.zeros(runs, dim, room, dtype=torch.float64, device=device)
        self.target, self.weight = (torch.zeros(runs, room, dtype=torch.float64, device=device) for _ in range(2))

    def write(self, rows: Tensor, contexts: Tensor, columns: Tensor, rewards: Tensor) -> None:
        """K played arms a run into rows (K,): contexts (R, K, q) on the given columns, rewards (R, K)."""
        self.contexts[:, columns.unsqueeze(1), rows] = contexts.mT
        self.target.index_copy_(1, rows, rewards)

    def predict(self, parameters: Parameters, rows: int) -> Tensor:
        """f of the first rows, (R, rows)."""
        return self._pass(parameters, self._rows(rows)).means

    def loss(self, parameters: Parameters, rows: int) -> Tensor:
        gap = self.predict(parameters, rows) - self.target[:, :rows]
        return 0.5 * (self.weight[:, :rows] * gap * gap).sum(1)

    def curvature(self, parameters: Parameters, rows: int) -> Tensor:
        x = self._rows(rows)
        factors = row_factors(self._pass(parameters, x), parameters[1], x, self._scale)
        return (self.weight[:, :rows] * factors.squared_norms()).sum(1)

    def gradient(self, parameters: Parameters, rows: int) -> Parameters:
        """∇W_0 = diag(w_1) G, ∇w_1 = (W_0 ⊙ G) 1 for G = Σ_i e_i σ'(h_i) x_iᵀ, e = s·weight·(f − target)."""
        first, last = parameters
        x = self._rows(rows)
        active = torch.relu(torch.matmul(x, first.mT))
        means = self._scale * torch.matmul(active, last.unsqueeze(-1)).squeeze(-1)
        error = self._scale * self.weight[:, :rows] * (means - self.target[:, :rows])
        pulled = torch.sign(active).mT @ (error.unsqueeze(-1) * x)
        return last.unsqueeze(-1) * pulled, (first * pulled).sum(-1)

    def project(self, parameters: Parameters) -> None:
        """Arm weights may be anything."""

    def steps_at_once(
        self, parameters: Parameters, home: Parameters | None, rows: int, steps: int, step: Tensor, pull: Tensor
    ) -> bool:
        """All steps by two kernels each, where that is possible and quicker; says whether it was done."""
        if not fused.serves_arms(parameters):
            return False
        fused.arm_steps(self.contexts, self.target, self.weight, parameters, home, rows, steps, step, pull, self._scale)
        return True

    def _pass(self, parameters: Parameters, x: Tensor) -> ArmPass:
        first, last = parameters
        return arm_pass(first, last, x, self._scale)

    def _rows(self, rows: int) -> Tensor:
        return self.contexts[:, :, :rows].mT


class SlateLoss:
    """Every slate played: what F reads of it (R, K, room) by arm, and its reward (R, room)."""

    def __init__(
        self, config: SlateModelConfig, shape: SlateShape, runs: int, slate_size: int, room: int, device: torch.device
    ) -> None:
        self._config, self._shape, self._project = config, shape, slate_projection(config)
        self.inputs = torch.zeros(runs, slate_size, room, dtype=torch.float64, device=device)
        self.target, self.weight = (torch.zeros(runs, room, dtype=torch.float64, device=device) for _ in range(2))

    def write(self, row: Tensor, rewards: Tensor) -> None:
        """The slate's reward in every run, (R,), into row (1,)."""
        self.target.index_copy_(1, row, rewards.unsqueeze(1))

    def read(self, rewards: Tensor) -> None:
        """What the slates so far are worth to F: arm rewards (R, slates, K), believed today."""
        self.inputs[:, :, : rewards.shape[1]] = self.prepare(rewards).mT

    def prepare(self, rewards: Tensor) -> Tensor:
        """As slates/slate_model.SlateModel.prepare: rectified and sorted descending, unless configured otherwise."""
        if self._config.relu_input:
            rewards = torch.relu(rewards)
        return torch.sort(rewards, dim=-1, descending=True).values if self._config.sort_input else rewards

    def value(self, parameters: Parameters, rewards: Tensor) -> Tensor:
        """F of slates (R, n, K), prepared here: (R, n)."""
        return slate_pass(parameters, self._shape, self.prepare(rewards))[1]

    def loss(self, parameters: Parameters, rows: int) -> Tensor:
        gap = slate_pass(parameters, self._shape, self._rows(rows))[1] - self.target[:, :rows]
        return 0.5 * (self.weight[:, :rows] * gap * gap).sum(1)

    def curvature(self, parameters: Parameters, rows: int) -> Tensor:
        return (self.weight[:, :rows] * slate_norms(parameters, self._shape, self._rows(rows))).sum(1)

    def gradient(self, parameters: Parameters, rows: int) -> Parameters:
        return slate_slopes(parameters, self._shape, self._rows(rows), self.target[:, :rows], self.weight[:, :rows])

    def project(self, parameters: Parameters) -> None:
        if self._project is not None:
            self._project(parameters)

    def steps_at_once(
        self, parameters: Parameters, home: Parameters | None, rows: int, steps: int, step: Tensor, pull: Tensor
    ) -> bool:
        """All steps by two kernels each, where that is possible; says whether it was done."""
        if self._project is not None or not fused.serves_slates(parameters, self._shape):
            return False
        fused.slate_steps(
            self.inputs, self.target, self.weight, parameters, home, rows, steps, step, pull, self._shape.scales
        )
        return True

    def _rows(self, rows: int) -> Tensor:
        return self.inputs[:, :, :rows].mT


def initial_parameters(nets: Sequence[Parameters], device: torch.device) -> Parameters:
    """Parameters of R networks, (R, …) each."""
    return tuple(torch.stack(same).to(device) for same in zip(*nets, strict=True))
