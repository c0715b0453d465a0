"""Named configurations of the policies, as data: one module per family."""

import importlib
import warnings
from typing import Any

_MOVED = ("POLICIES", "PolicySpec", "build_policy", "load_policy", "policy_config", "policy_spec")


def __getattr__(name: str) -> Any:
    """What was here before the registry had a module of its own; accepted until 0.3."""
    if name not in _MOVED:
        raise AttributeError(f"module 'neuclust.presets' has no attribute {name!r}")
    warnings.warn(f"neuclust.presets.{name} is neuclust.registry.{name} now", DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module("neuclust.registry"), name)
