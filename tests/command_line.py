"""The installed command, what it answers, and the environment it is given."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

NEUCLUST = Path(sys.executable).with_name("neuclust")


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


TERMINAL_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CI", "GITHUB_ACTIONS")

Command = Callable[..., Answer]


def clean_environment(**more: str) -> dict[str, str]:
    """One thread, and no variable that changes how a terminal is taken."""
    kept = {name: value for name, value in os.environ.items() if name not in TERMINAL_VARIABLES}
    return kept | {"OMP_NUM_THREADS": "1", "TERM": "xterm-256color"} | more
