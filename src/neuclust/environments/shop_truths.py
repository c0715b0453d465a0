"""What a simulated shop is made of: items and requests, what models read of both, and the chance of a click.

Draws go row by row, so that a longer run has the first requests, and a larger catalogue the first items, of a shorter.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.environments.beyond import Tastes, random_rows
from neuclust.randomness import stream

Link = Literal["logistic", "linear", "best-price"]
Layout = Literal["crossed", "beside", "product"]
USER_FEATURES = 4  # two normal numbers, two flags
FLAG = 0.5  # a flag is set where a normal number is above: 31 % of them
CATEGORIES, SEGMENTS = 4, 3
TOLERATED = 0.35  # width of the band around a best price, in s.d. of the logarithm of prices
SAMPLED_REQUESTS, SAMPLED_ITEMS = 200, 500  # of which signal and click rate are measured


@dataclass(frozen=True, slots=True)
class Crossing:
    """Contexts z_k = v_{a(k)} u_{b(k)} of item vectors v (N, p) and request vectors u (T, m), whose u_0 is 1."""

    items: Tensor
    requests: Tensor
    item_columns: Tensor  # a, (d,)
    request_columns: Tensor  # b, (d,)

    @property
    def dim(self) -> int:
        return len(self.item_columns)

    def __call__(self, t: int, rows: Tensor | None) -> Tensor:
        items = self.items if rows is None else self.items[rows]
        return items[:, self.item_columns] * self.requests[t - 1, self.request_columns]

    def with_requests(self, requests: Tensor) -> Self:
        return replace(self, requests=requests)


class Score(Protocol):
    """The part of an arm's log-odds that features explain, in round t of these contexts: (n,)."""

    def __call__(self, contexts: Crossing, t: int, rows: Tensor) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class LinearScore:
    """z·θ_t."""

    tastes: Tastes

    def __call__(self, contexts: Crossing, t: int, rows: Tensor) -> Tensor:
        return contexts(t, rows) @ self.tastes(t)


@dataclass(frozen=True, slots=True)
class BestPrice:
    """h_{s,c} exp(−½ ((price − best_{s,c}) / w)²) + ¼ rating for segment s and category c; prices in logarithms."""

    best: Tensor  # (S, C)
    heights: Tensor  # (S, C)

    def __call__(self, contexts: Crossing, t: int, rows: Tensor) -> Tensor:
        items, segment = contexts.items[rows], int(contexts.requests[t - 1, 1:].argmax())
        category = items[:, 2 : 2 + CATEGORIES].argmax(1)
        away = (items[:, 0] - self.best[segment, category]) / TOLERATED
        return self.heights[segment, category] * torch.exp(-away.square() / 2) + items[:, 1] / 4


@dataclass(frozen=True, slots=True)
class Chances:
    """μ of rows in round t: of log-odds b + s, or where the link is linear c (1 + s)₊, with an item's own effect e (N,)
    in s = scale (score − mean) + e."""

    score: Score
    effects: Tensor
    linear: bool
    scale: float = 1.0
    mean: float = 0.0
    level: float = 0.0  # b or c

    def sums(self, contexts: Crossing, t: int, rows: Tensor) -> Tensor:
        """s, (n,)."""
        return self.scale * (self.score(contexts, t, rows) - self.mean) + self.effects[rows]

    def of(self, sums: Tensor) -> Tensor:
        """μ of s."""
        if self.linear:
            return (self.level * (1.0 + sums).clamp(min=0.0)).clamp(max=1.0)
        return torch.sigmoid(self.level + sums)

    def calibrated(self, contexts: Crossing, items: int, targets: tuple[float, float], seed: int) -> Self:
        """With scores of mean 0 and the s.d., and chances of the mean, that `targets` names, over these requests and a
        sample of the first `items` for each."""
        generator, (signal, rate) = stream(seed, "shop sample"), targets
        rows = [torch.from_numpy(generator.integers(items, size=SAMPLED_ITEMS)) for _ in contexts.requests]
        scores = torch.stack([self.score(contexts, t, some) for t, some in enumerate(rows, 1)])
        found = replace(self, mean=float(scores.mean()), scale=signal / float(scores.std()))
        sums = found.scale * (scores - found.mean) + self.effects[torch.stack(rows)]
        low, high = (0.0, 1.0) if self.linear else (-30.0, 30.0)
        for _ in range(60):  # μ rises with the level
            middle = (low + high) / 2
            above = float(replace(found, level=middle).of(sums).mean()) > rate
            low, high = (low, middle) if above else (middle, high)
        return replace(found, level=(low + high) / 2)


