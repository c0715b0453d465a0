"""Features of a context in named blocks, each scaled to a root mean squared length of 1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, checked
from neuclust.core import Round
from neuclust.kernels.jit import available, serves
from neuclust.kernels.scoring import arm_scores, masked_scores
from neuclust.kernels.scoring.masked_scores import MergedRows
from neuclust.models.bayes_linear import BayesLinear, shortened, with_constant
from neuclust.models.crossed import CrossedRounds
from neuclust.models.state import expect, take_number, take_numbers, take_rows
from neuclust.slates.cluster_choice import separated_clusters

# a learner reads a leading part of this list; where contexts are not masked, without the blocks of MASKED
ORDER = ("constant", "pooled", "average", "mask", "pooled-square", "squares", "crosses")
MASKED = ("pooled", "mask", "pooled-square")
NET_CONSTANT = 0.5
MOST_COMPILED = 64  # features: with more, library products are as quick as compiled loops
MOST_CLUSTERED = 500  # contexts that are clustered: more only cost time
UNEVEN = 0.05  # s.d. of the number of entries that are not 0, as a share of its mean, from which sums are not means


@dataclass(frozen=True, slots=True)
class ContextClusters:
    """Centroids (C, d) in units of x, and the root mean squared distance of contexts to theirs."""

    centroids: Tensor
    spread: float

    def labels(self, x: Tensor) -> Tensor:
        """The nearest centroid of each x (n, d) -> (n,)."""
        if serves(x, self.centroids):
            return torch.from_numpy(arm_scores.nearest_rows(x.contiguous().numpy(), self.centroids.numpy()))
        return torch.cdist(x, self.centroids).argmin(1)


@dataclass(frozen=True, slots=True)
@checked(
    cross_limit=NON_NEGATIVE, masked_share=NON_NEGATIVE, cap=AT_LEAST_ONE, most_clusters=AT_LEAST_ONE,
    fewest_arms=(2, math.inf),
)  # fmt: skip
class BlocksConfig:
    """Products of two features are left out where there are more than `cross_limit` features. A round without a query
    counts as masked where more than `masked_share` of its entries are 0, unless these are values like others
    (`zeros_are_values`). Contexts longer than `cap` times the median are shortened. The arms of the first round, if
    there are `fewest_arms` and few entries are 0, form at most `most_clusters` clusters."""

    cross_limit: int = 40
    masked_share: float = 0.05
    cap: float = 20.0
    most_clusters: int = 30
    fewest_arms: int = 100


def find_clusters(config: BlocksConfig, x: Tensor) -> ContextClusters | None:
    """Clusters of contexts x (n, d) by the silhouette; None where contexts are few or form none."""
    if len(x) < config.fewest_arms:
        return None
    spaced = torch.arange(MOST_CLUSTERED) * len(x) // MOST_CLUSTERED  # evenly
    centroids = separated_clusters(x if len(x) <= MOST_CLUSTERED else x[spaced], config.most_clusters)
    if centroids is None:
        return None
    clusters = ContextClusters(centroids, 1.0)
    return replace(clusters, spread=typical_length(x - clusters.centroids[clusters.labels(x)]))


@dataclass(frozen=True)
class Features:
    """Contexts read for all learners, x (n, d), given as they are or by the functions that their columns are multiples
    of; everything else is computed when a learner first reads it."""

    blocks: "FeatureBlocks"
    given: Tensor | MergedRows

    @cached_property
    def x(self) -> Tensor:
        """The contexts, (n, d)."""
        return self.given if isinstance(self.given, Tensor) else torch.from_numpy(self.given.dense())

    def __len__(self) -> int:
        return len(self.given) if isinstance(self.given, Tensor) else len(self.given.sums)

    @cached_property
    def plain(self) -> Tensor:
        """All blocks but the crosses, (n, p_0)."""
        norms, named = self.blocks.norms, self.blocks.plain_blocks(self.x)
        return torch.cat([block / norms[ORDER.index(name)] for name, block in named.items()], 1)

    @cached_property
    def rows(self) -> Tensor:
        """What nets read but for their constant: x, and the pooled mean where contexts are masked, (n, d' − 1)."""
        return torch.cat([self.x, pooled_mean(self.x)], 1) if self.blocks.masked else self.x.contiguous()

    @cached_property
    def inputs(self) -> Tensor:
        """Net inputs, (n, d')."""
        return torch.cat([self.rows, self.x.new_full((len(self.x), 1), NET_CONSTANT)], 1)

    @cached_property
    def groups(self) -> tuple[Tensor, Tensor]:
        """The cluster of every context (n,), and positions sorted by it (n,)."""
        assert self.blocks.clusters is not None  # read by learners of clusters alone
        labels = self.blocks.clusters.labels(self.x)
        return labels, torch.argsort(labels, stable=True)

    @property
    def cross(self) -> float:
        """Factor of the products x_i x_j; 0: there are none."""
        return 1 / self.blocks.norms[-1] if self.blocks.crossed else 0.0

    @cached_property
    def matrix(self) -> Tensor:
        """All blocks, (n, p)."""
        return torch.cat([self.plain, self.cross * products(self.x)], 1) if self.cross else self.plain

    @property
    def compiled(self) -> bool:
        """Whether compiled loops score these contexts, in which equal ones have equal scores."""
        return not self.blocks.masked and self.x.shape[1] <= MOST_COMPILED and serves(self.x)

    @property
    def sparse(self) -> bool:
        """Whether compiled loops score these contexts by their entries that are not 0."""
        return isinstance(self.given, MergedRows) or (self.blocks.masked and serves(self.x))

    @property
    def many(self) -> bool:
        """Whether there are so many contexts that a covariance of the linear blocks is worth its inversion."""
        return len(self) > self.blocks.dim

    @cached_property
    def merged(self) -> MergedRows:
        """These contexts by the few functions that their columns are multiples of."""
        return self.given if isinstance(self.given, MergedRows) else MergedRows.of(self.given.contiguous().numpy())

    def columns(self, size: int) -> Tensor:
        """The leading `size` columns."""
        return self.plain[:, :size] if size <= self.plain.shape[1] else self.matrix

    def dot(self, weights: Tensor) -> Tensor:
        """The leading columns times weights (p',) -> (n,), with crosses as xᵀWx: their matrix is never formed."""
        d = self.blocks.dim
        kept = sum(self.blocks.sizes("squares").values())
        if self.sparse and len(weights) <= kept:
            padded = torch.zeros(kept, dtype=torch.float64)
            padded[: len(weights)] = weights / self.blocks.column_norms[: len(weights)]
            return torch.from_numpy(masked_scores.linear_values(self.merged, padded.numpy()))
        crosses = weights.new_zeros(d, d)
        if len(weights) > kept:
            crosses.T[tuple(torch.triu_indices(d, d, 1))] = self.cross * weights[kept:]
        if self.compiled:
            scaled = weights[:kept] / self.blocks.column_norms[: len(weights)]
            if len(weights) > 1 + d:
                crosses.diagonal().copy_(scaled[1 + d :])
            arrays = self.rows.numpy(), float(scaled[0]), scaled[1 : 1 + d].numpy(), crosses.numpy()
            return torch.from_numpy(arm_scores.quadratic_forms(*arrays))
        total = self.columns(min(kept, len(weights))) @ weights[:kept]
        return total + ((self.x @ crosses) * self.x).sum(1) if len(weights) > kept else total

    def predicted(self, belief: BayesLinear) -> tuple[Tensor, Tensor]:
        """Means and standard deviations under a belief on the leading columns, (n,) each."""
        size = len(belief.prior)
        norms = self.blocks.column_norms[:size]
        if self.sparse and len(norms) == size and self.many:
            arrays = belief.solved.covariance.numpy(), norms.numpy()
            return self.dot(belief.mean), torch.from_numpy(masked_scores.merged_widths(self.merged, *arrays))
        if not self.compiled or size != 1 + self.blocks.dim:
            columns = self.columns(size)
            return belief.means(columns), belief.widths(columns)
        nobody = np.empty(0, np.int64)
        groups = nobody, np.array([0, len(self.x)])
        means, roots = (belief.mean / norms).unsqueeze(0).numpy(), (belief.solved.root / norms).unsqueeze(0).numpy()
        found = arm_scores.affine_beliefs(self.rows.numpy(), groups, means, roots)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])


