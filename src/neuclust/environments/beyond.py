"""Problems beyond the paper's assumptions: structured slates, drift, late feedback, turnover, many arms, long slates.

All but the drifting ones stand on the arms and the truth of `clusters`, so that a policy's regret on one of them
can be held against its regret on `clusters` with the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from neuclust.environments.delivery import Delivery
from neuclust.environments.moving import DriftingRounds, Lifetimes, Switch, Tastes, Turn, lifetimes
from neuclust.environments.rewards import SlateReward
from neuclust.environments.slates import RecordedRounds, SlateEnvironment
from neuclust.environments.structured import Cascade, DiminishingReturns, RewardOf
from neuclust.environments.synthetic import (
    FLOOR,
    SPAN,
    cluster_means,
    clustered_arms,
    clusters,
    unit_vectors,
)
from neuclust.errors import ConfigError
from neuclust.randomness import stream

DIM, CLUSTERS, ARMS, MANY_ARMS = 20, 20, 5000, 100_000
OFFERED = 500
ALIVE = 1000  # arms that can be offered at a time where they come and go
LATE, DELAY = 0.5, 50
LOST, UNSEEN = 0.2, 0.3
LONG_SLATE = 20


def structured_slates(
    reward_of: RewardOf,
    name: str,
    *,
    slate_size: int = 5,
    horizon: int = 500,
    seed: int = 0,
    reward: SlateReward | None = None,
    arms_per_round: int | None = OFFERED,
) -> SlateEnvironment:
    """The arms of `clusters` under a slate reward that is not a count of rewarded arms."""
    if reward is not None:
        raise ConfigError(f"{name}: expected no other slate reward, since its own is the problem, got {reward.name}")
    return clusters(
        name=name,
        slate_size=slate_size,
        horizon=horizon,
        seed=seed,
        arms_per_round=arms_per_round,
        structured=reward_of(slate_size),
    )


coverage = partial(structured_slates, partial(DiminishingReturns, discount=0.0), "coverage")
redundancy = partial(structured_slates, partial(DiminishingReturns, discount=0.5), "redundancy")
cascade = partial(structured_slates, partial(Cascade, patience=0.7), "cascade")


def delivered(
    name: str,
    shares: dict[str, float],
    delay: int = 0,
    *,
    slate_size: int = 5,
    horizon: int = 500,
    seed: int = 0,
    reward: SlateReward | None = None,
    arms_per_round: int | None = OFFERED,
) -> SlateEnvironment:
    """`clusters` with feedback that comes late, never or in part."""
    delivery = Delivery(seed, delay=delay, **shares)
    return clusters(
        name=name,
        slate_size=slate_size,
        horizon=horizon,
        seed=seed,
        reward=reward,
        arms_per_round=arms_per_round,
        delivery=delivery,
    )


delayed = partial(delivered, "delayed", {"late": LATE}, DELAY)
missing = partial(delivered, "missing", {"lost": LOST, "unseen": UNSEEN})


def drifting(
    name: str,
    tastes_of: Callable[[torch.Tensor, torch.Tensor, int], Tastes],
    *,
    slate_size: int = 5,
    horizon: int = 500,
    seed: int = 0,
    reward: SlateReward | None = None,
    arms_per_round: int | None = OFFERED,
) -> SlateEnvironment:
    """Unit vectors liked by μ = 0.05 + 0.9 / (1 + exp(3 − 10 x·θ_t)), θ_t hidden and moving."""
    arms = torch.from_numpy(unit_vectors(ARMS, DIM, stream(0, "sphere arms")))
    frame = torch.from_numpy(np.linalg.qr(stream(seed, "drift truth").standard_normal((DIM, 2)))[0])
    tastes = tastes_of(frame[:, 0].contiguous(), frame[:, 1].contiguous(), horizon)
    offered = ARMS if arms_per_round is None else arms_per_round
    rounds = DriftingRounds(arms, tastes, offered, seed, FLOOR, SPAN)
    return _dealt(name, arms, rounds, slate_size, horizon, seed, reward, offered)


def _switched(first: torch.Tensor, then: torch.Tensor, horizon: int) -> Tastes:
    return Switch(first, then, max(1, horizon // 2))


def _turned(first: torch.Tensor, then: torch.Tensor, horizon: int) -> Tastes:
    return Turn(first, then, math.pi / 2, horizon)


def _settled(first: torch.Tensor, then: torch.Tensor, horizon: int) -> Tastes:
    return Switch(first, then, horizon)  # never switches within the horizon


drift_none = partial(drifting, "drift-none", _settled)
drift_abrupt = partial(drifting, "drift-abrupt", _switched)
drift_slow = partial(drifting, "drift-slow", _turned)


def turnover(
    *,
    slate_size: int = 5,
    horizon: int = 500,
    seed: int = 0,
    reward: SlateReward | None = None,
    arms_per_round: int | None = OFFERED,
) -> SlateEnvironment:
    """The arms of `clusters`, of which about 1,000 are there at a time: new ones appear, old ones leave for good."""
    arms, labels, centres = clustered_arms(ARMS, DIM, CLUSTERS)
    means = cluster_means(arms, labels, centres, stream(seed, "clusters truth"))
    born, gone = lifetimes(ARMS, ALIVE, horizon, seed)
    offered = ARMS if arms_per_round is None else arms_per_round
    rounds = Lifetimes(torch.from_numpy(means), born, gone, offered, seed)
    return _dealt("turnover", torch.from_numpy(arms), rounds, slate_size, horizon, seed, reward, offered, labels)


# all 100,000 are offered in every round unless told otherwise
many_arms = partial(clusters, name="many-arms", n_arms=MANY_ARMS, arms_per_round=None)
# no cluster offers 20 good arms: the best slate is in several
long_slate = partial(clusters, name="long-slate", slate_size=LONG_SLATE)


def _dealt(
    name: str,
    arms: torch.Tensor,
    rounds: RecordedRounds,
    slate_size: int,
    horizon: int,
    seed: int,
    reward: SlateReward | None,
    offered: int,
    labels: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
) -> SlateEnvironment:
    if not slate_size <= offered <= len(arms):
        raise ConfigError(f"{name}: expected {slate_size} to {len(arms)} arms offered a round, got {offered}")
    return SlateEnvironment(
        name=name,
        profiles=arms,
        arm_ids=torch.arange(len(arms)),
        queries=None,
        recorded=rounds,
        slate_size=slate_size,
        horizon=horizon,
        seed=seed,
        reward=reward,
        true_labels=None if labels is None else torch.from_numpy(labels),
    )
