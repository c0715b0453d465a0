"""The work behind `neuclust data inspect`: load, look, say, write."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from neuclust.analysis.inspection import inspect, record, sentences
from neuclust.cli.outputs import STDOUT, Outputs, check_outputs
from neuclust.cli.progress import bar
from neuclust.data.dataset import load_dataset
from neuclust.files import write_text


def inspect_file(
    file: Path, out: Path | None, json_to: str | None, *, rounds: int, slate_size: int, clusters: int
) -> None:
    """Files first, stdout last; nothing is written where the file cannot be read."""
    dataset = load_dataset(file)
    check_outputs(Outputs(out=out, json=json_to))
    with bar("rounds", min(rounds, len(dataset.rounds)), unit="rounds") as show:
        found = inspect(
            dataset,
            rounds=rounds,
            slate_size=slate_size,
            clusters=clusters,
            progress=lambda done: show(done, None),
        )
    numbers = json.dumps(record(found), indent=2) + "\n"
    words = "".join(f"{sentence}\n" for sentence in sentences(found))
    if out is not None:
        from neuclust.report.drawing import save_figure
        from neuclust.report.inspection import figures

        write_text(out / "inspect.json", numbers)
        write_text(out / "inspect.txt", words)
        for name, figure in figures(found).items():
            for ending in ("png", "svg"):
                save_figure(figure, out / f"{name}.{ending}")
    if json_to is not None and json_to != STDOUT:
        write_text(Path(json_to), numbers)
    if json_to == STDOUT:
        sys.stdout.write(numbers)
    else:
        typer.echo(words, nl=False)
