"""`neuclust run`: policies on a problem, seed by seed, with records, a table and pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.outputs import Outputs
from neuclust.errors import ConfigError

PROBLEM, COMPARISON, RESULTS = "The problem", "Who plays", "Results"


def run(
    env: Annotated[
        str | None,
        typer.Option(
            help="A built-in problem (see `neuclust envs`). Default: movielens-twin.", rich_help_panel=PROBLEM
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="A prepared problem instead.", rich_help_panel=PROBLEM),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="T",
            min=1,
            help="Rounds a run. Default: 1000, or all of a shorter file.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    slate_size: Annotated[
        int, typer.Option(metavar="K", min=1, help="Arms chosen a round.", rich_help_panel=PROBLEM)
    ] = 5,
    slate_reward: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What a slate pays: threshold:0.8 (default), mean, product, at-least-one, table:0,0,.2,1.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    arms_per_round: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Offer a random N of the arms each round.", rich_help_panel=PROBLEM),
    ] = None,
    start_ratings: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Cold start: profiles from N noisy ratings an arm.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PRESET]",
            help="A policy (see `neuclust policies`); may be given several times. Default: neuclust.",
            rich_help_panel=COMPARISON,
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(metavar="NAME", help="Preset of policies that name none.", rich_help_panel=COMPARISON),
    ] = "default",
    clusters: Annotated[
        int | None, typer.Option(metavar="M", min=1, help="Number of clusters.", rich_help_panel=COMPARISON)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change one setting of every policy, or of one: POLICY.KEY=VALUE. May be repeated.",
            rich_help_panel=COMPARISON,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="S", min=1, help="Number of seeds, the same for all policies.", rich_help_panel=COMPARISON
        ),
    ] = 1,
    first_seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="The first of them.", rich_help_panel=COMPARISON)
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for runs.json, tables and pictures.", rich_help_panel=RESULTS),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Records as JSON; - is stdout, with nothing else on it.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Regret curves as .png or .svg.", rich_help_panel=RESULTS),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the learned policy of the last run.", rich_help_panel=RESULTS),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Threads for the arithmetic; more only pay from about 100,000 arms on.",
            rich_help_panel=RESULTS,
        ),
    ] = 1,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="All runs at once on cpu or cuda: NeUClust (offline) and CN-UCB, the same slates as one by one.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress on stderr.", rich_help_panel=RESULTS)
    ] = False,
) -> None:
    """Run policies on a problem and compare them.

    Every policy meets the same seeds and the same coins.
    """
    if data is not None and env is not None:
        raise ConfigError("expected a built-in problem (--env) or a file (--data), got both; drop one of them")
    names = policy or ["neuclust"]
    if save is not None and len(names) > 1:
        raise ConfigError(f"--save: expected one policy to keep, got {len(names)}; give one --policy with it")
    if save is not None and device is not None:
        raise ConfigError("--save: expected runs one by one, got --device, which keeps no policy; drop one of them")
    limit_threads(threads)
    from neuclust.cli.session import execute
    from neuclust.experiment.contestants import parse_contestants
    from neuclust.experiment.problem import DEFAULT_ENV, Problem
    from neuclust.experiment.tasks import make_tasks

    problem = Problem(env or DEFAULT_ENV, data, slate_size, rounds, slate_reward, arms_per_round, start_ratings)
    contestants = parse_contestants(names, preset=preset, clusters=clusters, settings=settings or ())
    tasks = make_tasks(problem, contestants, range(first_seed, first_seed + seeds))
    raise typer.Exit(execute(tasks, Outputs(out, json, plot, save), quiet, device))


def limit_threads(threads: int) -> None:
    """Before the libraries load: most read these once, at import."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    import torch

    torch.set_num_threads(threads)
