"""`neuclust serve`: recommenders behind HTTP, with a log that loses nothing and a page to watch them."""

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from neuclust.cli.command import limit_threads, option
from neuclust.cli.service_database import address_of, db_option, installed
from neuclust.errors import ConfigError
from neuclust.extras import require


class Role(enum.StrEnum):
    """What this process does."""

    ALL = "all"
    API = "api"
    LEARNER = "learner"


class LogLevel(enum.StrEnum):
    """What is logged on stderr."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ServeCommand:
    db: str | None = db_option(heading="The service")
    host: str = option("127.0.0.1", "Where to listen; other than loopback only with API keys.", "HOST")
    port: int = option(8000, "Where to listen; 0: any free one, which is printed.", "PORT", min=0)
    role: Role = option(Role.ALL, "all: API and learner; api or learner alone: several processes on PostgreSQL.")
    rate: float = option(0.0, "Requests per second of one client before 429; 0: no limit.", "N", min=0)
    longest_wait: float = option(0.25, "Seconds a request may wait for those before it; beyond that: 503.", "SECONDS")
    log_level: LogLevel = option(LogLevel.INFO, "What is logged on stderr.")
    mlflow: str | None = option(
        None, "An MLflow store that is told how learning goes; also $NEUCLUST_MLFLOW. Default: none.", "URI"
    )


def serve(options: ServeCommand) -> None:
    """Serve recommenders over HTTP: they learn from feedback, survive crashes and can be watched at /.

    One process and one file by default; several API processes and one learner on PostgreSQL.
    """
    os.environ["NUMBA_NUM_THREADS"] = "1"  # its layer gives torch a second thread, which waits in a loop
    limit_threads()
    with installed():
        from neuclust.serve.api.options import ServeOptions
        from neuclust.serve.api.running import serve as run
        from neuclust.serve.learner.reporting import VARIABLE
    if options.mlflow is not None:
        os.environ[VARIABLE] = options.mlflow  # which the learner inherits; an address may hold a password
    if os.environ.get(VARIABLE):
        require("mlflow", "reports to MLflow")
    with _named():
        chosen = ServeOptions(
            db=address_of(options.db), host=options.host, port=options.port, role=options.role.value,
            rate=options.rate, longest_wait=options.longest_wait, log_level=options.log_level.value,
        )  # fmt: skip
    run(chosen)


@contextmanager
def _named() -> Iterator[None]:
    """Inside, a refused setting of the service is named as a field, which becomes its option."""
    try:
        yield
    except ConfigError as error:
        name, _, sentence = str(error).partition(".")[2].partition(": ")
        raise ConfigError(sentence, field=name) from None
