"""Names of tensors in a state, and loading them: each function refuses what is missing or cannot have been saved."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels.monotone import MonotoneNetwork
from neuclust.kernels.network import Network

Shape = tuple[int, ...]
State = Mapping[str, Tensor]


def nested(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`{"a": x}` under "part" is `{"part.a": x}`."""
    return {f"{name}.{key}": tensor for key, tensor in state.items()}


def under(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The entries of one part, with its name taken off."""
    start = f"{name}."
    return {key[len(start) :]: tensor for key, tensor in state.items() if key.startswith(start)}


def nested_shapes(name: str, shapes: Iterable[tuple[str, Shape]]) -> Iterator[tuple[str, Shape]]:
    """The shapes of one part's entries, under its name."""
    return ((f"{name}.{key}", shape) for key, shape in shapes)


def take(state: Mapping[str, Tensor], name: str, like: Tensor, nan: bool = False) -> Tensor:
    """A copy of one saved tensor: shape and dtype of the one it replaces, finite unless NaN means something (`nan`)."""
    return _taken(state, name, tuple(like.shape), like.dtype, nan)


def numbered(name: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """`(x, y)` as `name.0` and `name.1`."""
    return {f"{name}.{i}": tensor for i, tensor in enumerate(tensors)}


def take_numbered(state: Mapping[str, Tensor], name: str, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Copies of saved tensors `name.0`, `name.1`, …, each like the one it replaces."""
    return tuple(take(state, f"{name}.{i}", one) for i, one in enumerate(like))


def numbered_shapes(name: str, shapes: Iterable[Shape]) -> Iterator[tuple[str, Shape]]:
    """The shapes of `name.0`, `name.1`, …"""
    return ((f"{name}.{i}", shape) for i, shape in enumerate(shapes))


def take_rows(state: State, name: str, row: Shape, dtype: torch.dtype = torch.float64, nan: bool = False) -> Tensor:
    """A copy of a saved table: any number of rows of this shape."""
    found = state.get(name)
    rows = len(found) if found is not None and found.ndim else 0
    return _taken(state, name, (rows, *row), dtype, nan)


def take_ids(state: Mapping[str, Tensor], name: str) -> Tensor:
    """Saved whole numbers, any number of them: (n,)."""
    return take_rows(state, name, (), torch.int64)


def take_number(state: Mapping[str, Tensor], name: str, nan: bool = False) -> float:
    """One saved number."""
    return float(_taken(state, name, (), torch.float64, nan))


def take_numbers(state: Mapping[str, Tensor], name: str, count: int) -> list[float]:
    """A few saved numbers."""
    return list(_taken(state, name, (count,), torch.float64, nan=False).tolist())


def take_count(state: Mapping[str, Tensor], name: str) -> int:
    """A saved number of times: whole, at least 0."""
    count = take_whole(state, name)
    expect(count >= 0, f"{name} of at least 0", count)
    return count


def take_whole(state: Mapping[str, Tensor], name: str) -> int:
    """One saved whole number."""
    return int(_taken(state, name, (), torch.int64, nan=False))


def take_scale(state: Mapping[str, Tensor], name: str = "rho") -> float | None:
    """A saved ρ, above 0; NaN stands for None, where none was settled yet."""
    rho = take_number(state, name, nan=True)
    if rho != rho:
        return None
    expect(rho > 0, f"{name} above 0 or none", rho)
    return rho


def check_lengths(**tables: Tensor) -> None:
    """Tables of one length."""
    lengths = {name: len(table) for name, table in tables.items()}
    expect(len(set(lengths.values())) <= 1, f"as many rows in {', '.join(lengths)}", list(lengths.values()))


def check_indices(name: str, index: Tensor, size: int) -> None:
    """Whole numbers that point into a table of `size` rows."""
    inside = bool(((index >= 0) & (index < size)).all())
    found = f"{int(index.min())} to {int(index.max())}" if index.numel() else "none"
    expect(inside, f"{name} from 0 to below {size}", found)


def check_shapes(state: Mapping[str, Tensor], shapes: Iterable[tuple[str, Shape]]) -> None:
    """Refuse a state without tensors of these names and shapes.
    Checked before a policy is made: a damaged manifest may ask for more memory than any machine has."""
    for name, shape in shapes:
        found = tuple(state[name].shape) if name in state else "nothing"
        expect(found == shape, f"{name} of shape {shape}", found)


def saved_state(part: Any) -> dict[str, Tensor]:
    """The state of a model or policy made of the attributes named in its `saved`.
    Whole numbers and tensors stand under their own name, entries of a part with a state under the part's name, weights
    of `net` as `weight.0`, …, and `rho` is the scale of the `encoder`. A part that is None has no entries."""
    state: dict[str, Tensor] = {}
    for name in part.saved:
        value = part.encoder.saved_rho() if name == "rho" else getattr(part, name)
        if isinstance(value, Tensor):
            state[name] = value.clone()
        elif isinstance(value, Integral):
            state[name] = torch.tensor(int(value))
        elif isinstance(value, Network | MonotoneNetwork):
            state |= numbered(*_weights(name, value))
        elif value is not None:
            state |= nested(name, value.state_dict())
    return state


def load_saved_state(part: Any, state: Mapping[str, Tensor]) -> None:
    """Load what `saved_state` gave, checked entry by entry."""
    for name in part.saved:
        value = None if name == "rho" else getattr(part, name)
        if name == "rho":
            part.encoder.load_rho(state)
        elif isinstance(value, Tensor):
            setattr(part, name, take(state, name, value))
        elif isinstance(value, Integral):
            setattr(part, name, (take_whole if name == "seed" else take_count)(state, name))
        elif isinstance(value, Network):
            setattr(part, name, replace(value, weights=take_numbered(state, *_weights(name, value))))
        elif isinstance(value, MonotoneNetwork):
            setattr(part, name, value.with_parameters(take_numbered(state, *_weights(name, value))))
        elif value is not None:
            value.load_state_dict(under(name, state))


def _weights(name: str, net: Network | MonotoneNetwork) -> tuple[str, tuple[Tensor, ...]]:
    """What the weights of the attribute `name` are saved as, and the weights."""
    label, weights = ("parameter", net.parameters) if isinstance(net, MonotoneNetwork) else ("weight", net.weights)
    return label if name == "net" else name, weights


def expect(holds: bool, expected: str, found: object) -> None:
    """Refuse a state in one sentence."""
    if not holds:
        raise StateError(f"saved state: expected {expected}, got {found}; was it saved so?")


def _taken(state: Mapping[str, Tensor], name: str, shape: Shape, dtype: torch.dtype, nan: bool) -> Tensor:
    check_shapes(state, [(name, shape)])
    found = state[name]
    kinds = [str(kind).removeprefix("torch.") for kind in (dtype, found.dtype)]
    expect(found.dtype == dtype, f"{name} of {kinds[0]}", kinds[1])
    if found.is_floating_point():
        finite = ~torch.isinf(found) if nan else torch.isfinite(found)
        expect(bool(finite.all()), f"{name} of finite numbers", "infinity" if nan else "NaN or infinity")
    return found.clone()
