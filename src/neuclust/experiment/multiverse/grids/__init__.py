"""The committed grids of readings: files of the package, so that an installed one has them too."""

from pathlib import Path

_HERE = Path(__file__).parent
FULL, QUICK = _HERE / "multiverse.toml", _HERE / "multiverse-quick.toml"
