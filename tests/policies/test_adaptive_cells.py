"""ACC-UCB against a tree of explicit boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import random_round, small_environment

from neuclust.errors import ConfigError
from neuclust.models.encoder import EncoderConfig
from neuclust.models.mean_rewards import ContextTree
from neuclust.policies.tabular import AdaptiveCellConfig, AdaptiveCellUCB
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank

DIM, K = 6, 3


@dataclass
class Box:
    """A cell with its corners, statistics and parent."""

    low: list[float]
    high: list[float]
    depth: int = 0
    parent: Box | None = None
    rewards: list[float] = field(default_factory=list)

    def holds(self, x: list[float]) -> bool:
        """Half open, and unbounded at the faces of the unit cube."""
        sides = zip(x, self.low, self.high, strict=True)
        return all((v >= a or a == 0.0) and (v < b or b == 1.0) for v, a, b in sides)

    def halves(self) -> list[Box]:
        sizes = [b - a for a, b in zip(self.low, self.high, strict=True)]
        axis = sizes.index(max(sizes))
        middle = (self.low[axis] + self.high[axis]) / 2
        upper_low, lower_high = list(self.low), list(self.high)
        upper_low[axis] = lower_high[axis] = middle
        return [Box(self.low, lower_high, self.depth + 1, self), Box(upper_low, self.high, self.depth + 1, self)]


def radius(box: Box, horizon: int) -> float:
    return math.sqrt(2 * math.log(horizon) / len(box.rewards)) if box.rewards else math.inf


def mean(box: Box) -> float:
    return sum(box.rewards) / len(box.rewards) if box.rewards else 0.0


@pytest.mark.parametrize(("v1", "rho"), [(None, None), (1.0, 0.6)])
def test_selection_equals_a_tree_of_boxes(v1: float | None, rho: float | None) -> None:
    """Fails when the parent's bound is left out of the minimum, when a split keeps counters, when the wrong axis
    is halved, or when a leaf is split before its radius is below its diameter."""
    environment = small_environment(n=30)
    config = AdaptiveCellConfig(EncoderConfig("scale", rho=5.0), horizon=60, v1=v1, v2=0.5, rho=rho)
    policy = AdaptiveCellUCB(config, DIM, K, seed=2)
    first, shrink = (2 * math.sqrt(DIM), 2 ** (-1 / DIM)) if v1 is None or rho is None else (v1, rho)
    leaves = [Box([0.0] * DIM, [1.0] * DIM)]
    for t in range(1, 61):
        round = environment.round(t)
        of = [next(leaf for leaf in leaves if leaf.holds(x)) for x in (round.contexts / 5).tolist()]
        indices = []
        for leaf in of:
            diameter = first * shrink**leaf.depth
            bound = mean(leaf) + radius(leaf, 60)
            if leaf.parent is not None:
                bound = min(bound, mean(leaf.parent) + radius(leaf.parent, 60) + first * shrink ** (leaf.depth - 1))
            indices.append(round_off(bound + diameter + 2 * first / 0.5 * diameter))
        slate = policy.select(round)
        found = [indices[i] for i in slate.positions.tolist()]
        rank = tie_rank(round, "random", 2).tolist()
        best = naive.top(indices, rank, range(len(of)), K)
        assert found == [indices[i] for i in best]
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        played: list[Any] = []
        for i, reward in zip(slate.positions.tolist(), outcome.arm_rewards.tolist(), strict=True):
            of[i].rewards.append(reward)
            played += [] if any(of[i] is leaf for leaf in played) else [of[i]]
        for leaf in played:
            if radius(leaf, 60) <= first * shrink**leaf.depth:
                leaves = [other for other in leaves if other is not leaf] + leaf.halves()
    assert len(policy.tree) == 2 * len(leaves) - 1 > 3


def round_off(value: float) -> float:
    return float(f"{value:.10g}")


@pytest.mark.parametrize("dim", [1, 2, 20, 171])
def test_leaves_are_found_as_boxes_in_any_dimension(dim: int) -> None:
    """Split random leaves, then look up random points, some on the corners."""
    rng = stream(0, "test tree", dim)
    tree, boxes = ContextTree(dim), {0: Box([0.0] * dim, [1.0] * dim)}
    for _ in range(60):
        cell = int(rng.choice(list(boxes)))
        tree.split(cell)
        boxes[len(tree) - 2], boxes[len(tree) - 1] = boxes.pop(cell).halves()
    points = torch.from_numpy(rng.random((200, dim)) * 1.4 - 0.2)
    points[:50] = (points[:50] * 4).round() / 4
    found = tree.leaves(points, torch.arange(dim)).tolist()
    assert all(boxes[cell].holds(point) for cell, point in zip(found, points.tolist(), strict=True))


def test_before_the_first_split_arms_are_drawn_at_random() -> None:
    policy = AdaptiveCellUCB(AdaptiveCellConfig(tie="id"), DIM, K)
    slates = {tuple(policy.select(random_round(t, 30, DIM, K)).positions.tolist()) for t in range(1, 20)}
    assert len(slates) > 10


@pytest.mark.parametrize("change", [{"horizon": 0}, {"v1": 0.0}, {"v2": -1.0}, {"rho": math.nan}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"AdaptiveCellConfig.(horizon|v1|v2|rho): expected"):
        AdaptiveCellConfig(**change)
