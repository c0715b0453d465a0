"""Problems beyond the paper's assumptions: structured slates, drift, late feedback, turnover, many arms, long slates.

All but the drifting ones have the arms and mean rewards of `clusters`: regrets of one seed can be compared with it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from neuclust.environments.dealing import Arms, Recorded
from neuclust.environments.delivery import Delivery
from neuclust.environments.moving import DriftingRounds, Lifetimes, Switch, Tastes, Turn, lifetimes
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.structured import Cascade, DiminishingReturns, RewardOf
from neuclust.environments.synthetic import FLOOR, OFFERED, SPAN, clustered, some_offered, true_clusters, unit_vectors
from neuclust.errors import ConfigError
from neuclust.randomness import stream

DIM, CLUSTERS, ARMS, MANY_ARMS = 20, 20, 5000, 100_000
TastesOf = Callable[[torch.Tensor, torch.Tensor, int], Tastes]  # of two orthogonal unit vectors and the horizon
ALIVE = 1000  # arms that can be offered at a time where they come and go
LATE, DELAY = 0.5, 50
LOST, UNSEEN = 0.2, 0.3
LONG_SLATE = 20


def structured_slates(
    reward_of: RewardOf, name: str, spec: ProblemSpec | None = None, **fields: Any
) -> SlateEnvironment:
    """The arms of `clusters` under a slate reward that is not a count of rewarded arms."""
    spec = some_offered(spec, fields)
    if spec.reward is not None:
        raise ConfigError(f"{name}: expected no slate reward but its own, got {spec.reward.name}")
    return clustered(name, spec, pays=reward_of(spec.slate_size))


coverage = partial(structured_slates, partial(DiminishingReturns, discount=0.0), "coverage")
redundancy = partial(structured_slates, partial(DiminishingReturns, discount=0.5), "redundancy")
cascade = partial(structured_slates, partial(Cascade, patience=0.7), "cascade")


def delivered(
    name: str, delivery_of: Callable[[int], Delivery], spec: ProblemSpec | None = None, **fields: Any
) -> SlateEnvironment:
    """`clusters` with feedback that comes late, never or in part."""
    spec = some_offered(spec, fields)
    return clustered(name, spec, delivery=delivery_of(spec.seed))


delayed = partial(delivered, "delayed", partial(Delivery, late=LATE, delay=DELAY))
missing = partial(delivered, "missing", partial(Delivery, lost=LOST, unseen=UNSEEN))


def drifting(name: str, tastes_of: TastesOf, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """Unit vectors liked by μ = 0.05 + 0.9 / (1 + exp(3 − 10 x·θ_t)), θ_t hidden and moving."""
    spec = some_offered(spec, fields)
    arms = Arms.numbered(unit_vectors(ARMS, DIM, stream(0, "sphere arms")))
    frame = torch.from_numpy(np.linalg.qr(stream(spec.seed, "drift truth").standard_normal((DIM, 2)))[0])
    tastes = tastes_of(frame[:, 0].contiguous(), frame[:, 1].contiguous(), spec.horizon)
    rounds = DriftingRounds(arms.profiles, tastes, spec.arms_per_round or ARMS, spec.seed, FLOOR, SPAN)
    return SlateEnvironment(name, arms, Recorded(rounds), spec)


drift_none = partial(drifting, "drift-none", Switch)  # after the horizon: never
drift_abrupt = partial(drifting, "drift-abrupt", lambda first, then, horizon: Switch(first, then, max(1, horizon // 2)))
drift_slow = partial(drifting, "drift-slow", Turn)


def turnover(spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """The arms of `clusters`, about 1,000 of them at a time: new ones appear, old ones leave for good."""
    spec = some_offered(spec, fields)
    arms, means = true_clusters((ARMS, DIM, CLUSTERS), spec.seed)
    born, gone = lifetimes(ARMS, ALIVE, spec.horizon, spec.seed)
    rounds = Lifetimes(means, born, gone, spec.arms_per_round or ARMS, spec.seed)
    return SlateEnvironment("turnover", arms, Recorded(rounds), spec)


def many_arms(spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """`clusters` with 100,000 arms, all offered in every round by default."""
    return clustered("many-arms", ProblemSpec.of(spec, fields), (MANY_ARMS, DIM, CLUSTERS))


def long_slate(spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """`clusters` with slates of 20: no cluster offers so many good arms, the best slate is in several."""
    return clustered("long-slate", ProblemSpec.of(spec, fields, slate_size=LONG_SLATE, arms_per_round=OFFERED))
