"""What was observed: equal contexts once, nothing lost, the merged targets equal to the raw list."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.models.history import GrowingTable, History
from neuclust.randomness import stream


def filled(n: int, seed: int = 0) -> tuple[History, list[tuple[Tensor, float]]]:
    rng = stream(seed, "test history")
    pool = torch.from_numpy(rng.random((5, 3)))
    history, raw = History(3, 2), []
    for _ in range(n):
        context, reward = pool[int(rng.integers(5))], float(rng.random())
        history.observe_arm(history.row(context), reward)
        raw.append((context, reward))
    return history, raw


@given(st.integers(0, 60), st.integers(0, 1000))
def test_targets_are_means_and_counts_of_the_raw_list(n: int, seed: int) -> None:
    history, raw = filled(n, seed)
    contexts, target, counts = history.targets()
    assert history.observations == n == int(counts.sum())
    assert len({tuple(row.tolist()) for row in contexts}) == len(contexts)
    for row, mean, count in zip(contexts, target.tolist(), counts.tolist(), strict=True):
        rewards = [reward for context, reward in raw if torch.equal(context, row)]
        assert count == len(rewards)
        assert mean == pytest.approx(sum(rewards) / len(rewards))


def test_every_observation_is_kept_in_order() -> None:
    history, raw = filled(40)
    assert history.rewards.rows.tolist() == [reward for _, reward in raw]
    for row, (context, _) in zip(history.seen.rows.tolist(), raw, strict=True):
        assert torch.equal(history.contexts.rows[row], context)


def test_a_context_without_reward_is_no_target() -> None:
    history = History(2, 2)
    shown, rewarded = history.row(torch.tensor([1.0, 2.0]).double()), history.row(torch.tensor([3.0, 4.0]).double())
    history.observe_arm(rewarded, 1.0)
    contexts, target, counts = history.targets()
    assert contexts.tolist() == [[3.0, 4.0]]
    assert (target.tolist(), counts.tolist()) == ([1.0], [1.0])
    assert shown != rewarded


def test_minus_zero_is_the_same_context_as_zero_also_after_loading() -> None:
    negative, positive = torch.tensor([[-0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    history = History(2, 2)
    row = history.row(negative)
    assert history.row(positive) == row
    again = History(2, 2)
    again.load_state_dict(history.state_dict())
    assert again.row(positive) == row
    assert again.row(negative) == row


def test_slates_are_merged_only_where_their_order_is_the_same_too() -> None:
    history = History(1, 2)
    a, b, c = (history.row(torch.tensor([v], dtype=torch.float64)) for v in (1.0, 2.0, 3.0))
    arm_rewards, means = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.25])
    for rows, reward in (([a, b], 1.0), ([a, b], 0.0), ([b, a], 0.25), ([a, c], 0.5)):
        history.observe_slate(rows, reward, arm_rewards, means)
    groups, target, counts = history.slate_targets()
    assert groups.tolist() == [[a, b], [b, a], [a, c]]
    assert list(zip(counts.tolist(), target.tolist(), strict=True)) == [(2.0, 0.5), (1.0, 0.25), (1.0, 0.5)]
    assert history.slate_rewards.rows.tolist() == [1.0, 0.0, 0.25, 0.5]


def test_a_loaded_history_continues_as_the_first_did() -> None:
    history, _ = filled(30)
    history.observe_slate([0, 1], 1.0, torch.tensor([1.0, math.nan]), torch.tensor([0.5, 0.5]))
    again = History(3, 2)
    again.load_state_dict(history.state_dict())
    for one in (history, again):
        one.observe_arm(one.row(one.contexts.rows[2].clone()), 0.75)
        one.observe_arm(one.row(torch.tensor([9.0, 9.0, 9.0], dtype=torch.float64)), 0.5)
        one.observe_slate([1, 0], 0.0, torch.tensor([0.0, 0.0]), torch.tensor([0.5, 0.5]))
    left, right = history.state_dict(), again.state_dict()
    for name in left:
        assert torch.equal(left[name].nan_to_num(-1.0), right[name].nan_to_num(-1.0)), name


def test_a_state_taken_earlier_does_not_move_with_later_observations() -> None:
    history, _ = filled(5)
    state = history.state_dict()
    before = state["counts"].clone()
    history.observe_arm(0, 1.0)
    assert torch.equal(state["counts"], before)


def test_a_mutated_input_does_not_reach_the_history() -> None:
    history, context = History(2, 2), torch.tensor([1.0, 2.0], dtype=torch.float64)
    history.row(context)
    context[0] = 99.0
    assert history.contexts.rows.tolist() == [[1.0, 2.0]]


@given(st.integers(0, 100))
def test_a_table_grows_without_losing_rows(n: int) -> None:
    table = GrowingTable(2)
    for i in range(n):
        table.append(torch.tensor([float(i), -float(i)]))
    assert len(table) == n
    assert table.rows[:, 0].tolist() == [float(i) for i in range(n)]
    other = GrowingTable(2)
    other.load(table.rows)
    other.append(torch.tensor([7.0, 7.0]))
    assert len(other) == n + 1
    assert torch.equal(other.rows[:n], table.rows)
