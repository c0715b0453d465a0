"""`neuclust report`: one page from records, with pictures and tables for a paper."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.folders import require_writable, say_bad


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A store of records, a folder made by `neuclust run --out`, or a runs.json.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR2", help="Folder for the report. Default: DIR/report.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
) -> None:
    """Make one self-contained HTML page of the records, and figures (SVG, PDF) and tables (LaTeX, CSV) beside it."""
    folder = (source if source.is_dir() else source.parent) / "report" if out is None else out
    require_writable("--out", folder)
    from neuclust.analysis.sources import read_source
    from neuclust.cli.provenance import commands_of
    from neuclust.report.folder import PAGE, write_report

    found = read_source(source, on_bad=say_bad)
    heading = title or f"Results: {source.resolve().name}"
    command, again = _command(source, out, title), commands_of(found.records)
    written = write_report(found, folder, title=heading, command=command, again=again)
    failed = f", {len(found.failures)} failed" if found.failures else ""
    typer.echo(f"{folder / PAGE}: {len(found.records)} runs{failed}; {len(written) - 1} pictures and tables beside it")


def _command(source: Path, out: Path | None, title: str | None) -> str:
    """As it was given."""
    options = [*(["--out", str(out)] if out else []), *(["--title", title] if title else [])]
    return shlex.join(["neuclust", "report", str(source), *options])
