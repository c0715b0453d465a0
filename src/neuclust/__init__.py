"""neuclust: combinatorial bandits. The names below import their modules when they are first used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuclust.data.dataset import load_dataset as load_dataset
    from neuclust.environments.catalogue import build_environment as build_environment
    from neuclust.environments.catalogue import register_environment as register_environment
    from neuclust.environments.profiles import profile_environment as profile_environment
    from neuclust.experiment.engines.engine import play as play
    from neuclust.experiment.problem import Problem as Problem
    from neuclust.experiment.tasks import tasks as tasks
    from neuclust.registry import build_policy as build_policy
    from neuclust.registry import load_policy
    from neuclust.registry import register_policy as register_policy

    load = load_policy

__version__ = "0.1.0"

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
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'neuclust' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
