"""Fitting a network to what was observed: the configuration and the one routine both networks use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.kernels.network import Network
from neuclust.kernels.training import (
    Descent,
    Gradient,
    Number,
    Parameters,
    Projection,
    Steps,
    automatic_step,
    descend,
    finite,
    guarded,
    lifeless,
    pull_energy,
)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a network is fitted after a round to its n observations.

    Objective for loss_norm `mean`: (factor·½Σ(f − r)² + (pull/2)‖θ − anchor‖²)/n; for `sum` without the 1/n.
    pull = ridge × the width (`pull_by_width`, the paper's mλ), × n with `pull_inside_sum`, as its slate loss is
    printed. `step` None is automatic: `step_share` over a bound on the curvature. With `guard`, steps that
    would end above the starting objective are halved; with `revive` too, a network without a live unit, whose
    gradient is 0 from then on, restarts from θ_0.
    """

    steps: int = 40
    step: float | None = None
    step_share: float = 1.0
    loss_norm: Literal["mean", "sum"] = "mean"
    loss_factor: float = 1.0
    ridge: float = 1.0
    pull_by_width: bool = True
    pull_inside_sum: bool = False
    anchor: Literal["initial", "zero"] = "initial"
    optimizer: Literal["gd", "sgd"] = "gd"
    batch_size: int = 64
    start: Literal["warm", "restart"] = "warm"
    guard: bool = True
    revive: bool = True
    after: Literal["round", "sample"] = "round"
    train_every: int = 1
    train_until: int | None = None
    engine: Literal["auto", "library"] = "auto"  # auto: one compiled loop where it serves (kernels/fused.py)

    def __post_init__(self) -> None:
        check_entries(self)
        if self.steps < 0 or self.train_every < 1 or self.batch_size < 1:
            raise ConfigError(
                "training: expected steps >= 0, train_every >= 1 and batch_size >= 1, got "
                f"{self.steps}, {self.train_every} and {self.batch_size}"
            )
        if self.step is not None and not self.step > 0:
            raise ConfigError(f"training.step: expected a positive number or none (automatic), got {self.step}")
        if not (self.step_share > 0 and self.loss_factor > 0):
            raise ConfigError(
                f"training: expected step_share and loss_factor above 0, got {self.step_share} and {self.loss_factor}"
            )
        if not self.ridge >= 0:
            raise ConfigError(f"training.ridge: expected a number of at least 0, got {self.ridge}")

    def due(self, t: int) -> bool:
        """Whether to train after the t-th update."""
        return t % self.train_every == 0 and (self.train_until is None or t <= self.train_until)

    def weights(self, observations: Number, width: int) -> tuple[Number, Number]:
        """Weight of one observation and pull of the regulariser, for n observations and a network of this width."""
        share = 1 / observations if self.loss_norm == "mean" else 0 * observations + 1
        pull = self.ridge * (width if self.pull_by_width else 1) * (observations if self.pull_inside_sum else 1)
        return self.loss_factor * share, pull * share

    def restarts(self, net: Network, contexts: Tensor, target: Tensor) -> bool:
        """Whether a network trained on distinct contexts (u, d') and mean rewards (u,) has to restart from θ_0.

        Unguarded training is as published, with lifeless networks.
        """
        return self.guard and self.revive and lifeless(net, contexts, target)


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """One training problem, as functions of the parameters."""

    gradient: Gradient
    loss: Callable[[Parameters], float]
    curvature: Callable[[Parameters], float]  # Σ_i weight_i ‖∇f_i‖², a bound on the largest eigenvalue
    pull: float
    anchor: Parameters | None
    project: Projection | None = None
    fused: Callable[[Parameters, float], Parameters] | None = None  # all steps at once, where that is possible


def fit(problem: LeastSquares, start: Parameters, config: TrainingConfig) -> Descent:
    """J steps from `start`, guarded or as they come."""
    step = config.step
    if step is None:
        step = automatic_step(config.step_share, problem.curvature(start), problem.pull)

    def attempt(size: float) -> Parameters:
        if problem.fused is not None and config.engine == "auto":
            return problem.fused(start, size)
        steps = Steps(config.steps, size, problem.pull, problem.anchor)
        return descend(start, problem.gradient, steps, problem.project)

    if not config.guard:
        parameters = attempt(step)
        failed = not finite(parameters)  # NaN weights cannot be scored or trained again: the last finite ones are kept
        return Descent(start if failed else parameters, step, 0, failed)
    return guarded(start, attempt, lambda p: problem.loss(p) + pull_energy(p, problem.anchor, problem.pull), step)
