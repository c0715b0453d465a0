"""`neuclust reproduce`: the paper's tables and figures made again, with what reproduces and what does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuclust.cli.folders import require_writable
from neuclust.cli.run import limit_threads
from neuclust.errors import ConfigError, one_of

if TYPE_CHECKING:
    from neuclust.experiment.reproduction.phases import Scale, Study

PROTOCOL, SEARCH, WORK = "The protocol", "Searches", "The work"


def reproduce(
    study: Annotated[str, typer.Argument(metavar="movielens|yelp", help="Which data set of the paper.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="A prepared file (`neuclust data`). Default: the embedded twin."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of records and page. Default: results/reproduction-STUDY."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The same page in two minutes: few rounds, seeds and clusters.")
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Print what would run with a rough time, and leave.")] = False,
    authors: Annotated[
        bool,
        typer.Option("--authors", help="The authors' settings too: 200 steps a round, slow.", rich_help_panel=PROTOCOL),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(metavar="T", min=1, help="Rounds a run. Default: 1000.", rich_help_panel=PROTOCOL)
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Runs of the paper's protocol: 10, Yelp 5.", rich_help_panel=PROTOCOL),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(metavar="S", min=1, help="Seeds of ours and of --authors: 20.", rich_help_panel=PROTOCOL),
    ] = None,
    cluster_seeds: Annotated[
        int | None,
        typer.Option(metavar="S", min=1, help="Seeds for the number of clusters: 5.", rich_help_panel=PROTOCOL),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(metavar="M,M,...", help="Numbers of clusters: 1,5,…,40.", rich_help_panel=PROTOCOL),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Policies of our protocol; default: all. May be repeated.", rich_help_panel=PROTOCOL
        ),
    ] = None,
    tune: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Tune every policy with N trials, then play.", rich_help_panel=SEARCH),
    ] = 0,
    grids: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Search the paper's grids with N trials each.", rich_help_panel=SEARCH),
    ] = 0,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="process, inline or ray.", rich_help_panel=WORK)
    ] = "process",
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Runs at once. Default: one for each core.", rich_help_panel=WORK),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try runs that failed earlier again.", rich_help_panel=WORK)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but failures.", rich_help_panel=WORK)
    ] = False,
) -> None:
    """Make the paper's Table 1 and Figures 2 to 9 again, on one page that says what reproduces.

    What is done is skipped: stopped, killed or extended, the same command goes on. Exit codes: 0 all is there; 1 some
    runs failed; 130 stopped by Ctrl-C.
    """
    limit_threads(1)
    from neuclust.cli.reproduce_session import Request, execute, show_plan
    from neuclust.experiment.engines.engine import cores, make_engine
    from neuclust.experiment.problem import Problem
    from neuclust.experiment.reproduction.phases import SLATE_SIZE, full_scale, open_study, quick_scale

    chosen = _study(study)
    folder = out or Path("results") / f"reproduction-{chosen.name}"
    require_writable("--out", folder)
    scale = quick_scale(chosen) if quick else full_scale(chosen)
    scale = _adjusted(scale, rounds, runs, seeds, cluster_seeds, clusters)
    where = Problem(env=chosen.twin, data=None if data is None else data.absolute(), slate_size=SLATE_SIZE)
    layout = open_study(chosen, where, scale)
    chosen_engine = make_engine(engine, workers)
    at_once = 1 if engine == "inline" else workers or cores()
    request = Request(layout, folder, authors, tuple(policy or ()), tune, grids, retry_failed, quiet, at_once)
    if plan:
        show_plan(request)
        return
    raise typer.Exit(execute(request, chosen_engine))


def _study(name: str) -> Study:
    from neuclust.experiment.reproduction.phases import STUDIES

    if name not in STUDIES:
        raise ConfigError(f"reproduce: {one_of(name, STUDIES)}")
    return STUDIES[name]


def _adjusted(
    scale: Scale,
    rounds: int | None,
    runs: int | None,
    seeds: int | None,
    cluster_seeds: int | None,
    clusters: str | None,
) -> Scale:
    given = {"rounds": rounds, "runs": runs, "our_seeds": seeds, "cluster_seeds": cluster_seeds}
    changed = replace(scale, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    return changed if clusters is None else replace(changed, cluster_numbers=_numbers(clusters))


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--clusters: expected whole numbers such as 1,10,22, got {text!r}; separate them by commas")
    return tuple(sorted({int(part) for part in parts}))
