"""`neuclust tune`: choose settings on some seeds and rounds, report them on others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuclust.errors import ConfigError

PROBLEM, SEARCH, RESULTS = "The problem", "The search", "Results"


def tune(
    policy: Annotated[
        str, typer.Option(metavar="NAME[:PRESET]", help="Whose settings (see `neuclust policies`).")
    ] = "neuclust",
    env: Annotated[
        str | None,
        typer.Option(help="A built-in problem. Default: movielens-twin.", rich_help_panel=PROBLEM),
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
            help="Rounds a run; a file must hold twice as many. Default: 1000, or half of a shorter file.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    slate_size: Annotated[
        int, typer.Option(metavar="K", min=1, help="Arms chosen a round.", rich_help_panel=PROBLEM)
    ] = 5,
    slate_reward: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What a slate pays.", rich_help_panel=PROBLEM)
    ] = None,
    arms_per_round: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Offer a random N of the arms each round.", rich_help_panel=PROBLEM),
    ] = None,
    start_ratings: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Profiles from N noisy ratings an arm.", rich_help_panel=PROBLEM),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2 | KEY=LOW:HIGH[:log]",
            help="A setting and what to try for it; may be repeated.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="paper", help="The paper's settings; the default without --param.", rich_help_panel=SEARCH
        ),
    ] = None,
    trials: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Settings to try at most: the budget.", rich_help_panel=SEARCH),
    ] = 20,
    tune_seeds: Annotated[
        str, typer.Option(metavar="A..B", help="Seeds to tune on.", rich_help_panel=SEARCH)
    ] = "1000..1004",
    report_seeds: Annotated[
        str, typer.Option(metavar="A..B", help="Fresh seeds for the result.", rich_help_panel=SEARCH)
    ] = "0..9",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep trials and records; the same command goes on there.", rich_help_panel=RESULTS
        ),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The result as JSON; - is stdout, with nothing else on it.", rich_help_panel=RESULTS
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress on stderr.", rich_help_panel=RESULTS)
    ] = False,
) -> None:
    """Tune a policy's settings, then test them on seeds and rounds the tuning never saw."""
    if data is not None and env is not None:
        raise ConfigError("expected a built-in problem (--env) or a file (--data), got both; drop one of them")
    from neuclust.cli.run import limit_threads

    limit_threads(1)
    from neuclust.cli.outputs import Outputs
    from neuclust.cli.tune_session import execute
    from neuclust.experiment.contestants import split_name
    from neuclust.experiment.problem import DEFAULT_ENV, Problem
    from neuclust.experiment.tuning.space import parse_space
    from neuclust.experiment.tuning.tune import TuningPlan, parse_seeds

    problem = Problem(env or DEFAULT_ENV, data, slate_size, rounds, slate_reward, arms_per_round, start_ratings)
    name, preset = split_name(policy)
    preset = preset or "default"
    plan = TuningPlan(
        problem=problem,
        policy=name,
        preset=preset,
        space=parse_space(name, preset, param or (), grid),
        trials=trials,
        tune_seeds=parse_seeds("tune_seeds", tune_seeds),
        report_seeds=parse_seeds("report_seeds", report_seeds),
    )
    raise typer.Exit(execute(plan, Outputs(out, json), quiet))
