"""What a batch did, round by round, and its scores against the truth."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from neuclust.environments.problem import RoundScore
from neuclust.environments.slates import SlateEnvironment
from neuclust.experiment.engines.device.dealer import RoundTruth
from neuclust.kernels.poisson_binomial import pmf


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
        """The first rounds alone."""
        return Trace(*(getattr(self, column.name)[:, :rounds] for column in fields(self)))

    def on_host(self) -> Trace:
        """The same in main memory; waits for the device."""
        return Trace(*(getattr(self, column.name).cpu() for column in fields(self)))


def round_scores(
    environment: SlateEnvironment, truths: list[RoundTruth], chosen: Tensor, realised: Tensor
) -> list[RoundScore]:
    """`SlateEnvironment.score` of T rounds at once: μ of the played arms (T, K) and slate rewards (T,)."""
    truths = truths[: len(realised)]  # one more was dealt where a run was stopped
    reward, table = environment.reward, environment.reward.table
    shortfall = (table[:, None] - table[None, :]).clamp(min=0.0)
    best = torch.stack([truth.best for truth in truths])
    ideal, played = torch.stack([truth.best_tally for truth in truths]), pmf(chosen)
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
