"""`neuclust backup` and `neuclust restore`: a database of the service as one file, and back."""

from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import argument
from neuclust.cli.outputs import require_file
from neuclust.cli.service_database import installed
from neuclust.errors import ConfigError


@dataclass(frozen=True, slots=True)
class BackupOptions:
    db: str = argument(..., "sqlite:FILE or postgresql://…", "DB")
    file: Path = argument(..., "A new file.", "FILE")


def backup(options: BackupOptions) -> None:
    """Copy a database, also of a running service, to one SQLite file; every hash is checked on the way."""
    if options.file.exists():
        raise ConfigError(f"expected a new file, got {options.file}, which is there; name another")
    require_file("FILE", options.file)
    with installed():
        from neuclust.serve.store.copying import backup as copy
    copy(options.db, options.file)
    typer.echo(f"wrote {options.file} ({options.file.stat().st_size:,} bytes)", err=True)


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    file: Path = argument(..., "A backup.", "FILE")
    db: str = argument(..., "sqlite:FILE or postgresql://…, without recommenders.", "DB")


def restore(options: RestoreOptions) -> None:
    """Copy a backup into an empty database of either kind."""
    if not options.file.is_file():
        raise ConfigError(f"expected a backup, got {options.file}, which is no file; `neuclust backup` makes one")
    with installed():
        from neuclust.serve.store.copying import restore as copy
    copy(options.file, options.db)
    typer.echo(f"restored {options.file}", err=True)
