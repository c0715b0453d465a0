"""The fold is the same from the start and from any state on, and tells what became of every event."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulated_service import KINDS, WrittenLog, begun, play

from neuclust.serve.fold.fold import Fold, Told

STEPS = st.lists(st.tuples(st.integers(0, KINDS - 1), st.integers(0, 1_000)), min_size=5, max_size=30)


def folded(log: WrittenLog, cuts: set[int]) -> tuple[bytes, bytes, list[Told | None]]:
    """State, model and what was told, by a fold that is saved and loaded after the events of `cuts`."""
    fold = Fold.begin()
    told: list[Told | None] = []
    for row in log.rows:
        told.append(fold.apply(row))
        if row.seq in cuts:
            fold = Fold.from_state(fold.state())
    return fold.state(), fold.model(), told


@pytest.mark.parametrize("policy", ["linucb", "auto", "popular", "neuclust"])
def test_a_fold_goes_on_from_any_state(policy: str) -> None:
    """Fails when a fold that continues from a state differs in one byte from the one that went through."""
    service, log = begun(policy)
    steps = [(at * 7 % KINDS if at % 3 else 17, at * 37 % 1_000) for at in range(80)]
    play(service, log, steps)
    through = folded(log, set())
    assert through == folded(log, {40, 41, 60, len(log.rows) - 1})
    assert through == folded(log, {len(log.rows) // 2})


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.sets(st.integers(1, 60), max_size=4))
def test_any_order_of_events_folds_the_same(steps: list[tuple[int, int]], cuts: set[int]) -> None:
    """Fails when some order of events is folded otherwise after a state was saved and loaded."""
    service, log = begun("linucb")
    play(service, log, steps)
    assert folded(log, set()) == folded(log, cuts)
