"""The networks of R runs: arm networks with their covariances, and slate networks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from neuclust.experiment.engines.device.batches import BatchRun
from neuclust.experiment.engines.device.covariance import DualBatch, PrimalBatch
from neuclust.experiment.engines.device.fitting import Fit
from neuclust.experiment.engines.device.learners import ArmLoss, SlateLoss
from neuclust.experiment.engines.device.selection import at, first_alike
from neuclust.kernels.monotone import slate_scores
from neuclust.kernels.network import Factors, Network, layer_factors, output, restrict, scaled
from neuclust.kernels.training import Parameters
from neuclust.models.arm_model import ArmModel
from neuclust.models.confidence import FullConfidence, feature_scale
from neuclust.policies.neuclust import NeUClustConfig
from neuclust.slates.slate_model import initial_slate_network


class ArmNets:
    """f of R runs with its upper confidence bonus, from the same start as the single runs."""

    def __init__(self, runs: Sequence[BatchRun], rounds: int, device: torch.device) -> None:
        environment, config = runs[0].environment, runs[0].config.arms
        self._slate_size, self._device = environment.slate_size, device
        models = [ArmModel(r.config.arms, environment.dim, environment.slate_size, r.seed) for r in runs]
        self.encoder = models[0].encoder
        net = Network(_stacked([m.net.weights for m in models], device), models[0].net.scale)
        self._feature_scale = feature_scale(config.confidence, models[0].net)
        width, dim = models[0].net.weights[0].shape
        room = rounds * environment.slate_size
        self.loss = ArmLoss(net, room)
        self.fit = Fit("the arm net", self.loss, net.weights, [r.config.arms.training for r in runs], width)
        self._gamma = column([r.config.arms.schedule.gamma for r in runs], device).unsqueeze(1)
        ridge = column([r.config.arms.confidence.ridge for r in runs], device)
        confidence = models[0].confidence
        assert isinstance(confidence, FullConfidence)  # `check_supported` made sure
        self.covariance = (
            PrimalBatch(ridge, width, dim, config.confidence.refresh)
            if confidence.solver == "primal"
            else DualBatch(ridge, width, dim, room)
        )

    def scores(self, x: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """f and γw of contexts x (n, q) on the given columns: (R, n) each."""
        means, factors = self._features(x, columns)
        squares = self.covariance.squares(factors, columns)
        return means, self._gamma * squares.clamp(min=0).sqrt()

    def observe(self, now: Tensor, x: Tensor, columns: Tensor, rewards: Tensor) -> None:
        """Covariance first, at the parameters in force, then the history; x (R, K, q), rounds played so far (1,)."""
        self.covariance.observe(self._features(x, columns)[1], columns)
        rows = now * self._slate_size + torch.arange(self._slate_size, device=self._device)
        self.loss.write(rows, x, columns, rewards)

    def may_restart(self, observations: Tensor) -> Tensor:
        """Runs whose network may be lifeless, (R,), for a number of observations (1,)."""
        training = self.fit.config
        if not (training.guard and training.revive):
            return torch.zeros_like(self.fit.accepted)
        return self.loss.unresponsive(self.fit.parameters, observations)

    def restart_lifeless(self, observations: int) -> None:
        """Start lifeless networks again, by the rule of single runs; waits for the device."""
        count = torch.tensor([observations], device=self._device)
        for run in torch.nonzero(self.may_restart(count)).flatten().tolist():
            net = self.loss.net(tuple(p[run].cpu() for p in self.fit.parameters))
            if self.fit.config.restarts(net, *self.loss.distinct(run, observations)):
                self.fit.restart(run)

    def _features(self, x: Tensor, columns: Tensor) -> tuple[Tensor, Factors]:
        net = restrict(self.loss.net(self.fit.parameters), columns)
        factors = layer_factors(net, x)
        return output(net, factors.inputs[-1]), scaled(factors, self._feature_scale)


class SlateNets:
    """F of R runs, from the same start as the single runs."""

    def __init__(self, runs: Sequence[BatchRun], rounds: int, device: torch.device) -> None:
        configs = [r.config.slate for r in runs if isinstance(r.config, NeUClustConfig)]
        self._config = config = configs[0]
        slate_size = runs[0].environment.slate_size
        nets = [initial_slate_network(c, slate_size, r.seed) for c, r in zip(configs, runs, strict=True)]
        stacked = _stacked([net.parameters for net in nets], device)
        self.loss = SlateLoss(config, nets[0].with_parameters(stacked), rounds)
        self.fit = Fit("the slate net", self.loss, stacked, [c.training for c in configs], config.width)
        self._weight = column([c.weight for c in configs], device).unsqueeze(1)

    def best_cluster(self, best: Tensor, means: Tensor, optimistic: Tensor) -> Tensor:
        """argmax V_c, V_c = Σ_{a ∈ b_c} v_a + ωK·F(b_c), for b (R, C, K) and scores (R, n): (R,)."""
        values = at(optimistic, best)
        source = values if self._config.input == "optimistic" else at(means, best)
        worth = self.loss.value(self.fit.parameters, source)
        total = slate_scores(values, worth, self._weight, self._config.score == "mean")
        alike = first_alike(torch.cat([values, source], -1))  # a library may round equal rows differently: no tie then
        return torch.gather(total, 1, alike).argmax(-1)


def column(values: Sequence[float], device: torch.device) -> Tensor:
    """One number per run, (R,)."""
    return torch.tensor(values, dtype=torch.float64, device=device)


def _stacked(nets: Sequence[Parameters], device: torch.device) -> Parameters:
    """Parameters of R networks, (R, …) each."""
    return tuple(torch.stack(same).to(device) for same in zip(*nets, strict=True))
