"""Numba where it is at hand; without it the compiled loops are never called (`available` is False)."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

try:
    from numba import njit, prange

    available = True
    each = prange  # a range whose steps may run at once, inside a `parallel` loop
except ImportError:  # a bare machine: the library path serves
    available = False
    each = range

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


def parallel(loop: Loop) -> Loop:
    """Compile a loop over independent blocks that Numba's threads share; the numbers do not depend on how many."""
    made: Loop = njit(cache=True, parallel=True, fastmath={"reassoc", "contract"})(loop)
    return made


def inlined(loop: Loop) -> Loop:
    """Compile a piece of such loops, to become part of them: alike in a shared loop and in one that is not."""
    made: Loop = njit(cache=True, fastmath={"reassoc", "contract"}, nogil=True)(loop)
    return made


def serves(*tensors: Tensor) -> bool:
    """Whether compiled loops can work on these: Numba at hand, all on the CPU, floating ones in float64."""
    return available and all(
        t.device.type == "cpu" and (t.dtype == torch.float64 or not t.is_floating_point()) for t in tensors
    )
