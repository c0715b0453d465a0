"""Lemma 3 on a run: its four terms round by round, their sums, and the regret that happened."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.models.schedules import Progress
from neuclust.theory import bounds
from neuclust.theory.bounds import ClusterTerms, Constants
from neuclust.theory.trajectory import ClusterStep, Step

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lemma3:
    """Sums over the rounds of Lemma 3's terms, with γ as played and with Eq. 8's; NaN where there are no clusters."""

    regret: float
    structural: float  # Σ of what no slate in one cluster can earn, over the rounds compared, scaled to all
    exploration: float  # Σ Y_t, γ as played
    exploration_eq_8: float
    optimism: float  # Σ U_t, γ as played
    optimism_eq_8: float
    slate: float  # T·P with 9T^{−βα} = 4 + 2ε
    slate_printed: float  # T·P with βα = 1
    clusters: float  # Σ E_t, over the rounds compared, scaled to all
    by_round: Mapping[str, Floats]  # Y_t, U_t, E_t and P, (T,) each, γ as played; E_t NaN where not compared

    @property
    def total(self) -> float:
        """The sum that Lemma 3 bounds the regret by, with γ as played."""
        return self.exploration + self.optimism + self.slate + self._held

    @property
    def total_eq_8(self) -> float:
        """The same with γ of Eq. 8, which is the statement's."""
        return self.exploration_eq_8 + self.optimism_eq_8 + self.slate + self._held

    @property
    def _held(self) -> float:
        return 0.0 if math.isnan(self.clusters) else self.clusters

    @property
    def sums(self) -> dict[str, float]:
        """All of them by name."""
        names = [name for name in self.__dataclass_fields__ if name != "by_round"]
        return {name: getattr(self, name) for name in [*names, "total", "total_eq_8"]}


def lemma_3(steps: Sequence[Step], numbers: ProblemNumbers, constants: Constants, gamma_eq_8: float) -> Lemma3:
    """The terms of every round and their sums; γ_T is the largest that was played, or that of Eq. 8 at the end."""
    sizes, rounds = numbers.sizes, len(steps)
    k, ridge = sizes.slate_size, sizes.ridge
    squares = np.nan_to_num(series(steps, "squares"))
    per_gamma = np.array([bounds.exploration_term(1.0, float(each), k, constants) for each in squares])
    offsets = series(steps, "offset")
    stated = np.array([_stated_offset(step, numbers, constants) for step in steps])
    compared = [step.clusters for step in steps if step.clusters is not None]
    cluster = np.array(
        [math.nan if step.clusters is None else _cluster_term(step.clusters, numbers, constants) for step in steps]
    )
    explored = float(np.nanmax(series(steps, "gamma"))) * per_gamma
    lifted = np.array([bounds.optimism_term(float(each), k, constants) for each in offsets])
    price = bounds.slate_term(k, rounds, ridge, constants)
    return Lemma3(
        regret=float(series(steps, "regret").sum()),
        structural=rounds * float(np.mean([each.best.gap for each in compared])) if compared else math.nan,
        exploration=float(explored.sum()),
        exploration_eq_8=gamma_eq_8 * float(per_gamma.sum()),
        optimism=float(lifted.sum()),
        optimism_eq_8=sum(bounds.optimism_term(float(each), k, constants) for each in stated),
        slate=rounds * price,
        slate_printed=rounds * bounds.printed_slate_term(k, rounds, ridge, constants),
        clusters=rounds * float(np.nanmean(cluster)) if compared else math.nan,
        by_round={"Y": explored, "U": lifted, "E": cluster, "P": np.full(rounds, price)},
    )


def _stated_offset(step: Step, numbers: ProblemNumbers, constants: Constants) -> float:
    """e_t with γ_{t−1} of Eq. 8."""
    sizes = numbers.sizes
    at = Progress(step.t * sizes.slate_size, 0.0, sizes.ridge, int(sizes.width), sizes.depth, 0.0, 0)
    return bounds.offset(step.terms.value if step.terms is not None else math.nan, at, constants)


def _cluster_term(found: ClusterStep, numbers: ProblemNumbers, constants: Constants) -> float:
    worst = numbers.clusters.reverse
    terms = ClusterTerms(found.aligned.others, found.aligned.best, worst.reverse, worst.least)
    dim = numbers.sample.contexts.shape[1]
    return bounds.cluster_term(terms, numbers.sizes.slate_size, numbers.sample.arms, dim, constants)


def series(steps: Sequence[Step], name: str) -> Floats:
    """`regret`, `held.covered`, `clusters.aligned.best`, …: a number of every round, NaN where it has none, (T,)."""
    return np.array([_number(step, name) for step in steps], dtype=np.float64)


def _number(step: Step, name: str) -> float:
    found: Any = step
    for part in name.split("."):
        found = getattr(found, part) if found is not None else None
    return math.nan if found is None else float(found)
