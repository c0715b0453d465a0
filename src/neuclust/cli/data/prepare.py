"""`neuclust data prepare`: what its commands share. Raw files in, an `.npz` or a log out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from neuclust.cli.command import option
from neuclust.cli.outputs import require_file
from neuclust.errors import ConfigError, writing

if TYPE_CHECKING:
    from neuclust.data.dataset import ProfileDataset
    from neuclust.data.logged.exposures import Exposures
    from neuclust.data.raw import Progress, RawFile

Report = TypeVar("Report")
RAW, SHAPE, FILTERS = "Raw files", "The problem", "Filters"

out_option = partial(option, ..., "The prepared problem.", "FILE.npz")
log_option = partial(option, ..., "The log, .parquet or .jsonl; a new file.", "FILE")
rounds_option = partial(option, None, "At most N rounds. Default: all.", "N", min=1)
before_option = partial(option, None, "Only what is dated strictly before.", "DATE")
skip_option = partial(option, 0, "Go on past up to N bad rows, and count them.", "N", min=0)
AFTER = "Only what is dated strictly after."
Show = Callable[[int, int | None], None]  # how much is done, and of how much where that is known by now


def check_out(out: Path, field: str = "out") -> None:
    """Refuse what cannot be written, before anything is read."""
    if out.suffix != ".npz":
        raise ConfigError(f"expected a file named .npz, got {out}; raw files are never overwritten", field=field)
    require_file(f"--{field}", out, make=True)


def check_log(out: Path) -> None:
    """Refuse a log that cannot be written, before anything is read."""
    from neuclust.logs.exposures import check_log_place

    check_log_place(out)
    require_file("--out", out, make=True)


def seconds(date: str | None) -> int | None:
    """A date of the command line in seconds since 1970, where there is one."""
    from neuclust.data.raw import seconds_since_1970

    return None if date is None else seconds_since_1970(date)


@contextmanager
def bar(label: str, total: int | None, *, unit: str = "bytes") -> Iterator[Show]:
    """A bar on stderr, silent where that is no terminal; yields the function to call as work goes on."""
    if not sys.stderr.isatty():
        yield lambda _done, _of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeLeft(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label.replace("[", "\\["), total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def write_prepared(
    out: Path, watched: RawFile, prepare: Callable[[Progress], tuple[ProfileDataset, Report]]
) -> tuple[ProfileDataset, Report]:
    """Prepare with a bar for the bytes read of `watched`, and save the dataset."""
    with bar(watched.label, watched.size) as show:
        dataset, report = prepare(lambda done: show(done, None))
    with writing(out):
        dataset.save(out)
    return dataset, report


def write_log(out: Path, exposures: Exposures) -> None:
    """Write the exposures as a log with a bar, and say what it holds."""
    from neuclust.logs.exposures import write_exposures

    with bar(str(out), len(exposures), unit="rows") as show:
        write_exposures(exposures, out, lambda done: show(done, None))
    runs = len({exposures.run(index) for index in set(exposures.pool.tolist())})
    where = f"{runs:,} run{'s' * (runs > 1)}"
    typer.echo(f"wrote {out}: {len(exposures):,} decisions in {where}, {len(exposures.features)} features")


def echo_bad(count: int, examples: tuple[str, ...]) -> None:
    if count:
        typer.echo(f"skipped {count:,} bad rows, such as:")
        for example in examples:
            typer.echo(f"  {example}")


def echo_written(out: Path, dataset: ProfileDataset, arms: str, rounds: str) -> None:
    typer.echo(
        f"wrote {out}: {len(dataset.arms):,} arms ({arms}), {len(dataset.rounds):,} rounds ({rounds}), "
        f"{len(dataset.features)} features"
    )
