"""`neuclust compare` and `neuclust report`: what finished runs say, as tests and as a page."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import advice, argument, option
from neuclust.cli.options import deliver, json_option
from neuclust.cli.outputs import Outputs, require_file, require_writable, say_bad

MAKERS = "`neuclust run --out` and `neuclust sweep` make folders of records"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    records: Path = argument(..., "A folder of records (`sweep`, `run --out`) or a runs.json file.", "DIR")
    json: str | None = json_option("The comparison")
    csv: Path | None = option(None, "One line per difference as CSV.", "FILE")
    baseline: str | None = option(None, "Only differences to this one. Default: all of them.", "POLICY[:PRESET]")
    confidence: float = option(0.95, "Of the intervals; a difference counts where p (Holm) < 1 - SHARE.", "SHARE")


def compare(options: CompareOptions) -> None:
    """Compare policies over common seeds: means, paired differences, tests.

    Prints the Wilcoxon signed-rank test with Holm's correction and a bootstrap interval for every difference.
    """
    from neuclust.analysis.compare import compare as compare_records
    from neuclust.cli.console import make_console
    from neuclust.experiment.store import read_records
    from neuclust.files import write_text
    from neuclust.report.comparison import compare_document, csv_pairs, print_comparisons

    Outputs(json=options.json).check()
    if options.csv is not None:
        require_file("--csv", options.csv)
    with advice(MAKERS):
        found = read_records(options.records, on_bad=say_bad)
    comparisons = compare_records(list(found.values()), confidence=options.confidence, baseline=options.baseline)
    if options.csv is not None:
        write_text(options.csv, csv_pairs(comparisons))

    deliver(options.json, compare_document(comparisons), lambda: print_comparisons(make_console(), comparisons))


@dataclass(frozen=True, slots=True)
class ReportOptions:
    source: Path = argument(..., "A store of records, a folder made by `neuclust run --out`, or a runs.json.", "DIR")
    out: Path | None = option(None, "Folder for the report. Default: DIR/report.", "DIR2")
    title: str | None = option(None, "Heading of the page.", "TEXT")


def report(options: ReportOptions) -> None:
    """Make one self-contained HTML page of the records, and figures (SVG, PDF) and tables (LaTeX, CSV) beside it."""
    source = options.source
    folder = options.out or (source if source.is_dir() else source.parent) / "report"
    require_writable("--out", folder)
    from neuclust.analysis.sources import read_source
    from neuclust.cli.provenance import commands_of, option_words
    from neuclust.report.folder import PAGE, write_report

    with advice(MAKERS):
        found = read_source(source, on_bad=say_bad)
    given = option_words({"out": options.out, "title": options.title})
    command = shlex.join(["neuclust", "report", str(source), *given])
    heading = options.title or f"Results: {source.resolve().name}"
    written = write_report(found, folder, title=heading, command=command, again=commands_of(found.records))
    failed = f", {len(found.failures)} failed" if found.failures else ""
    typer.echo(f"{folder / PAGE}: {len(found.records)} runs{failed}; {len(written) - 1} pictures and tables beside it")
