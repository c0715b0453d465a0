"""`neuclust data inspect`: what kind of problem a prepared file is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.command import argument, option
from neuclust.cli.options import Json, deliver
from neuclust.cli.outputs import Outputs, check_outputs
from neuclust.cli.progress import bar
from neuclust.files import write_text


@dataclass(frozen=True, slots=True)
class InspectOptions:
    file: Annotated[Path, argument("A prepared problem.", "FILE.npz")]
    out: Annotated[Path | None, option("Folder for inspect.json, inspect.txt and pictures.", "DIR")] = None
    json: Json = None
    rounds: Annotated[int, option("Rounds to look at.", "T", min=1)] = 1000
    slate_size: Annotated[int, option("Arms of a slate.", "K", min=1)] = 5
    clusters: Annotated[int, option("Clusters to look at.", "M", min=1)] = 22


def inspect(options: InspectOptions) -> None:
    """Say what kind of problem a prepared file is, in numbers, words and pictures."""
    from json import dumps

    from neuclust.analysis.inspection import inspect as inspect_dataset
    from neuclust.analysis.inspection import record, sentences
    from neuclust.data.dataset import load_dataset

    dataset, out = load_dataset(options.file), options.out
    check_outputs(Outputs(out=out, json=options.json))
    with bar("rounds", min(options.rounds, len(dataset.rounds)), unit="rounds") as show:
        found = inspect_dataset(
            dataset,
            rounds=options.rounds,
            slate_size=options.slate_size,
            clusters=options.clusters,
            progress=lambda done: show(done, None),
        )
    numbers = dumps(record(found), indent=2) + "\n"
    words = "".join(f"{sentence}\n" for sentence in sentences(found))
    if out is not None:
        from neuclust.report.figures import save_figure
        from neuclust.report.inspect_figures import figures

        write_text(out / "inspect.json", numbers)
        write_text(out / "inspect.txt", words)
        for name, figure in figures(found).items():
            for ending in ("png", "svg"):
                save_figure(figure, out / f"{name}.{ending}")
    deliver(options.json, numbers, lambda: typer.echo(words, nl=False))
