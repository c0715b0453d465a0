"""The networks of R runs: their histories in buffers that never move, their losses, arm covariances and training."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from neuclust.experiment.engines.device import fused
from neuclust.experiment.engines.device.batches import BatchRun
from neuclust.experiment.engines.device.covariance import DualBatch, PrimalBatch
from neuclust.experiment.engines.device.fitting import Fit
from neuclust.kernels import monotone, training
from neuclust.kernels.network import Factors, Network, forward, layer_factors, output, restrict, scaled, squared_norms
from neuclust.kernels.regions import group_rows
from neuclust.kernels.training import Examples, Parameters, Steps
from neuclust.models.arm_model import ArmModel, ArmModelConfig
from neuclust.models.confidence import FullConfidence, feature_scale
from neuclust.models.schedules import radius
from neuclust.policies.neuclust import NeUClustConfig
from neuclust.slates.slate_model import SlateModelConfig, initial_slate_network, slate_projection


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
        return training.arm_objective(self.net(parameters), *_first(self._data, rows))

    def curvature(self, parameters: Parameters, rows: int) -> Tensor:
        x, _, weight = _first(self._data, rows)
        return (weight * squared_norms(layer_factors(self.net(parameters), x))).sum(-1)

    def gradient(self, parameters: Parameters, rows: int) -> Parameters:
        return training.arm_gradients(self.net(parameters), *_first(self._data, rows))

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
        places = torch.arange(min(training.SAMPLE, self.target.shape[1]), device=filled.device)
        rows = torch.where(places < filled, places, 0)
        return training.unresponsive(self.net(parameters), self._data.inputs[:, :, rows].mT)

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

    def __init__(self, config: SlateModelConfig, net: monotone.MonotoneNetwork, room: int) -> None:
        self._config, self._net, self._project = config, net, slate_projection(config)
        self._data = _buffers(net.weights[0], net.weights[0].shape[-1], room)
        self.target, self.weight = self._data.target, self._data.weight

    def write(self, row: Tensor, rewards: Tensor, predicted: Tensor, arm_rewards: Tensor) -> None:
        """The slate's reward in every run, (R,), into row (1,), and what F learns from where that stays: its
        arms' means as predicted now or their rewards, (R, K) each."""
        self.target.index_copy_(1, row, rewards.unsqueeze(1))
        if not self.reads_present_means:
            arms = arm_rewards if self._config.train_input == "realised" else predicted
            self._data.inputs.index_copy_(2, row, self._prepared(arms).unsqueeze(2))

    @property
    def reads_present_means(self) -> bool:
        """Whether F learns from what the arm net predicts after its last training."""
        return self._config.train_input == "predicted"

    def read(self, rewards: Tensor) -> None:
        """F reads the slates so far by arm rewards (R, slates, K) as predicted now."""
        self._data.inputs[:, :, : rewards.shape[1]] = self._prepared(rewards).mT

    def value(self, parameters: Parameters, rewards: Tensor) -> Tensor:
        """F of slates (R, n, K), prepared here: (R, n)."""
        return monotone.slate_value(self._net.with_parameters(parameters), self._prepared(rewards))

    def loss(self, parameters: Parameters, rows: int) -> Tensor:
        inputs, target, weight = _first(self._data, rows)
        return training.squared_loss(
            monotone.slate_value(self._net.with_parameters(parameters), inputs), target, weight
        )

    def curvature(self, parameters: Parameters, rows: int) -> Tensor:
        inputs, _, weight = _first(self._data, rows)
        return (weight * monotone.slate_gradient_norms(self._net.with_parameters(parameters), inputs)).sum(-1)

    def gradient(self, parameters: Parameters, rows: int) -> Parameters:
        return monotone.slate_gradients(self._net.with_parameters(parameters), *_first(self._data, rows))

    def project(self, parameters: Parameters) -> None:
        if self._project is not None:
            self._project(parameters)

    def steps_at_once(self, parameters: Parameters, rows: int, steps: Steps) -> bool:
        """All steps by two kernels each, where that is possible; says whether it was done."""
        clamped = self._config.clamp_all or self._config.nonneg_bias
        if clamped or not fused.serves_slates(self._net.with_parameters(parameters)):
            return False
        fused.slate_steps(self._data, parameters, rows, steps, self._net.scales, self._config.biases != "none")
        return True

    def _prepared(self, rewards: Tensor) -> Tensor:
        return monotone.slate_inputs(rewards, self._config.relu_input, self._config.sort_input)


