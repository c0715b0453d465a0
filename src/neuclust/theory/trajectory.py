"""What the analysis speaks of, round by round: a policy is watched while it plays, and nothing of it is changed.

Scores, widths, log det Z_t, γ_t, e_t, drift, F and clusters are read off the policy's own models before and after every
update, beside what only the environment knows. The same seed plays the same run with and without a watcher.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from neuclust.core import Feedback, Policy, Round, Slate
from neuclust.models.arm_model import ArmModel
from neuclust.models.encoder import encoded
from neuclust.models.schedules import Progress, ScheduleConfig
from neuclust.slates.clustering import ClusterMap
from neuclust.slates.slate_model import SlateModel
from neuclust.theory.bounds import Constants, GammaTerms, drift_bound, eq_8, offset
from neuclust.theory.calibration import Promises, promises
from neuclust.theory.clusters import Alignment, BestCluster, alignment, best_cluster, centroids, match
from neuclust.theory.linearisation import drift


class Truth(Protocol):
    """What only the environment knows of a round."""

    def means(self, round: Round) -> Tensor: ...

    def best_positions(self, round: Round) -> Tensor: ...

    def labels(self, round: Round) -> Tensor: ...

    def expected_reward(self, round: Round, slate: Slate) -> float: ...

    def best_expected_reward(self, round: Round) -> float: ...


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """The clusters of one round, where there are some."""

    aligned: Alignment
    best: BestCluster
    played: int


@dataclass(frozen=True, slots=True)
class Step:
    """One round: first what the choice rested on, then what the update left."""

    t: int
    expected: float  # u(S_t)
    best: float  # u*_t
    realised: float  # R_t
    overlap: int  # |S_t ∩ S*_t|
    gamma: float = math.nan  # γ_{t−1} as played
    terms: GammaTerms | None = None  # Eq. 8 after t − 1 rounds
    offset: float = math.nan  # e_t with γ as played
    squares: float = math.nan  # Σ_{i ∈ S_t} w²
    held: Promises | None = None
    slate_value: float = math.nan  # F(S_t)
    clusters: ClusterStep | None = None
    logdet: float = math.nan  # log det Z_t/det λI
    observations: int = 0  # tK after the update
    drift: float = math.nan  # ‖θ_t − θ_0‖
    drift_bound: float = math.nan

    @property
    def regret(self) -> float:
        return self.best - self.expected


@dataclass(frozen=True, slots=True)
class Looking:
    """How a run is watched: the schedule of Eq. 8, the constants of e_t, how often clusters are compared, and whether
    the environment's true ones instead of the policy's own."""

    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    constants: Constants = field(default_factory=Constants)
    every: int = 1
    true_clusters: bool = False


def progress_of(arms: ArmModel) -> Progress:
    """What γ of the coming round depends on."""
    return arms.config.progress(arms.history.observations, arms.confidence.logdet)


def after(progress: Progress, observations: int) -> Progress:
    """The same with so many observations more: tK where (t − 1)K were seen."""
    return replace(progress, observations=progress.observations + observations)


class Watched:
    """A policy that plays as ever while every round leaves a `Step`."""

    def __init__(self, policy: Policy, truth: Truth, looking: Looking | None = None) -> None:
        self._policy, self._truth = policy, truth
        self._looking = Looking() if looking is None else looking
        self._open: dict[int, Step] = {}
        self._steps: list[Step] = []
        inner: Any = getattr(policy, "policy", policy)  # one that draws slots around another's slate
        arms, slates, clusters = (getattr(inner, name, None) for name in ("arms", "slates", "clusters"))
        self.arms = arms if isinstance(arms, ArmModel) else None
        self._slates = slates if isinstance(slates, SlateModel) else None
        self._clusters = clusters if isinstance(clusters, ClusterMap) else None
        self._view = getattr(inner, "view", lambda round: round)
        self._online = bool(getattr(inner, "online", False))

    @property
    def name(self) -> str:
        return str(getattr(self._policy, "name", "policy"))

    @property
    def steps(self) -> list[Step]:
        """All rounds by their number; those whose feedback never came end with what the choice rested on."""
        return sorted([*self._steps, *self._open.values()], key=lambda step: step.t)

    def select(self, round: Round) -> Slate:
        slate = self._policy.select(round)
        self._open[round.t] = self._chosen(round, slate)
        return slate

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        self._policy.update(round, slate, feedback)
        step = self._open.pop(round.t)
        left: dict[str, Any] = {"realised": float(feedback.slate_reward)}
        if self.arms is not None:
            config, seen = self.arms.config, self.arms.history.observations
            left |= {"logdet": self.arms.confidence.logdet, "observations": seen}
            left |= {"drift": drift(self.arms.net, self.arms.initial)}
            left |= {"drift_bound": drift_bound(seen, config.network.width, config.confidence.ridge)}
        self._steps.append(_with(step, left))

    def _chosen(self, round: Round, slate: Slate) -> Step:
        best = self._truth.best_positions(round)
        overlap = len(set(best.tolist()) & set(slate.positions.tolist()))
        values = self._truth.expected_reward(round, slate), self._truth.best_expected_reward(round)
        step = Step(round.t, *values, math.nan, overlap)
        if self.arms is None:
            return step
        seen = self._view(round)
        scores, gamma, progress = self.arms.scores(seen.read), self.arms.gamma(), progress_of(self.arms)
        lifted = offset(gamma, after(progress, round.slate_size), self._looking.constants)
        widths = scores.bonuses[slate.positions] / gamma if gamma > 0 else torch.zeros(len(slate.positions))
        known = {
            "gamma": gamma,
            "terms": eq_8(self._looking.schedule, progress),
            "offset": lifted,
            "squares": float((widths**2).sum()),
            "held": promises(scores.means, scores.bonuses, self._truth.means(round), best, lifted),
        }
        if self._slates is not None:
            known["slate_value"] = float(self._slates.value(scores.means[slate.positions].unsqueeze(0)))
        if self._clusters is not None and round.t % self._looking.every == 0 and slate.cluster is not None:
            known["clusters"] = self._compared(round, seen, slate)
        return _with(step, known)

    def _compared(self, round: Round, seen: Round, slate: Slate) -> ClusterStep | None:
        """δ_t, P_t and the structural gap, of contexts as the net reads them."""
        assert self._clusters is not None
        assert self.arms is not None
        found = self._clusters.partition(seen, refit=self._online).cluster_of(len(round.arm_ids))
        truth = self._truth.labels(round) if self._looking.true_clusters else found
        contexts = encoded(self.arms.encoder, seen.read)[0]
        means = self._truth.means(round)

        def worth(positions: Tensor) -> float:
            zeros = torch.zeros(len(positions), dtype=torch.float64)
            return self._truth.expected_reward(round, Slate(positions, zeros, zeros, None, None))

        best = best_cluster(truth, means, round.slate_size, worth, self._truth.best_expected_reward(round))
        mine, theirs = centroids(contexts, found), centroids(contexts, truth)
        played = int(torch.eq(mine.names, int(slate.cluster or 0)).nonzero()[0])
        own = int(match(mine.centroids, theirs.centroids)[played])
        near = alignment(mine.centroids[played], own, int((theirs.names == best.name).nonzero()[0]), theirs.centroids)
        return ClusterStep(near, best, int(slate.cluster or 0))

    def state_dict(self) -> dict[str, Tensor]:
        return self._policy.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._policy.load_state_dict(state)

    def save(self, directory: Path) -> None:
        self._policy.save(directory)


def _with(step: Step, more: Mapping[str, Any]) -> Step:
    values = {name: getattr(step, name) for name in Step.__dataclass_fields__}
    return Step(**(values | dict(more)))
