"""`neuclust shop`: a simulated shop learns what to show whom, from two CSV files and the clicks."""

from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import limit_threads, option
from neuclust.cli.options import quiet_flag

POLICIES = ("auto", "linucb", "popular", "uniform")


@dataclass(frozen=True, slots=True)
class ShopOptions:
    requests: int = option(3000, "Requests, the same for all policies.", "N", min=1)
    policy: list[str] | None = option(
        None,
        f"A policy (see `neuclust policies`); may be given several times. Default: {', '.join(POLICIES)}.",
        "NAME[:PRESET]",
    )
    seed: int = option(0, "Another shop, and other draws of the policies.", "N", min=0)
    out: Path = option(Path("results/shop"), "Folder for the tables of the shop, the picture and the results.", "DIR")
    quiet: bool = quiet_flag("No progress on stderr.")


def shop(options: ShopOptions) -> None:
    """A simulated shop that learns: clicks per request rise from random slates towards the best possible ones.

    Items and users are written as CSV files and read by Recommender, as your own would be. Every policy meets the same
    requests and the same customers.
    """
    limit_threads()
    from neuclust.cli.shop_session import play_policies

    names = list(dict.fromkeys(options.policy or POLICIES))
    raise typer.Exit(play_policies(names, options.requests, options.seed, options.out, options.quiet))
