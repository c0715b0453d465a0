"""`neuclust run`: policies on a problem, seed by seed, with records, a table and pictures."""

from dataclasses import dataclass, replace
from pathlib import Path

import typer

from neuclust.cli.command import limit_threads, option
from neuclust.cli.options import ProblemOptions, json_option, quiet_flag, settings_option
from neuclust.cli.outputs import Outputs
from neuclust.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RunOptions:
    problem: ProblemOptions
    policy: list[str] | None = option(
        None,
        "A policy (see `neuclust policies`); may be given several times. Default: neuclust.",
        "NAME[:PRESET]",
        heading="Who plays",
    )
    preset: str = option("default", "Preset of policies that name none.", "NAME")
    clusters: int | None = option(None, "Number of clusters.", "M", min=1)
    settings: list[str] | None = settings_option()
    explore: float = option(
        0.0, "Draw this share of the slots at random, with exact propensities, as --log needs.", "SHARE", min=0
    )
    seeds: int = option(1, "Number of seeds, the same for all policies.", "S", min=1)
    first_seed: int = option(0, "The first of them.", "N", min=0)
    out: Path | None = option(None, "Folder for runs.json, tables and pictures.", "DIR", heading="Results")
    json: str | None = json_option("Records")
    plot: Path | None = option(None, "Regret curves as .png or .svg.", "FILE")
    save: Path | None = option(None, "Folder for the learned policy of the last run.", "DIR")
    log: Path | None = option(
        None, "Every decision with its chances and rewards, as .jsonl or .parquet (docs/logs.md).", "FILE"
    )
    threads: int = option(1, "Threads for the arithmetic; more only pay from about 100,000 arms on.", "N", min=1)
    device: str | None = option(
        None, "All runs at once on cpu or cuda: NeUClust (offline) and CN-UCB, the same slates as one by one.", "NAME"
    )
    quiet: bool = quiet_flag("No progress on stderr.")


def run(options: RunOptions) -> None:
    """Run policies on a problem and compare them.

    Every policy meets the same seeds and the same coins.
    """
    names = options.policy or ["neuclust"]
    if options.save is not None and len(names) > 1:
        raise ConfigError(f"expected one policy to keep, got {len(names)}; give one --policy with it", field="save")
    if options.save is not None and options.device is not None:
        raise ConfigError("expected runs one by one, got --device, which keeps no policy; drop one", field="save")
    if options.log is not None and options.device is not None:
        raise ConfigError("expected runs one by one, got --device, which logs nothing; drop one", field="log")
    for name in ("save", "device"):
        if options.explore and getattr(options, name) is not None:
            raise ConfigError(f"expected runs without --{name}, got one; drop one of them", field="explore")
    limit_threads(options.threads)
    from neuclust.cli.session import play_tasks
    from neuclust.experiment.contestants import parse_contestants
    from neuclust.experiment.tasks import make_tasks

    contestants = [
        replace(each, explore=options.explore)
        for each in parse_contestants(
            names, preset=options.preset, clusters=options.clusters, settings=options.settings or ()
        )
    ]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = make_tasks(options.problem.named(), contestants, seeds)
    outputs = Outputs(options.out, options.json, options.plot, options.save, options.log)
    raise typer.Exit(play_tasks(tasks, outputs, options.quiet, options.device))
