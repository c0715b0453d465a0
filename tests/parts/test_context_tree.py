"""A tree of cells whose links run in circles is refused instead of walked for ever."""

from __future__ import annotations

import pytest
import torch

from neuclust.errors import StateError
from neuclust.parts.context_tree import ContextTree


def grown() -> ContextTree:
    tree = ContextTree(2)
    for cell in (0, 1, 2):
        tree.split(cell)
    return tree


def test_a_child_before_its_parent_is_refused() -> None:
    tree, x = grown(), torch.tensor([[0.1, 0.1]], dtype=torch.float64)
    assert tree.leaves(x, torch.arange(2)).tolist() == [3]
    state = tree.state_dict()
    state["child"][1] = 0
    tree.load_state_dict(state)
    with pytest.raises(StateError, match="load a sound save"):
        tree.leaves(x, torch.arange(2))


def test_a_parent_behind_its_child_is_refused() -> None:
    tree = grown()
    state = tree.state_dict()
    state["parent"][1] = 3
    tree.load_state_dict(state)
    with pytest.raises(StateError, match="load a sound save"):
        tree.split(3)
