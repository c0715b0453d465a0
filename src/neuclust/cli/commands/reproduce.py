"""`neuclust reproduce`: the paper's tables and figures made again, with what reproduces and what does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuclust.cli.command import argument, flag, limit_threads, option
from neuclust.cli.options import engine_option, quiet_flag, retry_flag, workers_option
from neuclust.cli.outputs import require_writable
from neuclust.errors import ConfigError, one_of

if TYPE_CHECKING:
    from neuclust.experiment.reproduction.phases import Scale, Study


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    study: str = argument(..., "Which data set of the paper.", "movielens|yelp")
    data: Path | None = option(None, "A prepared file (`neuclust data`). Default: the embedded twin.", "FILE.npz")
    out: Path | None = option(None, "Folder of records and page. Default: results/reproduction-STUDY.", "DIR")
    quick: bool = flag("The same page in two minutes: few rounds, seeds and clusters.")
    plan: bool = flag("Print what would run with a rough time, and leave.")
    authors: bool = flag("The authors' settings too: 200 steps per round, slow.", heading="The protocol")
    rounds: int | None = option(None, "Rounds per run. Default: 1000.", "T", min=1)
    runs: int | None = option(None, "Runs of the paper's protocol: 10, Yelp 5.", "N", min=1)
    seeds: int | None = option(None, "Seeds of ours and of --authors: 20.", "S", min=1)
    cluster_seeds: int | None = option(None, "Seeds for the number of clusters: 5.", "S", min=1)
    clusters: str | None = option(None, "Numbers of clusters: 1,5,…,40.", "M,M,...")
    policy: list[str] | None = option(None, "Policies of our protocol; default: all. May be repeated.", "NAME")
    tune: int = option(0, "Tune every policy with N trials, then play.", "N", min=0, heading="Searches")
    grids: int = option(0, "Search the paper's grids with N trials each.", "N", min=0)
    done: list[Path] | None = option(None, "Runs played elsewhere, again for more.", "FILE.jsonl", heading="The work")
    engine: str = engine_option()
    workers: int | None = workers_option()
    retry_failed: bool = retry_flag()
    quiet: bool = quiet_flag()

    def scale(self, study: Study) -> Scale:
        """The full or the quick protocol of a study, with the numbers that were given in place of its own."""
        from neuclust.experiment.reproduction.phases import full_scale, quick_scale

        given: dict[str, Any] = {
            "rounds": self.rounds, "runs": self.runs, "our_seeds": self.seeds, "cluster_seeds": self.cluster_seeds,
            "cluster_numbers": None if self.clusters is None else _numbers(self.clusters),
        }  # fmt: skip
        changed = {key: value for key, value in given.items() if value is not None}
        return replace(quick_scale(study) if self.quick else full_scale(study), **changed)


def reproduce(options: ReproduceOptions) -> None:
    """Make the paper's Table 1 and Figures 2 to 9 again, on one page that says what reproduces.

    What is done is skipped: stopped, killed or extended, the same command goes on. Exit codes: 0 all is there; 1 some
    runs failed; 130 stopped by Ctrl-C.
    """
    limit_threads()
    from neuclust.cli.reproduce_session import Request, execute, show_plan
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.problem import Problem
    from neuclust.experiment.reproduction.phases import SLATE_SIZE, STUDIES, open_study

    if options.study not in STUDIES:
        raise ConfigError(f"reproduce: {one_of(options.study, STUDIES)}")
    study = STUDIES[options.study]
    folder = options.out or Path("results") / f"reproduction-{study.name}"
    require_writable("--out", folder)
    data = None if options.data is None else options.data.absolute()
    problem = Problem(env=study.twin, data=data, slate_size=SLATE_SIZE)
    layout = open_study(study, problem, options.scale(study))
    engine = make_engine(options.engine, options.workers)
    request = Request(options, layout, folder)
    if options.plan:
        show_plan(request)
        return
    raise typer.Exit(execute(request, engine))


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"expected whole numbers such as 1,10,22, got {text!r}; put commas between", field="clusters")
    return tuple(sorted({int(part) for part in parts}))
