"""Weights of evenly drawn slates, against the evaluation package's own moments of every item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from neuclust.core import Round
from neuclust.evaluation.designs import slot_marginals
from neuclust.evaluation.weight_bounds import slot_moments
from neuclust.logs.decisions import Design
from neuclust.serve.statistics.uniform import exploring_slots, uniform_weights

N, K = 12, 3


def choice(design: dict[str, Any], items: list[int], **others: Any) -> dict[str, Any]:
    sizes = list(range(N, N - K, -1))
    return {"items": items, "design": {"sizes": sizes, **design}, "explored": [False] * K, "request": None, **others}


@pytest.mark.parametrize("items", [[4, 7, 1], [4, 0, 7], [11, 4, 5], [9, 10, 11]])
@pytest.mark.parametrize("kind", ["sequential", "one-coin"])
def test_weights_are_ratios_of_marginals(kind: Any, items: list[int]) -> None:
    """Fails when a slot's weight is not 1/n over its chance, or E[w²] is another."""
    base, pool = (4, 7, 1), (4, 7, 1, 5, 0) if kind == "sequential" else ()
    parts: dict[str, Any] = {"base": base, "share": 0.3}
    parts |= {"pool": pool, "anywhere": 0.2} if kind == "sequential" else {}
    found = uniform_weights(choice({"kind": kind, **parts}, items))
    round = Round(1, torch.arange(N), torch.zeros(N, 1), None, K)
    logging = slot_marginals(Design(kind, **parts), round)
    even = slot_marginals(Design("uniform"), round)
    assert found is not None
    assert found.weights == pytest.approx((even / logging)[np.arange(K), items].tolist())
    assert found.second_moment == pytest.approx(slot_moments(even, logging)[0])


@pytest.mark.parametrize(
    "others",
    [
        {"required": [True, False, False]},
        {"request": {"required": [], "at_most": {"category": 1}}},
        {"design": {"kind": "sequential", "base": [0], "share": 0.0, "pool": [], "anywhere": 1, "sizes": [12, 11, 10]}},
        {"design": {"kind": "sequential", "base": [0], "share": 0.1, "pool": [], "anywhere": 1, "sizes": [12, 9, 8]}},
        {"design": {"kind": "deterministic", "sizes": [12, 11, 10]}},
        {"design": {"kind": "unknown", "sizes": []}},
        {"design": None},
    ],
)
def test_what_cannot_be_told_has_no_weights(others: dict[str, Any]) -> None:
    """Fails when a slate under rules or without exploration is used for the estimate of random."""
    design = {"kind": "sequential", "base": [0, 1, 2], "share": 0.1, "pool": [0, 1, 2, 3], "anywhere": 0.2}
    assert uniform_weights(choice(design, [0, 1, 2])) is not None
    assert uniform_weights(choice(design, [0, 1, 2]) | others) is None


def test_exploring_slots_are_those_that_differ_from_the_policys_own() -> None:
    """Fails when a slot that explores is not counted, or one that follows an explored slot is."""
    design = {"kind": "sequential", "base": [0, 1, 2], "share": 0.1, "pool": [0, 1, 2, 3], "anywhere": 0.2}
    assert exploring_slots(choice(design, [0, 1, 2])) == 0
    assert exploring_slots(choice(design, [9, 0, 1])) == 1
    assert exploring_slots(choice(design, [0, 9, 8])) == 2
    assert exploring_slots(choice(design, [0, 1, 2], explored=[False, True, False])) == 1
    assert exploring_slots(choice({"kind": "uniform"}, [0, 1, 2])) == 3
    assert exploring_slots(choice({"kind": "unknown"}, [0, 1, 2])) == 0
