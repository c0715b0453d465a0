"""Refuse, before any work is done, a folder that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

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
