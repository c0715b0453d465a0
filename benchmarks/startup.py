"""How long does it take to start? `import neuclust` and commands that only show something, beside a bare interpreter.

    python -m benchmarks.startup [--repeats 15] [--json docs/records/startup.json]

Each is a process of its own, all in turn, so that the machine's other work falls on all of them; compiled modules are
there. Seconds are medians: of the clock, and of the processor, which other work disturbs less. "over" is what is more
than the bare interpreter of the same turn.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

BARE = "a bare interpreter"
PROGRAMS = {
    BARE: ("-c", "pass"),
    "import neuclust": ("-c", "import neuclust"),
    "neuclust --help": ("-m", "neuclust", "--help"),
    "neuclust policies": ("-m", "neuclust", "policies"),
}
MOST = {"import neuclust": 0.05, "neuclust --help": 0.4, "neuclust policies": 1.0}  # the first: over the interpreter


class Took(NamedTuple):
    """Seconds of one process."""

    clock: float
    processor: float


def started(words: tuple[str, ...]) -> Took:
    """One process, from its start to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = Took(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return took


def measured(repeats: int) -> dict[str, list[Took]]:
    """Every program in turn; a first turn compiles what is not compiled, and does not count."""
    turns = [{name: started(words) for name, words in PROGRAMS.items()} for _ in range(repeats + 1)][1:]
    return {name: [turn[name] for turn in turns] for name in PROGRAMS}


def figures(times: dict[str, list[Took]]) -> dict[str, dict[str, float]]:
    """Medians in milliseconds, alone and over the bare interpreter of the same turn, and the ratio to it."""
    found = {}
    for name, all_took in times.items():
        pairs = list(zip(all_took, times[BARE], strict=True))
        found[name] = {
            "clock ms": round(1e3 * median(took.clock for took in all_took), 1),
            "processor ms": round(1e3 * median(took.processor for took in all_took), 1),
            "clock over ms": round(1e3 * median(took.clock - bare.clock for took, bare in pairs), 1),
            "processor over ms": round(1e3 * median(took.processor - bare.processor for took, bare in pairs), 1),
            "ratio": round(median(took.processor / bare.processor for took, bare in pairs), 1),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    found = figures(measured(options.repeats))
    print(f"{'':20} clock ms  processor ms  over ms (clock, processor)  ratio  at most ms")
    for name, row in found.items():
        most = f"{1e3 * MOST[name]:.0f}" if name in MOST else ""
        print(f"{name:20} {row['clock ms']:8} {row['processor ms']:13} {row['clock over ms']:12} "
              f"{row['processor over ms']:13} {row['ratio']:6} {most:>11}")  # fmt: skip
    if options.json is not None:
        machine = {"cores": os.cpu_count(), "load average at the start": round(load, 1)}
        record = {
            "machine": machine | {"python": platform.python_version()},
            "repeats": options.repeats,
            "starts": found,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
