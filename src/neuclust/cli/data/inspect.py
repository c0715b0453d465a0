"""`neuclust data inspect`: what kind of problem a prepared file is."""

from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import argument, option
from neuclust.cli.options import deliver, json_option
from neuclust.cli.outputs import Outputs, check_outputs
from neuclust.cli.progress import bar
from neuclust.files import write_text


@dataclass(frozen=True, slots=True)
class InspectOptions:
    file: Path = argument(..., "A prepared problem.", "FILE.npz")
    out: Path | None = option(None, "Folder for inspect.json, inspect.txt and pictures.", "DIR")
    json: str | None = json_option("The numbers")
    rounds: int = option(1000, "Rounds to look at.", "T", min=1)
    slate_size: int = option(5, "Arms of a slate.", "K", min=1)
    clusters: int = option(22, "Clusters to look at.", "M", min=1)


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
        from neuclust.report.drawing import save_figure
        from neuclust.report.inspection import figures

        write_text(out / "inspect.json", numbers)
        write_text(out / "inspect.txt", words)
        for name, figure in figures(found).items():
            for ending in ("png", "svg"):
                save_figure(figure, out / f"{name}.{ending}")
    deliver(options.json, numbers, lambda: typer.echo(words, nl=False))
