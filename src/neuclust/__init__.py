"""neuclust: choose K of many, again and again, and learn. The names below import their modules on first use."""

TYPE_CHECKING = False  # type checkers take it for True, and `typing` need not be loaded for it
if TYPE_CHECKING:
    from neuclust.data.dataset import load_dataset as load_dataset
    from neuclust.environments.catalogue import build_environment as build_environment
    from neuclust.environments.catalogue import register_environment as register_environment
    from neuclust.environments.profiles import profile_environment as profile_environment
    from neuclust.evaluation.sources import evaluate_log as evaluate_log
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
    from neuclust.registry import load_policy as load
    from neuclust.registry import register_policy as register_policy
    from neuclust.slates.propensities import Exploration as Exploration

__version__ = "0.2.0"

__all__ = [
    "Boolean",
    "Category",
    "Choice",
    "Date",
    "Exploration",
    "Features",
    "Ignore",
    "Number",
    "Problem",
    "Recommender",
    "Tags",
    "Transformer",
    "Vector",
    "build_environment",
    "build_policy",
    "evaluate_log",
    "load",
    "load_dataset",
    "play",
    "profile_environment",
    "register_environment",
    "register_policy",
    "tasks",
]
_HOMES = {  # module, and the name there where it is another one
    "Boolean": "neuclust.recommender.tables.columns",
    "Category": "neuclust.recommender.tables.columns",
    "Choice": "neuclust.recommender.choices",
    "Date": "neuclust.recommender.tables.columns",
    "Exploration": "neuclust.slates.propensities",
    "Features": "neuclust.recommender.tables.features",
    "Ignore": "neuclust.recommender.tables.columns",
    "Number": "neuclust.recommender.tables.columns",
    "Problem": "neuclust.experiment.problem",
    "Recommender": "neuclust.recommender.recommender",
    "Tags": "neuclust.recommender.tables.columns",
    "Transformer": "neuclust.recommender.tables.columns",
    "Vector": "neuclust.recommender.tables.columns",
    "build_environment": "neuclust.environments.catalogue",
    "build_policy": "neuclust.registry",
    "evaluate_log": "neuclust.evaluation.sources",
    "load": "neuclust.registry:load_policy",
    "load_dataset": "neuclust.data.dataset",
    "play": "neuclust.experiment.engines.engine",
    "profile_environment": "neuclust.environments.profiles",
    "register_environment": "neuclust.environments.catalogue",
    "register_policy": "neuclust.registry",
    "tasks": "neuclust.experiment.tasks",
}


def _attribute(name: str) -> object:
    """A public name, whose module is imported for it; in a light installation that may be `MissingExtra`."""
    if name not in _HOMES:
        raise AttributeError(f"module 'neuclust' has no attribute {name!r}")
    from importlib import import_module

    from neuclust.extras import extra

    module, _, attribute = _HOMES[name].partition(":")
    with extra(f"neuclust.{name}"):
        return getattr(import_module(module), attribute or name)


if not TYPE_CHECKING:  # or every misspelt name would pass for one that is there
    __getattr__ = _attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
