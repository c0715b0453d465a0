"""J gradient steps of one network in R runs at once, guarded run by run, without asking the device anything.

The rules are those of models/fitting.py and kernels/training.py: a step from the curvature unless one is given, and
halved for the runs whose objective ended above where it began. What may differ from run to run are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from neuclust.experiment.engines.device.networks import Parameters, per_run
from neuclust.models.fitting import TrainingConfig

RETRIES = 12  # as kernels/training.guarded


@dataclass(frozen=True, slots=True)
class Knobs:
    """Numbers of a training configuration that may differ from run to run, (R,) each."""

    step: Tensor | None
    step_share: Tensor
    ridge: Tensor
    loss_factor: Tensor

    @classmethod
    def of(cls, configs: Sequence[TrainingConfig], device: torch.device) -> Knobs:
        def column(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device)

        steps = [config.step for config in configs if config.step is not None]
        return cls(
            column(steps) if steps else None,
            column([config.step_share for config in configs]),
            column([config.ridge for config in configs]),
            column([config.loss_factor for config in configs]),
        )


class LossOfRuns(Protocol):
    """½ Σ_i weight_i (prediction_i − target_i)² over the first `rows` rows of a history, for R runs."""

    weight: Tensor  # (R, room): 0 for rows not yet filled

    def loss(self, parameters: Parameters, rows: int) -> Tensor: ...

    def curvature(self, parameters: Parameters, rows: int) -> Tensor: ...

    def gradient(self, parameters: Parameters, rows: int) -> Parameters: ...

    def project(self, parameters: Parameters) -> None: ...

    def steps_at_once(
        self, parameters: Parameters, home: Parameters | None, rows: int, steps: int, step: Tensor, pull: Tensor
    ) -> bool: ...


class Fit:
    """A network's parameters in R runs, and their training."""

    def __init__(
        self,
        problem: LossOfRuns,
        initial: Parameters,
        config: TrainingConfig,
        knobs: Knobs,
        width: int,
    ) -> None:
        self._problem, self._config, self._knobs, self._width = problem, config, knobs, width
        self._initial = initial
        self.parameters = tuple(p.clone() for p in initial)
        self._start, self._moving = (tuple(p.clone() for p in initial) for _ in range(2))
        runs, device = len(initial[0]), initial[0].device
        self._places = torch.arange(problem.weight.shape[1], device=device)
        self._step, self._pull, self._before = (initial[0].new_zeros(runs) for _ in range(3))
        self.accepted = torch.zeros(runs, dtype=torch.bool, device=device)
        self.failures = torch.zeros(runs, dtype=torch.int64, device=device)

    @property
    def guarded(self) -> bool:
        """Whether a training may have to be tried again."""
        return self._config.guard

    def due(self, t: int) -> bool:
        """Whether there is something to train after the t-th update."""
        return self._config.steps > 0 and self._config.due(t)

    def train(self, rows: int, count: Tensor) -> None:
        """One training on the first `count` rows of the history, read at `rows`; `accepted` says where it helped."""
        config = self._config
        _copy(self._start, self._initial if config.start == "restart" else self.parameters)
        _copy(self.parameters, self._start)
        self._weigh(rows, count.to(torch.float64))
        if self._knobs.step is None:
            bound = self._problem.curvature(self._start, rows) + self._pull + 1e-12
            self._step.copy_(self._knobs.step_share / bound)
        else:
            self._step.copy_(self._knobs.step)
        if config.guard:
            self._before.copy_(self._objective(self._start, rows))
        self.accepted.zero_()
        self.attempt(rows)

    def attempt(self, rows: int) -> None:
        """J steps from the start for the runs not yet helped; those it does not help have their step halved."""
        _copy(self._moving, self._start)
        self._descend(rows)
        good = self._good(rows) & ~self.accepted
        for parameter, moving in zip(self.parameters, self._moving, strict=True):
            parameter.copy_(torch.where(per_run(good, moving), moving, parameter))
        self.accepted |= good
        if not self._config.guard:  # one try: NaN is a failure, and no step is tried again
            self.failures += ~good
            self.accepted.fill_(True)
        self._step.copy_(torch.where(self.accepted, self._step, self._step / 2))

    def insist(self, attempt: Callable[[], None]) -> None:
        """Try until every run was helped; a run that never is keeps its start."""
        for _ in range(RETRIES):
            if bool(self.accepted.all()):
                return
            attempt()
        self.failures += ~self.accepted

    def go_back(self) -> None:
        """To where the last training began."""
        _copy(self.parameters, self._start)

    def _weigh(self, rows: int, count: Tensor) -> None:
        """Weight of every row and pull of the regulariser, as TrainingConfig.weights has them."""
        config, knobs = self._config, self._knobs
        share = 1 / count if config.loss_norm == "mean" else torch.ones_like(count)
        reach = (self._width if config.pull_by_width else 1) * (count if config.pull_inside_sum else 1)
        self._pull.copy_(knobs.ridge * reach * share)
        filled = (self._places[:rows] < count).to(torch.float64)
        self._problem.weight[:, :rows] = (knobs.loss_factor * share).unsqueeze(1) * filled

    def _good(self, rows: int) -> Tensor:
        if not self._config.guard:
            return torch.stack([torch.isfinite(p).flatten(1).all(1) for p in self._moving]).all(0)
        rise = self._objective(self._moving, rows) - self._before
        return (rise <= 0) | (rise <= 1e-12 * self._before.abs())

    def _descend(self, rows: int) -> None:
        """θ ← θ − step (∇loss + pull (θ − anchor)), J times."""
        steps, step, pull = self._config.steps, self._step, self._pull
        anchor = self._initial if self._config.anchor == "initial" else None
        if self._problem.steps_at_once(self._moving, anchor, rows, steps, step, pull):
            return
        keep = 1 - step * pull
        home = None if anchor is None else tuple(a * per_run(step * pull, a) for a in anchor)
        for _ in range(steps):
            slopes = self._problem.gradient(self._moving, rows)
            for i, parameter in enumerate(self._moving):
                parameter.mul_(per_run(keep, parameter)).addcmul_(slopes[i], per_run(step, parameter), value=-1)
                if home is not None:
                    parameter.add_(home[i])
            self._problem.project(self._moving)

    def _objective(self, parameters: Parameters, rows: int) -> Tensor:
        loss = self._problem.loss(parameters, rows)
        gaps = parameters
        if self._config.anchor == "initial":
            gaps = tuple(p - a for p, a in zip(parameters, self._initial, strict=True))
        return loss + 0.5 * self._pull * torch.stack([(g * g).flatten(1).sum(1) for g in gaps]).sum(0)


def _copy(into: Parameters, values: Parameters) -> None:
    for mine, theirs in zip(into, values, strict=True):
        mine.copy_(theirs)
