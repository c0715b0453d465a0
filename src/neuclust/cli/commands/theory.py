"""`neuclust theory`: the paper's analysis computed for a problem or for runs that were recorded."""

from dataclasses import dataclass
from pathlib import Path

from neuclust.cli.command import limit_threads, option
from neuclust.cli.options import json_option, quiet_flag, settings_option
from neuclust.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TheoryOptions:
    data: Path | None = option(
        None, "A prepared problem; with --run, the file its runs were played on.", "FILE.npz", heading="The problem"
    )
    run: Path | None = option(None, "A folder of results: its runs are looked at, and one is played again.", "DIR")
    env: str | None = option(None, "A built-in problem (see `neuclust envs`); with --run, one of the runs' problems.")
    rounds: int | None = option(None, "Rounds of the problem. Default: 1000, or all of a shorter file.", "T", min=1)
    slate_size: int = option(5, "Arms chosen per round.", "K", min=1)
    policy: str | None = option(
        None, "Whose net, clusters and run. Default: neuclust, with --run the first of its presets.", "NAME[:PRESET]"
    )
    settings: list[str] | None = settings_option()
    play: int | None = option(
        None, "Rounds that are played; 0: none. Default: all, or fewer of a large problem.", "N", min=0, heading="How"
    )
    contexts: int = option(2000, "Distinct contexts that the kernel matrix is made of.", "N", min=2)
    first: int = option(100, "The first rounds that they come from.", "N", min=1)
    seed: int = option(0, "Of the contexts, and of the run where none is recorded.", "N", min=0)
    out: Path | None = option(
        None, "Folder for the page, its pictures and the JSON document.", "DIR", heading="Results"
    )
    json: str | None = json_option("All numbers")
    quiet: bool = quiet_flag("No progress on stderr.")


def theory(options: TheoryOptions) -> None:
    """Compute the paper's analysis for a problem: is it clustered, how large is it, which assumption fails.

    Kernel matrix and effective dimension, norm bound, Condition 1, the assumptions one by one; then a run under watch:
    growth of regret, Lemma 3's terms, optimism, drift and calibration. Says where the statement does not hold.
    """
    given = [name for name in ("data", "run", "env") if getattr(options, name) is not None]
    if not given:
        raise ConfigError("expected a problem (--data or --env) or recorded runs (--run), got neither; name one")
    if options.run is None and len(given) > 1:
        raise ConfigError("expected a built-in problem (--env) or a file (--data), got both; drop one of them")
    if options.run is not None and options.settings:
        raise ConfigError("expected the settings that the runs were played with, got others; drop it", field="settings")
    limit_threads()
    from neuclust.cli.theory_session import look

    look(options)
