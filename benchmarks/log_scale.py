"""How fast are logs written and read, and how much memory does that take?

    python benchmarks/log_scale.py [--decisions 1000000] [--arms 1000] [--suffix .jsonl] [--folder DIR]

Every decision offers 20 arms of a catalogue by reference and shows 3. Writing, opening (every row is checked) and
going through the decisions (opened first) are processes of their own; each prints its seconds, those it computed, rows
per computed second, and its peak resident memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ELIGIBLE, K, DIM = 20, 3, 8


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, open, read and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--arms", type=int, default=1000)
    parser.add_argument("--suffix", default=".jsonl", choices=[".jsonl", ".parquet"])
    parser.add_argument("--folder", type=Path, default=None, help="where the file goes; default: a temporary one")
    parser.add_argument("--step", choices=["write", "open", "read"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step is not None:
        {"write": write, "open": open_, "read": read}[options.step](options)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = Path(folder) / f"log{options.suffix}"
        for step in ("write", "open", "read"):
            measure(step, file, options)


def measure(step: str, file: Path, options: argparse.Namespace) -> None:
    """One step in a process of its own."""
    sizes = ["--decisions", str(options.decisions), "--arms", str(options.arms)]
    command = [sys.executable, __file__, *sizes, "--step", step, "--file", str(file)]
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        raise SystemExit(f"{step}: ended with status {os.waitstatus_to_exitcode(status)}")
    busy = usage.ru_utime + usage.ru_stime
    spent = f"{seconds:8.1f} s {busy:8.1f} s of one core {options.decisions / busy:10,.0f} rows/s"
    print(
        f"{step:<6}{spent} {file.stat().st_size / 1e6:8.0f} MB file {usage.ru_maxrss / 1024:8.0f} MB peak", flush=True
    )


def write(options: argparse.Namespace) -> None:
    """A uniform policy's decisions, made as fast as possible, so that the writer is what is measured."""
    import torch

    from neuclust.core import Design, Feedback, Round, Slate
    from neuclust.logs import LogWriter, RunStart

    generator = torch.Generator().manual_seed(0)
    profiles = torch.randn(options.arms, DIM, dtype=torch.float64, generator=generator)
    zeros, uniform = torch.zeros(K, dtype=torch.float64), Design("uniform")
    chances = 1 / (ELIGIBLE - torch.arange(K, dtype=torch.float64))
    with LogWriter(options.file) as log:
        log.start(RunStart("uniform", "uniform", K, DIM, learning=False, reward="mean"))
        for t in range(1, options.decisions + 1):
            offered = torch.randperm(options.arms, generator=generator)[:ELIGIBLE]
            round = Round(t, offered, profiles[offered], profiles[0], K)
            clicks = (torch.rand(K, generator=generator) < 0.1).double()
            slate = Slate(torch.arange(K), zeros, zeros, chances, design=uniform)
            log.decided(round, slate, Feedback(clicks, clicks.mean()), time=float(t))


def open_(options: argparse.Namespace) -> None:
    from neuclust.logs import open_log

    open_log(options.file)


def read(options: argparse.Namespace) -> None:
    """Opened and gone through once."""
    from neuclust.logs import open_log

    found = sum(1 for _ in open_log(options.file).decisions())
    if found != options.decisions:
        raise SystemExit(f"expected {options.decisions} decisions, read {found}")


if __name__ == "__main__":
    main()
