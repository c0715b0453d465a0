"""Entries of a saved state: each is taken back as it was, or refused in a sentence that names it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels.initial import RULES, initial_network, network_shapes
from neuclust.models.history import History
from neuclust.models.mean_rewards import KeyedMeans
from neuclust.models.state import (
    check_indices,
    check_lengths,
    check_shapes,
    nested,
    nested_shapes,
    take,
    take_count,
    take_number,
    take_numbers,
    take_rows,
    take_scale,
    take_whole,
    under,
)
from neuclust.randomness import stream

LIKE = torch.zeros(2, 3, dtype=torch.float64)


def entry(*values: float, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    return {"x": torch.tensor(values, dtype=dtype)}


def single(value: float, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    return {"x": torch.tensor(value, dtype=dtype)}


def test_names_of_parts_come_back() -> None:
    state = nested("part", {"a": LIKE}) | nested("partner", {"b": LIKE})
    assert list(state) == ["part.a", "partner.b"]
    assert list(under("part", state)) == ["a"]
    assert list(nested_shapes("part", [("a", (2, 3))])) == [("part.a", (2, 3))]


def test_what_is_taken_is_a_copy() -> None:
    state = {"x": LIKE.clone()}
    taken = take(state, "x", LIKE)
    state["x"] += 1
    assert torch.equal(taken, LIKE)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "x of shape (2, 3), got nothing"),
        ({"x": LIKE[:1]}, "x of shape (2, 3), got (1, 3)"),
        ({"x": LIKE.float()}, "x of float64, got float32"),
        ({"x": LIKE.long()}, "x of float64, got int64"),
        ({"x": LIKE + math.nan}, "x of finite numbers, got NaN"),
        ({"x": LIKE + math.inf}, "x of finite numbers"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(found: dict[str, Tensor], said: str) -> None:
    with pytest.raises(StateError) as refused:
        take(found, "x", LIKE)
    assert f"expected {said}" in str(refused.value)


def test_nan_is_taken_where_it_means_something_and_infinity_never() -> None:
    assert bool(take({"x": LIKE + math.nan}, "x", LIKE, nan=True).isnan().all())
    with pytest.raises(StateError, match="finite"):
        take({"x": LIKE - math.inf}, "x", LIKE, nan=True)


@pytest.mark.parametrize(
    ("take_it", "good", "bad"),
    [
        (take_number, single(2.5), [single(math.nan), entry(1.0), single(1, torch.int64), {}]),
        (take_whole, single(-3, torch.int64), [single(1.0), entry(1, dtype=torch.int64), {}]),
        (take_count, single(3, torch.int64), [single(-1, torch.int64), single(1.0), {}]),
        (take_scale, single(5.0), [single(0.0), single(-1.0), single(math.inf), {}]),
    ],
)
def test_numbers_are_single_finite_and_of_their_kind(
    take_it: Callable[..., Any], good: dict[str, Tensor], bad: list[dict[str, Tensor]]
) -> None:
    assert take_it(good, "x") == good["x"].item()
    for state in bad:
        with pytest.raises(StateError, match="expected x"):
            take_it(state, "x")


def test_a_scale_that_is_not_settled_is_none() -> None:
    assert take_scale(single(math.nan), "x") is None


def test_tables_may_have_any_length() -> None:
    assert take_rows({"x": LIKE[:0]}, "x", (3,)).shape == (0, 3)
    assert take_numbers(entry(1.0, 2.0), "x", 2) == [1.0, 2.0]
    for state in ({"x": LIKE[:, :2]}, {"x": torch.tensor(1.0)}, {"x": LIKE.unsqueeze(0)}, {}):
        with pytest.raises(StateError, match="expected x of shape"):
            take_rows(state, "x", (3,))


def test_lengths_indices_and_shapes_that_do_not_agree_are_refused() -> None:
    with pytest.raises(StateError, match=r"as many rows in a, b, got \[2, 1\]"):
        check_lengths(a=LIKE, b=LIKE[:1])
    with pytest.raises(StateError, match=r"row from 0 to below 3, got 0 to 3"):
        check_indices("row", torch.tensor([0, 3]), 3)
    check_indices("row", torch.tensor([], dtype=torch.int64), 0)
    with pytest.raises(StateError, match=r"x of shape \(2, 4\), got \(2, 3\)"):
        check_shapes({"x": LIKE}, [("x", (2, 4))])
    with pytest.raises(StateError, match=r"y of shape \(1,\), got nothing"):
        check_shapes({"x": LIKE}, [("x", (2, 3)), ("y", (1,))])


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("depth", [1, 3])
def test_shapes_of_a_net_are_those_it_is_made_with(rule: str, depth: int) -> None:
    made = initial_network(rule, 6, 8, depth, 1.0, stream(0, "shapes"))
    assert list(network_shapes(rule, 6, 8, depth)) == [tuple(weight.shape) for weight in made.weights]


# --- tables that grew together --------------------------------------------------------------------------------


def filled() -> History:
    history = History(2, 2)
    rows = [history.row(torch.tensor(context, dtype=torch.float64)) for context in ([1.0, 0.0], [0.0, 2.0])]
    for row, reward in ((0, 1.0), (1, 0.25), (0, 0.5)):
        history.observe_arm(row, reward)
    history.observe_slate(rows, 0.5, torch.tensor([1.0, math.nan]), torch.tensor([0.1, 0.2]))
    return history


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "counts": lambda x: x + 1,
    "sums": lambda x: x + 1e-6,
    "rewards": lambda x: x * 1.001,
    "seen": lambda x: x + 1,
    "groups": lambda x: x - 1,
    "group_counts": lambda x: x * 2,
    "contexts": lambda x: x[:1],
    "slate_predictions": lambda x: x * math.nan,
    "slate_rewards": lambda x: torch.cat([x, x]),
    "slate_arm_rewards": lambda x: x * math.inf,
    "group_sums": lambda x: x[:0],
}


def test_a_history_comes_back_with_what_was_not_seen() -> None:
    again = History(2, 2)
    again.load_state_dict(filled().state_dict())
    assert bool(again.slate_arm_rewards.rows.isnan().any())


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_history_that_cannot_have_grown_so_is_refused(name: str) -> None:
    state = filled().state_dict()
    state[name] = CHANGES[name](state[name])
    with pytest.raises(StateError, match="expected"):
        History(2, 2).load_state_dict(state)


@pytest.mark.parametrize(
    "change", [{"keys": [2, 1]}, {"keys": [1, 1]}, {"counts": [1.0, 0.0]}, {"sums": [1.0]}, {"sums": [1.0, math.nan]}]
)
def test_keyed_means_that_cannot_be_are_refused(change: dict[str, list[float]]) -> None:
    state = {"keys": torch.tensor([1, 2]), "counts": entry(1.0, 2.0)["x"], "sums": entry(0.5, 1.0)["x"]}
    KeyedMeans().load_state_dict(state)
    changed = {name: torch.tensor(values, dtype=state[name].dtype) for name, values in change.items()}
    with pytest.raises(StateError, match="expected"):
        KeyedMeans().load_state_dict(state | changed)
