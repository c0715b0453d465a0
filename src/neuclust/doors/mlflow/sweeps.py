"""A sink of sweeps: one MLflow run per record below one of the sweep, which holds its report.

A store that fails costs no record: it is said once, and the same sweep sends what is missing when it is given again.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuclust.doors.mlflow.tracking import Metric, Tracking
from neuclust.experiment.engines.engine import Failure, Outcome
from neuclust.experiment.records import RunRecord

EXPERIMENT = "neuclust"
KEY, SWEEP, KIND = "neuclust.key", "neuclust.sweep", "neuclust.kind"
PARAMS = ("policy", "preset", "env", "seed", "rounds", "slate_size", "clusters", "rewards", "version")
TOTALS = (
    "clipped_regret", "expected_clipped_regret", "clipped_floor", "successes", "arm_successes", "best_expected",
    "realised_regret", "mean_gap", "seconds", "select_seconds", "update_seconds", "failed_trainings",
)  # fmt: skip
ERROR = 5000  # characters of a traceback's tag that MLflow takes


class MlflowSink:
    """Sends the records of a sweep; called with an `Outcome`, as every sink is."""

    def __init__(self, tracking: Tracking, sweep: str, say: Callable[[str], None]) -> None:
        self._tracking, self._sweep, self._say = tracking, sweep, say
        self._failed = False
        mine = {SWEEP: sweep}
        earlier = next(tracking.runs({**mine, KIND: "sweep"}), None)
        self._parent: str = tracking.run(sweep, {**mine, KIND: "sweep"}) if earlier is None else earlier.info.run_id
        if earlier is not None:
            tracking.resume(self._parent)
        self._sent = {run.data.tags[KEY] for run in tracking.runs({**mine, KIND: "run"}, "FINISHED")}

    def __call__(self, outcome: Outcome) -> None:
        """One run that ended, as a run of MLflow."""
        result, key, title = outcome.result, outcome.task.key, outcome.task.title
        if isinstance(result, Failure):
            self._safely(lambda: self._send_failure(key, title, result))
        else:
            self.send(key, result, title)

    def send(self, key: str, record: RunRecord, title: str = "") -> None:
        """A record that MLflow does not have yet."""
        if key not in self._sent:
            name = title or f"{record.policy}:{record.preset} on {record.env}, seed {record.seed}"
            self._safely(lambda: self._send(key, record, name))

    def close(self, report: Path | None = None) -> None:
        """End the sweep's run, with a folder of its report."""

        def last() -> None:
            if report is not None:
                self._tracking.attach(self._parent, report, "report")
            self._tracking.end(self._parent)

        self._safely(last)

    def _safely(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # of a database, of a server, of MLflow itself: the records are in the folder
            if not self._failed:
                what = f"MLflow did not take what it was sent ({str(error).strip()[:200] or type(error).__name__})"
                self._say(f"{what}; the records are in the folder, and the same command sends what is missing")
            self._failed = True

    def _send(self, key: str, record: RunRecord, name: str) -> None:
        run = self._tracking.run(name, self._tags(key), self._parent)
        try:
            self._tracking.log(run, metrics_of(record), params_of(record))
            self._tracking.write(run, json.dumps(record.to_json(), indent=1, ensure_ascii=False), "record.json")
        except Exception:
            with suppress(Exception):
                self._tracking.end(run, failed=True)
            raise
        self._tracking.end(run)
        self._sent.add(key)

    def _send_failure(self, key: str, title: str, failure: Failure) -> None:
        run = self._tracking.run(title, self._tags(key), self._parent)
        self._tracking.tag(run, "neuclust.error", failure.error[:ERROR])
        self._tracking.write(run, failure.traceback, "traceback.txt")
        self._tracking.end(run, failed=True)

    def _tags(self, key: str) -> dict[str, str]:
        return {KEY: key, SWEEP: self._sweep, KIND: "run"}


def params_of(record: RunRecord) -> dict[str, object]:
    """What decided the run: policy, problem, seed, and every setting that is not the preset's."""
    plain: dict[str, object] = {name: getattr(record, name) for name in PARAMS}
    settings: Mapping[str, Any] = {f"settings.{name}": value for name, value in record.settings.items()}
    problem: Mapping[str, Any] = {f"problem.{name}": value for name, value in record.problem.items()}
    return {name: value for name, value in {**plain, **settings, **problem}.items() if value not in (None, "")}


def metrics_of(record: RunRecord) -> list[Metric]:
    """Expected regret and reward over rounds, and the totals at the last round."""
    found = [("expected_regret", value, t) for t, value in record.curve]
    found += [("expected_reward", value, t) for t, value in record.reward_curve]
    return found + [(name, float(getattr(record, name)), record.rounds) for name in TOTALS]
