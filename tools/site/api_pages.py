"""The public names of the package, by subject; pages of the reference are made from their docstrings."""

import importlib
from collections.abc import Sequence
from typing import NamedTuple

import neuclust
import neuclust.client
import neuclust.logs


class Subject(NamedTuple):
    """A part of the reference: names of one module, in the order of the page; `members`: their methods, too."""

    title: str
    module: str
    names: Sequence[str]
    members: bool = True


FRONT_DOOR = ("Recommender", "Choice", "Exploration")
COLUMNS = ("Features", "Number", "Boolean", "Category", "Date", "Tags", "Vector", "Ignore", "Transformer")
PARTS = ("build_policy", "build_environment", "register_policy", "register_environment", "load", "load_dataset",
         "profile_environment")  # fmt: skip
RUNS = ("Problem", "tasks", "play")

PAGES: dict[str, Sequence[Subject]] = {
    "recommender": (
        Subject("The recommender", "neuclust", FRONT_DOOR),
        Subject("Kinds of columns", "neuclust", COLUMNS, members=False),
        Subject("Options, requests and feedback", "neuclust.recommender.options", ("RecommenderOptions",)),
        Subject("", "neuclust.recommender.requests", ("RequestDetails",)),
        Subject("", "neuclust.recommender.feedback.messages", ("Details",)),
        Subject("Its log", "neuclust.recommender.log.rounds", ("logged_decisions",)),
        Subject("", "neuclust.recommender.log.from_log", ("recommender_from_log",)),
    ),
    "policies": (
        Subject("Building and registering", "neuclust", PARTS),
        Subject("What a round is made of", "neuclust.core", (
            "Round", "Slate", "Feedback", "Policy", "Environment", "check_round", "check_feedback")),
        Subject("Rules", "neuclust.slates.rules", ("keeps_rules",)),
        Subject("", "neuclust.slates.ties", ("top_slate", "tie_rank")),
        Subject("Exploration around a policy", "neuclust.policies.exploring", ("Exploring",)),
        Subject("Problems", "neuclust.environments.problem", ("ProblemSpec",)),
        Subject("Random numbers and saves", "neuclust.randomness", ("stream",)),
        Subject("", "neuclust.persistence", ("save_policy",)),
    ),
    "runs": (
        Subject("Many runs", "neuclust", RUNS),
        Subject("One run", "neuclust.experiment.run", ("run", "RunLabel")),
        Subject("Sweeps", "neuclust.experiment.sweep", ("sweep",)),
        Subject("Engines", "neuclust.experiment.engines.engine", ("InlineEngine",)),
    ),
    "logs": (
        Subject("Judging a log", "neuclust", ("evaluate_log",)),
        Subject("Writing and reading logs", "neuclust.logs", tuple(neuclust.logs.__all__)),
    ),
    "errors": (
        Subject("The errors", "neuclust.errors", (
            "NeuclustError", "ConfigError", "DataError", "StateError", "SaveError")),
        Subject("Warnings", "neuclust.errors", ("LearningWarning", "LogWarning", "RenamedWarning")),
    ),
    "client": (Subject("The client of the service", "neuclust.client", tuple(neuclust.client.__all__)),),
}  # fmt: skip


def documented() -> set[str]:
    """Full names of all that is on a page of the reference."""
    return {f"{part.module}.{name}" for parts in PAGES.values() for part in parts for name in part.names}


def page(name: str) -> str:
    """The sections of one page."""
    return "\n\n".join(section(part) for part in PAGES[name])


def section(part: Subject) -> str:
    blocks = [block(part, name) for name in part.names]
    return "\n\n".join(
        [*([f"## {part.title}"] if part.title else []), "```{eval-rst}\n" + "\n\n".join(blocks) + "\n```"]
    )


def block(part: Subject, name: str) -> str:
    """The directive of one name."""
    found = getattr(importlib.import_module(part.module), name)
    if not isinstance(found, type):
        return f".. autofunction:: {part.module}.{name}"
    lines = [f".. autoclass:: {part.module}.{name}"]
    if part.members:
        lines += ["   :members:", "   :member-order: bysource"]
    return "\n".join(lines)
