"""J gradient steps of one network in R runs at once, guarded run by run, by the rules of models/fitting.py."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from neuclust.experiment.engines.device.batches import training_shape
from neuclust.kernels import training
from neuclust.kernels.training import Parameters, Steps
from neuclust.models.fitting import TrainingConfig
from neuclust.models.watch import LearningWatch


class LossOfRuns(Protocol):
    """½ Σ_i weight_i (prediction_i − target_i)² over the first `rows` rows of a history, for R runs."""

    target: Tensor  # (R, room)
    weight: Tensor  # (R, room): 0 for rows not yet filled

    def loss(self, parameters: Parameters, rows: int) -> Tensor: ...
    def curvature(self, parameters: Parameters, rows: int) -> Tensor: ...
    def gradient(self, parameters: Parameters, rows: int) -> Parameters: ...
    def project(self, parameters: Parameters) -> None: ...
    def steps_at_once(self, parameters: Parameters, rows: int, steps: Steps) -> bool: ...


class Fit:
    """A network's parameters in R runs, and their training; `name` is the network's in warnings."""

    def __init__(
        self, name: str, problem: LossOfRuns, initial: Parameters, configs: Sequence[TrainingConfig], width: int
    ) -> None:
        self._problem, self._width, self._initial = problem, width, initial
        self.config, self._shape = configs[0], training_shape(configs[0])
        self.parameters, self._start, self._moving = (tuple(p.clone() for p in initial) for _ in range(3))
        self._step, self._pull, self._before = (initial[0].new_zeros(len(configs)) for _ in range(3))
        self._given = None if configs[0].step is None else initial[0].new_tensor([c.step for c in configs])
        self._share, self._ridge, self._factor = (
            initial[0].new_tensor([getattr(c, field) for c in configs])
            for field in ("step_share", "ridge", "loss_factor")
        )
        self._places = torch.arange(problem.weight.shape[1], device=initial[0].device)
        self.accepted = torch.zeros_like(self._step, dtype=torch.bool)
        self._failures, self._failed = (torch.zeros_like(self._step, dtype=torch.int64) for _ in range(2))
        self._watches = [LearningWatch(name) for _ in configs]

    @property
    def failures(self) -> Tensor:
        """Trainings that found no step that helped, ended in NaN or left a lifeless network, (R,)."""
        return self._failures + self._failed

    @property
    def fine(self) -> Tensor:
        """Whether the last training helped in every run."""
        return (self.accepted & (self._failed == 0)).all()

    def due(self, t: int) -> bool:
        """Whether there is something to train after the t-th update."""
        return self.config.steps > 0 and self.config.due(t)

    def train(self, rows: int, count: Tensor) -> None:
        """One training on the first `count` rows of the history, read at `rows`; `accepted` marks where it helped."""
        self._failures += self._failed
        self._failed.zero_()
        _copy(self._start, self._initial if self.config.start == "restart" else self.parameters)
        _copy(self.parameters, self._start)
        self._weigh(rows, count.to(torch.float64))
        if self._given is None:
            curvature = self._problem.curvature(self._start, rows)
            self._step.copy_(training.automatic_step(self._share, curvature, self._pull))
        else:
            self._step.copy_(self._given)
        if self.config.guard:
            self._before.copy_(self._objective(self._start, rows))
        self.accepted.zero_()
        self.attempt(rows)

    def attempt(self, rows: int) -> None:
        """J steps from the start for the runs not yet helped; those it does not help have their step halved."""
        _copy(self._moving, self._start)
        self._descend(rows)
        good = self._good(rows) & ~self.accepted
        for parameter, moving in zip(self.parameters, self._moving, strict=True):
            parameter.copy_(torch.where(training.per_run(good, moving), moving, parameter))
        self.accepted |= good
        if not self.config.guard:  # one try: NaN is a failure, and no step is tried again
            self._failed.copy_(~good)
            self.accepted.fill_(True)
        self._step.copy_(torch.where(self.accepted, self._step, self._step / 2))

    def insist(self, attempt: Callable[[], None]) -> None:
        """Try until every run was helped; a run that never is keeps its start."""
        for _ in range(training.RETRIES):
            if bool(self.accepted.all()):
                return
            attempt()
        self._failed.copy_(~self.accepted)

    def go_back(self) -> None:
        """Undo the last training."""
        _copy(self.parameters, self._start)
        self._failed.zero_()

    def restart(self, run: int) -> None:
        """One run's network from its initial parameters."""
        for parameter, initial in zip(self.parameters, self._initial, strict=True):
            parameter[run] = initial[run]
        self._failed[run] += 1

    def report(self, fine: bool, filled: int) -> None:
        """Note how the last training on `filled` rows ended in every run, and give the warnings that are due."""
        failed = [0] * len(self._watches) if fine else self._failed.tolist()
        for run, watch in enumerate(self._watches):
            watch.trained(failed[run] > 0, self._problem.target[run, :filled])
            watch.speak()

    def _weigh(self, rows: int, count: Tensor) -> None:
        """Weight of every row and pull of the regulariser."""
        share, pull = self._shape.weights(count, self._width)
        self._pull.copy_(self._ridge * pull)
        filled = (self._places[:rows] < count).to(torch.float64)
        self._problem.weight[:, :rows] = (self._factor * share).unsqueeze(1) * filled

    def _good(self, rows: int) -> Tensor:
        if not self.config.guard:
            return torch.stack([torch.isfinite(p).flatten(1).all(1) for p in self._moving]).all(0)
        return torch.as_tensor(training.not_worse(self._objective(self._moving, rows), self._before))

    def _descend(self, rows: int) -> None:
        anchor = self._initial if self.config.anchor == "initial" else None
        steps = Steps(self.config.steps, self._step, self._pull, anchor)
        if not self._problem.steps_at_once(self._moving, rows, steps):
            training.descend_(self._moving, lambda p, _: self._problem.gradient(p, rows), steps, self._problem.project)

    def _objective(self, parameters: Parameters, rows: int) -> Tensor:
        anchor = self._initial if self.config.anchor == "initial" else None
        return self._problem.loss(parameters, rows) + training.pull_energy(parameters, anchor, self._pull)


def _copy(into: Parameters, values: Parameters) -> None:
    for mine, theirs in zip(into, values, strict=True):
        mine.copy_(theirs)
