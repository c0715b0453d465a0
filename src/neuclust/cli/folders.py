"""Folders given on the command line: refused where they cannot be written, spoken of where records are bad."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from neuclust.errors import ConfigError


def require_writable(option: str, folder: Path) -> None:
    """The folder, or the nearest one above it that exists, must take new files; nothing is created."""
    nearest = folder.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ConfigError(f"{option}: expected a folder, got the file {nearest}; name another place")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"{option}: expected a folder that can be written, got {nearest}; name another one")


def say_bad(sentence: str) -> None:
    """One damaged record, on stderr: what can be read is still read."""
    typer.echo(f"neuclust: {sentence}", err=True)
