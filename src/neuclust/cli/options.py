"""Options that several commands have: the problem to play, how many runs at once, what is said and written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from neuclust.cli.command import flag, option
from neuclust.cli.outputs import STDOUT
from neuclust.errors import ConfigError
from neuclust.files import write_text

if TYPE_CHECKING:
    from neuclust.experiment.problem import Problem

MAKE_REPLAY = "`neuclust data prepare replay --ratings ratings.csv --movies movies.csv --out replay.npz` makes it"
settings_option = partial(
    option,
    None,
    "Change one setting of every policy, or of one: POLICY.KEY=VALUE. May be repeated.",
    "KEY=VALUE",
    "--set",
)
engine_option = partial(option, "process", "processes, inline, ray, device or device:cuda.", "NAME")
workers_option = partial(option, None, "Runs at once. Default: one for each core.", "N", min=1)
retry_flag = partial(flag, "Try runs that failed earlier again.")


def json_option(what: str) -> str | None:
    return option(None, f"{what} as JSON; - is stdout, with nothing else on it.", "FILE")


def quiet_flag(help: str = "Say nothing but failures.") -> bool:
    return flag(help, "--quiet", "-q")


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """One problem: a built-in one or a prepared file, and how it is played."""

    env: str | None = option(
        None, "A built-in problem (see `neuclust envs`). Default: movielens-twin.", heading="The problem"
    )
    data: Path | None = option(None, "A prepared problem instead.", "FILE.npz")
    rounds: int | None = option(None, "Rounds per run. Default: 1000, or all of a shorter file.", "T", min=1)
    slate_size: int = option(5, "Arms chosen per round.", "K", min=1)
    slate_reward: str | None = option(
        None, "What a slate pays: threshold:0.8 (default), mean, product, at-least-one, table:0,0,.2,1.", "TEXT"
    )
    arms_per_round: int | None = option(None, "Offer a random N of the arms each round.", "N", min=1)
    start_ratings: int | None = option(None, "Cold start: profiles from N noisy ratings per arm.", "N", min=1)

    def named(self) -> Problem:
        """The problem that the options name; a built-in one and a file at once are refused."""
        if self.data is not None and self.env is not None:
            raise ConfigError("expected a built-in problem (--env) or a file (--data), got both; drop one of them")
        if self.env == "replay":
            advice = f"{MAKE_REPLAY}, `neuclust run --data replay.npz` plays it"
            raise ConfigError(f"replay plays back real ratings and needs a file of them; {advice}", field="env")
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
