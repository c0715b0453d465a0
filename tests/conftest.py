"""What all tests share: one thread for small matrices, Hypothesis examples that are the same on every run, and the
counts that long tests report (`make soak` keeps them in docs/records/reliability.json).

This file's folder is on the import path of the tests, so that they can use naive_reference and small_problems.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch loads: threads cost more than they bring at these sizes
os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # else its first parallel loop gives torch a second, which spins

from typing import TYPE_CHECKING

import pytest
from command_fixtures import call, command, problem  # noqa: F401  # fixtures for every folder
from hypothesis import settings
from stores import store, store_address  # noqa: F401

if TYPE_CHECKING:
    from invented_records import MakeRecord

    from neuclust.analysis.reproduction.results import Reproduction

settings.register_profile("neuclust", deadline=None, derandomize=True)
settings.load_profile("neuclust")

_COUNTS = pytest.StashKey[dict[str, dict[str, int]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--counts", type=Path, metavar="FILE", help="add the counts of soak tests to this JSON file")


@pytest.fixture
def record() -> MakeRecord:
    """Makes records of invented runs."""
    from invented_records import invented

    return invented


@pytest.fixture
def reproduced() -> Reproduction:
    """A reproduction of invented records whose answers are known."""
    from invented_reproduction import reproduction

    return reproduction()


@pytest.fixture
def report_counts(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`report_counts("attack", tried=1000, refused=990, harmless=10)`: printed at the end, kept with --counts.

    Counts of several tests under one name add up.
    """
    counts = request.config.stash.setdefault(_COUNTS, {})

    def report(name: str, **figures: int) -> None:
        known = counts.setdefault(name, {})
        for key, value in figures.items():
            words = key.replace("_", " ")
            known[words] = known.get(words, 0) + value

    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    counts = config.stash.get(_COUNTS, {})
    for name, figures in counts.items():
        terminalreporter.write_line(f"{name}: " + ", ".join(f"{value:,} {key}" for key, value in figures.items()))
    path = config.getoption("--counts")
    if counts and path is not None and exitstatus == pytest.ExitCode.OK:  # what did not hold is not counted
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.write_text(json.dumps(dict(sorted({**kept, **counts}.items())), indent=1) + "\n", encoding="utf-8")
