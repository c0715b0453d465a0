"""A problem's rounds for R runs that differ in their coins alone: contexts and clusters on the device."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from neuclust.core import Round, check_round
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.kernels.bernoulli import poisson_binomial
from neuclust.kernels.regions import group_rows
from neuclust.models.encoder import Encoder
from neuclust.slates.clustering import ClusterMap
from neuclust.slates.partition import Partition

_ODD = (-0x61C8864680B583EB, -0x40A7B892E31B1A47)  # odd 64-bit numbers with well mixed bits
THREADS = 4  # that flip coins; more only wait for each other


@dataclass(frozen=True, slots=True)
class Shown:
    """Profiles on the device, for as long as rounds show the same ones."""

    profiles: Tensor  # as the round holds them
    columns: Tensor  # (d, u) the different ones, by column
    kind_of: Tensor  # (n,) every arm's place among them
    rho: float

    def contexts(self, encoder: Encoder, active: Tensor, query: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Encoded contexts (u, q), their columns in the net (q,), and every arm's row, one for equal contexts (n,)."""
        z = self.columns[active]
        if query is not None:
            z = z * query[active].unsqueeze(1)
        x, columns = encoder.encode(z.T, active, self.rho)
        x = x.contiguous()
        return x, columns, representatives(x)[self.kind_of]


@dataclass(frozen=True, slots=True)
class Dealt:
    """One round on the device."""

    shown: Shown
    active: Tensor  # (q,) columns that can be non-zero, and perhaps some that are zero
    query: Tensor | None  # (d,)
    table: Tensor  # (C, L) members of every cluster by arm id, −1 padded
    names: Tensor  # (C,) the clusters' numbers
    payouts: Tensor  # (E, n) what each arm pays with each set of coins, 0 or 1
    means: Tensor  # (n,) the truth, to score with and never to select by

    def copy(self) -> Dealt:
        """The same with tensors of its own for all that changes from round to round."""
        query, payouts = None if self.query is None else self.query.clone(), self.payouts.clone()
        return replace(self, active=self.active.clone(), query=query, payouts=payouts, means=self.means.clone())

    def take(self, other: Dealt) -> None:
        """Another round of the same shape into these tensors."""
        self.active.copy_(other.active)
        self.payouts.copy_(other.payouts)
        self.means.copy_(other.means)
        if self.query is not None and other.query is not None:
            self.query.copy_(other.query)


@dataclass(frozen=True, slots=True)
class RoundTruth:
    """The truth of a round, kept on the host to score it."""

    best: Tensor  # (K,) means of the best slate
    best_tally: Tensor  # (K + 1,)
    best_expected: float


