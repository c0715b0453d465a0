"""The rows of open decisions as a few flat arrays, whatever the lengths of slates and the widths of rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Slate
from neuclust.errors import StateError
from neuclust.recommender.choices import Shown

Arrays = dict[str, NDArray[Any]]
WRAP = 2**64  # keys of randomness have 64 bits without a sign, as int64 with one
_TYPES = {
    "sizes": np.int64, "numbers": np.int64, "flags": np.uint8, "codes": np.int64, "items": np.float64,
    "users": np.float64, "means": np.float64, "bonuses": np.float64, "propensities": np.float64, "explored": np.uint8,
}  # fmt: skip


_TABLES = ("sizes", "numbers", "flags")


def payload_arrays(payloads: Sequence[Shown]) -> Arrays:
    """n payloads: `sizes` (n, 3) with k, d_i and d_u; `numbers` (n, 4) with t, draw, version and cluster.

    `flags` (n, 3): whether it has propensities, explored slots, a cluster. Everything else stands one after another.
    """
    flags = [_flags(each.slate) for each in payloads]
    slates = [each.slate for each in payloads]
    columns: dict[str, list[Any]] = {
        "codes": [each.codes for each in payloads],
        "items": [each.items.reshape(-1) for each in payloads],
        "users": [each.user for each in payloads],
        "means": [slate.means.numpy() for slate in slates],
        "bonuses": [slate.bonuses.numpy() for slate in slates],
        "propensities": [_filled(slate.propensities, slate) for slate in slates],
        "explored": [_filled(slate.explored, slate) for slate in slates],
    }
    made: Arrays = {
        "sizes": _table([[*each.items.shape, len(each.user)] for each in payloads], 3, np.int64),
        "numbers": _table([_numbers(each) for each in payloads], 4, np.int64),
        "flags": _table(flags, 3, np.uint8),
    }
    for name, parts in columns.items():
        made[name] = np.concatenate([np.zeros(0, _TYPES[name]), *parts]).astype(_TYPES[name], copy=False)
    return made


def payloads_of(arrays: Mapping[str, NDArray[Any]]) -> list[Shown]:
    """What `payload_arrays` gave, checked."""
    found = {name: _typed(arrays, name) for name in _TYPES}
    sizes, numbers, flags = (found[name] for name in _TABLES)
    count = len(sizes)
    if sizes.shape != (count, 3) or numbers.shape != (count, 4) or flags.shape != (count, 3):
        raise _damaged("sizes, numbers and flags of each decision", [each.shape for each in (sizes, numbers, flags)])
    if count and not (sizes.min() >= 0 and sizes.max() < 2**31):
        raise _damaged("sizes from 0", sizes.min())
    slots, widths, users = sizes.T
    lengths = dict.fromkeys(("codes", "means", "bonuses", "propensities", "explored"), slots)
    lengths |= {"items": slots * widths, "users": users}
    parts = {name: _split(found[name], length, name) for name, length in lengths.items()}
    tables = [found[name].tolist() for name in _TABLES]
    return [_shown({name: each[at] for name, each in parts.items()}, *(t[at] for t in tables)) for at in range(count)]


def _flags(slate: Slate) -> list[bool]:
    return [slate.propensities is not None, slate.explored is not None, slate.cluster is not None]


def _numbers(shown: Shown) -> list[int]:
    draw = shown.draw - WRAP if shown.draw >= WRAP // 2 else shown.draw
    return [shown.t, draw, shown.version, 0 if shown.slate.cluster is None else shown.slate.cluster]


def _filled(values: Tensor | None, slate: Slate) -> NDArray[Any]:
    """(k,); zeros where there are none."""
    return np.zeros(len(slate.positions)) if values is None else values.numpy()


def _table(rows: Sequence[Sequence[int]], columns: int, dtype: Any) -> NDArray[Any]:
    return np.array(rows, dtype=dtype).reshape(len(rows), columns)


def _typed(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    found = arrays.get(name)
    if found is None or found.dtype != _TYPES[name] or found.ndim != (2 if name in _TABLES else 1):
        got = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
        raise _damaged(f"{name} as {np.dtype(_TYPES[name])}", got)
    if found.dtype == np.float64 and name in ("items", "users", "propensities") and not np.isfinite(found).all():
        raise _damaged(f"finite {name}", "NaN or infinity")
    return found


def _split(values: NDArray[Any], lengths: NDArray[np.int64], name: str) -> list[NDArray[Any]]:
    if len(values) != int(lengths.sum()):
        raise _damaged(f"{int(lengths.sum())} entries of {name}", len(values))
    return np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _shown(parts: Mapping[str, NDArray[Any]], sizes: list[int], numbers: list[int], flags: list[int]) -> Shown:
    slots, width, _ = sizes
    t, draw, version, cluster = numbers
    if t < 1 or version < 0:
        raise _damaged("rounds from 1 and versions from 0", f"{t} and {version}")
    slate = Slate(
        torch.arange(slots), torch.from_numpy(parts["means"].copy()), torch.from_numpy(parts["bonuses"].copy()),
        torch.from_numpy(parts["propensities"].copy()) if flags[0] else None,
        cluster if flags[2] else None,
        torch.from_numpy(parts["explored"].astype(bool)) if flags[1] else None,
    )  # fmt: skip
    codes, items = parts["codes"].copy(), parts["items"].reshape(slots, width).copy()
    return Shown(codes, items, parts["users"].copy(), slate, t, draw % WRAP, version)


def _damaged(expected: str, got: object) -> StateError:
    return StateError(f"rows of open decisions: expected {expected}, got {got!s:.200}; is the save damaged?")