class ArmNets:
    """f of R runs with its upper confidence bonus, from the same start as the single runs."""

    def __init__(self, runs: Sequence[BatchRun], rounds: int, device: torch.device) -> None:
        environment, configs = runs[0].environment, [r.config.arms for r in runs]
        config = configs[0]
        self._slate_size, self._device = environment.slate_size, device
        models = [ArmModel(r.config.arms, environment.dim, environment.slate_size, r.seed) for r in runs]
        self.encoder = models[0].encoder
        net = Network(_stacked([m.net.weights for m in models], device), models[0].net.scale)
        self._feature_scale = feature_scale(config.confidence, models[0].net)
        width, dim = models[0].net.weights[0].shape
        room = rounds * environment.slate_size
        self.loss = ArmLoss(net, room)
        self.fit = Fit("the arm net", self.loss, net.weights, [c.training for c in configs], width)
        self._radii = torch.stack([_radii(c, rounds, environment.slate_size) for c in configs]).to(device)
        ridge = column([c.confidence.ridge for c in configs], device)
        confidence = models[0].confidence
        assert isinstance(confidence, FullConfidence)  # `check_supported` made sure
        self.covariance = (
            PrimalBatch(ridge, width, dim, config.confidence.refresh)
            if confidence.solver == "primal"
            else DualBatch(ridge, width, dim, room)
        )

    def scores(self, now: Tensor, x: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """f and γw of contexts x (n, q) on the given columns after `now` (1,) rounds: (R, n) each."""
        means, factors = self._features(x, columns)
        squares = self.covariance.squares(factors, columns)
        return means, self.gamma(now).unsqueeze(1) * squares.clamp(min=0).sqrt()

    def gamma(self, now: Tensor) -> Tensor:
        """γ of the coming round after `now` (1,) rounds, (R,): `schedules.Radius.at`."""
        factor, extra, offset = self._radii.index_select(1, now).squeeze(1).unbind(1)
        return factor * (self.covariance.logdet.clamp(min=0) + extra).sqrt() + offset

    def observe(self, now: Tensor, x: Tensor, columns: Tensor, rewards: Tensor) -> Tensor:
        """Covariance first, at the parameters in force, then the history; x (R, K, q), rounds played so far (1,).
        Returns f of the arms at these parameters, (R, K)."""
        means, factors = self._features(x, columns)
        self.covariance.observe(factors, columns)
        rows = now * self._slate_size + torch.arange(self._slate_size, device=self._device)
        self.loss.write(rows, x, columns, rewards)
        return means

    def may_restart(self, observations: Tensor) -> Tensor:
        """Runs whose network may be lifeless, (R,), for a number of observations (1,)."""
        config = self.fit.config
        if not (config.guard and config.revive):
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
        total = monotone.slate_scores(values, worth, self._weight, self._config.score == "mean")
        alike = first_alike(torch.cat([values, source], -1))  # a library may round equal rows differently: no tie then
        return torch.gather(total, 1, alike).argmax(-1)


def first_alike(rows: Tensor) -> Tensor:
    """For every row of few rows (R, C, q) the first of its run equal to it: (R, C)."""
    same = (rows.unsqueeze(2) == rows.unsqueeze(1)).all(-1)
    return same.to(torch.int64).argmax(-1)


def at(values: Tensor, positions: Tensor) -> Tensor:
    """values (R, n) at positions (R, …) -> (R, …)."""
    return torch.gather(values, 1, positions.flatten(1)).view(positions.shape)


def column(values: Sequence[float], device: torch.device) -> Tensor:
    """One number per run, (R,)."""
    return torch.tensor(values, dtype=torch.float64, device=device)


@lru_cache(maxsize=64)  # runs of one configuration share it
def _radii(config: ArmModelConfig, rounds: int, slate_size: int) -> Tensor:
    """γ up to its log-determinant after 0 … rounds rounds, (rounds + 1, 3): factor, extra and offset of `Radius`."""
    found = [radius(config.schedule, config.progress(t * slate_size, 0.0)) for t in range(rounds + 1)]
    return torch.tensor([(r.factor, r.extra, r.offset) for r in found], dtype=torch.float64)


def _stacked(nets: Sequence[Parameters], device: torch.device) -> Parameters:
    """Parameters of R networks, (R, …) each."""
    return tuple(torch.stack(same).to(device) for same in zip(*nets, strict=True))


def _buffers(like: Tensor, dim: int, room: int) -> Examples:
    """Room for inputs (R, dim, room) by column, targets and weights (R, room)."""
    runs = len(like)
    return Examples(like.new_zeros(runs, dim, room), like.new_zeros(runs, room), like.new_zeros(runs, room))


def _first(data: Examples, rows: int) -> Examples:
    """The first rows, with inputs by row (R, rows, dim)."""
    return Examples(data.inputs[:, :, :rows].mT, data.target[:, :rows], data.weight[:, :rows])
