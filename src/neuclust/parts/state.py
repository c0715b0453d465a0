"""Names of tensors inside a state: a part's entries stand under its name and a dot."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from neuclust.errors import StateError


def nested(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`{"a": x}` under "part" is `{"part.a": x}`."""
    return {f"{name}.{key}": tensor for key, tensor in state.items()}


def under(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The entries of one part, with its name taken off."""
    start = f"{name}."
    return {key[len(start) :]: tensor for key, tensor in state.items() if key.startswith(start)}


def take(state: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    """A copy of one saved tensor, which must have the shape of the one it replaces."""
    if name not in state or state[name].shape != like.shape:
        found = tuple(state[name].shape) if name in state else "nothing"
        raise StateError(f"saved state: expected {name} of shape {tuple(like.shape)}, got {found}; was it saved so?")
    return state[name].clone()
