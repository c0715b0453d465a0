"""What benchmarks share: one thread, Markdown tables, short numbers, the machine, the record."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

Record = dict[str, Any]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A Markdown table, the first `words` columns to the left, the others to the right, padded to read as text too."""
    widths = [max(3, *(len(row[i]) for row in [header, *rows])) for i in range(len(header))]
    rule = ["-" * width if i < words else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join(_line(row, widths, words) for row in [header, rule, *rows])


def _line(row: Sequence[str], widths: Sequence[int], words: int) -> str:
    cells = zip(row, widths, strict=True)
    padded = [cell.ljust(width) if i < words else cell.rjust(width) for i, (cell, width) in enumerate(cells)]
    return f"| {' | '.join(padded)} |"


def short(value: float) -> str:
    """Three digits, thousands with commas."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def one_thread() -> None:
    """For torch and for compiled loops."""
    torch.set_num_threads(1)
    with contextlib.suppress(ImportError):
        import numba

        numba.set_num_threads(1)


def machine(*packages: str) -> Record:
    """The processor, its load and the versions behind the figures."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "unset"),
        "load": round(load, 1),
        "python": platform.python_version(),
        **{package: version(package) for package in ("torch", "numpy", *packages)},
    }


def version(package: str) -> str:
    """The installed version, or a dash."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "-"


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def described(record: Record) -> str:
    """One line: `torch 2.13, load 0.4, ...`."""
    return ", ".join(f"{name} {value}" for name, value in record.items())


def write_record(path: Path | None, record: Record) -> None:
    """The figures as JSON, where a path is given."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
