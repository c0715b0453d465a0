"""What a problem deals: arms, offers per round, true mean rewards, coins, and the delivery of feedback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.randomness import stream

View = Callable[[Tensor, Tensor | None], Tensor]  # profiles (n, d) and query to what a round shows of them, (n, d)


@dataclass(frozen=True, slots=True)
class Arms:
    """The catalogue: every arm that can be offered."""

    profiles: Tensor  # (N, d)
    ids: Tensor  # (N,)
    counts: Tensor | None = None  # (N, d) observations behind each profile entry, where known
    labels: Tensor | None = None  # (N,) the cluster each arm was drawn from, where there is one
    view: View | None = None

    @classmethod
    def numbered(cls, profiles: NDArray[np.float64], labels: NDArray[np.int64] | None = None) -> Arms:
        """Arms with ids 0 to N − 1."""
        known = None if labels is None else torch.from_numpy(labels)
        return cls(torch.from_numpy(profiles), torch.arange(len(profiles)), labels=known)

    def shown(self, rows: Tensor | None, query: Tensor | None) -> tuple[Tensor, Tensor]:
        """Ids (n,) and shown profiles (n, d) of the offered rows; the catalogue's own tensors where all are offered."""
        ids, profiles = (self.ids, self.profiles) if rows is None else (self.ids[rows], self.profiles[rows])
        return ids, profiles if self.view is None else self.view(profiles, query)

    def groups(self, rows: Tensor | None) -> Tensor:
        """The cluster of every offered arm, (n,); zeros where there are none."""
        labels = torch.zeros(len(self.ids), dtype=torch.int64) if self.labels is None else self.labels
        return labels if rows is None else labels[rows]


def coins(seed: int, purpose: str, size: int, t: int) -> Tensor:
    """`size` uniform numbers of round t, a function of (seed, purpose, t) alone: every policy meets the same ones."""
    return torch.from_numpy(stream(seed, purpose, t).random(size))


@dataclass(frozen=True, slots=True)
class Delivery:
    """Feedback of a share `late` of the rounds arrives `delay` to `latest` rounds later, of a share `lost` never; of
    the others' arms a share `unseen` has no reward. Draws depend on (seed, t, arm) alone, not on the policy."""

    seed: int
    late: float = 0.0
    delay: int = 0
    lost: float = 0.0
    unseen: float = 0.0
    latest: int | None = None  # None: `delay` itself

    def __post_init__(self) -> None:
        if min(self.late, self.lost, self.unseen, self.delay) < 0 or self.late + self.lost > 1 or self.unseen > 1:
            wanted = "shares from 0 to 1 (late and lost together at most 1) and a delay of at least 0"
            raise ConfigError(f"delivery: expected {wanted}, got {self}")
        if self.latest is not None and self.latest < self.delay:
            raise ConfigError(f"delivery: expected a latest delay of at least {self.delay}, got {self.latest}")

    def arrival(self, t: int) -> int | None:
        """The round whose end brings the feedback of round t; None: it never comes."""
        generator = stream(self.seed, "delivery", t)
        luck = float(generator.random())
        if luck < self.lost:
            return None
        if luck >= self.lost + self.late:
            return t
        return t + (self.delay if self.latest is None else int(generator.integers(self.delay, self.latest + 1)))

    def seen(self, t: int, rows: Tensor, n_arms: int, arm_rewards: Tensor) -> Tensor:
        """The rewards of the catalogue rows (K,), NaN where one did not come."""
        if self.unseen == 0.0:
            return arm_rewards
        return torch.where(coins(self.seed, "unseen", n_arms, t)[rows] < self.unseen, torch.nan, arm_rewards)


@dataclass(frozen=True, slots=True)
class Offer:
    """The rows offered in round t, ascending: `size` of N arms at random, or None for all of them."""

    n_arms: int
    size: int | None = None
    seed: int = 0

    @property
    def is_whole(self) -> bool:
        return self.size is None or self.size == self.n_arms

    def __call__(self, t: int) -> Tensor | None:
        if self.is_whole:
            return None
        chosen = stream(self.seed, "offer", t).choice(self.n_arms, self.size, replace=False, shuffle=False)
        return torch.from_numpy(chosen).sort().values


# μ of the arms at the given positions (all where None) for one query, (n,) float64 in [0, 1]
MeanRewards = Callable[[Tensor | None, Tensor | None], Tensor]
# round t: the rows offered, ascending, (n,), and what each paid or its μ, (n,) in [0, 1]
RecordedRounds = Callable[[int], tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class Simulated:
    """Rounds with arms offered at random and mean rewards that depend on the query alone."""

    means_of: MeanRewards
    queries: Tensor | None = None  # (T, d)

    def deal(self, t: int, offer: Offer) -> tuple[Tensor | None, Tensor]:
        """The rows offered in round t (None: all) and their μ, (n,) each."""
        rows = offer(t)
        return rows, self.means_of(rows, query_at(self.queries, t))


class Contexts(Protocol):
    """What models read of the offered rows in round t, (n, dim), where it is not profiles ⊙ query; None: all rows."""

    @property
    def dim(self) -> int: ...

    def __call__(self, t: int, rows: Tensor | None) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """Rounds dealt whole: what really happened, or arms and mean rewards that change from round to round."""

    rounds: RecordedRounds
    queries: Tensor | None = None
    contexts: Contexts | None = None  # None: models read profiles ⊙ query

    def deal(self, t: int, offer: Offer) -> tuple[Tensor | None, Tensor]:  # noqa: ARG002
        return self.rounds(t)


Rounds = Simulated | Recorded


def query_at(queries: Tensor | None, t: int) -> Tensor | None:
    """What round t asks for, (d,). A copy: a view would carry every future query in its storage."""
    return None if queries is None else queries[t - 1].clone()


def average_means(rounds: Rounds, n_arms: int, horizon: int) -> Tensor:
    """μ of every arm averaged over the rounds, (N,); recorded arms over the rounds that offered them, or 0."""
    every = Offer(n_arms)
    if isinstance(rounds, Simulated) and rounds.queries is None:  # every round has the same means
        return rounds.means_of(None, None)
    sums, times = (torch.zeros(n_arms, dtype=torch.float64) for _ in range(2))
    for t in range(1, horizon + 1):
        offered, means = rounds.deal(t, every)
        rows = slice(None) if offered is None else offered
        sums[rows] += means
        times[rows] += 1
    return sums / times.clamp(min=1)


def same(mine: object, theirs: object) -> bool:
    """Equal tensors, sparse matrices, tuples or records of such, or plain values."""
    if mine is theirs:
        return True
    if type(mine) is not type(theirs):
        return False
    if isinstance(mine, Tensor) and isinstance(theirs, Tensor):
        return torch.equal(mine, theirs)
    if isinstance(mine, csr_matrix) and isinstance(theirs, csr_matrix):
        return mine.shape == theirs.shape and abs(mine - theirs).max() == 0
    if is_dataclass(mine):
        return all(same(getattr(mine, part.name), getattr(theirs, part.name)) for part in fields(mine))
    return bool(mine == theirs)
