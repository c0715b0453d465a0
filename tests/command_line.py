"""The installed command, what it answers, and the environment it is given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import warm_start
from patience import HANG_SECONDS

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


def completed(
    *arguments: object, env: dict[str, str] | None = None, clean: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, which is forked with its imports done where `env` changes nothing for them.

    `env` has variables to add; `clean` takes those away that change how a terminal is taken.
    """
    words = [str(each) for each in arguments]
    environment = clean_environment(**(env or {})) if clean else os.environ | (env or {})
    if warm_start.can_be_warm(environment):
        return subprocess.CompletedProcess(words, *warm_start.run(words, environment, timeout=HANG_SECONDS))
    line = [str(NEUCLUST), *words]
    return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=HANG_SECONDS)
