"""How often the page's interval of random holds the truth, where the policy learns while it is watched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from neuclust.core import Round
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import Estimate, Sums, mean_estimate
from neuclust.serve.store.contract import DECISION, FEEDBACK, Row
from neuclust.slates.propensities import Exploration, SlateSampler

ITEMS, SLOTS, DECISIONS, SHOPS = 40, 3, 900, 250
LOOKED_AT = np.array([1.0, 0.7, 0.5])  # share of users who look at a slot
EXPLORATION = Exploration(0.3, 20, 0.2)
ROUND = Round(1, torch.arange(ITEMS), torch.zeros(ITEMS, 1), None, SLOTS)


def stage(order: list[int]) -> tuple[dict[str, Any], SlateSampler]:
    """Slates drawn around the first items of an order: the design as it is logged, and what draws by it."""
    base, pool = order[:SLOTS], order[: EXPLORATION.pool]
    design = {
        "kind": "sequential", "base": [str(each) for each in base], "pool": [str(each) for each in pool],
        "share": EXPLORATION.share, "anywhere": EXPLORATION.anywhere, "sizes": [ITEMS - at for at in range(SLOTS)],
    }  # fmt: skip
    return design, SlateSampler(torch.tensor(base), torch.tensor(pool), ROUND, EXPLORATION)


def played(rng: np.random.Generator) -> tuple[Statistics, float, float]:
    """A shop whose policy finds better items twice: its statistics, what random earns and what the shown slates did."""
    chances = np.where(rng.random(ITEMS) < 0.25, 0.5, 0.06)
    best, any_order = np.argsort(-chances).tolist(), rng.permutation(ITEMS).tolist()
    better = list(dict.fromkeys([*best[2:8], *any_order]))
    stages, statistics, expected = [stage(order) for order in (any_order, better, best)], Statistics(), 0.0
    for t in range(DECISIONS):
        design, sampler = stages[0 if t < DECISIONS // 10 else 1 if t < DECISIONS // 3 else 2]
        drawn = sampler.draw(rng)
        clicked = chances[drawn.positions.numpy()] * LOOKED_AT
        rewards = (rng.random(SLOTS) < clicked).astype(float).tolist()
        expected += float(clicked.sum()) / DECISIONS
        choice = {"items": [str(each) for each in drawn.positions.tolist()], "explored": drawn.explored.tolist()}
        content = {"choice": {**choice, "design": design}, "arm": "live", "expires_at": 1e9}
        statistics.apply(Row(1, DECISION, 1e6 + t, b"{}", f"d{t}", None, None, None, b""), None, content)
        told = {"status": "learned", "lessons": [{"decision": f"d{t}", "rewards": rewards, "slate": None}]}
        row = Row(1, FEEDBACK, 1e6 + t, b"{}", None, None, None, None, b"")
        statistics.apply(row, told, {"decision": f"d{t}"})
    return statistics, float(chances.mean() * LOOKED_AT.sum()), expected


def covered(sums: Sums, truth: float, span: tuple[float, float] | None = None) -> bool:
    found = mean_estimate(sums, span)
    assert isinstance(found, Estimate)
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


@pytest.mark.soak
def test_intervals_of_random_hold_at_their_level() -> None:
    """Fails when the intervals of random, or of live less random, hold more or less often than 95 times of 100."""
    rng, random, gaps = np.random.default_rng(20), 0, 0
    for _ in range(SHOPS):
        statistics, truth, expected = played(rng)
        total = statistics.buckets.total()
        random += covered(total.random, truth, (0.0, float(SLOTS)))
        gaps += covered(total.gaps, expected - truth)
    assert 0.909 <= random / SHOPS <= 0.991, f"random: {random} of {SHOPS}"  # three standard errors
    assert 0.909 <= gaps / SHOPS <= 0.991, f"live − random: {gaps} of {SHOPS}"
