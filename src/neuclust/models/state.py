"""Names of tensors inside a state, and the checks they pass on the way back: a part's entries stand under its name.

Every entry is loaded by one of these functions. Each refuses what is not there or cannot have been saved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from neuclust.errors import StateError

Shape = tuple[int, ...]


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


def take_rows(
    state: Mapping[str, Tensor], name: str, row: Shape, dtype: torch.dtype = torch.float64, nan: bool = False
) -> Tensor:
    """A copy of a saved table: any number of rows of this shape."""
    found = state.get(name)
    rows = len(found) if found is not None and found.ndim else 0
    return _taken(state, name, (rows, *row), dtype, nan)


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
    """A saved ρ, above 0; None where none was settled yet, which is saved as NaN."""
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
    expect(inside, f"{name} from 0 to below {size}", _range(index))


def check_shapes(state: Mapping[str, Tensor], shapes: Iterable[tuple[str, Shape]]) -> None:
    """Refuse a state without tensors of these names and shapes.

    They tell how much memory a policy needs. Checked before one is made, since a damaged manifest may ask for more than
    any machine has.
    """
    for name, shape in shapes:
        found = tuple(state[name].shape) if name in state else "nothing"
        expect(found == shape, f"{name} of shape {_shown(shape)}", found)


def expect(holds: bool, expected: str, found: object) -> None:
    """Refuse a state in one sentence."""
    if not holds:
        raise StateError(f"saved state: expected {expected}, got {found}; was it saved so?")


def _taken(state: Mapping[str, Tensor], name: str, shape: Shape, dtype: torch.dtype, nan: bool) -> Tensor:
    if name not in state:
        raise StateError(f"saved state: expected {name} of shape {_shown(shape)}, got nothing; was it saved so?")
    found = state[name]
    expect(tuple(found.shape) == shape, f"{name} of shape {_shown(shape)}", tuple(found.shape))
    expect(found.dtype == dtype, f"{name} of {_kind(dtype)}", _kind(found.dtype))
    if found.is_floating_point():
        finite = ~torch.isinf(found) if nan else torch.isfinite(found)
        expect(bool(finite.all()), f"{name} of finite numbers", "infinity" if nan else "NaN or infinity")
    return found.clone()


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _range(index: Tensor) -> str:
    return f"{int(index.min())} to {int(index.max())}" if index.numel() else "none"


def _shown(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
