"""Runs of an MLflow store: made or found again by their tags, with parameters, metrics over steps and files."""

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from neuclust.errors import ConfigError
from neuclust.extras import extra

METRICS, PARAMS = 1000, 100  # of one call, as MLflow takes them
LONGEST = 500  # characters of a parameter, which every version of MLflow takes
RUNS = 1000  # of one page of a search
# seconds and repeats after which a server counts as unreachable; MLflow's own are minutes
PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
PASSWORD = re.compile(r"(://[^:/@]*:)[^/@]*@")

Metric = tuple[str, float, int]  # name, value, step
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Tracking:
    """An experiment of an MLflow store. Every method may raise whatever MLflow raises."""

    client: Any  # mlflow.MlflowClient
    experiment: str  # its id

    @classmethod
    def opened(cls, uri: str, experiment: str) -> "Tracking":
        """The experiment of a store, made where it is not there; $MLFLOW_EXPERIMENT_NAME goes before the name."""
        for name, value in PATIENCE.items():
            os.environ.setdefault(name, value)
        with extra("reports to MLflow"):
            from mlflow import tracking
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        try:
            client = tracking.MlflowClient(tracking_uri=uri)
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or experiment
            found = client.get_experiment_by_name(name)
            return cls(client, client.create_experiment(name) if found is None else found.experiment_id)
        except Exception as error:  # of a database, of a server, of MLflow itself
            said = f"expected an MLflow store that can be opened, got {uri:.200} ({_first_line(error)})"
            raise ConfigError(f"{shown(said)}; name sqlite:///FILE or http://HOST", field="mlflow") from error

    def run(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str:
        """The id of a new run."""
        given = {**tags, **({} if parent is None else {"mlflow.parentRunId": parent})}
        made: str = self.client.create_run(self.experiment, run_name=name, tags=given).info.run_id
        return made

    def runs(self, tags: Mapping[str, str], status: str | None = None) -> Iterator[Any]:
        """The runs that have these tags, newest first.

        A filter of MLflow cannot hold a text with both kinds of quotes: such a tag is looked at here alone.
        """
        asked = [f"tags.`{name}` = {quoted}" for name, value in tags.items() if (quoted := _quoted(value))]
        asked += [] if status is None else [f"attributes.status = '{status}'"]
        token: str | None = None
        while True:
            page = self.client.search_runs([self.experiment], " and ".join(asked), max_results=RUNS, page_token=token)
            yield from (run for run in page if tags.items() <= run.data.tags.items())
            token = page.token
            if not token:
                return

    def log(self, run: str, metrics: Iterable[Metric] = (), params: Mapping[str, object] | None = None) -> None:
        """Metrics at their steps, and parameters as texts."""
        from mlflow import entities

        now = int(time.time() * 1000)
        named = [entities.Param(name, str(value)[:LONGEST]) for name, value in (params or {}).items()]
        for some in _parts(named, PARAMS):
            self.client.log_batch(run, params=some)
        points = [entities.Metric(name, value, now, step) for name, value, step in metrics]
        for part in _parts(points, METRICS):
            self.client.log_batch(run, metrics=part)

    def tag(self, run: str, name: str, value: str) -> None:
        self.client.set_tag(run, name, value)

    def attach(self, run: str, place: Path, under: str | None = None) -> None:
        """A file, or all files of a folder, as artefacts."""
        send = self.client.log_artifacts if place.is_dir() else self.client.log_artifact
        send(run, str(place), under)

    def write(self, run: str, text: str, name: str) -> None:
        """A text as an artefact."""
        self.client.log_text(run, text, name)

    def resume(self, run: str) -> None:
        """A run that goes on."""
        self.client.update_run(run, status="RUNNING")

    def end(self, run: str, failed: bool = False) -> None:
        self.client.set_terminated(run, status="FAILED" if failed else "FINISHED")


def shown(text: str) -> str:
    """A text as it may be told: without the passwords of addresses in it."""
    return PASSWORD.sub(r"\1***@", text)


def _quoted(text: str) -> str | None:
    """A text as a filter has it, or None where it has no form for it."""
    return next((f"{quote}{text}{quote}" for quote in "'\"" if quote not in text), None)


def _parts(entries: Sequence[Entry], most: int) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), most):
        yield entries[start : start + most]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0]:.200}" if lines else type(error).__name__
