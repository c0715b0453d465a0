"""The growth benchmark at a tiny size: what is filled, what is measured, what is printed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks.scaling import curves, fitted, panels, points, report
from benchmarks.scaling_point import AXES, Point, measured, observe_random, problem

TINY = Point("arms", "masked", arms=120, rounds=3, dim=6, width=4, slate_size=2)


@pytest.mark.parametrize("kind", ["masked", "dense"])
def test_a_point_reports_time_and_memory(kind: str) -> None:
    figures = measured(replace(TINY, kind=kind))
    assert figures["select_ms"] > 0
    assert figures["update_ms"] > 0
    assert figures["memory_mib"] >= 0
    assert figures["contexts"] <= TINY.arms


def test_the_history_holds_the_rounds_asked_for() -> None:
    policy, rounds = problem(TINY)
    for _ in range(TINY.rounds):
        observe_random(policy, next(rounds))
    assert policy.arms.updates == TINY.rounds
    assert policy.arms.history.observations == TINY.rounds * TINY.slate_size
    assert all(map(torch.equal, policy.arms.net.weights, policy.arms.initial.weights))  # nobody trained


def test_masked_rounds_ask_for_three_features_and_dense_ones_for_all() -> None:
    for kind, active in (("masked", 3), ("dense", 6)):
        _, rounds = problem(replace(TINY, kind=kind))
        assert [len(next(rounds).active) for _ in range(4)] == [active] * 4


def test_the_points_reach_the_sizes_the_page_promises() -> None:
    largest = {axis: max(point.size for point in points(quick=False) if point.axis == axis) for axis in AXES}
    assert largest == {"arms": 1_000_000, "rounds": 5_000, "parameters": 17_200, "slate size": 50}
    assert {point.parameters for point in points(quick=False)} >= {420, 860, 17_200}
    assert len(points(quick=True)) < len(points(quick=False)) / 2


def row(arms: int, kind: str, cost: float) -> dict[str, object]:
    return {"axis": "arms", "kind": kind, "size": arms, "select_ms": cost, "update_ms": 1.0, "memory_mib": cost**2}


def test_tables_and_exponents_come_from_the_points() -> None:
    found = [row(n, kind, factor * n) for kind, factor in (("masked", 0.01), ("dense", 0.5)) for n in (10, 1000, 100)]
    assert curves(found, "arms", "select_ms")["dense"] == [(10, 5.0), (100, 50.0), (1000, 500.0)]
    exponents = {(fit["kind"], fit["measure"]): fit["exponent"] for fit in fitted(found)}
    assert exponents["masked", "select_ms"] == 1.0
    assert exponents["dense", "update_ms"] == 0.0
    assert exponents["dense", "memory_mib"] == 2.0
    lines = report(found).splitlines()
    assert lines[0].split("|")[1].strip() == "arms"
    assert [line.split("|")[1].strip() for line in lines[2:6]] == ["10", "100", "1,000", "exponent"]
    assert [panel.up for panel in panels(found)] == ["milliseconds", "MiB"]
