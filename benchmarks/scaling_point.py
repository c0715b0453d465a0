"""One point of the growth curves, measured in this process: `python -m benchmarks.scaling_point '{"arms": 1000, ...}'`.

Prints its figures as one JSON object. A process a point, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.tables import one_thread
from neuclust.core import Feedback, Round, Slate
from neuclust.policies.neuclust import NeUClust
from neuclust.randomness import stream
from neuclust.registry import policy_config
from neuclust.slates.clustering import nearest

ACTIVE, CLUSTERS, REPEATS = 3, 22, 5
AXES = ["arms", "rounds", "parameters", "slate size"]
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One problem: n arms offered in every round, t rounds played, d features, m hidden units, K."""

    axis: str
    kind: str
    arms: int = 1_000
    rounds: int = 200
    dim: int = 20
    width: int = 20
    slate_size: int = 5

    @property
    def parameters(self) -> int:
        """p = dm + m."""
        return self.dim * self.width + self.width

    @property
    def size(self) -> int:
        """What is varied on this axis."""
        return dict(zip(AXES, (self.arms, self.rounds, self.parameters, self.slate_size), strict=True))[self.axis]


class AroundSome:
    """Clusters around some of the arms: k-means itself is not what is measured here."""

    def fit_predict(self, X: NDArray[np.float64], y: None = None) -> NDArray[np.int64]:  # noqa: ARG002
        arms = torch.from_numpy(X)
        labels: NDArray[np.int64] = nearest(arms, arms[:CLUSTERS]).numpy()
        return labels


def measured(point: Point) -> Figures:
    """Fill the history, train once, then time selections and updates."""
    warm_up(point)
    base, began = _peak(), time.perf_counter()
    policy, rounds = problem(point)
    for _ in range(point.rounds):
        observe_random(policy, next(rounds))
    policy.arms.train()
    filled = time.perf_counter() - began
    timings = [timed_round(policy, next(rounds)) for _ in range(REPEATS + 1)]
    select, update = zip(*timings[1:], strict=True)  # the first finds what can be kept of the profiles
    choice = policy.arms.last_choice
    assert choice is not None
    return {
        "select_ms": statistics.median(select),
        "update_ms": statistics.median(update),
        "memory_mib": _peak() - base,
        "base_mib": base,
        "fill_s": filled,
        "way": choice.way,
        "contexts": choice.contexts,
        "widths": choice.widths,
    }


def timed_round(policy: NeUClust, round: Round) -> tuple[float, float]:
    """Milliseconds of processor time of the selection and of the update."""
    start = time.process_time()
    slate = policy.select(round)
    chosen = time.process_time()
    feedback = rewards(round)
    ready = time.process_time()
    policy.update(round, slate, feedback)
    return 1000 * (chosen - start), 1000 * (time.process_time() - ready)


def warm_up(point: Point) -> None:
    """A small problem of the same kind, so that libraries and compiled loops are loaded before memory counts."""
    policy, rounds = problem(replace(point, arms=max(1_100, 2 * CLUSTERS * point.slate_size), width=4))
    for _ in range(2):
        timed_round(policy, next(rounds))


def problem(point: Point) -> tuple[NeUClust, Iterator[Round]]:
    """A policy and its rounds: one catalogue, offered whole, with new queries."""
    profiles = torch.from_numpy(0.5 + 4.5 * stream(0, "scaling").random((point.arms, point.dim)))
    ids = torch.arange(point.arms)
    config = policy_config("neuclust", "paper", overrides={"arms.network.width": str(point.width)})
    policy = NeUClust(config, point.dim, point.slate_size, clusterer=AroundSome(), catalogue=(ids, profiles))
    return policy, dealt(point, ids, profiles)


def dealt(point: Point, ids: Tensor, profiles: Tensor) -> Iterator[Round]:
    """Rounds 1, 2, ... that ask for three features, or for all."""
    t = 0
    while True:
        t += 1
        query = None
        if point.kind == "masked":
            query = torch.zeros(point.dim, dtype=torch.float64)
            query[stream(0, "queries", t).choice(point.dim, ACTIVE, replace=False)] = 1.0
        yield Round(t, ids, profiles, query, point.slate_size)


def observe_random(policy: NeUClust, round: Round) -> None:
    """A slate at random joins covariance and history; the nets are not trained."""
    chosen = stream(0, "slates", round.t).choice(len(round.arm_ids), round.slate_size, replace=False)
    nothing = torch.zeros(round.slate_size, dtype=torch.float64)
    policy.arms.observe(round, Slate(torch.from_numpy(chosen), nothing, nothing), rewards(round))
    policy.arms.updates += 1


def rewards(round: Round) -> Feedback:
    """Coins."""
    coins = torch.from_numpy((stream(0, "rewards", round.t).random(round.slate_size) < 0.5).astype(np.float64))
    return Feedback(coins, coins.mean())


def _peak() -> float:
    """Peak resident memory so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    one_thread()
    print(json.dumps(measured(Point(**json.loads(sys.argv[1])))))