@dataclass(frozen=True, slots=True)
class FeatureBlocks:
    """How contexts are read, settled by one round: masked or not, and the scale of every block."""

    masked: bool
    longest: float  # contexts are shortened to this length
    scale: float  # x = z / scale
    norms: tuple[float, ...]  # root mean squared length per block
    dim: int
    cross_limit: int
    input_length: float = 1.0  # root mean squared length of net inputs without their constant
    clusters: ContextClusters | None = None  # None: contexts are mostly 0, few, or form no clusters

    @classmethod
    def of(cls, config: BlocksConfig, round: Round) -> Self | None:
        """Settled by this round's contexts; None where all of them are 0."""
        z = round.contexts.to(torch.float64)
        lengths = torch.linalg.vector_norm(z, dim=1)
        if not bool((lengths > 0).any()):
            return None
        longest = config.cap * float(lengths[lengths > 0].median())  # an outlier must not set the scale
        z = shortened(z, longest)
        sparse = round.query is not None or float((z == 0).to(torch.float64).mean()) > config.masked_share
        masked = round.query is not None or (sparse and not zeros_are_values(z))
        scale = float(z[lengths <= longest].abs().max()) if masked else typical_length(z)
        first = cls(masked, longest, scale, (1.0,) * len(ORDER), z.shape[1], config.cross_limit)
        norms = {name: typical_length(block) for name, block in first.plain_blocks(z / scale).items()}
        norms["crosses"] = typical_length(products(z / scale)) if first.crossed else 1.0
        settled = replace(first, norms=tuple(norms.get(name, 1.0) for name in ORDER))
        inputs = settled.read(z).rows
        clusters = None if sparse else find_clusters(config, z / scale)
        return replace(settled, input_length=typical_length(inputs), clusters=clusters)

    @property
    def crossed(self) -> bool:
        return 1 < self.dim <= self.cross_limit

    def sizes(self, last: str) -> dict[str, int]:
        """Columns per block, up to and with the block `last`."""
        d = self.dim
        size = {"constant": 1, "pooled": 1, "pooled-square": 1, "crosses": d * (d - 1) // 2 if self.crossed else 0}
        names = [name for name in ORDER[: ORDER.index(last) + 1] if self.masked or name not in MASKED]
        return {name: size.get(name, d) for name in names if size.get(name, d) > 0}

    @property
    def size(self) -> int:
        """Columns of all blocks."""
        return sum(self.sizes(ORDER[-1]).values())

    @property
    def input_size(self) -> int:
        """Columns of net inputs."""
        return self.dim + (2 if self.masked else 1)

    @property
    def column_norms(self) -> Tensor:
        """What the columns of all blocks but the crosses are divided by, (p_0,)."""
        sizes = self.sizes("squares")
        norms = torch.tensor([self.norms[ORDER.index(name)] for name in sizes], dtype=torch.float64)
        return norms.repeat_interleave(torch.tensor(list(sizes.values())))

    def scaled(self, z: Tensor) -> Tensor:
        """x of contexts z (n, d)."""
        z = z.to(torch.float64)
        if serves(z):
            return torch.from_numpy(arm_scores.shortened_rows(z.contiguous().numpy(), self.longest, self.scale))
        return shortened(z, self.longest) / self.scale

    def read(self, z: Tensor) -> Features:
        """Features of contexts z (n, d)."""
        return Features(self, self.scaled(z))

    @property
    def reads_crossed(self) -> bool:
        """Whether contexts may be read by functions of arms: they are masked, and compiled loops are there."""
        return self.masked and not self.crossed and available

    def read_crossed(self, rounds: CrossedRounds, at: int) -> Features | None:
        """Features of one of several rounds by functions of its arms; None where the contexts have to be read one by
        one: no round is, they are fewer than their columns, or one of them is so long that it is shortened."""
        if not self.reads_crossed or len(rounds.rows[at]) <= self.dim:
            return None
        weights = rounds.weights[at] / self.scale
        merged = MergedRows.crossed(rounds.functions, rounds.rows[at], rounds.index, weights)
        return None if merged.sums[:, 2].max() > (self.longest / self.scale) ** 2 else Features(self, merged)

    def plain_blocks(self, x: Tensor) -> dict[str, Tensor]:
        """Blocks of x (n, d) but the crosses, before they are divided by their norms."""
        one = x.new_ones(len(x), 1)
        if not self.masked:
            return {"constant": one, "average": x, "squares": x * x}
        mask = (x != 0).to(x.dtype)
        share = 1 / mask.sum(1, keepdim=True).clamp(min=1)  # 1/q
        squares = x * x * share
        blocks = {"constant": one, "pooled": pooled_mean(x), "average": x * share, "mask": mask * share}
        return blocks | {"pooled-square": squares.sum(1, keepdim=True), "squares": squares}

    def state_dict(self) -> dict[str, Tensor]:
        numbers = [float(self.masked), self.longest, self.scale, float(self.dim), self.input_length, *self.norms]
        state = {"settled": torch.tensor(numbers, dtype=torch.float64)}
        if self.clusters is not None:
            state["centroids"] = self.clusters.centroids.clone()
            state["spread"] = torch.tensor(self.clusters.spread, dtype=torch.float64)
        return state

    @classmethod
    def from_state(cls, config: BlocksConfig, dim: int, state: Mapping[str, Tensor]) -> Self:
        masked, longest, scale, width, length, *norms = take_numbers(state, "settled", 5 + len(ORDER))
        expect(width == dim, f"contexts of {dim} features", f"{width:g}")
        expect(masked in (0, 1), "contexts that are masked (1) or not (0)", masked)
        expect(min(longest, scale, length, *norms) > 0, "scales above 0", min(longest, scale, length, *norms))
        clusters = None
        if "centroids" in state:
            clusters = ContextClusters(take_rows(state, "centroids", (dim,)), take_number(state, "spread"))
            expect(len(clusters.centroids) > 0 and clusters.spread > 0, "clusters of some spread", clusters.spread)
            expect(not masked, "clusters of contexts that are not masked", "masked ones")
        return cls(bool(masked), longest, scale, tuple(norms), dim, config.cross_limit, length, clusters)


def zeros_are_values(z: Tensor) -> bool:
    """Whether zeros of contexts z (n, d) are values like others (a flag that is not set times a price) and not features
    that are absent: affinities, of which a mean over those present makes sense, have one sign. Where every context has
    the same number q of entries that are not 0, sums are means but for a factor, and sparse ones are quicker to read;
    with more than `MOST_COMPILED` features they are read so in any case."""
    q = (z != 0).sum(1).to(torch.float64)
    uneven = float(q.std(correction=0)) > UNEVEN * float(q.mean())
    return z.shape[1] <= MOST_COMPILED and uneven and bool((z < 0).any())


def pooled_mean(x: Tensor) -> Tensor:
    """The mean of the entries that are not 0: (n, d) -> (n, 1)."""
    return (x / (x != 0).sum(1, keepdim=True).clamp(min=1)).sum(1, keepdim=True)


def products(x: Tensor) -> Tensor:
    """x_i x_j for i < j: (n, d) -> (n, d(d − 1)/2)."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return x[:, i] * x[:, j]


def typical_length(rows: Tensor) -> float:
    """√ of the mean squared length of rows (n, p); 1 where all are 0."""
    length = float(rows.square().sum(1).mean().sqrt())
    return length if length > 0 else 1.0


def quadratic_columns(x: Tensor) -> Tensor:
    """[1, x, x_i x_j for i <= j]: (n, d) -> (n, 1 + d + d(d + 1)/2)."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1])
    return with_constant(torch.cat([x, x[:, i] * x[:, j]], 1))


def scaled_inputs(inputs: Tensor, scale: float) -> Tensor:
    """Net inputs without their constant, divided by `scale`, their typical length: (n, d + 1) -> (n, d)."""
    return inputs[:, :-1] / scale
