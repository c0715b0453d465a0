"""Fitting a network to what was observed: the configuration and the one routine both networks use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, checked
from neuclust.kernels import training
from neuclust.kernels.network import Network
from neuclust.kernels.training import Descent, Gradient, Number, Parameters, Projection, Steps


@dataclass(frozen=True, slots=True)
@checked(
    steps=NON_NEGATIVE, train_every=AT_LEAST_ONE, batch_size=AT_LEAST_ONE, step=POSITIVE, step_share=POSITIVE,
    loss_factor=POSITIVE, ridge=NON_NEGATIVE, memory=AT_LEAST_ONE,
)  # fmt: skip
class TrainingConfig:
    """How a network is fitted after a round to its n observations.

    Objective for loss_norm `mean`: (factor·½Σ(f − r)² + (pull/2)‖θ − anchor‖²)/n; for `sum` without the 1/n. pull =
    ridge × the width (`pull_by_width`, the paper's mλ), × n with `pull_inside_sum`, as its slate loss is printed.
    `step` None is `step_share` over a bound on the curvature. With `guard`, steps that would end above the starting
    objective are halved; with `revive` too, a network without a live unit, whose gradient is 0, restarts from θ_0.
    `memory` is the number of distinct contexts (of slates, for a slate net) that are kept for training, None for all:
    one half are the last used, the other is a sample of all earlier ones (docs/decisions/0020-bounded-training.md).
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
    memory: int | None = None
    engine: Literal["auto", "library"] = "auto"  # auto: one compiled loop where it serves (kernels/fused.py)

    def due(self, t: int) -> bool:
        """Whether to train after the t-th update."""
        return t % self.train_every == 0 and (self.train_until is None or t <= self.train_until)

    def weights(self, observations: Number, width: int) -> tuple[Number, Number]:
        """Weight of one observation and pull of the regulariser, for n observations and a network of this width."""
        share = 1 / observations if self.loss_norm == "mean" else 0 * observations + 1
        pull = self.ridge * (width if self.pull_by_width else 1) * (observations if self.pull_inside_sum else 1)
        return self.loss_factor * share, pull * share

    def restarts(self, net: Network, contexts: Tensor, target: Tensor) -> bool:
        """Whether a network trained on distinct contexts (u, d') and mean rewards (u,) has to restart from θ_0."""
        return self.guard and self.revive and training.lifeless(net, contexts, target)


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
        step = training.automatic_step(config.step_share, problem.curvature(start), problem.pull)

    def attempt(size: float) -> Parameters:
        if problem.fused is not None and config.engine == "auto":
            return problem.fused(start, size)
        steps = Steps(config.steps, size, problem.pull, problem.anchor)
        return training.descend(start, problem.gradient, steps, problem.project)

    def objective(parameters: Parameters) -> float:
        return problem.loss(parameters) + training.pull_energy(parameters, problem.anchor, problem.pull)

    if config.guard:
        return training.guarded(start, attempt, objective, step)
    parameters = attempt(step)
    failed = not training.finite(parameters)  # NaN weights cannot be scored or trained again: keep the last finite ones
    return Descent(start if failed else parameters, step, 0, failed)
