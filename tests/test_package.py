"""The names at the top of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import neuclust


@pytest.mark.parametrize("name", neuclust.__all__)
def test_every_name_is_there(name: str) -> None:
    assert callable(getattr(neuclust, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = neuclust.magic


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import neuclust, sys; sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'polars')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
