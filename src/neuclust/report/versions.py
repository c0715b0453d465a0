"""The versions behind the runs of a page and behind the page itself."""

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from neuclust import __version__
from neuclust.experiment.records import RunRecord

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "matplotlib")


def run_versions(records: Sequence[RunRecord]) -> str:
    """The versions of neuclust that the records name, in a phrase."""
    named = sorted({record.version for record in records if record.version})
    return f"neuclust {', '.join(named)}" if named else "a neuclust that did not leave its version"


def page_versions() -> str:
    """What a page is made with."""
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return f"neuclust {__version__}, Python {platform.python_version()}, {packages}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
