"""What another policy would have earned, from a log: estimators, intervals, choices (docs/evaluation.md)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuclust.evaluation.evaluate import Question as Question
    from neuclust.evaluation.results import Evaluation as Evaluation
    from neuclust.evaluation.results import Judgement as Judgement
    from neuclust.evaluation.sources import evaluate_log as evaluate_log

_HOMES = {"Question": "evaluate", "Evaluation": "results", "Judgement": "results", "evaluate_log": "sources"}
__all__ = ["Evaluation", "Judgement", "Question", "evaluate_log"]


def __getattr__(name: str) -> Any:
    """Loaded when it is asked for: estimators and intervals are used without torch's policies, too."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
