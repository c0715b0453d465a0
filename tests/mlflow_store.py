"""Real MLflow stores in SQLite files: making one takes seconds, so that tests copy the first."""

from __future__ import annotations

import logging
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@cache
def _first() -> Path:
    from mlflow.tracking import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of every table that it makes
    file = Path(tempfile.mkdtemp(prefix="neuclust-mlflow-")) / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{file}").search_experiments()
    return file


def fresh_store(folder: Path) -> str:
    """The address of an empty store in a folder, or the test is skipped where MLflow is not installed."""
    pytest.importorskip("mlflow", reason="the door to MLflow needs it")
    shutil.copy(_first(), folder / "mlflow.db")
    return f"sqlite:///{folder / 'mlflow.db'}"


def client(uri: str) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=uri)


def runs(uri: str, experiment: str) -> list[Any]:
    """All runs of an experiment."""
    found = client(uri).get_experiment_by_name(experiment)
    return list(client(uri).search_runs([found.experiment_id], max_results=1000))
