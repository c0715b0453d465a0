"""A real browser without a window, to see a page as a reader would."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from patience import HANG_SECONDS

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@cache
def chromium() -> str | None:
    """The program, installed from the system's packages where that is allowed; None where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return found
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # tests run side by side, so wait for whoever installs already; whether it worked is seen by looking
    patient = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
    for step in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run([*patient, *step], capture_output=True, env=environment, timeout=HANG_SECONDS)
    return shutil.which("chromium")


def browse(page: Path, scratch: Path, *options: str) -> str:
    """Open a page from disk with these options and answer what the browser prints; skips without a browser."""
    program = chromium()
    if program is None:
        pytest.skip("no chromium here, and it may not be installed from here")
    profile = f"--user-data-dir={scratch / 'profile'}"
    done = subprocess.run(
        [program, *QUIET, profile, *options, page.resolve().as_uri()],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(page: Path, scratch: Path) -> str:
    """The document after the browser has parsed it and had time to run whatever it would run."""
    return browse(page, scratch, "--virtual-time-budget=2000", "--dump-dom")
