"""What the bytes of a model depend on beside its log: versions of libraries, the machine, threads."""

import platform
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

LIBRARIES = ("neuclust", "torch", "numpy", "scipy", "scikit-learn", "numba", "safetensors")


def environment() -> dict[str, Any]:
    """The present one, kept beside every version."""
    return {
        "python": platform.python_version(), "machine": platform.machine(), "system": platform.system(),
        "threads": torch.get_num_threads(), "zlib": zlib.ZLIB_RUNTIME_VERSION,
        **{name: _version(name) for name in LIBRARIES},
    }  # fmt: skip


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of computation, as the learner has: more of them add in another order, to other last digits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def differing(kept: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Entries of a kept environment that are others now: what was, and what is."""
    now = environment()
    return {name: (kept.get(name), now.get(name)) for name in {**now, **kept} if kept.get(name) != now.get(name)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
