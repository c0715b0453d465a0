"""Synthetic problems with known mean rewards: `clusters`, `bump`, `quadratic`.

The arms are the same for every seed; the seed deals what is hidden (directions, heights, shapes), the arms offered and
the coins: equal seeds pair policies on one instance of the problem, different seeds are different instances.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.environments.dealing import Arms, Delivery, Simulated
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.structured import StructuredReward
from neuclust.errors import ConfigError
from neuclust.randomness import stream

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

OFFERED = 500  # arms per round by default
FLOOR, SPAN = 0.05, 0.9  # every mean reward lies in [FLOOR, FLOOR + SPAN]
CLUSTER_SPREAD = 0.5  # length of an arm's noise around its unit centre, before the arm is scaled to length 1
LOWEST_HEIGHT, SECOND_HEIGHT = 0.2, 0.88  # of a cluster's best arms, as a share of the best cluster's


SHAPES: tuple[Callable[[Vector], Vector], ...] = (  # each into [0, 1]
    lambda v: 1.0 / (1.0 + np.exp(-3.0 * v)),  # logistic
    lambda v: (1.0 + np.cos(v)) / 2.0,  # cosine
    lambda v: 1.0 - np.exp(-(v**2) / (2 * 0.3**2)),  # notch
    lambda v: np.exp(-(v**2) / (2 * 1.2**2)),  # bump
)


@dataclass(frozen=True, slots=True)
class FixedMeans:
    """Mean rewards that no query changes, (N,)."""

    means: Tensor

    def __call__(self, positions: Tensor | None, query: Tensor | None) -> Tensor:  # noqa: ARG002
        return self.means.clone() if positions is None else self.means[positions]


def clusters(
    spec: ProblemSpec | None = None, *, n_arms: int = 5000, dim: int = 20, n_clusters: int = 20, **fields: Any
) -> SlateEnvironment:
    """True clusters on the unit sphere, in each another shape and height of the mean reward.

    μ = 0.05 + 0.9 · height_c · shape_c(v), v = the arm's coordinate along a hidden direction of its cluster (s.d. 1).
    One cluster has height 1, the others 0.2 to 0.88: the best slate lies almost always inside one cluster.
    """
    return clustered("clusters", some_offered(spec, fields), (n_arms, dim, n_clusters))


def clustered(
    name: str,
    spec: ProblemSpec,
    sizes: tuple[int, int, int] = (5000, 20, 20),
    *,
    pays: StructuredReward | None = None,
    delivery: Delivery | None = None,
) -> SlateEnvironment:
    """The arms and the truth of `clusters` with (arms, dimensions, clusters), slate reward and delivery as given."""
    n_arms, dim, n_clusters = sizes
    _check_sizes("clusters", n_arms, dim)
    if not 1 <= n_clusters <= n_arms:
        raise ConfigError(f"clusters: expected 1 to {n_arms} clusters, got {n_clusters}")
    arms, means = true_clusters(sizes, spec.seed)
    return SlateEnvironment(name, arms, Simulated(FixedMeans(means)), spec, pays=pays, delivery=delivery)


def true_clusters(sizes: tuple[int, int, int], seed: int) -> tuple[Arms, Tensor]:
    """The arms of `clusters`, the same for every seed, and their mean rewards (N,), drawn with the seed."""
    arms, labels, centres = clustered_arms(*sizes)
    means = cluster_means(arms, labels, centres, stream(seed, "clusters truth"))
    return Arms.numbered(arms, labels), torch.from_numpy(means)


def bump(spec: ProblemSpec | None = None, *, n_arms: int = 5000, dim: int = 20, **fields: Any) -> SlateEnvironment:
    """Unit vectors that are good near one hidden spot, which no linear score can find.

    μ = 0.05 + 0.9 exp(−((x·a − 0.2)² + (x·b + 0.2)²) / (2 · 0.13²)), a ⊥ b hidden unit vectors. In 500 rounds
    uniform play has a regret of about 465, a linear score about 390.
    """

    def height(arms: Matrix, generator: np.random.Generator) -> Vector:
        frame = np.linalg.qr(generator.standard_normal((dim, 2)))[0]
        along, across = arms @ frame[:, 0], arms @ frame[:, 1]
        heights: Vector = np.exp(-((along - 0.2) ** 2 + (across + 0.2) ** 2) / (2 * 0.13**2))
        return heights

    return _on_sphere("bump", (n_arms, dim), height, some_offered(spec, fields))


def quadratic(spec: ProblemSpec | None = None, *, n_arms: int = 5000, dim: int = 20, **fields: Any) -> SlateEnvironment:
    """Unit vectors that are good at both ends of a hidden axis: μ = 0.05 + 0.9 min(1, 2.5 (x·a)²)."""

    def height(arms: Matrix, generator: np.random.Generator) -> Vector:
        axis = unit_vectors(1, dim, generator)[0]
        heights: Vector = np.minimum(1.0, 2.5 * (arms @ axis) ** 2)
        return heights

    return _on_sphere("quadratic", (n_arms, dim), height, some_offered(spec, fields))


def some_offered(spec: ProblemSpec | None, fields: Mapping[str, Any]) -> ProblemSpec:
    """The spec of a problem that offers 500 arms per round by default; None offers all."""
    return ProblemSpec.of(spec, fields, arms_per_round=OFFERED)


def _on_sphere(
    name: str, sizes: tuple[int, int], height: Callable[[Matrix, np.random.Generator], Vector], spec: ProblemSpec
) -> SlateEnvironment:
    """Uniform unit vectors with μ = 0.05 + 0.9 height(x), the heights' hidden part drawn with the seed."""
    _check_sizes(name, *sizes)
    arms = unit_vectors(*sizes, stream(0, "sphere arms"))
    means = FLOOR + SPAN * height(arms, stream(spec.seed, f"{name} truth"))
    return SlateEnvironment(name, Arms.numbered(arms), Simulated(FixedMeans(torch.from_numpy(means))), spec)


