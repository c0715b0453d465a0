"""One batch of R runs of one policy on one problem: select, play, observe and train, all runs in step.

The device is asked once a round: did training help in every run? Whatever the host can prepare is prepared before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from neuclust.experiment.engines.device.batches import BatchRun
from neuclust.experiment.engines.device.covariance import DualBatch, PrimalBatch
from neuclust.experiment.engines.device.dealer import Dealer, Dealt
from neuclust.experiment.engines.device.fitting import Fit, Knobs
from neuclust.experiment.engines.device.graphs import Replays, bucket
from neuclust.experiment.engines.device.learners import ArmLoss, SlateLoss, initial_parameters
from neuclust.experiment.engines.device.networks import SlateShape, arm_pass, row_factors
from neuclust.experiment.engines.device.selection import at, first_alike, row_at, top_of_table
from neuclust.experiment.engines.device.trace import Trace
from neuclust.models.arm_model import ArmModel
from neuclust.models.confidence import FullConfidence, feature_scale
from neuclust.policies.neuclust import NeUClustConfig
from neuclust.slates.clustering import ClusterMap
from neuclust.slates.slate_model import initial_slate_network


class Batch:
    """R runs from the same start as the single ones; `play` takes them through their rounds."""

    def __init__(self, runs: Sequence[BatchRun], rounds: int, device: torch.device) -> None:
        self.rounds, self._device = rounds, device
        self._config, environment = runs[0].config, runs[0].environment
        self.slate_size = environment.slate_size
        models = [ArmModel(r.config.arms, environment.dim, self.slate_size, r.seed) for r in runs]
        self._net = models[0].net
        self._gradient_scale = self._net.scale * feature_scale(self._config.arms.confidence, self._net)
        self._encoder = models[0].encoder
        self.dealer = Dealer([r.environment for r in runs], self._encoder, self._cluster_map(runs[0]), device)
        self._table = environment.reward.table.to(device)
        self._gamma = self._column([r.config.arms.schedule.gamma for r in runs]).unsqueeze(1)
        self._make_arms(runs, models)
        self._make_slates(runs)
        self._fits = [self._arms] if self._slates is None else [self._arms, self._slates]
        self._helped = torch.ones(len(self._fits), dtype=torch.bool, device=device)
        self._now = torch.zeros(1, dtype=torch.int64, device=device)  # rounds played
        self._slates_read = 0
        self._trace = Trace.empty(len(runs), rounds, self.slate_size, device)
        self._forced: Tensor | None = None
        self._replays = Replays(device)
        self._still: dict[int, Dealt] = {}  # rounds of one shape, in tensors that stay where they are
        steady = environment.round(1).profiles is environment.profiles and self._encoder.config.kind != "lift"
        self._recorded = self._replays.recording and steady and isinstance(self._covariance, PrimalBatch)

    def _make_arms(self, runs: Sequence[BatchRun], models: Sequence[ArmModel]) -> None:
        arms, room = self._config.arms, self.rounds * self.slate_size
        width, dim = self._net.weights[0].shape
        self._loss = ArmLoss(len(runs), dim, room, self._net.scale, self._device)
        initial = initial_parameters([(m.net.weights[0], m.net.weights[1][0]) for m in models], self._device)
        knobs = Knobs.of([r.config.arms.training for r in runs], self._device)
        self._arms = Fit(self._loss, initial, arms.training, knobs, width)
        ridge = self._column([r.config.arms.confidence.ridge for r in runs])
        confidence = models[0].confidence
        assert isinstance(confidence, FullConfidence)  # the check of the configuration made sure
        self._covariance = (
            PrimalBatch(ridge, width, dim, arms.confidence.refresh)
            if confidence.solver == "primal"
            else DualBatch(ridge, width, dim, room)
        )

    def _make_slates(self, runs: Sequence[BatchRun]) -> None:
        self._slates: Fit | None = None
        if not isinstance(self._config, NeUClustConfig):
            return
        config, k = self._config.slate, self.slate_size
        nets = [initial_slate_network(_neuclust(r).slate, k, r.seed) for r in runs]
        shape = SlateShape(config.transform, (nets[0].scales[0], nets[0].scales[1]), config.relu_out)
        self._slate_loss = SlateLoss(config, shape, len(runs), k, self.rounds, self._device)
        knobs = Knobs.of([_neuclust(r).slate.training for r in runs], self._device)
        initial = initial_parameters([net.parameters for net in nets], self._device)
        self._slates = Fit(self._slate_loss, initial, config.training, knobs, config.width)
        self._slate_weight = self._column([_neuclust(r).slate.weight for r in runs]).unsqueeze(1)

    def play(
        self,
        forced: Tensor | None = None,
        on_round: Callable[[int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Trace:
        """All rounds, or those before `stop` answers true; with `forced` (R, T, K) those slates are played instead."""
        self._forced = None if forced is None else forced.to(self._device)
        coming, done = self.dealer.deal(1), 0
        while done < self.rounds and not (stop is not None and stop()):
            self._turn(coming)
            done += 1
            self._covariance.refresh(done)
            self._train(done)
            if done < self.rounds:
                coming = self.dealer.deal(done + 1)  # while the device trains
            self._settle(done)
            if on_round is not None:
                on_round(done)
        self._covariance.check()
        return self._trace.until(done).on_host()

    @property
    def failures(self) -> list[int]:
        """Trainings of either net that found no step that helped, or ended in NaN, run by run."""
        total = self._arms.failures if self._slates is None else self._arms.failures + self._slates.failures
        return [int(count) for count in total.tolist()]

    @property
    def clustered(self) -> bool:
        """Whether a slate comes from a cluster."""
        return self._slates is not None

    # --- one round -------------------------------------------------------------------------------------------

    def _turn(self, dealt: Dealt) -> None:
        """Select, play and observe; rounds of one shape are recorded once and replayed."""
        if not self._recorded:
            self._round(dealt)
            return
        size = len(dealt.active)
        if size not in self._still:
            self._still[size] = dealt.copy()
        still = self._still[size]
        still.take(dealt)
        self._replays.do(("round", size), lambda: self._round(still))

    def _round(self, dealt: Dealt) -> None:
        x, columns, row_of = dealt.shown.contexts(self._encoder, dealt.active, dealt.query)
        played = self._select(dealt, x, columns, row_of)
        if self._forced is not None:
            played = self._forced.index_select(1, self._now).squeeze(1)
        rewards = torch.gather(dealt.payouts[self.dealer.coins_of], 1, played)
        arm_rewards, slate_rewards = rewards.to(torch.float64), self._table[rewards.sum(1)]
        true_means = dealt.means[played]
        self._trace.write(self._now, arm_rewards=arm_rewards, slate_rewards=slate_rewards, true_means=true_means)
        self._observe(x[row_of[played]], columns, arm_rewards)
        if self._slates is not None:
            self._slate_loss.write(self._now, slate_rewards)
        self._now += 1

    def _select(self, dealt: Dealt, x: Tensor, columns: Tensor, row_of: Tensor) -> Tensor:
        first, last = self._arms.parameters
        seen = arm_pass(first[:, :, columns], last, x, self._net.scale)
        squares = self._covariance.squares(row_factors(seen, last, x, self._gradient_scale), columns)
        bonuses = (self._gamma * squares.clamp(min=0).sqrt())[:, row_of]
        means = seen.means[:, row_of]
        optimistic = means + bonuses
        ranked = means if getattr(self._config, "rank_by", "optimistic") == "mean" else optimistic
        best = top_of_table(ranked, dealt.table, self.slate_size)  # b_c, (R, C, K)
        winner = self._winner(best, means, optimistic)
        positions = row_at(best, winner)
        chosen = {"means": at(means, positions), "bonuses": at(bonuses, positions)}
        self._trace.write(self._now, slates=positions, clusters=dealt.names[winner], **chosen)
        return positions

    def _winner(self, best: Tensor, means: Tensor, optimistic: Tensor) -> Tensor:
        """argmax V_c, V_c = Σ_{a ∈ b_c} v_a + ωK·F(b_c): (R,)."""
        if self._slates is None:
            return torch.zeros(len(best), dtype=torch.int64, device=best.device)
        assert isinstance(self._config, NeUClustConfig)
        values = at(optimistic, best)
        source = values if self._config.slate.input == "optimistic" else at(means, best)
        worth = self._slate_loss.value(self._slates.parameters, source)
        total = values.sum(-1) + self._slate_weight * self.slate_size * worth
        alike = first_alike(torch.cat([values, source], -1))  # a library may round equal rows differently: no tie then
        return torch.gather(total, 1, alike).argmax(-1)

    def _observe(self, x: Tensor, columns: Tensor, rewards: Tensor) -> None:
        """Covariance first, at the parameters in force, then the history; x (R, K, q)."""
        first, last = self._arms.parameters
        seen = arm_pass(first[:, :, columns], last, x, self._net.scale)
        self._covariance.observe(row_factors(seen, last, x, self._gradient_scale), columns)
        rows = self._now * self.slate_size + torch.arange(self.slate_size, device=self._device)
        self._loss.write(rows, x, columns, rewards)

    # --- training --------------------------------------------------------------------------------------------

    def _train(self, t: int) -> None:
        due = [fit.due(t) for fit in self._fits]
        self._slates_read = bucket(t, self.rounds, 64) if self._replays.recording else t
        if any(due):
            self._replays.do(("train", self._slates_read, *due), lambda: self._train_now(due))

    def _train_now(self, due: list[bool]) -> None:
        if due[0]:
            self._arms.train(self._slates_read * self.slate_size, self._now * self.slate_size)
        if len(due) > 1 and due[1]:
            self._train_slates()
        for place, fit in enumerate(self._fits):
            self._helped[place : place + 1] = fit.accepted.all()

    def _train_slates(self) -> None:
        """F reads today's means of all slates so far, then is fitted."""
        assert self._slates is not None
        predicted = self._loss.predict(self._arms.parameters, self._slates_read * self.slate_size)
        self._slate_loss.read(predicted.view(len(predicted), -1, self.slate_size))
        self._slates.train(self._slates_read, self._now)

    def _settle(self, t: int) -> None:
        """The one question a round: runs that training did not help try again with smaller steps."""
        if not any(fit.guarded and fit.due(t) for fit in self._fits):
            return
        helped = self._helped.tolist()
        if self._arms.due(t) and not helped[0]:
            self._insist(self._arms, self._slates_read * self.slate_size)
            if self._slates is not None and self._slates.due(t):  # it has read means that are no more
                self._slates.go_back()
                self._train_slates()
                self._insist(self._slates, self._slates_read)
        elif self._slates is not None and self._slates.due(t) and not helped[1]:
            self._insist(self._slates, self._slates_read)

    def _insist(self, fit: Fit, rows: int) -> None:
        fit.insist(lambda: self._replays.do(("again", fit is self._arms, rows), lambda: fit.attempt(rows)))

    def _column(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._device)

    def _cluster_map(self, run: BatchRun) -> ClusterMap | None:
        if not isinstance(run.config, NeUClustConfig):
            return None
        environment = run.environment
        catalogue = (environment.arm_ids, environment.profiles)
        return ClusterMap(run.config.clustering, environment.slate_size, None, catalogue)


def _neuclust(run: BatchRun) -> NeUClustConfig:
    assert isinstance(run.config, NeUClustConfig)
    return run.config
