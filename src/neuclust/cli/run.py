"""`neuclust run`: policies on a problem, seed by seed, with records, a table and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.command import Heading, limit_threads, option
from neuclust.cli.options import ProblemOptions, Quiet, Settings
from neuclust.cli.outputs import Outputs
from neuclust.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RunOptions:
    problem: ProblemOptions
    policy: Annotated[
        list[str] | None,
        option("A policy (see `neuclust policies`); may be given several times. Default: neuclust.", "NAME[:PRESET]"),
        Heading("Who plays"),
    ] = None
    preset: Annotated[str, option("Preset of policies that name none.", "NAME")] = "default"
    clusters: Annotated[int | None, option("Number of clusters.", "M", min=1)] = None
    settings: Settings = None
    seeds: Annotated[int, option("Number of seeds, the same for all policies.", "S", min=1)] = 1
    first_seed: Annotated[int, option("The first of them.", "N", min=0)] = 0
    out: Annotated[Path | None, option("Folder for runs.json, tables and pictures.", "DIR"), Heading("Results")] = None
    json: Annotated[str | None, option("Records as JSON; - is stdout, with nothing else on it.", "FILE")] = None
    plot: Annotated[Path | None, option("Regret curves as .png or .svg.", "FILE")] = None
    save: Annotated[Path | None, option("Folder for the learned policy of the last run.", "DIR")] = None
    threads: Annotated[
        int, option("Threads for the arithmetic; more only pay from about 100,000 arms on.", "N", min=1)
    ] = 1
    device: Annotated[
        str | None,
        option(
            "All runs at once on cpu or cuda: NeUClust (offline) and CN-UCB, the same slates as one by one.", "NAME"
        ),
    ] = None
    quiet: Quiet = False


def run(options: RunOptions) -> None:
    """Run policies on a problem and compare them.

    Every policy meets the same seeds and the same coins.
    """
    names = options.policy or ["neuclust"]
    if options.save is not None and len(names) > 1:
        raise ConfigError(f"expected one policy to keep, got {len(names)}; give one --policy with it", field="save")
    if options.save is not None and options.device is not None:
        sentence = "expected runs one by one, got --device, which keeps no policy; drop one of them"
        raise ConfigError(sentence, field="save")
    limit_threads(options.threads)
    from neuclust.cli.session import execute
    from neuclust.experiment.contestants import parse_contestants
    from neuclust.experiment.tasks import make_tasks

    contestants = parse_contestants(
        names, preset=options.preset, clusters=options.clusters, settings=options.settings or ()
    )
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = make_tasks(options.problem.named(), contestants, seeds)
    outputs = Outputs(options.out, options.json, options.plot, options.save)
    raise typer.Exit(execute(tasks, outputs, options.quiet, options.device))
