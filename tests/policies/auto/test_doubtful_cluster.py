"""Which cluster outside the slate is worth a test, against plain loops, and what a test does to a slate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from neuclust.core import Feedback, Round
from neuclust.policies.auto import exploration
from neuclust.policies.auto.ensemble import EnsembleConfig
from neuclust.policies.auto.exploration import (
    AHEAD,
    DOUBTED_FROM,
    ExplorationConfig,
    Ranking,
    ScoreCache,
    doubtful_cluster,
)
from neuclust.policies.auto.features import BlocksConfig, ContextClusters, FeatureBlocks
from neuclust.policies.auto.learners.local_regression import LocalRegression
from neuclust.policies.auto.policy import Auto, AutoConfig
from neuclust.randomness import stream

D, K, ARMS, C = 4, 3, 40, 4
CORNERS = 0.15 + 0.7 * torch.eye(C, D, dtype=torch.float64)
NONE = torch.empty(0, dtype=torch.int64)


def offer(t: int) -> Round:
    """Arms near the corners, in turn."""
    noise = 0.1 * torch.from_numpy(stream(3, "doubtful arms", t).random((ARMS, D)))
    return Round(t, torch.arange(ARMS), CORNERS[torch.arange(ARMS) % C] + noise, None, K)


def policy(slots: int = 1) -> Auto:
    """`auto` on four clusters of which the first pays most."""
    learners = EnsembleConfig(learners="linear,local")
    config = AutoConfig(ensemble=learners, optimistic_slots=slots, exploring=ExplorationConfig(most=0.0))
    made = Auto(config, D, K, 2)
    blocks = FeatureBlocks.of(BlocksConfig(), offer(1))
    assert blocks is not None
    made.ensemble = made._fresh(replace(blocks, clusters=ContextClusters(CORNERS / blocks.scale, 0.3)))
    return made


def taught(made: Auto, slates: int, tried: int) -> Auto:
    """Slates of three clusters, of which the third is the last cluster in the first `tried` slates alone."""
    heights = torch.tensor([0.7, 0.5, 0.4, 0.3], dtype=torch.float64)
    for t in range(1, slates + 1):
        round, chosen = offer(t), torch.tensor([0, 1, 3 if t <= tried else 2])
        paid = (torch.from_numpy(stream(4, "doubtful coins", t).random(K)) < heights[chosen]).double()
        made.update(round, replace(made.select(round), positions=chosen, explored=None), Feedback(paid, paid.mean()))
    return made


LEARNED = taught(policy(), DOUBTED_FROM, 2)


def asked(made: Auto, t: int, taken: Tensor = NONE) -> tuple[ScoreCache, Ranking, Tensor]:
    cache = made._scored(offer(t))
    assert cache is not None
    ranking = Ranking(made.scores(offer(t)), torch.arange(ARMS), K)
    return cache, ranking, doubtful_cluster(cache, ranking, taken)


def by_hand(cache: ScoreCache, ranking: Ranking, taken: Tensor) -> list[int]:
    """The same by loops over clusters and arms."""
    local = cache.ensemble.learners["local"]
    assert isinstance(local, LocalRegression)
    root, weights = local._solve()
    noise, levels = local.noise * local.scale.unit, (local.level + weights[:, 0]).tolist()
    spread = [math.sqrt(float((root[c, :, 0] ** 2).sum())) for c in range(C)]
    labels = cache.features.groups[0][cache.group].tolist()
    order = sorted((a for a in range(ARMS) if a not in taken.tolist()), key=lambda a: (-float(ranking.scores[a]), a))
    chosen = order[: K - len(taken) - 1]
    best = sum(levels[labels[a]] for a in chosen) / len(chosen)
    worth = {}
    for c in set(labels) - {labels[a] for a in [*chosen, *taken.tolist()]}:
        gap = max(best - levels[c], 1e-3)
        z = gap / spread[c]
        gain = spread[c] * (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / math.sqrt(2)) / 2)
        worth[c] = AHEAD * K * cache.ensemble.plays.slates * gain / (noise / spread[c] ** 2 * gap)
    tested = max(worth, key=lambda c: worth[c])
    if worth[tested] <= 1:
        return []
    scores = cache.of("local")[0][cache.group]
    return [max((a for a in range(ARMS) if labels[a] == tested), key=lambda a: (float(scores[a]), -a))]


@pytest.mark.parametrize("taken", [[], [5]])
def test_the_cluster_whose_level_is_most_worth_knowing_is_tested_at_its_best_arm(taken: list[int]) -> None:
    held = torch.tensor(taken, dtype=torch.int64)
    found = []
    for t in range(500, 510):
        cache, ranking, arm = asked(LEARNED, t, held)
        assert arm.tolist() == by_hand(cache, ranking, held)
        found += [int(cache.features.groups[0][cache.group][at]) for at in arm]
    assert found
    assert set(found) <= {2, 3}
    assert found.count(3) > 5  # three plays that failed say little


def test_no_cluster_is_tested_early_nor_where_nothing_is_left_to_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(asked(LEARNED, 500)[2]) == 1
    assert len(asked(LEARNED, 500, torch.tensor([0, 4]))[2]) == 0  # no slot is left
    monkeypatch.setattr(exploration, "DOUBTED_FROM", DOUBTED_FROM + 1)
    assert len(asked(LEARNED, 500)[2]) == 0


def test_a_cluster_that_is_known_to_pay_less_is_not_tested() -> None:
    """Fails when doubt never ends."""
    known = taught(policy(), 2 * DOUBTED_FROM, DOUBTED_FROM)
    assert all(len(asked(known, t)[2]) == 0 for t in range(500, 510))


def test_a_slate_has_the_tested_arm_in_the_place_of_an_optimistic_one() -> None:
    plain, shown = policy(slots=0), 0
    plain.load_state_dict(LEARNED.state_dict())
    for t in range(600, 640):
        arm = asked(LEARNED, t)[2].tolist()
        shown += LEARNED.select(offer(t)).positions.tolist()[-1:] == arm
        assert plain.select(offer(t)).positions.tolist()[-1:] != arm
    assert shown > 20
