"""Rewards as the mean of extremely randomised trees (Geurts, Ernst and Wehenkel, 2006), renewed one tree at a time."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.jit import serves
from neuclust.kernels.scoring.tree_values import Trees, plain_tree_values, tree_values
from neuclust.models.state import Shape, check_indices, expect, take_count, take_ids, take_numbers, take_rows
from neuclust.policies.auto.features import FeatureBlocks, Features
from neuclust.policies.auto.plays import Held, Played, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling
from neuclust.randomness import stream

TREES = 50
LEAF = 1.25  # least weight of a leaf, divided by the unit: five observations where chances are even
MOST_LEAVES = 1000  # of a tree, so that its size is bounded
SPLIT = 0.5  # share of the columns that are tried at a node
GROWTH = 0.25  # while the data grow by this share, or so much of a full memory is new, all trees are renewed
MOST_AT_ONCE = 4.0  # trees per update, which holds renewal back in the first fifty slates
MANY = 2_000  # contexts, beyond which the latest `FEW` trees say which of them all trees are asked about
FEW, ASKED = 10, 1_000


class Tree(NamedTuple):
    """Feature (−1 in a leaf) and first child of every node (m, 2), whose second child is the next one, and its
    threshold and value (m, 2); the root first, level by level. In four bytes each, since saves hold all of them."""

    nodes: NDArray[np.int32]
    numbers: NDArray[np.float32]

    @classmethod
    def grown(cls, held: Held, seed: int) -> Self:
        """On all contexts held, each with the weight of its exposures."""
        from sklearn.tree import ExtraTreeRegressor

        weights = held.counts.numpy()
        least = max(LEAF / (held.scale.unit * float(weights.sum())), 1 / MOST_LEAVES)
        fitted = ExtraTreeRegressor(max_features=SPLIT, min_weight_fraction_leaf=min(least, 0.5), random_state=seed)
        tree = fitted.fit(held.features.rows.numpy(), (held.sums / held.counts).numpy(), weights).tree_
        children = np.stack([tree.children_left, tree.children_right], 1)
        levels = [np.zeros(1, np.int64)]
        while len(levels[-1]):
            inner = levels[-1][tree.feature[levels[-1]] >= 0]
            levels.append(children[inner].ravel())
        order = np.concatenate(levels)
        place = np.argsort(order)  # of every node of scikit-learn's
        inside = tree.feature[order] >= 0
        first = np.where(inside, place[children[order, 0]], 0)
        nodes = np.stack([np.where(inside, tree.feature[order], -1), first], 1)
        numbers = np.stack([np.where(inside, tree.threshold[order], 0), tree.value[order, 0, 0]], 1)
        return cls(nodes.astype(np.int32), numbers.astype(np.float32))


class ForestRegression:
    """Mean over the trees; greedy. New trees take the place of the oldest ones."""

    def __init__(self, blocks: FeatureBlocks, seed: int, purpose: str) -> None:
        import sklearn.tree  # noqa: F401  # takes 0.2 s, which the first update should not wait for

        self.columns, self.seed, self.purpose = blocks.input_size - 1, seed, purpose
        self.level = RewardScale().level  # what is predicted before there is a tree
        self._trees: list[Tree] = []
        self._grown, self._owed = 0, 0.0  # number of trees so far, and of those that are due
        self._stacked: tuple[list[Tree], Trees] | None = None  # trees, and the same in one table

    def means(self, features: Features) -> Tensor:
        x = features.rows
        grown, known = self._trees, self._stacked  # read once: another thread may learn meanwhile
        if not grown:
            return x.new_full((len(x),), self.level)
        if known is None or known[0] is not grown:
            known = self._stacked = grown, stacked(grown)
        trees = known[1]
        values, rows = tree_values if serves(x) else plain_tree_values, x.numpy()
        if len(rows) <= MANY:
            return torch.from_numpy(values(rows, *trees))
        found = values(rows, *trees._replace(roots=trees.roots[-FEW:]))
        best = found >= np.partition(found, -ASKED)[-ASKED]  # equal contexts stay equal
        found[best] = values(rows[best], *trees)
        return torch.from_numpy(found)

    def scores(self, features: Features, t: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        means = self.means(features)
        return means, means

    def learn(self, played: Played, plays: Plays) -> None:  # noqa: ARG002
        self.level = plays.scale.level
        span = min(plays.slates, plays.capacity // plays.slate_size)
        self._owed = min(MOST_AT_ONCE, self._owed + TREES / (GROWTH * span))
        if self._owed < 1:
            return
        held = plays.held()
        while self._owed >= 1:
            self._owed, self._grown = self._owed - 1, self._grown + 1
            seed = int(stream(self.seed, f"{self.purpose} tree", self._grown).integers(2**31))
            self._trees = [*self._trees, Tree.grown(held, seed)][-TREES:]

    def rescale(self, change: Rescaling, scale: RewardScale) -> None:
        for tree in self._trees:
            tree.numbers[:, 1] = change.slope * tree.numbers[:, 1] + change.shift
        self.level, self._stacked = scale.level, None

    def state_dict(self) -> dict[str, Tensor]:
        nodes = [torch.empty(0, 2, dtype=torch.int32), *(torch.from_numpy(tree.nodes) for tree in self._trees)]
        numbers = [torch.empty(0, 2, dtype=torch.float32), *(torch.from_numpy(tree.numbers) for tree in self._trees)]
        return {
            "grown": torch.tensor(self._grown),
            "settled": torch.tensor([self._owed, self.level], dtype=torch.float64),
            "sizes": torch.tensor([len(tree.nodes) for tree in self._trees], dtype=torch.int64),
            "nodes": torch.cat(nodes),
            "numbers": torch.cat(numbers),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        grown, (owed, level) = take_count(state, "grown"), take_numbers(state, "settled", 2)
        sizes, nodes = take_ids(state, "sizes"), take_rows(state, "nodes", (2,), torch.int32)
        numbers = take_rows(state, "numbers", (2,), torch.float32)
        expect(0 <= owed <= MOST_AT_ONCE, f"up to {MOST_AT_ONCE:g} trees that are due", owed)
        expect(len(sizes) == min(grown, TREES), f"{min(grown, TREES)} trees", len(sizes))
        whole = bool((sizes > 0).all()) and int(sizes.sum()) == len(nodes) == len(numbers)
        expect(whole, "as many nodes and numbers as the trees have", (len(nodes), len(numbers)))
        ends = sizes.cumsum(0).tolist()
        slices = [slice(end - size, end) for end, size in zip(ends, sizes.tolist(), strict=True)]
        trees = [Tree(nodes[own].clone().numpy(), numbers[own].clone().numpy()) for own in slices]
        for tree in trees:
            self._check(tree)
        self._grown, self._owed, self.level, self._trees, self._stacked = grown, owed, level, trees, None

    def _check(self, tree: Tree) -> None:
        """Refuse nodes that lead to no leaf: children come after their parent."""
        feature, first = tree.nodes.T
        inside = np.flatnonzero(feature >= 0)
        check_indices("features of trees", torch.from_numpy(feature[inside]), self.columns)
        ahead = bool(((first[inside] > inside) & (first[inside] + 1 < len(feature))).all())
        expect(ahead, "children behind their parents in a tree", "others")


def stacked(trees: list[Tree]) -> Trees:
    """All trees in one table."""
    starts = np.cumsum([0, *(len(tree.nodes) for tree in trees)])
    feature, first = np.concatenate([tree.nodes for tree in trees]).T.astype(np.int64)
    numbers = np.concatenate([tree.numbers for tree in trees]).astype(np.float64)
    inside = feature >= 0
    first = np.where(inside, first + np.repeat(starts[:-1], np.diff(starts)), np.arange(len(first)))
    threshold = np.where(inside, numbers[:, 0], np.inf)
    return Trees(starts[:-1], feature.clip(min=0), first, threshold, numbers[:, 1].copy())


def forest_shapes() -> Iterator[tuple[str, Shape]]:
    """What a state of such a learner holds at least."""
    yield "settled", (2,)
