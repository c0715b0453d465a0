"""neuclust: choose K of many, again and again, and learn. The names below import their modules on first use."""

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
    from neuclust.recommender.choices import Choice as Choice
    from neuclust.recommender.recommender import Recommender as Recommender
    from neuclust.recommender.tables.columns import Boolean as Boolean
    from neuclust.recommender.tables.columns import Category as Category
    from neuclust.recommender.tables.columns import Date as Date
    from neuclust.recommender.tables.columns import Ignore as Ignore
    from neuclust.recommender.tables.columns import Number as Number
    from neuclust.recommender.tables.columns import Tags as Tags
    from neuclust.recommender.tables.columns import Transformer as Transformer
    from neuclust.recommender.tables.columns import Vector as Vector
    from neuclust.recommender.tables.features import Features as Features
    from neuclust.registry import build_policy as build_policy
    from neuclust.registry import load_policy
    from neuclust.registry import register_policy as register_policy
    from neuclust.slates.propensities import Exploration as Exploration

    load = load_policy

__version__ = "0.1.0"

_HOMES = {
    "Boolean": ("neuclust.recommender.tables.columns", "Boolean"),
    "Category": ("neuclust.recommender.tables.columns", "Category"),
    "Choice": ("neuclust.recommender.choices", "Choice"),
    "Date": ("neuclust.recommender.tables.columns", "Date"),
    "Exploration": ("neuclust.slates.propensities", "Exploration"),
    "Features": ("neuclust.recommender.tables.features", "Features"),
    "Ignore": ("neuclust.recommender.tables.columns", "Ignore"),
    "Number": ("neuclust.recommender.tables.columns", "Number"),
    "Problem": ("neuclust.experiment.problem", "Problem"),
    "Recommender": ("neuclust.recommender.recommender", "Recommender"),
    "Tags": ("neuclust.recommender.tables.columns", "Tags"),
    "Transformer": ("neuclust.recommender.tables.columns", "Transformer"),
    "Vector": ("neuclust.recommender.tables.columns", "Vector"),
    "build_environment": ("neuclust.environments.catalogue", "build_environment"),
    "build_policy": ("neuclust.registry", "build_policy"),
    "evaluate_log": ("neuclust.evaluation.sources", "evaluate_log"),
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
