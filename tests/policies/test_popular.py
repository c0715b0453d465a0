"""The most popular arms: smoothed mean rewards, and rotation while nothing was rewarded."""

from __future__ import annotations

import pytest
import torch
from small_problems import feedback, random_round, slate_of

from neuclust.policies.popular import Popular, PopularConfig

K = 3


def test_scores_are_smoothed_mean_rewards() -> None:
    """Fails when the prior mean forgets its two pseudo-plays, or when plays without a reward are not counted."""
    policy = Popular(PopularConfig(smoothing=4.0), 2, K)
    round = random_round(1, 6, 2, K)
    policy.update(round, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    policy.update(round, slate_of(0, 3, 4), feedback([1.0, 0.0, float("nan")], 1.0))
    overall = (3 + 1) / (5 + 2)
    sums, counts = [2.0, 0.0, 1.0, 0.0, 0.0, 0.0], [2, 1, 1, 1, 0, 0]
    expected = [(total + 4 * overall) / (count + 4) for total, count in zip(sums, counts, strict=True)]
    assert policy.scores(round).tolist() == pytest.approx(expected)
    assert policy.select(round).positions.tolist() == [0, 2, 4]  # arms 4 and 5, never seen, tie: the smaller id


def test_arms_take_turns_while_nothing_is_rewarded() -> None:
    policy = Popular(PopularConfig(), 2, K)
    shown: set[int] = set()
    for t in range(1, 5):
        round = random_round(t, 12, 2, K)
        slate = policy.select(round)
        shown |= set(slate.positions.tolist())
        policy.update(round, slate, feedback([0.0] * K, 0.0))
    assert shown == set(range(12))


def test_without_smoothing_means_are_plain_and_arms_never_played_have_the_overall_one() -> None:
    policy = Popular(PopularConfig(smoothing=0.0), 2, K)
    round = random_round(1, 5, 2, K)
    policy.update(round, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert policy.scores(round).tolist() == pytest.approx([1.0, 0.0, 1.0, 3 / 5, 3 / 5])
    assert bool(torch.isfinite(policy.scores(round)).all())
