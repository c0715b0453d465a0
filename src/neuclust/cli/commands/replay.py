"""`neuclust replay`: the models of a service made again from its log, and compared."""

from dataclasses import dataclass

import typer

from neuclust.cli.command import argument, flag, limit_threads, option
from neuclust.cli.options import json_option, quiet_flag


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    db: str = argument(..., "The service's database: sqlite:FILE or postgresql://…", "DB")
    verify: bool = flag("Compare models, states and what was told of events with those that are kept.")
    recommender: str | None = option(None, "Only this one.", "NAME")
    json: str | None = json_option("The results")
    quiet: bool = quiet_flag("No progress on stderr.")


def replay(options: ReplayOptions) -> None:
    """Fold the log of a service once more, and check that the same bytes come out.

    The chain of hashes is verified either way. The exit code is 1 where something differs; the same bytes are promised
    on the same machine with the same library versions and threads, which are kept beside every version.
    """
    limit_threads()
    from neuclust.cli.replay_session import replayed

    raise typer.Exit(replayed(options))
