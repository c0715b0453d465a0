"""The top K by score, and the order among equal scores."""

from __future__ import annotations

import torch

from neuclust.core import Round
from neuclust.slates.ties import tie_rank, top_slate

IDS = torch.tensor([5, 3, 9, 1])


def round_at(t: int) -> Round:
    return Round(t, IDS, torch.ones(4, 2), None, 2)


def test_ties_go_to_the_smaller_id_or_to_an_order_drawn_per_round() -> None:
    assert torch.equal(tie_rank(round_at(1), "id", 0), IDS)
    drawn = [tuple(tie_rank(round_at(t), "random", 7).tolist()) for t in range(1, 30)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in drawn)
    assert len(set(drawn)) > 5
    assert tuple(tie_rank(round_at(3), "random", 7).tolist()) == drawn[2]


def test_the_slate_is_the_top_k_of_mean_plus_bonus_best_first() -> None:
    means, bonuses = torch.tensor([0.5, 0.1, 0.5, 0.2]), torch.tensor([0.1, 0.9, 0.1, 0.1])
    slate = top_slate(means.double(), bonuses.double(), IDS, 3)
    assert slate.positions.tolist() == [1, 0, 2]  # 1.0, then the tie 0.6 by id 5 < 9
    assert torch.equal(slate.means, means.double()[slate.positions])
    assert torch.equal(slate.bonuses, bonuses.double()[slate.positions])


def test_given_scores_rank_in_place_of_mean_plus_bonus() -> None:
    zeros = torch.zeros(4, dtype=torch.float64)
    scores = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    assert top_slate(scores, zeros, IDS, 2, scores=-scores).positions.tolist() == [0, 1]
