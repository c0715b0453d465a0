"""`neuclust replay` on the command line: progress on stderr, a line for each recommender, the exit code."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from neuclust.cli.commands.replay import ReplayOptions
from neuclust.cli.console import make_console
from neuclust.cli.outputs import STDOUT
from neuclust.errors import writing
from neuclust.files import write_text
from neuclust.serve.fold.replay import OnProgress, ReplayResult, replay
from neuclust.serve.store.opening import open_store

REFRESH = 100  # events between two updates of the bar


def replayed(options: ReplayOptions) -> int:
    """Replay and tell; 1 where something differs."""
    store = open_store(options.db, make=False)
    try:
        with _watched(options.quiet) as watch:
            results = replay(store, options.recommender, options.verify, watch)
    finally:
        store.close()
    if not results:
        typer.echo(f"{store.address}: there are no recommenders, nothing was replayed", err=True)
    document = json.dumps([each.to_json() for each in results], indent=2) + "\n"
    if options.json == STDOUT:
        sys.stdout.write(document)
    else:
        sys.stdout.write("".join(f"{line}\n" for each in results for line in _lines(each, options.verify)))
        if options.json is not None:
            with writing(Path(options.json)):
                write_text(Path(options.json), document)
    return 0 if all(each.same for each in results) else 1


def _lines(result: ReplayResult, verified: bool) -> list[str]:
    """What was found, in sentences."""
    since = f" {result.since} (base at event {result.base:,})" if result.since else ""
    events = f"{result.name}: {result.seq - result.base:,} events{since}, {result.lessons:,} lessons"
    if result.problem is not None:
        return [f"{events}, then: {result.problem}"]
    if not verified:
        return [f"{events}; the chain of hashes is whole"]
    compared = f"{result.compared:,} models and states and what was told of {result.told:,} events"
    if result.same:
        return [f"{events}; {compared} are the same, byte for byte"]
    others = [f"  {name} was {was}, is {now}" for name, (was, now) in sorted(result.environment.items())]
    reason = ["  the environment is another one, where other bytes are no damage:", *others] if others else []
    told = [f"  {each}" for each in result.differences]
    return [f"{events}; of {compared}, {result.different:,} differ:", *told, *reason]


@contextmanager
def _watched(quiet: bool) -> Iterator[OnProgress | None]:
    """A bar on stderr where that is a terminal."""
    console = make_console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def seen(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            if done % REFRESH == 0 or done == total:
                bar.update(tasks[name], completed=done)

        yield seen
