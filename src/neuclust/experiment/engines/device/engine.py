"""One batch of R runs in step: select, play, observe and train; the host waits for the device once per round."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.experiment.engines.device.batches import BatchRun, check_memory
from neuclust.experiment.engines.device.covariance import PrimalBatch
from neuclust.experiment.engines.device.dealer import Dealer, Dealt
from neuclust.experiment.engines.device.fitting import Fit
from neuclust.experiment.engines.device.networks import ArmNets, SlateNets, at
from neuclust.policies.neuclust import NeUClustConfig
from neuclust.slates.clustering import ClusterMap


@dataclass(frozen=True, slots=True)
class Trace:
    """R runs of T rounds. `slates` are the policies' own choices, also where other slates were played."""

    slates: Tensor  # (R, T, K) positions, best first
    means: Tensor  # (R, T, K) f of the chosen arms
    bonuses: Tensor  # (R, T, K) γ·width of the chosen arms
    clusters: Tensor  # (R, T)
    arm_rewards: Tensor  # (R, T, K) of the played arms
    slate_rewards: Tensor  # (R, T)
    true_means: Tensor  # (R, T, K) μ of the played arms

    @classmethod
    def empty(cls, runs: int, rounds: int, k: int, device: torch.device) -> Trace:
        def table(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.zeros(runs, rounds, *shape, dtype=dtype, device=device)

        whole = torch.int64
        return cls(table(k, dtype=whole), table(k), table(k), table(dtype=whole), table(k), table(), table(k))

    def write(self, row: Tensor, **columns: Tensor) -> None:
        """Round `row` (1,) of the named columns, (R, …) each."""
        for name, values in columns.items():
            table: Tensor = getattr(self, name)
            table.index_copy_(1, row, values.unsqueeze(1).to(table.dtype))

    def until(self, rounds: int) -> Trace:
        """The first rounds, in main memory; waits for the device."""
        return Trace(*(getattr(self, column.name)[:, :rounds].cpu() for column in fields(self)))


class Replays:
    """Pieces of work by name, recorded as CUDA graphs: each must read and write the same tensors every time."""

    def __init__(self, device: torch.device) -> None:
        self.recording = device.type == "cuda"
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if self.recording else None

    def do(self, name: Hashable, work: Callable[[], None]) -> None:
        """Do the work; from the second time on by replaying it."""
        if name in self._graphs:
            self._graphs[name].replay()
            return
        work()
        if self.recording:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                work()
            self._graphs[name] = graph


class Batch:
    """R runs from the same start as the single ones; `play` takes them through their rounds."""

    def __init__(self, runs: Sequence[BatchRun], rounds: int, device: torch.device) -> None:
        self.rounds, self._device = rounds, device
        self._config, environment = runs[0].config, runs[0].environment
        if not 1 <= rounds <= environment.horizon:
            raise ConfigError(f"{environment.name}: expected 1 to {environment.horizon} rounds, got {rounds}")
        self.slate_size = environment.slate_size
        check_memory(self._config, rounds, self.slate_size)
        self._arms = ArmNets(runs, rounds, device)
        clusters = None
        self._slates: SlateNets | None = None
        if isinstance(self._config, NeUClustConfig):
            catalogue = (environment.arm_ids, environment.profiles)
            clusters = ClusterMap(self._config.clustering, self.slate_size, None, catalogue)
            self._slates = SlateNets(runs, rounds, device)
        view = self._config.arms.view
        self.dealer = Dealer([r.environment for r in runs], (self._arms.encoder, view), clusters, device)
        self._table = environment.reward.table.to(device)
        self._fits = [self._arms.fit] if self._slates is None else [self._arms.fit, self._slates.fit]
        self._fine = torch.ones(len(self._fits), dtype=torch.bool, device=device)
        self._now = torch.zeros(1, dtype=torch.int64, device=device)  # rounds played
        self._slates_read = 0
        self._trace = Trace.empty(len(runs), rounds, self.slate_size, device)
        self._forced: Tensor | None = None
        self._replays = Replays(device)
        self._still: dict[tuple[int, float], Dealt] = {}  # rounds of one shape, in tensors that stay where they are
        steady = environment.round(1).profiles is environment.profiles and self._arms.encoder.config.kind != "lift"
        self._recorded = self._replays.recording and steady and isinstance(self._arms.covariance, PrimalBatch)

    def play(
        self,
        forced: Tensor | None = None,
        on_round: Callable[[int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Trace:
        """All rounds, or those before `stop` returns true; with `forced` (R, T, K) those slates are played instead."""
        self._forced = None if forced is None else forced.to(self._device)
        coming, done = self.dealer.deal(1), 0
        while done < self.rounds and not (stop is not None and stop()):
            self._turn(coming)
            done += 1
            self._arms.covariance.refresh(done)
            self._train(done)
            if done < self.rounds:
                coming = self.dealer.deal(done + 1)  # while the device trains
            self._settle(done)
            if on_round is not None:
                on_round(done)
        return self._trace.until(done)

    @property
    def failures(self) -> list[int]:
        """Failed trainings of either network, run by run."""
        return [int(sum(counts)) for counts in zip(*(fit.failures.tolist() for fit in self._fits), strict=True)]

    def _turn(self, dealt: Dealt) -> None:
        """Select, play and observe; rounds of one shape are recorded once and replayed."""
        if not self._recorded:
            self._round(dealt)
            return
        shape = len(dealt.active), dealt.shown.rho
        if shape not in self._still:
            self._still[shape] = dealt.copy()
        still = self._still[shape]
        still.take(dealt)
        self._replays.do(("round", shape), lambda: self._round(still))

    def _round(self, dealt: Dealt) -> None:
        x, columns, row_of = dealt.shown.contexts(self._arms.encoder, dealt.active, dealt.query)
        played = self._select(dealt, x, columns, row_of)
        if self._forced is not None:
            played = self._forced.index_select(1, self._now).squeeze(1)
        rewards = torch.gather(dealt.payouts[self.dealer.coins_of], 1, played)
        arm_rewards, slate_rewards = rewards.to(torch.float64), self._table[rewards.sum(1)]
        true_means = dealt.means[played]
        self._trace.write(self._now, arm_rewards=arm_rewards, slate_rewards=slate_rewards, true_means=true_means)
        predicted = self._arms.observe(self._now, x[row_of[played]], columns, arm_rewards)
        if self._slates is not None:
            self._slates.loss.write(self._now, slate_rewards, predicted, arm_rewards)
        self._now += 1

    def _select(self, dealt: Dealt, x: Tensor, columns: Tensor, row_of: Tensor) -> Tensor:
        means, bonuses = (scores[:, row_of] for scores in self._arms.scores(self._now, x, columns))
        optimistic = means + bonuses
        ranked = means if getattr(self._config, "rank_by", "optimistic") == "mean" else optimistic
        best = top_of_table(ranked, dealt.table, self.slate_size)  # b_c, (R, C, K)
        if self._slates is None:
            winner = torch.zeros(len(best), dtype=torch.int64, device=self._device)
        else:
            winner = self._slates.best_cluster(best, means, optimistic)
        positions = best[torch.arange(len(best), device=self._device), winner]
        chosen = {"means": at(means, positions), "bonuses": at(bonuses, positions)}
        self._trace.write(self._now, slates=positions, clusters=dealt.names[winner], **chosen)
        return positions

    def _train(self, t: int) -> None:
        due = [fit.due(t) for fit in self._fits]
        self._slates_read = bucket(t, self.rounds, 64) if self._replays.recording else t
        if any(due):
            self._replays.do(("train", self._slates_read, *due), lambda: self._train_now(due))

    def _train_now(self, due: list[bool]) -> None:
        if due[0]:
            observations = self._now * self.slate_size
            self._arms.fit.train(self._slates_read * self.slate_size, observations)
            self._fine[:1] = self._arms.fit.fine & ~self._arms.may_restart(observations).any()
        if len(due) > 1 and due[1]:
            self._train_slates()
            self._fine[1:] = self._fits[1].fine

    def _train_slates(self) -> None:
        """F reads today's means of all slates so far, unless it learns from something else, then is fitted."""
        assert self._slates is not None
        if self._slates.loss.reads_present_means:
            predicted = self._arms.loss.predict(self._arms.fit.parameters, self._slates_read * self.slate_size)
            self._slates.loss.read(predicted.view(len(predicted), -1, self.slate_size))
        self._slates.fit.train(self._slates_read, self._now)

    def _settle(self, t: int) -> None:
        """The one wait per round: what training or an update did not get right in some run is tried again."""
        *fine, stale = torch.cat([self._fine, self._arms.covariance.stale.any().view(1)]).tolist()
        if stale:
            self._arms.covariance.mend()
        due = [fit.due(t) for fit in self._fits]
        if due[0] and not fine[0]:
            self._insist(self._arms.fit, self._slates_read * self.slate_size)
            self._arms.restart_lifeless(t * self.slate_size)
            if self._slates is not None and due[1]:  # it was fitted to means that have changed
                self._slates.fit.go_back()
                self._train_slates()
                fine[1] = False
        if self._slates is not None and due[1] and not fine[1]:
            self._insist(self._slates.fit, self._slates_read)
        for fit, trained, helped, rows in zip(self._fits, due, fine, (t * self.slate_size, t), strict=False):
            if trained:
                fit.report(helped, rows)

    def _insist(self, fit: Fit, rows: int) -> None:
        fit.insist(lambda: self._replays.do(("again", fit is self._arms.fit, rows), lambda: fit.attempt(rows)))


def bucket(rows: int, room: int, step: int) -> int:
    """The size a buffer is read at when `rows` of its `room` rows are filled: few sizes, so few graphs."""
    size = step
    while size < rows:
        size += max(step, size // (2 * step) * step)
    return min(size, room)


def top_of_table(scores: Tensor, table: Tensor, k: int) -> Tensor:
    """The k best members of every row of `table` (C, L; −1 where empty) by (−score, place in the row): (R, C, k)."""
    left = torch.where(table >= 0, scores[:, table.clamp(min=0)], -torch.inf)
    chosen = []
    for _ in range(k):  # of equal values argmax finds the first, which a partial sort does not promise
        place = left.argmax(-1, keepdim=True)
        left.scatter_(-1, place, -torch.inf)
        chosen.append(place)
    places = torch.cat(chosen, -1)
    return torch.gather(table.expand(len(scores), *table.shape), 2, places)
