"""A saved tree of cells whose links run in circles is refused: a walk through it would never end."""

from __future__ import annotations

import pytest
import torch

from neuclust.errors import StateError
from neuclust.models.mean_rewards import ContextTree


def grown() -> ContextTree:
    tree = ContextTree(2)
    for cell in (0, 1, 2):
        tree.split(cell)
    return tree


def test_a_tree_comes_back_as_it_was() -> None:
    tree, x = ContextTree(2), torch.tensor([[0.1, 0.1]], dtype=torch.float64)
    tree.load_state_dict(grown().state_dict())
    assert tree.leaves(x, torch.arange(2)).tolist() == [3]


@pytest.mark.parametrize(("table", "cell", "value"), [("child", 1, 0), ("parent", 1, 3), ("child", 2, 99)])
def test_links_that_are_no_tree_are_refused(table: str, cell: int, value: int) -> None:
    tree, state = grown(), grown().state_dict()
    state[table][cell] = value
    with pytest.raises(StateError, match=r"expected (cells whose children come after them|a tree of cells)"):
        tree.load_state_dict(state)
