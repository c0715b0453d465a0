"""Options that several commands have: the problem to play, how many runs at once, what is said and written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from neuclust.cli.command import Heading, flag, option
from neuclust.cli.outputs import STDOUT
from neuclust.errors import ConfigError
from neuclust.files import write_text

if TYPE_CHECKING:
    from neuclust.experiment.problem import Problem

Json = Annotated[str | None, option("The numbers as JSON; - is stdout, with nothing else on it.", "FILE")]
Settings = Annotated[
    list[str] | None,
    option("Change one setting of every policy, or of one: POLICY.KEY=VALUE. May be repeated.", "KEY=VALUE", "--set"),
]
Quiet = Annotated[bool, flag("No progress on stderr.", "--quiet", "-q")]
FailuresOnly = Annotated[bool, flag("Say nothing but failures.", "--quiet", "-q")]
Engine = Annotated[str, option("processes, inline, ray, device or device:cuda.", "NAME")]
Workers = Annotated[int | None, option("Runs at once. Default: one for each core.", "N", min=1)]
RetryFailed = Annotated[bool, flag("Try runs that failed earlier again.", "--retry-failed")]


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """One problem: a built-in one or a prepared file, and how it is played."""

    env: Annotated[
        str | None,
        option("A built-in problem (see `neuclust envs`). Default: movielens-twin."),
        Heading("The problem"),
    ] = None
    data: Annotated[Path | None, option("A prepared problem instead.", "FILE.npz")] = None
    rounds: Annotated[int | None, option("Rounds per run. Default: 1000, or all of a shorter file.", "T", min=1)] = None
    slate_size: Annotated[int, option("Arms chosen per round.", "K", min=1)] = 5
    slate_reward: Annotated[
        str | None,
        option("What a slate pays: threshold:0.8 (default), mean, product, at-least-one, table:0,0,.2,1.", "TEXT"),
    ] = None
    arms_per_round: Annotated[int | None, option("Offer a random N of the arms each round.", "N", min=1)] = None
    start_ratings: Annotated[int | None, option("Cold start: profiles from N noisy ratings per arm.", "N", min=1)] = (
        None
    )

    def named(self) -> Problem:
        """The problem that the options name; a built-in one and a file at once are refused."""
        if self.data is not None and self.env is not None:
            raise ConfigError("expected a built-in problem (--env) or a file (--data), got both; drop one of them")
        from neuclust.experiment.problem import DEFAULT_ENV, Problem

        return Problem(**(asdict(self) | {"env": self.env or DEFAULT_ENV}))


def deliver(json: str | None, document: str, show: Callable[[], None]) -> None:
    """Write the document to the file `--json` names and show the result; with `-`, print the document alone."""
    if json == STDOUT:
        sys.stdout.write(document)
        return
    if json is not None:
        write_text(Path(json), document)
    show()