class Dealer:
    """Deals the rounds of environments that differ in their coins alone."""

    def __init__(
        self,
        environments: list[SlateEnvironment],
        reader: tuple[Encoder, Callable[[Round], Round]],
        clusters: ClusterMap | None,
        device: torch.device,
    ) -> None:
        """`reader`: the encoder of contexts, and a round as nets read it."""
        self._environments, self._clusters, self._device = environments, clusters, device
        self._encoder, self._view = reader
        self._shown: Shown | None = None
        self._table: tuple[Partition | None, Tensor, Tensor, Tensor] | None = None
        self._catalogue = torch.sort(environments[0].arm_ids)
        unique = {id(e): e for e in environments}
        self.coins_of = torch.tensor([list(unique).index(id(e)) for e in environments], device=device)
        self._unique = list(unique.values())
        self._threads = ThreadPoolExecutor(THREADS)
        self.truths: list[RoundTruth] = []

    def deal(self, t: int) -> Dealt:
        """Round t; rounds come in order."""
        environment = self._environments[0]
        round = environment.round(t)
        means = environment.means(round)
        best = means[environment.best_positions(round)]
        tally = poisson_binomial(best)
        self.truths.append(RoundTruth(best, tally, environment.reward.value_of(tally)))
        read = self._view(round)
        shown, (table, names) = self._show(read), self._members(round)
        active = self._send(filled_up(read.active, environment.dim))
        query = None if read.query is None else self._send(read.query)
        return Dealt(shown, active, query, table, names, self._payouts(round, means), self._send(means))

    def _show(self, round: Round) -> Shown:
        rho = self._encoder.scale_of(round)
        if self._shown is None or self._shown.profiles is not round.profiles:
            check_round(round, self._environments[0].dim, self._environments[0].slate_size)
            first, kind_of = group_rows(round.profiles)
            columns = round.profiles[first].T.contiguous().to(self._device)
            self._shown = Shown(round.profiles, columns, kind_of.to(self._device), rho)
        if rho != self._shown.rho:  # read from each round until it is settled
            self._shown = replace(self._shown, rho=rho)
        self._encoder.settle(round)
        return self._shown

    def _members(self, round: Round) -> tuple[Tensor, Tensor]:
        """Clusters as rows of positions in the order of arm ids: ties then go to the smaller id."""
        partition = None if self._clusters is None else self._clusters.partition(round)
        if self._clusters is not None:
            self._clusters.settle(round)
        if self._table is None or self._table[0] is not partition or self._table[1] is not round.arm_ids:
            table = torch.arange(len(round.arm_ids)).unsqueeze(0) if partition is None else _positions(partition)
            names = torch.zeros(1, dtype=torch.int64) if partition is None else partition.names
            table = _by_id(table, round.arm_ids)
            self._table = (partition, round.arm_ids, table.to(self._device), names.to(self._device))
        return self._table[2:]

    def _payouts(self, round: Round, means: Tensor) -> Tensor:
        ids, order = self._catalogue
        rows = slice(None) if len(means) == len(ids) else order[torch.searchsorted(ids, round.arm_ids)]
        flipped = torch.empty(len(self._unique), len(means), dtype=torch.bool)

        def flip(first: int) -> None:
            for place in range(first, len(self._unique), THREADS):
                torch.lt(self._unique[place].coins(round.t)[rows], means, out=flipped[place])

        list(self._threads.map(flip, range(min(THREADS, len(self._unique)))))
        return self._send(flipped)

    def _send(self, tensor: Tensor) -> Tensor:
        """To the device without waiting for it, which only pinned memory allows."""
        if self._device.type == "cpu":
            return tensor
        return tensor.pin_memory().to(self._device, non_blocking=True)


def filled_up(active: Tensor, dim: int) -> Tensor:
    """Active columns with idle ones added up to one of about 16 sizes, ascending: few sizes of work, zeros for idle."""
    step = max(1, dim // 16)
    wanted = min(dim, max(step, -(-len(active) // step) * step))
    idle = torch.ones(dim, dtype=torch.bool)
    idle[active] = False
    return torch.cat([active, torch.nonzero(idle).flatten()[: wanted - len(active)]]).sort().values


def _positions(partition: Partition) -> Tensor:
    """The partition's table in positions of the round."""
    if partition.small:
        got = "a smaller one with clustering.small=fill; use merge or skip, or run without a device"
        raise ConfigError(f"device engine: expected clusters of at least a slate, got {got}")
    if partition.kept is None:
        return partition.table
    return torch.where(partition.table >= 0, partition.kept[partition.table.clamp(min=0)], -1)


def _by_id(table: Tensor, arm_ids: Tensor) -> Tensor:
    """Members of every row ascending by arm id, empty places last."""
    last = torch.iinfo(torch.int64).max
    ids = torch.where(table >= 0, arm_ids[table.clamp(min=0)], last)
    return torch.gather(table, 1, torch.argsort(ids, dim=1, stable=True))


def representatives(rows: Tensor) -> Tensor:
    """For every row of (n, q) the first row equal to it, (n,), by hashes; different rows of one hash stay apart."""
    n, width = rows.shape
    own = torch.arange(n, device=rows.device)
    if width == 0:
        return torch.zeros_like(own)
    bits = (rows + 0.0).view(torch.int64)  # + 0.0 turns −0 into 0: equal numbers, equal bits
    column = torch.arange(1, 2 * width, 2, device=rows.device) * _ODD[0]
    mixed = (bits ^ (bits >> 32)) * column
    mixed = (mixed ^ (mixed >> 29)) * _ODD[1]
    keys, order = torch.sort((mixed ^ (mixed >> 32)).sum(1), stable=True)
    starts = torch.ones(n, dtype=torch.bool, device=rows.device)
    starts[1:] = keys[1:] != keys[:-1]
    first = order[torch.cummax(torch.where(starts, own, 0), 0).values]
    found = torch.empty_like(order)
    found[order] = first
    return torch.where((rows[found] == rows).all(1), found, own)
