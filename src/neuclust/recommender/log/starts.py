"""The runs of a log and the settings its starts tell."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from neuclust.configuration import from_mapping
from neuclust.errors import DataError, NeuclustError, StateError
from neuclust.logs.events import RunStart
from neuclust.recommender.feedback.messages import FeedbackConfig
from neuclust.recommender.feedback.rewards import FUNCTION, OwnValue
from neuclust.recommender.options import Settings, read_settings
from neuclust.recommender.tables.features import Features

SAME_RUN = ("low", "high")  # of feedback: what a reward means


class Runs:
    """The runs of a log while it is read: where the reading is, and what each run's start told."""

    def __init__(self) -> None:
        self.starts: dict[str, dict[str, Any]] = {}
        self.learning: set[str] = set()
        self.features: Any = None  # as JSON, those of the last start or refit
        self._run, self._lessons = "", 0

    def take(self, event: dict[str, Any]) -> None:
        """The next event of the log."""
        kind = event["event"]
        if kind == "start":
            self._run = str(event.get("run") or f"run-{len(self.starts) + 1}")  # earlier versions named none
            self.starts[self._run], self.features = event, event["settings"]["features"]
        elif kind == "refit":
            self.features = event["features"]
        elif kind == "learned":
            self._lessons += 1
            self.learning.add(self._run)

    def run_of(self, event: Mapping[str, Any]) -> str:
        """The run of a decision, refused where it was not started."""
        run = str(event.get("run") or self._run)
        if run not in self.starts:
            raise DataError(f"expected a decision of a run that was started, got run {run!r:.100}; mend its start")
        return run

    def version_of(self, event: Mapping[str, Any]) -> str:
        """The version of the schema, and how many lessons the policy had learned."""
        return f"{event['version']}.{event.get('model', self._lessons)}"

    def told(self, dim: int) -> dict[str, RunStart]:
        """What is known of each run, by its name."""
        return {run: self._start(run, event, dim) for run, event in self.starts.items()}

    def _start(self, run: str, event: Mapping[str, Any], dim: int) -> RunStart:
        told, size = event["settings"], int(event["slate_size"])
        return RunStart(run, str(told["policy"]), size, dim, run in self.learning, str(told["reward"]))


def check_starts(starts: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse runs whose rewards do not mean the same."""
    first: tuple[Any, ...] | None = None
    for event in starts.values():
        told = event["settings"]
        found = (told["reward"], *(told["feedback"][name] for name in SAME_RUN))
        if first is not None and found != first:
            said = "expected runs with one reward and one reward_range"
            raise DataError(f"{said}, got {first} and {found}; split the log by its start lines")
        first = found


def features_of_log(saved: Any) -> Features:
    """The features as the log tells them, refused where they hold functions, which no log does."""
    try:
        return Features.from_json(saved)
    except StateError as error:
        said = "expected features without transformers, which are functions and not in a log"
        raise DataError(f"{said}; give features=Features(...) again ({error!s:.200})") from None


def settings_of_start(event: Mapping[str, Any], features: Features, **options: Any) -> Settings:
    """The settings of a start with other features and options; a reward function stands for itself and fails."""
    told = event["settings"]
    try:
        feedback = from_mapping(FeedbackConfig, told["feedback"])
    except (NeuclustError, TypeError) as error:
        raise DataError(f"start: expected the settings of feedback, got others ({error!s:.200})") from None
    kept = {name: value for name, value in asdict(feedback).items() if name not in SAME_RUN}
    reward = OwnValue(_not_logged) if told["reward"] == FUNCTION else told["reward"]
    given = {"features": features, "reward": reward, "reward_range": (feedback.low, feedback.high), **kept, **options}
    return read_settings(event["item_id"], event["user_id"], event["slate_size"], given)


def _not_logged(values: list[float]) -> float:
    raise DataError(f"reward: expected a function for {values!r:.100}, which a log does not hold")
