"""Numba where it is installed; without it the compiled loops are never called (`available` is False)."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

try:
    from numba import njit, prange

    available = True
    each = prange  # a range whose steps may run at once, inside a `parallel` loop
except ImportError:
    available = False
    each = range

    def njit(**_: Any) -> Any:  # leaves the function as it is
        return lambda function: function


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Loop = TypeVar("Loop", bound=Callable[..., Any])


def _compiler(**options: Any) -> Callable[[Loop], Loop]:
    made: Callable[[Loop], Loop] = njit(cache=True, **options)
    return made


_FAST: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}  # NaN and infinity keep their meaning
compiled = _compiler(nogil=True, **_FAST)  # sums may be reordered: that is where the speed is
exact = _compiler(nogil=True)
parallel = _compiler(
    parallel=True, nogil=True, **_FAST
)  # over independent blocks; the result does not depend on the threads
inlined = _compiler(nogil=True, **_FAST)  # a piece of other loops, the same in parallel ones


def serves(*tensors: Tensor) -> bool:
    """Whether compiled loops can work on these: Numba installed, all on the CPU, floating ones in float64."""
    return available and all(
        t.device.type == "cpu" and (t.dtype == torch.float64 or not t.is_floating_point()) for t in tensors
    )
