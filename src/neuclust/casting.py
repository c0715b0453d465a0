"""Casts tensors, arrays, lists and numbers to float64 (measurements) or int64 (counts and ids).

A tensor of the right type is returned as the same object; arrays and lists are copied, so later writes change nothing.
"""

import operator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuclust.errors import DataError

NUMERIC = "biuf"  # kinds of NumPy arrays that hold real numbers


def real(value: Any, name: str, device: torch.device | None = None) -> Tensor:
    """Real numbers as float64; `device` is where numbers go that are on none yet."""
    found = _tensor(value, name, device)
    if found.is_complex():
        raise DataError(f"{name}: expected real numbers, got {found.dtype}; give their real part or their size")
    return found.to(torch.float64)


def whole(value: Any, name: str, device: torch.device | None = None) -> Tensor:
    """Whole numbers as int64; others, and those that do not fit, are refused instead of rounded or wrapped."""
    found = _tensor(value, name, device)
    if found.dtype == torch.int64:
        return found
    if found.is_complex() or found.dtype == torch.bool:
        raise DataError(f"{name}: expected whole numbers, got {found.dtype}; give integers")
    if found.is_floating_point():
        exact = 2 / torch.finfo(found.dtype).eps  # beyond this a float does not tell neighbours apart
        found = found.to(torch.float64)
        odd = ~((found == found.round()) & (found.abs() <= exact))
        if bool(odd.any()):
            raise DataError(f"{name}: expected whole numbers, got {float(found[odd].flatten()[0]):g}; give integers")
    cast = found.to(torch.int64)
    if found.dtype == torch.uint64 and bool((cast < 0).any()):  # wrapped around
        raise DataError(f"{name}: expected whole numbers below 2**63, got larger ones; number them anew")
    return cast


def flags(value: Any, name: str, device: torch.device | None = None) -> Tensor:
    """Yes or no as bool."""
    found = _tensor(value, name, device)
    if found.dtype != torch.bool and not bool(((found == 0) | (found == 1)).all()):
        raise DataError(f"{name}: expected yes or no for each, got {found.dtype}; give booleans")
    return found.to(torch.bool)


def count(value: Any, name: str) -> int:
    """One whole number as an int."""
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        raise DataError(f"{name}: expected a whole number, got {value!r}; give an int") from None


def _tensor(value: Any, name: str, device: torch.device | None) -> Tensor:
    """Any tensor, array, list or number as a plain dense tensor without a gradient."""
    if not isinstance(value, Tensor):
        made: Tensor = torch.from_numpy(_array(value, name))
        return made.to(device)
    if value.requires_grad:
        value = value.detach()
    if value.is_quantized:
        value = value.dequantize()
    if value.layout != torch.strided:
        value = value.to_dense()
    if value.is_inference() and not torch.is_inference_mode_enabled():  # could not be told apart from a changed one
        value = value.clone()
    plain: Tensor = value.resolve_neg() if value.is_neg() else value
    return plain


def _array(value: Any, name: str) -> np.ndarray[Any, Any]:
    """A copy in a layout torch can read: read-only arrays and negative strides are neither."""
    if np.ma.is_masked(value):
        raise DataError(f"{name}: expected numbers, got masked entries; fill them, unseen rewards with NaN")
    given = f"got a {type(value).__name__}"
    try:
        array = np.array(value, order="C")
    except Exception:  # ragged lists, tensors on a device: NumPy has many ways to say so
        raise DataError(f"{name}: expected an array of numbers, {given}") from None
    if array.dtype.kind not in NUMERIC + "c":
        raise DataError(f"{name}: expected numbers, {given} of {array.dtype}; NaN is what was not seen")
    known = np.complex128 if array.dtype.kind == "c" else np.float64
    plain = array.astype(array.dtype.newbyteorder("="), copy=False)
    return plain if plain.dtype.itemsize <= 8 else plain.astype(known)
