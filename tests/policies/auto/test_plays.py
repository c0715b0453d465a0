"""The memory of an ensemble: equal contexts once, a bound on their number, exposures, the latest slates, saves."""

from __future__ import annotations

import pytest
import torch
from small_problems import play, random_round, small_environment
from torch import Tensor

from neuclust.errors import StateError
from neuclust.policies.auto import plays as plays_module
from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks
from neuclust.policies.auto.plays import MEMORY, Plays
from neuclust.policies.auto.policy import Auto
from neuclust.registry import build_policy

D, K = 3, 4
found = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, D, K))
assert found is not None
BLOCKS: FeatureBlocks = found


def real(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def filled(plays: Plays, slates: range) -> Plays:
    """Slates of K new contexts; the reward of a context is its number, in thousandths."""
    for t in slates:
        z = random_round(t, K, D, K, seed=7).profiles
        plays.add(z, BLOCKS.read(z), (K * t + torch.arange(K).double()) / 1000)
    return plays


def test_equal_contexts_are_held_once_and_slates_remembered() -> None:
    plays = Plays(BLOCKS, K)
    z = random_round(1, 3, D, K).profiles
    for rows, rewards in (([0, 1], [1.0, 0.0]), ([1, 1, 2], [1.0, 1.0, 0.0]), ([0], [0.0])):
        plays.add(z[rows], BLOCKS.read(z[rows]), real(rewards))
    held = plays.held()
    assert torch.equal(held.features.matrix, BLOCKS.read(z).matrix)
    assert (held.sums.tolist(), held.counts.tolist(), held.energy) == ([1.0, 2.0, 0.0], [2.0, 3.0, 1.0], 3.0)
    (first, paid, shares), (last, _, _) = plays.latest(2)
    assert torch.equal(first, z[[1, 1, 2]])
    assert (paid.tolist(), shares.tolist()) == ([1.0, 1.0, 0.0], [1.0, 1.0, 1.0])
    assert torch.equal(last, z[[0]])
    assert len(plays.latest(50)) == plays.slates == 3
    assert plays.observations == 6


def test_exposures_are_counted_instead_of_observations() -> None:
    plays, z = Plays(BLOCKS, K), random_round(1, 2, D, K).profiles
    played = plays.add(z[[0, 1, 0]], BLOCKS.read(z[[0, 1, 0]]), real([1, 0, 0.5]), real([0.5, 0.25, 1]))
    held = plays.held()
    assert (held.sums.tolist(), held.counts.tolist(), held.energy) == ([1.5, 0.0], [1.5, 0.25], 2.25)
    assert played.exposures.tolist() == plays.latest(1)[0][2].tolist() == [0.5, 0.25, 1]


def test_a_full_memory_takes_new_contexts_in_and_keeps_no_half_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plays_module, "MOST_CONTEXTS", 10)
    plays = filled(Plays(BLOCKS, K, latest=3), range(40))
    held = plays.held()
    assert len(held.sums) == plays.capacity == 10
    assert held.counts.tolist() == [1.0] * 10
    rewards = (1000 * held.sums).round().long()
    everything = torch.cat([random_round(t, K, D, K, seed=7).profiles for t in range(40)])
    assert torch.equal(held.features.x, BLOCKS.read(everything[rewards]).x)  # each with the reward of its own
    assert set(range(156, 160)) <= set(rewards.tolist())  # the latest slate is held
    assert int(rewards.min()) < 148  # and some that are older than a queue of ten would hold
    assert len(plays.latest(9)) == 3
    again = plays.contexts.rows[4].clone()
    plays.add(again[None], BLOCKS.read(again[None]), real([0.25]))
    assert plays.held().counts.tolist() == [1.0] * 4 + [2.0] + [1.0] * 5


def test_many_features_leave_room_for_fewer_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plays_module, "MOST_NUMBERS", 7 * D)
    assert Plays(BLOCKS, K).capacity == 7
    assert Plays(BLOCKS, 9).capacity == 9  # never less than a slate


def test_some_of_the_contexts_are_spaced_evenly() -> None:
    plays = filled(Plays(BLOCKS, K), range(5))
    assert (1000 * plays.held(4).sums).round().tolist() == [0, 5, 10, 15]
    assert torch.equal(plays.held(99).sums, plays.held().sums)


def test_a_memory_that_was_saved_goes_on_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plays_module, "MOST_CONTEXTS", 10)
    for slates in (0, 2, 9):
        straight, again = Plays(BLOCKS, K, 3), Plays(BLOCKS, K, 3)
        again.load_state_dict(filled(straight, range(slates)).state_dict())
        states = [filled(one, range(slates, 20)).state_dict() for one in (straight, again)]
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0] | states[1])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("contexts", lambda rows: rows[:1].repeat(len(rows), 1)),
        ("contexts", lambda rows: rows[1:]),
        ("totals", lambda rows: 0 * rows),
        ("numbers", lambda pair: pair + 1),
        ("latest.sizes", lambda sizes: sizes + 1),
        ("latest.paid", lambda paid: -paid),
    ],
)
def test_what_cannot_have_been_saved_is_refused(name: str, change: object) -> None:
    state = filled(Plays(BLOCKS, K, 3), range(2)).state_dict()
    assert callable(change)
    with pytest.raises(StateError, match="expected"):
        Plays(BLOCKS, K, 3).load_state_dict(state | {name: change(state[name])})


def test_a_state_to_select_with_selects_alike_and_refuses_to_learn() -> None:
    """Fails when selecting reads what was left out, when contexts are still written, or when learning goes on."""
    environment = small_environment(horizon=40)
    policy = build_policy("auto", environment=environment, seed=3)
    play(policy, environment, range(1, 31))
    assert isinstance(policy, Auto)
    small, whole = policy.selecting_state(), policy.state_dict()
    assert small.keys() == whole.keys()
    assert {name for name in whole if small[name].shape != whole[name].shape} == {f"team.plays.{m}" for m in MEMORY}
    copy = build_policy("auto", environment=environment, seed=3)
    copy.load_state_dict(small)
    for t in range(31, 41):
        round = environment.round(t)
        assert torch.equal(copy.select(round).positions, policy.select(round).positions)
    slate = copy.select(round)
    with pytest.raises(StateError, match="select alone"):
        copy.update(round, slate, environment.play(round, slate))
