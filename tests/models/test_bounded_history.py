"""A history with limits: everything up to them, bounded beyond, sums of what stays unchanged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neuclust.errors import StateError
from neuclust.models.history import History, Limits
from neuclust.randomness import stream

LIMIT, SLATES = 24, 8


def slate(t: int, fresh: bool = True) -> tuple[Tensor, Tensor]:
    rng = stream(t if fresh else t % 6, "test bounded contexts")
    coins = stream(t, "test bounded rewards").random(3)
    return torch.from_numpy(rng.random((3, 2))), torch.from_numpy((coins < 0.5).astype(float))


def played(history: History, updates: range, fresh: bool = True) -> History:
    for t in updates:
        contexts, rewards = slate(t, fresh)
        rows = [history.row(context) for context in contexts]
        for row, reward in zip(rows, rewards.tolist(), strict=True):
            history.observe_arm(row, reward)
        history.observe_slate(rows, float(rewards.mean()), rewards, torch.zeros(3, dtype=torch.float64))
        history.end_update()
    return history


def bounded(seed: int = 0) -> History:
    return History(2, 3, Limits(LIMIT, SLATES, seed))


def test_up_to_the_limits_it_is_the_history_without_them() -> None:
    plain, limited = played(History(2, 3), range(8)), played(bounded(), range(8))
    for one, other in zip((*plain.targets(), *plain.slate_targets()), (*limited.targets(), *limited.slate_targets()),
                          strict=True):  # fmt: skip
        assert torch.equal(one, other)
    assert plain.observations == limited.observations
    assert plain.energy == limited.energy


@pytest.mark.parametrize("fresh", [True, False])
def test_rows_stay_bounded_and_true(fresh: bool) -> None:
    """Every context that stays has the count and sum of all its plays; observations are all counted."""
    history = played(bounded(), range(200), fresh)
    contexts, target, counts = history.targets()
    assert history.observations == 600
    assert len(contexts) <= LIMIT + LIMIT // 8
    assert max(len(history.groups), len(history.slate_rewards)) <= SLATES + SLATES // 8
    for context, mean, count in zip(contexts, target.tolist(), counts.tolist(), strict=True):
        rewards = [
            float(reward)
            for t in range(200)
            for other, reward in zip(*slate(t, fresh), strict=True)
            if torch.equal(other, context)
        ]
        assert count == len(rewards)
        assert mean == pytest.approx(sum(rewards) / len(rewards))
    if not fresh:  # 18 contexts: nothing has to leave
        assert len(contexts) == 18
        assert int(counts.sum()) == 600


def test_distinct_slates_point_to_their_own_contexts_after_others_left() -> None:
    history = played(bounded(), range(200))
    groups, target, _ = history.slate_targets()
    known = {tuple(slate(t)[0].flatten().tolist()): float(slate(t)[1].mean()) for t in range(200)}
    assert len(groups) > SLATES // 2  # old slates stay whole with their contexts
    for rows, mean in zip(groups, target.tolist(), strict=True):
        assert known[tuple(history.contexts.rows[rows].flatten().tolist())] == mean
    assert int((groups == groups.max()).sum()) == 1
    dense = torch.from_numpy(history.sparse_contexts().dense(torch.arange(len(history.contexts)).numpy()))
    assert torch.equal(dense, history.contexts.rows)


def test_a_loaded_history_goes_on_bit_for_bit_and_its_state_stays_flat() -> None:
    history = played(bounded(), range(60))
    again = bounded()
    again.load_state_dict(history.state_dict())
    left, right = (played(one, range(60, 150)).state_dict() for one in (history, again))
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    sizes = [sum(t.numel() for t in played(history, range(t, t + 10)).state_dict().values()) for t in (150, 1000, 5000)]
    assert max(sizes) <= 1.2 * min(sizes)


def test_which_old_rows_stay_depends_on_the_seed() -> None:
    one, other = (played(bounded(seed), range(100)).contexts.rows for seed in (1, 2))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("damage", ["counts", "squares", "context_keys", "observations"])
def test_a_damaged_state_is_refused(damage: str) -> None:
    state = played(bounded(), range(40)).state_dict()
    changes = {"counts": lambda t: t - 5, "squares": lambda t: t * 0, "context_keys": lambda t: t[:-1],
               "observations": lambda t: t * 0 - 1}  # fmt: skip
    state[damage] = changes[damage](state[damage])
    with pytest.raises(StateError, match="saved state: expected"):
        bounded().load_state_dict(state)
