"""Constraints speak of a round's arms, and what no slate can keep to is refused in a sentence."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.slates.constraints import Constraints, rules

CATEGORIES = torch.tensor([0, 0, 0, 1, 1, 2])


def six(k: int = 3) -> Round:
    """Arms 10, 20, …, 60."""
    return Round(4, torch.arange(1, 7) * 10, torch.ones(6, 2), None, k)


def test_ids_become_positions() -> None:
    found = rules(Constraints(required=(40,), excluded=(10, 60), at_most=2), six(), CATEGORIES, strict=True)
    assert found.required.tolist() == [3]
    assert found.allowed.tolist() == [False, True, True, True, True, False]
    assert found.cap == 2


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        (Constraints(required=(10, 20, 30, 40)), "at most K = 3 required arms, got 4"),
        (Constraints(required=(10, 20), at_most=1), "2 are required of category 0"),
        (Constraints(excluded=(60,), at_most=1), "only 2 fit"),
        (Constraints(excluded=(10, 20, 30, 40)), "only 2 fit"),
        (Constraints(required=(11,)), "arm 11, which is not"),
        (Constraints(excluded=(70,)), "arm 70, which is not"),
        (Constraints(categories=torch.tensor([1, 2])), "6 whole numbers"),
        (Constraints(categories=torch.ones(6)), "6 whole numbers as categories, got .* float32"),
    ],
)
def test_what_cannot_be_kept_is_refused(constraints: Constraints, said: str) -> None:
    with pytest.raises(DataError, match=rf"round 4: expected .*{said}"):
        rules(constraints, six(), CATEGORIES, strict=True)


def test_standing_constraints_speak_of_the_arms_that_are_offered() -> None:
    found = rules(Constraints(required=(11, 20), excluded=(70, 30)), six(), CATEGORIES, strict=False)
    assert found.required.tolist() == [1]
    assert found.allowed.tolist() == [True, True, False, True, True, True]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"required": (1, 2), "excluded": (2,)}, "arm 2 as both"),
        ({"required": (1, 1)}, "every arm id once"),
        ({"at_most": 0}, "at least 1"),
        ({"diversity_weight": -1.0}, "at least 0"),
        ({"diversity_weight": float("nan")}, "expected a finite number"),
    ],
)
def test_contradictions_are_refused_at_once(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Constraints(**fields)


@given(
    categories=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    required=st.sets(st.integers(0, 5), max_size=4),
    excluded=st.sets(st.integers(0, 5), max_size=4),
    cap=st.integers(1, 3),
    k=st.integers(1, 4),
)
def test_a_slate_exists_exactly_where_nothing_is_refused(
    categories: list[int], required: set[int], excluded: set[int], cap: int, k: int
) -> None:
    excluded -= required
    exists = any(
        required <= set(slate)
        and not excluded & set(slate)
        and all([categories[i] for i in slate].count(c) <= cap for c in range(4))
        for slate in combinations(range(6), k)
    )
    ids = tuple((i + 1) * 10 for i in sorted(required)), tuple((i + 1) * 10 for i in sorted(excluded))
    try:
        rules(Constraints(*ids, at_most=cap), six(k), torch.tensor(categories), strict=True)
        accepted = True
    except DataError:
        accepted = False
    assert accepted == exists
