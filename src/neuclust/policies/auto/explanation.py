"""What an `auto` policy has found out about its problem."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from neuclust.policies.auto.learners.block_regression import BlockRegression

if TYPE_CHECKING:
    from neuclust.policies.auto.policy import Auto


@dataclass(frozen=True, slots=True)
class Explanation:
    """Weights and evidence gaps by learner, noise variances, the exploration probability, the number of clusters
    (1: none), what each further rewarded arm of a cluster adds (None: the same), the standard deviation of items'
    effects in log-odds (0: none), how much each slot is looked at, relative to the first (None: all alike), and the
    range of rewards."""

    leader: str | None  # None: no data yet
    gaps: dict[str, float]
    noise: dict[str, float]
    exploring: float
    restarts: int
    masked: bool | None
    clusters: int | None = None
    steps: tuple[float, ...] | None = None
    weights: dict[str, float] = field(default_factory=dict)
    items: float = 0.0
    slots: tuple[float, ...] | None = None
    rewards: tuple[float, float] = (0.0, 1.0)


def explanation(policy: "Auto") -> Explanation:
    """Which learner leads, by how much, and what was found out about the problem."""
    ensemble, rewards = policy.ensemble, policy.rewards
    if ensemble is None:
        return Explanation(None, {}, {}, policy.exploring, policy.restarts, None, rewards=rewards[:2])
    learners = ensemble.learners.items()
    noise = {n: rewards.width**2 * one.belief.noise_variance for n, one in learners if isinstance(one, BlockRegression)}
    gaps = dict(zip(ensemble.learners, ensemble.gaps.tolist(), strict=True))
    clusters, steps, slots = ensemble.blocks.clusters, policy.gains.steps, policy.slots
    return Explanation(
        ensemble.leader, gaps, noise, policy.exploring, policy.restarts, ensemble.blocks.masked,
        clusters=1 if clusters is None else len(clusters.centroids),
        steps=None if steps is None else tuple(steps.tolist()),
        weights=dict(zip(ensemble.learners, torch.exp(ensemble.log_weights).tolist(), strict=True)),
        items=policy.items.spread,
        slots=tuple((slots.estimates / slots.estimates[0]).tolist()) if slots.used else None,
        rewards=rewards[:2],
    )  # fmt: skip