@dataclass(frozen=True, slots=True)
class ShopRounds:
    """Round t offers `offered` of the items at hand, rows ⌊b(t − 1)⌋ to ⌊b(t − 1)⌋ + `alive`: b new ones per request
    replace the oldest. `worth` (N,) turns a chance into a mean reward."""

    chances: Chances
    contexts: Crossing
    alive: int
    born: float  # b
    offered: int
    seed: int
    worth: Tensor

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        first = int(self.born * (t - 1))
        rows = random_rows(np.arange(first, first + self.alive), self.offered, self.seed, t)
        return rows, self.worth[rows] * self.chances.of(self.chances.sums(self.contexts, t, rows))


def mixed_contexts(items: int, requests: int, dim: int, seed: int) -> Crossing:
    """⌊d/3⌋ features of the item and products of d − ⌊d/3⌋ pairs of an item's with a user's feature.

    Every third feature of an item and every second of a user is a flag, the others are normal numbers.
    """
    own = dim // 3
    features = normal_rows(seed, "shop items", items, own)
    features[:, 2::3] = features[:, 2::3] > FLAG
    pairs = stream(seed, "shop pairs").permutation(own * USER_FEATURES)
    crossed = np.resize(pairs, dim - own)
    item_columns = np.concatenate([np.arange(own), crossed % own])
    request_columns = np.concatenate([np.zeros(own, dtype=np.int64), 1 + crossed // own])
    return Crossing(
        torch.from_numpy(features), user_requests(seed, "shop requests", requests),
        torch.from_numpy(item_columns), torch.from_numpy(request_columns),
    )  # fmt: skip


def user_requests(seed: int, purpose: str, n: int) -> Tensor:
    """Request vectors (n, 1 + m): 1 and the user's features."""
    users = normal_rows(seed, purpose, n, USER_FEATURES)
    users[:, 1::2] = users[:, 1::2] > FLAG
    return torch.from_numpy(np.concatenate([np.ones((n, 1)), users], axis=1))


def priced_contexts(items: int, requests: int, dim: int, seed: int, layout: Layout = "crossed") -> Crossing:
    """What people make of price, category, rating and the user's segment, and features without effect up to d.

    `crossed`: price, category, price x segment, rating, category x segment. `beside`: price, category, rating, segment,
    nothing crossed. `product`: (price, category, rating) x segment, 0 in the columns of other segments.
    """
    pairs = priced_columns(layout)
    others = max(0, dim - len(pairs))
    drawn = normal_rows(seed, "shop items", items, 3 + others)
    category = np.eye(CATEGORIES)[kinds(drawn[:, 2], CATEGORIES)]
    own = [drawn[:, :2], category, drawn[:, 3:]]  # price, rating, category, others
    own += [np.ones((items, 1))] if layout == "beside" else []
    features = np.concatenate(own, axis=1)
    pairs += [(2 + CATEGORIES + k, 0) for k in range(others)]
    columns = torch.tensor(pairs[:dim], dtype=torch.int64) % features.shape[1]
    made = segment_requests(seed, "shop requests", requests)
    return Crossing(torch.from_numpy(features), made, columns[:, 0], columns[:, 1])


def priced_columns(layout: Layout) -> list[tuple[int, int]]:
    """Columns of item (−1: the last) and request that a layout multiplies."""
    price, rating, kind, segment = 0, 1, range(2, 2 + CATEGORIES), range(1, 1 + SEGMENTS)
    if layout == "beside":
        return [(price, 0), *((c, 0) for c in kind), (rating, 0), *((-1, s) for s in segment)]
    if layout == "product":
        return [(column, s) for s in segment for column in (price, *kind, rating)]
    pairs = [(price, 0), *((c, 0) for c in kind), *((price, s) for s in segment), (rating, 0)]
    return pairs + [(c, s) for s in segment for c in kind]


def segment_requests(seed: int, purpose: str, n: int) -> Tensor:
    """Request vectors (n, 1 + S): 1 and the user's segment among flags."""
    segments = np.eye(SEGMENTS)[kinds(normal_rows(seed, purpose, n, 1)[:, 0], SEGMENTS)]
    return torch.from_numpy(np.concatenate([np.ones((n, 1)), segments], axis=1))


def best_prices(seed: int) -> BestPrice:
    """Best prices N(0, 0.8²) and heights from 1 to 2, one for every segment and category."""
    generator, shape = stream(seed, "shop tastes"), (SEGMENTS, CATEGORIES)
    best, heights = generator.normal(0.0, 0.8, shape), generator.uniform(1.0, 2.0, shape)
    return BestPrice(torch.from_numpy(best), torch.from_numpy(heights))


def normal_rows(seed: int, purpose: str, n: int, width: int) -> NDArray[np.float64]:
    """Standard normal numbers (n, width)."""
    return stream(seed, purpose).standard_normal((n, width))


def kinds(normal: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """One of `count` kinds for every normal number, about equally many of each: (n,)."""
    share: NDArray[np.float64] = torch.special.ndtr(torch.from_numpy(normal)).numpy()
    return np.minimum((share * count).astype(np.int64), count - 1)
