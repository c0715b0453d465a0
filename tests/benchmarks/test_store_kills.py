"""Kills of writers lose nothing, and the harness that says so reports what is planted."""

from __future__ import annotations

import pytest
from postgres import postgres_address

from benchmarks.store_faults import FAULTS
from benchmarks.store_kills import run


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_kills_lose_and_repeat_nothing(kind: str) -> None:
    """Fails when a killed writer or server costs an acknowledged event, repeats one or leaves a gap."""
    if kind == "postgres":
        postgres_address()  # skips where there is none
    report = run(kind, kills=5, server_every=5)
    assert report.problems == []
    assert report.acknowledged > 0
    assert report.server_kills == (kind == "postgres")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_reported(fault: str) -> None:
    """Fails when the harness would call a faulty store sound."""
    report = run("sqlite", kills=4, fault=fault)
    words = {"early-ack": "are not in the log", "no-dedup": "more than once", "identity": "the reader stopped"}
    assert any(words[fault] in problem for problem in report.problems), report.problems
