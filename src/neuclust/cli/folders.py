"""Places given on the command line: refused where they cannot be written, spoken of where records are bad."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from neuclust.errors import ConfigError, not_written


def require_writable(option: str, folder: Path, make: bool = False) -> None:
    """The folder, or the nearest one above it that exists, must take new files; it is only created with `make`."""
    with _refused(option, folder, "folder"):
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        nearest = folder.absolute()
        while not nearest.exists():
            nearest = nearest.parent
        with tempfile.TemporaryFile(dir=nearest):  # asking for permissions would not see a full disk
            pass


def require_file(option: str, file: Path) -> None:
    """The file must not be a folder, and its folder must be there and take new files."""
    _refuse_folder(option, file)
    with _refused(option, file, "place"), tempfile.TemporaryFile(dir=file.parent):
        pass


def require_parent(option: str, file: Path) -> None:
    """The file must not be a folder, and its folder may be made where it is not there."""
    _refuse_folder(option, file)
    require_writable(option, file.parent)


def _refuse_folder(option: str, file: Path) -> None:
    with _refused(option, file, "place"):
        if file.is_dir():
            raise ConfigError(f"{option}: expected a file, got the folder {file}; name a file in it")
        if file.exists() and not file.is_file():  # a device or a pipe would be replaced by a file
            raise ConfigError(
                f"{option}: expected a file, got {file}, which is none; name a file, or - where that works"
            )


@contextmanager
def _refused(option: str, place: Path, kind: str) -> Iterator[None]:
    """An error of the system as one sentence with the option that named the place."""
    try:
        yield
    except OSError as error:
        raise ConfigError(not_written(place, error, option, kind)) from None


def say_bad(sentence: str) -> None:
    """One damaged record, on stderr: what can be read is still read."""
    typer.echo(f"neuclust: {sentence}", err=True)
