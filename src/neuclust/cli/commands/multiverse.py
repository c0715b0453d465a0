"""`neuclust multiverse`: the paper under every reading of a declared grid, and what its result turns on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import typer

from neuclust.cli.command import argument, flag, limit_threads, option
from neuclust.cli.options import engine_option, json_option, quiet_flag, workers_option
from neuclust.cli.outputs import STDOUT, require_file, require_writable
from neuclust.errors import ConfigError
from neuclust.experiment.multiverse.grids import FULL, QUICK


@dataclass(frozen=True, slots=True)
class MultiverseOptions:
    file: Path | None = argument(None, f"A grid of readings. Default: {FULL.name} of the package.", "FILE.toml")
    quick: bool = flag(f"A first look in at most three minutes: {QUICK.name} of the package.")
    data: Path | None = option(None, "A prepared problem. Default: the twin of MovieLens.", "FILE.npz")
    env: str | None = option(None, "A built-in problem instead.", "NAME")
    rounds: int | None = option(None, "Other than the file's.", "T", min=1)
    seeds: int | None = option(None, "The first so many of the file's.", "N", min=1)
    cells: int | None = option(None, "The first so many of the cells that the engine plays.", "N", min=1)
    out: Path | None = option(None, "Folder of runs and page. Default: results/NAME.", "DIR", heading="The work")
    done: list[Path] | None = option(None, "Runs of an earlier piece, again for more.", "FILE.jsonl")
    minutes: float | None = option(None, "Stop after so long; the same command takes up the rest.", "M", min=0.0)
    engine: str = engine_option()
    workers: int | None = workers_option()
    plan: bool = flag("List the cells and how many runs are missing, and leave.")
    json: str | None = json_option("Record, cells, effects and verdict")
    quiet: bool = quiet_flag()

    @property
    def grid_file(self) -> Path:
        """The file that is named, or one of those that come with the package."""
        if self.file is not None and self.quick:
            raise ConfigError(f"expected a grid or --quick, got both ({self.file}); drop one of them")
        return self.file or (QUICK if self.quick else FULL)


def multiverse(options: MultiverseOptions) -> None:
    """Play the readings of the paper crossed in a grid, and say which of them its order turns on.

    What the folder holds is not played again: stopped, killed or in pieces, the same command goes on. A device plays
    the cells declared for it, processes play all. Exit codes: 0 all runs are there; 1 some failed or are left; 130
    stopped by Ctrl-C.
    """
    limit_threads()
    from neuclust.cli.multiverse_session import execute, show_plan
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.multiverse.grid import read_grid
    from neuclust.experiment.multiverse.playing import cells_for, plan_of
    from neuclust.experiment.problem import DEFAULT_ENV, Problem

    if options.data is not None and options.env is not None:
        raise ConfigError("expected a built-in problem (--env) or a file (--data), got both; drop one of them")
    grid = read_grid(options.grid_file)
    folder = options.out or Path("results") / grid.name
    engine = make_engine(options.engine, options.workers)
    grid = replace(
        grid,
        rounds=options.rounds or grid.rounds,
        seeds=grid.seeds[: options.seeds],
        cells=cells_for(grid, options.engine)[: options.cells],
    )
    problem = Problem(options.env or DEFAULT_ENV, None if options.data is None else options.data.absolute())
    plan = plan_of(grid, problem, grid.cells)
    if options.plan:
        show_plan(plan, folder, options)
        return
    if options.json not in (None, STDOUT):
        require_file("--json", Path(str(options.json)))
    require_writable("--out", folder, make=True)
    raise typer.Exit(execute(plan, folder, options, engine))
