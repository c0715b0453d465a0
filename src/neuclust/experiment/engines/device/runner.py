"""Runs in, records out: `experiment/run.py` for many runs at once."""

from collections.abc import Callable, Sequence
from time import perf_counter

import torch
from torch import Tensor

from neuclust.environments.problem import RoundScore
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.engines.device.batches import BatchRun, batches_of
from neuclust.experiment.engines.device.dealer import RoundTruth
from neuclust.experiment.engines.device.engine import Batch, Trace
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import Tally, make_record
from neuclust.kernels.bernoulli import poisson_binomial
from neuclust.policies.neuclust import NeUClustConfig


def run_batch(
    runs: Sequence[BatchRun],
    rounds: int,
    *,
    device: str = "cpu",
    on_round: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[RunRecord]:
    """Play all runs, those that can together in one batch, and return their records in order.

    A record's `seconds` is its share of its batch. `on_round` gets the number of rounds done in the current batch; once
    `stop` returns true the batch ends, its records say `interrupted`, and runs of later batches have no record.
    """
    where = usable_device(device)
    records: dict[int, RunRecord] = {}
    for places in batches_of(runs):
        if stop is not None and stop():
            break
        began = perf_counter()
        batch = Batch([runs[place] for place in places], rounds, where)
        trace = batch.play(on_round=on_round, stop=stop)
        tallies = [_tally(batch, trace, row, runs[place]) for row, place in enumerate(places)]
        seconds = (perf_counter() - began) / len(places)
        for place, tally, failed in zip(places, tallies, batch.failures, strict=True):
            run = runs[place]
            records[place] = make_record(tally, run.environment, run.label, run.seed, seconds, failed)
    return [records[place] for place in sorted(records)]


def trace_batch(runs: Sequence[BatchRun], rounds: int, *, device: str = "cpu", forced: Tensor | None = None) -> Trace:
    """One batch with every choice and score it made; with `forced` (R, T, K) those slates are played instead."""
    if len(batches_of(runs)) != 1:
        raise ConfigError("trace_batch: expected runs that share a batch, got several problems or shapes of policy")
    return Batch(runs, rounds, usable_device(device)).play(forced)


def usable_device(name: str) -> torch.device:
    """The named device, where it is available."""
    if name.partition(":")[0] not in ("cpu", "cuda"):
        raise ConfigError(f"device: expected cpu or cuda, got {name!r}")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("device: expected a CUDA device for 'cuda', found none; use cpu")
    return torch.device(name)


def _tally(batch: Batch, trace: Trace, row: int, run: BatchRun) -> Tally:
    tally = Tally(batch.rounds)
    chosen, realised = trace.true_means[row], trace.slate_rewards[row]
    for score in round_scores(run.environment, batch.dealer.truths, chosen, realised):
        tally.add(score)
    tally.arm_successes = float(trace.arm_rewards[row].sum())
    tally.mark()  # an interrupted run ends off the grid
    if isinstance(run.config, NeUClustConfig):
        tally.chosen_clusters.extend(trace.clusters[row].tolist())
    return tally


def round_scores(
    environment: SlateEnvironment, truths: list[RoundTruth], chosen: Tensor, realised: Tensor
) -> list[RoundScore]:
    """`SlateEnvironment.score` of T rounds at once: μ of the played arms (T, K) and slate rewards (T,)."""
    truths = truths[: len(realised)]  # one more was dealt where a run was stopped
    if not truths:
        return []
    reward, table = environment.reward, environment.reward.table
    shortfall = (table[:, None] - table[None, :]).clamp(min=0.0)
    best = torch.stack([truth.best for truth in truths])
    ideal, played = torch.stack([truth.best_tally for truth in truths]), poisson_binomial(chosen)
    rivals = torch.stack([environment.rival_coins(t) for t in range(1, len(truths) + 1)]) < best
    rival = table[rivals.sum(1)]
    best_expected = torch.tensor([truth.best_expected for truth in truths], dtype=torch.float64)
    expected = reward.expected(chosen)
    columns = (
        best_expected,
        expected,
        best_expected - expected,
        realised,
        rival,
        (rival - realised).clamp(min=0.0),
        ((ideal @ shortfall) * played).sum(1),
        ((ideal @ shortfall) * ideal).sum(1),
        rival - realised,
        best.sum(1) - chosen.sum(1),
    )
    return [RoundScore(*row) for row in torch.stack(columns, 1).tolist()]
