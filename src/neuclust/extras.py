"""Which extra installs an optional package, and the one sentence that says so where it is missing."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from neuclust.errors import ConfigError

# import name -> the extra of pyproject.toml that brings it; a test holds both equal
EXTRA_OF = {
    "matplotlib": "lab", "numba": "lab", "optuna": "lab", "polars": "lab", "rich": "lab", "typer": "lab",
    "apsw": "serve", "fastapi": "serve", "httptools": "serve", "httpx": "serve", "prometheus_client": "serve",
    "psycopg": "serve", "psycopg_pool": "serve", "pydantic": "serve", "starlette": "serve", "uvicorn": "serve",
    "uvloop": "serve",
    "opentelemetry": "telemetry", "ray": "ray", "gymnasium": "gym",
    "mlflow": "mlflow", "sqlalchemy": "mlflow", "alembic": "mlflow",
    "vowpalwabbit": "bench", "calvera": "bench", "mab2rec": "bench",
}  # fmt: skip
NOT_INSTALLED = "which is not installed; pip install 'neuclust["


class MissingExtra(ConfigError, ImportError):
    """An optional package that is not installed: a usage error (exit code 2), and an `ImportError` as well."""


def missing(package: str, purpose: str, *, field: str | None = None) -> MissingExtra:
    """The error `PURPOSE needs PACKAGE, which is not installed; pip install 'neuclust[EXTRA]'`, to be raised."""
    root = package.partition(".")[0]
    return MissingExtra(f"{purpose} needs {root}, {NOT_INSTALLED}{EXTRA_OF[root]}]'", field=field)


def require(package: str, purpose: str, *, field: str | None = None) -> None:
    """Refuse what could not end well, before it begins: without importing a package that is not installed."""
    if importlib.util.find_spec(package) is None:
        raise missing(package, purpose, field=field)


@contextmanager
def extra(purpose: str) -> Iterator[None]:
    """Inside, an import of an optional package that is not installed is `MissingExtra`; other errors stay."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not is_extra(error):
            raise
        raise missing(str(error.name), purpose) from None


def is_extra(error: ModuleNotFoundError) -> bool:
    """Whether what is missing is a package that one of the extras brings."""
    return (error.name or "").partition(".")[0] in EXTRA_OF
