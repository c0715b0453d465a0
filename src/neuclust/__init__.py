"""neuclust: choose K of many, again and again, and learn from what happens.

The names below load what they need when they are first used, so that `import neuclust` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuclust.data.dataset import load_dataset
    from neuclust.environments.catalogue import build_environment, register_environment
    from neuclust.environments.profiles import profile_environment
    from neuclust.experiment.engines.engine import play
    from neuclust.experiment.problem import Problem
    from neuclust.experiment.tasks import tasks
    from neuclust.registry import build_policy, register_policy
    from neuclust.registry import load_policy as load

__version__ = "0.1.0"
__all__ = [
    "Problem",
    "build_environment",
    "build_policy",
    "load",
    "load_dataset",
    "play",
    "profile_environment",
    "register_environment",
    "register_policy",
    "tasks",
]

_HOMES = {
    "Problem": ("neuclust.experiment.problem", "Problem"),
    "build_environment": ("neuclust.environments.catalogue", "build_environment"),
    "build_policy": ("neuclust.registry", "build_policy"),
    "load": ("neuclust.registry", "load_policy"),
    "load_dataset": ("neuclust.data.dataset", "load_dataset"),
    "play": ("neuclust.experiment.engines.engine", "play"),
    "profile_environment": ("neuclust.environments.profiles", "profile_environment"),
    "register_environment": ("neuclust.environments.catalogue", "register_environment"),
    "register_policy": ("neuclust.registry", "register_policy"),
    "tasks": ("neuclust.experiment.tasks", "tasks"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'neuclust' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
