"""Numba where it is at hand; without it the compiled loops are never called (`available` is False)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

try:
    from numba import njit

    available = True
except ImportError:  # a bare machine: the library path serves
    available = False

    def njit(**_: Any) -> Any:  # leaves the function as it is
        return lambda function: function


Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """Compile a loop whose sums may be reordered (that is where the speed is); NaN and infinity keep their meaning."""
    made: Loop = njit(cache=True, fastmath={"reassoc", "contract"})(loop)
    return made


def exact(loop: Loop) -> Loop:
    """Compile a loop that computes to the letter."""
    made: Loop = njit(cache=True)(loop)
    return made


def serves(*tensors: Tensor) -> bool:
    """Whether compiled loops can work on these: Numba at hand, all on the CPU, floating ones in float64."""
    return available and all(
        t.device.type == "cpu" and (t.dtype == torch.float64 or not t.is_floating_point()) for t in tensors
    )
