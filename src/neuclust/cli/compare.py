"""`neuclust compare`: paired differences of everything in a folder of records, and whether they are noise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def compare(
    records: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder of records (`sweep`, `run --out`) or a runs.json file."),
    ],
    json: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The comparison as JSON; - is stdout, with nothing else on it."),
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="One line a difference as CSV.")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY[:PRESET]", help="Only differences to this one. Default: all of them."),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Of the intervals; a difference counts where p (Holm) < 1 - SHARE."),
    ] = 0.95,
) -> None:
    """Compare policies over common seeds: means, paired differences, tests.

    Prints the Wilcoxon signed-rank test with Holm's correction and a bootstrap interval for every difference.
    """
    from neuclust.analysis.compare import compare as compare_records
    from neuclust.cli.folders import require_file, say_bad
    from neuclust.cli.outputs import Outputs, check_outputs
    from neuclust.experiment.store import read_records
    from neuclust.files import write_text
    from neuclust.report.comparison import compare_document, csv_pairs

    outputs = Outputs(json=json)
    check_outputs(outputs)
    if csv is not None:
        require_file("--csv", csv)
    found = read_records(records, on_bad=say_bad)
    comparisons = compare_records(list(found.values()), confidence=confidence, baseline=baseline)
    if csv is not None:
        write_text(csv, csv_pairs(comparisons))
    if outputs.json_file is not None:
        write_text(outputs.json_file, compare_document(comparisons))
    if outputs.json_to_stdout:
        sys.stdout.write(compare_document(comparisons))
        return
    from neuclust.cli.console import make_console
    from neuclust.report.comparison import print_comparison

    console = make_console()
    for comparison in comparisons:
        print_comparison(console, comparison)
