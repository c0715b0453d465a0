"""Starting a service: the store, the learner beside it, the server, and how all of it ends."""

import contextlib
import gc
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from neuclust.errors import ConfigError
from neuclust.files import fcntl
from neuclust.serve.api.app import make_app
from neuclust.serve.api.auth import Keys
from neuclust.serve.api.guards import is_loopback
from neuclust.serve.api.options import ServeOptions
from neuclust.serve.api.service import Service
from neuclust.serve.learner.process import LearnerProcess, run_learner
from neuclust.serve.store.contract import Store
from neuclust.serve.store.opening import open_store

LOG = logging.getLogger("neuclust.serve")
BACKLOG = 1024
GARBAGE = (10_000, 50, 100)  # a full collection goes through all items and users while requests wait
SWITCH = 0.0005  # seconds after which a thread that computes lets another have its turn: answers wait for scoring
AGAIN = (0.5, 30.0)  # seconds before a learner that ended is started again, at first and at most


def serve(options: ServeOptions, say: Callable[[str], None] = print) -> None:
    """Run a service until it is told to end."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if options.role == "learner":
        run_learner(options.db)
        return
    store = open_store(options.db)
    with contextlib.ExitStack() as stack:
        stack.callback(store.close)
        if not store.shared:
            stack.enter_context(_alone(store))
        keys = Keys(store, required=not is_loopback(options.host))
        _check_reach(store, options)
        listening = _listening(options)
        if options.role == "all":
            stack.enter_context(_learning(options.db))
        _run(Service(store, options, keys), options, listening, say)


@contextlib.contextmanager
def _learning(db: str) -> Iterator[None]:
    """The learner beside the service, started again where it ended; what it did not learn is in the log."""
    learner, ended = LearnerProcess(db), threading.Event()

    def watch() -> None:
        wait = AGAIN[0]
        while not ended.wait(wait):
            wait = AGAIN[0] if learner.alive else min(2 * wait, AGAIN[1])
            if not learner.alive:
                LOG.warning("the learner ended; it is started again")
                learner.start()

    learner.start()
    watcher = threading.Thread(target=watch, name="learner's watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        learner.stop()


def _check_reach(store: Store, options: ServeOptions) -> None:
    if not is_loopback(options.host) and not store.keys():
        advice = "make one first (neuclust keys add), or listen on 127.0.0.1"
        raise ConfigError(f"expected API keys where others can reach the service, got none; {advice}", field="host")
    if options.role != "all" and not store.shared:
        raise ConfigError("expected all on SQLite, which has one process; use PostgreSQL for several", field="role")


@contextlib.contextmanager
def _alone(store: Store) -> Iterator[None]:
    """One service per SQLite file: a second one would answer by tables it does not follow."""
    path = Path(store.address.removeprefix("sqlite:"))
    if fcntl is None or not path.name:
        yield
        return
    with path.with_name(f"{path.name}.lock").open("a") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            got = "got one that another service uses; end that one, name another file, or use PostgreSQL"
            raise ConfigError(f"expected a database of its own, {got}", field="db") from None
        yield


def _listening(options: ServeOptions) -> socket.socket:
    """The socket, bound before anything else is started."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((options.host.strip("[]"), options.port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        wanted = f"expected to listen on {options.host} port {options.port}"
        raise ConfigError(f"{wanted}, got {error.strerror}; name another one", field="port") from None
    made.set_inheritable(False)
    return made


def _hosts(options: ServeOptions) -> list[str] | None:
    """Names a service on loopback answers to; elsewhere keys protect it."""
    return ["localhost", "127.0.0.1", "[::1]", options.host.lower()] if is_loopback(options.host) else None


def _run(service: Service, options: ServeOptions, listening: socket.socket, say: Callable[[str], None]) -> None:
    import torch

    torch.set_num_threads(1)
    gc.set_threshold(*GARBAGE)
    sys.setswitchinterval(SWITCH)
    config = uvicorn.Config(
        make_app(service, _hosts(options)), log_config=None, access_log=False, lifespan="on",
        timeout_graceful_shutdown=10, server_header=False,
    )  # fmt: skip
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"neuclust serves {service.store.address} at http://{shown}:{port} (Ctrl-C ends it)")
    uvicorn.Server(config).run(sockets=[listening])
