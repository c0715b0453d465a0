"""What does an installation bring? Packages, megabytes and seconds of the core and of each extra alone.

    python -m benchmarks.install_size [--extras core lab serve] [--json docs/records/install.json]

The built wheel goes into a new virtual environment with the versions of constraints.txt, is tried (the small thing that
the extra is for; what is missing is named), and the environment is deleted before the next is made. An extra finds the
packages of the core in place: its packages and megabytes are of all, its seconds are of what it brings more. Seconds
are those of `pip install` with what it has downloaded before, compiling included, and depend on the machine and on what
else it does; packages and megabytes do not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.distributions import build
from tools.installed.environment import Clean, clean
from tools.installed.trials import OF
from tools.installed.trying import try_out


def measured(environment: Clean, extra: str, scratch: Path) -> tuple[dict[str, Any], list[str]]:
    """The figures of one extra alone (`core`: none), and what was wrong with the installation."""
    here = scratch / f"trial-{extra}"
    here.mkdir()
    size = environment.size
    figures = {"packages": len(size.packages), "megabytes": round(size.megabytes), "seconds": round(size.seconds, 1)}
    return figures | {"torch": size.packages["torch"]}, try_out(environment, extra, here)


def each(extras: Sequence[str], wheel: Path, scratch: Path) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """The core, then every extra on top of it, one at a time."""
    with clean(scratch / "venv-core", wheel) as core:
        for extra in extras:
            if extra == "core":
                yield extra, *measured(core, extra, scratch)
            else:
                with clean(scratch / f"venv-{extra}", wheel, extra, core=core) as environment:
                    yield extra, *measured(environment, extra, scratch)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", nargs="+", choices=list(OF), default=list(OF), metavar="NAME")
    parser.add_argument("--json", type=Path, help="keep the figures, beside those that the file has of other extras")
    options = parser.parse_args()
    kept: dict[str, Any] = {}
    if options.json is not None and options.json.exists():
        kept = json.loads(options.json.read_text(encoding="utf-8"))["extras"]
    failed = False
    with tempfile.TemporaryDirectory(prefix="neuclust-install-") as name:
        wheel = build(Path(name))[1]
        print(f"{'extra':8} packages       MB  seconds  torch")
        for extra, figures, wrong in each(options.extras, wheel, Path(name)):
            print(f"{extra:8} {figures['packages']:8} {figures['megabytes']:8,} {figures['seconds']:8} "
                  f" {figures['torch']}", flush=True)  # fmt: skip
            for sentence in wrong:
                print(f"  {sentence}", file=sys.stderr, flush=True)
            failed = failed or bool(wrong)
            kept[extra] = figures
            if options.json is not None:
                _write(options.json, kept, wheel)
    return int(failed)


def _write(path: Path, extras: dict[str, Any], wheel: Path) -> None:
    machine = {"cores": os.cpu_count(), "load average at the end": round(os.getloadavg()[0], 1)}
    record = {
        "machine": machine | {"python": platform.python_version()},
        "wheel": {"name": wheel.name, "megabytes": round(wheel.stat().st_size / 1e6, 2)},
        "extras": {name: extras[name] for name in OF if name in extras},
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
