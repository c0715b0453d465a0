"""Names of tensors inside a state: a part's entries stand under its name and a dot."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def nested(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`{"a": x}` under "part" is `{"part.a": x}`."""
    return {f"{name}.{key}": tensor for key, tensor in state.items()}


def under(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The entries of one part, with its name taken off."""
    start = f"{name}."
    return {key[len(start) :]: tensor for key, tensor in state.items() if key.startswith(start)}
