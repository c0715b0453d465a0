"""The data of an ensemble: a bounded memory of distinct contexts with their rewards, and the latest slates."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.models.history import GrowingTable
from neuclust.models.state import check_lengths, expect, take, take_ids, take_numbers, take_rows
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.reward_range import Rescaling
from neuclust.randomness import stream

INFORMED = 12.0  # clicks, where they are rare
RAREST = 1e-6
MOST_CONTEXTS = 10_000
MOST_NUMBERS = 1_000_000  # contexts times features: with many features fewer contexts are held
MEMORY = ("contexts", "totals", "latest.contexts", "latest.paid", "latest.sizes")  # what only learning reads


@dataclass(frozen=True, slots=True)
class RewardScale:
    """The level p̄ of the rewards, their mean, and the unit that makes rewards of 1 % and of 60 % alike."""

    level: float = 0.5

    @property
    def unit(self) -> float:
        """p̄(1 − p̄), p̄ at most ½: the variance of rewards of 0 and 1, and what a change of the log-odds by 1 adds to
        their mean. Arms are chosen: where p̄ is high, others still pay anything from 0 to p̄."""
        level = min(self.level, 0.5)
        return level * (1 - level)

    @property
    def informative(self) -> float:
        """4 p̄(1 − p̄), at most 1: what a reward tells, relative to one of 0 or 1 with equal chances."""
        return 4 * self.unit

    def informed(self, number: float) -> bool:
        """Whether so many rewards tell prior variances, which collapse if found from a handful of clicks."""
        return number * self.unit >= INFORMED


@dataclass(frozen=True, slots=True)
class Played:
    """The arms of one slate whose rewards were observed: features, rewards (k,), and exposures in (0, 1], (k,)."""

    features: Features
    rewards: Tensor
    exposures: Tensor


@dataclass(frozen=True, slots=True)
class Held:
    """Distinct contexts: features (u, ·), Σr (u,) and Σa (u,) of each, and Σr²/a of all; E[Σr] = Σa · mean reward."""

    features: Features
    sums: Tensor
    counts: Tensor
    energy: float
    scale: RewardScale


class Plays:
    """Equal contexts once, with their sums over rewards r and exposures a, the chances that an arm was looked at.
    Where `capacity` contexts are held, a new one takes the place of one drawn uniformly: a context outlasts n others
    with chance (1 − 1/capacity)ⁿ, so that the latest are nearly all held and earlier ones fade instead of ending."""

    def __init__(self, blocks: FeatureBlocks, slate_size: int, latest: int = 120, seed: int = 0) -> None:
        self.blocks, self.slate_size, self.seed = blocks, slate_size, seed
        self.capacity = max(slate_size, min(MOST_CONTEXTS, MOST_NUMBERS // blocks.dim))
        self.zero = 0.0  # y of the reward 0, which levels are measured from
        self.slates, self.observations = 0, 0
        self._paid, self._exposed = 0.0, 0.0  # Σr and Σa of all observations
        self.contexts = GrowingTable(blocks.dim)  # z
        self._totals = GrowingTable(3)  # Σr, Σa and Σr²/a of every context
        self._latest: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=latest)  # z, r and a of slates
        self._row_of: dict[bytes, int] = {}

    @property
    def scale(self) -> RewardScale:
        """Of all rewards, from a prior of one arm that paid ½."""
        return RewardScale(self.above_zero((self._paid + 0.5) / (self._exposed + 1.0)))

    def above_zero(self, mean: float) -> float:
        """A mean of y as a share of what there is above the reward 0, at least `RAREST`."""
        return max((mean - self.zero) / (1 - self.zero), RAREST)

    @property
    def remembers(self) -> bool:
        """Whether contexts are held, as learning needs them; without them a policy selects alone."""
        return not self.slates or len(self._latest) > 0

    @property
    def informed(self) -> bool:
        """Whether the data tell prior variances."""
        return self.scale.informed(self._exposed)

    def add(self, z: Tensor, features: Features, rewards: Tensor, exposures: Tensor | None = None) -> Played:
        """Add contexts z (k, d) with rewards (k,) and exposures (k,), 1 where none are given."""
        shares = torch.ones_like(rewards) if exposures is None else exposures
        self.slates, self.observations = self.slates + 1, self.observations + len(rewards)
        self._paid, self._exposed = self._paid + float(rewards.sum()), self._exposed + float(shares.sum())
        self._latest.append((z.clone(), rewards.clone(), shares.clone()))
        rows = self._rows(z + 0.0)  # −0 becomes 0, so that equal contexts have equal bytes
        self._totals.rows.index_add_(0, rows, torch.stack([rewards, shares, rewards * rewards / shares], 1))
        return Played(features, rewards, shares)

    def rescale(self, change: Rescaling) -> None:
        """Read all rewards on another range: sums as sums of slope · r + shift · a, the latest rewards one by one."""
        slope, shift = change
        self._paid = slope * self._paid + shift * self._exposed
        sums, counts, energies = self._totals.rows.T.clone()
        energies = slope**2 * energies + shift * (2 * slope * sums + shift * counts)
        self._totals.load(torch.stack([slope * sums + shift * counts, counts, energies], 1))
        latest = [(z, slope * rewards + shift, exposures) for z, rewards, exposures in self._latest]
        self._latest = deque(latest, self._latest.maxlen)

    def _rows(self, z: Tensor) -> Tensor:
        """The row of every context, (k,); new ones are appended or take the place of others."""
        keys = [row.tobytes() for row in z.numpy()]
        new = {key: z[i] for i, key in enumerate(keys) if key not in self._row_of}
        leaving = len(self.contexts) + len(new) - self.capacity
        if leaving > 0:
            free = torch.ones(len(self.contexts), dtype=torch.bool)
            free[[self._row_of[key] for key in keys if key in self._row_of]] = False
            rng, places = stream(self.seed, "auto memory", self.slates), torch.nonzero(free).flatten().numpy()
            left = rng.choice(places, leaving, replace=False, shuffle=False).tolist()
        for key, context in new.items():
            if len(self.contexts) < self.capacity:
                self._row_of[key] = len(self.contexts)
                self.contexts.append(context)
                self._totals.append(0.0)
                continue
            row = left.pop()
            del self._row_of[self.contexts.rows[row].numpy().tobytes()]
            self.contexts.rows[row], self._totals.rows[row], self._row_of[key] = context, 0.0, row
        return torch.tensor([self._row_of[key] for key in keys])

    def held(self, most: int | None = None) -> Held:
        """The contexts held, or `most` of them, evenly spaced."""
        z, totals = self.contexts.rows, self._totals.rows
        if most is not None and len(z) > most:
            spaced = torch.arange(most) * len(z) // most
            z, totals = z[spaced], totals[spaced]
        sums, counts, energies = totals.T.contiguous()
        return Held(self.blocks.read(z), sums, counts, float(energies.sum()), self.scale)

    def latest(self, slates: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Contexts, rewards and exposures of the last slates, oldest first."""
        return list(self._latest)[-slates:]

    def state_dict(self) -> dict[str, Tensor]:
        paid = [torch.stack([rewards, exposures], 1) for _, rewards, exposures in self._latest]
        return {
            "numbers": torch.tensor([self.slates, self.observations]),
            "sums": torch.tensor([self._paid, self._exposed], dtype=torch.float64),
            "contexts": self.contexts.rows.clone(),
            "totals": self._totals.rows.clone(),
            "latest.contexts": torch.cat([self.contexts.rows[:0], *(z for z, _, _ in self._latest)]),
            "latest.paid": torch.cat([torch.zeros(0, 2, dtype=torch.float64), *paid]),
            "latest.sizes": torch.tensor([len(one) for one in paid], dtype=torch.int64),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        slates, observations = take(state, "numbers", torch.zeros(2, dtype=torch.int64)).tolist()
        contexts, totals = self.contexts.taken(state, "contexts"), self._totals.taken(state, "totals")
        z, paid = take_rows(state, "latest.contexts", contexts.shape[1:]), take_rows(state, "latest.paid", (2,))
        sizes = take_ids(state, "latest.sizes")
        check_lengths(contexts=contexts, totals=totals)
        check_lengths(**{"latest.contexts": z, "latest.paid": paid})
        expect(bool((totals[:, 1] > 0).all() and (paid[:, 1] > 0).all()), "exposures above 0", "0 or less")
        expect(len(contexts) <= self.capacity, f"at most {self.capacity} contexts", len(contexts))
        whole = bool((sizes > 0).all()) and int(sizes.sum()) == len(z)
        latest = 0 if len(contexts) == 0 else min(slates, self._latest.maxlen or 0)  # 0: it selects and cannot learn
        expect(whole and len(sizes) == latest, f"the latest of {slates} slates", "others")
        row_of = {row.tobytes(): i for i, row in enumerate(contexts.numpy())}
        expect(len(row_of) == len(contexts) <= observations, "contexts that differ, each observed", "others")
        paid_sum, exposed = take_numbers(state, "sums", 2)
        expect(paid_sum >= 0 and exposed >= 0, "sums of rewards and exposures", (paid_sum, exposed))
        self.slates, self.observations, self._row_of = slates, observations, row_of
        self._paid, self._exposed = paid_sum, exposed
        self.contexts.load(contexts)
        self._totals.load(totals)
        self._latest.clear()
        for end, size in zip(sizes.cumsum(0).tolist(), sizes.tolist(), strict=True):
            rows = slice(end - size, end)
            self._latest.append((z[rows].clone(), paid[rows, 0].clone(), paid[rows, 1].clone()))