def unit_vectors(n: int, dim: int, generator: np.random.Generator) -> Matrix:
    """n vectors uniform on the unit sphere, (n, dim)."""
    return _scaled_to_unit(generator.standard_normal((n, dim)))


def clustered_arms(n_arms: int, dim: int, n_clusters: int) -> tuple[Matrix, NDArray[np.int64], Matrix]:
    """Unit arms around unit centres: arms (N, d), the true label of each (N,), centres (C, d)."""
    generator = stream(0, "clusters arms")
    centres = unit_vectors(n_clusters, dim, generator)
    labels = generator.permutation(np.arange(n_arms, dtype=np.int64) % n_clusters)
    noise = generator.standard_normal((n_arms, dim)) * (CLUSTER_SPREAD / np.sqrt(dim))
    return _scaled_to_unit(centres[labels] + noise), labels, centres


def cluster_means(arms: Matrix, labels: NDArray[np.int64], centres: Matrix, generator: np.random.Generator) -> Vector:
    """μ of every arm, (N,): each cluster draws a direction, a shape and a height of its own."""
    n_clusters = len(centres)
    directions = unit_vectors(n_clusters, arms.shape[1], generator)
    kinds = generator.permutation(n_clusters) % len(SHAPES)
    heights = generator.permutation(np.append(np.linspace(LOWEST_HEIGHT, SECOND_HEIGHT, n_clusters - 1), 1.0))
    means = np.empty(len(arms))
    for c in range(n_clusters):
        members = labels == c
        place = arms[members] @ directions[c]
        place = (place - place.mean()) / max(float(place.std()), 1e-12)
        means[members] = FLOOR + SPAN * heights[c] * SHAPES[kinds[c]](place)
    return means


def _scaled_to_unit(rows: Matrix) -> Matrix:
    scaled: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def _check_sizes(name: str, n_arms: int, dim: int) -> None:
    if n_arms < 1 or dim < 2:
        raise ConfigError(f"{name}: expected at least 1 arm and 2 dimensions, got {n_arms} arms, {dim} dimensions")
