"""`neuclust suite`: policies on every problem of the suite, one table, and a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import flag, limit_threads, option
from neuclust.cli.options import engine_option, quiet_flag, settings_option, workers_option
from neuclust.cli.outputs import require_writable, say_bad
from neuclust.errors import writing

if TYPE_CHECKING:
    from neuclust.experiment.spec import SweepSpec
    from neuclust.experiment.suite import SuiteInputs, SuiteProblem
    from neuclust.experiment.tasks import Task

DEFAULT_POLICIES = ("auto", "neuclust", "cn-ucb", "linucb", "lin-ts", "static", "cluster-oracle", "uniform")
QUICK_POLICIES = ("auto", "neuclust", "linucb", "uniform")
SEEDS, QUICK_SEEDS = 5, 1


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    quick: bool = flag("A first look: few policies, one seed, short runs.")
    policy: list[str] | None = option(None, "A policy, again for more.", "NAME")
    problem: list[str] | None = option(None, "A problem, again for more. Default: all.", "NAME")
    settings: list[str] | None = settings_option()
    seeds: int | None = option(None, "Default: 5, or 1 with --quick.", "N", min=1)
    first_seed: int = option(0, "The first seed.", "S", min=0)
    rounds: int | None = option(None, "Rounds of every problem.", "T", min=1)
    out: Path | None = option(None, "Default: results/suite, or suite-quick.", "DIR")
    workers: int | None = workers_option()
    data: Path | None = option(None, "Folder of real files. Default: NEUCLUST_SHARED_DATA, or twins.", "DIR")
    engine: str = engine_option()
    quiet: bool = quiet_flag("Say nothing but failures and the table.")
    references: bool = flag("Print what frames each problem, and leave.")


def suite(options: SuiteOptions) -> None:
    """Play policies on every problem of the suite; what the folder holds already is not played again."""
    limit_threads()
    from neuclust.cli.session import sweep_tasks
    from neuclust.experiment.contestants import parse_contestants
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.store import open_store
    from neuclust.experiment.suite import chosen_problems, find_inputs, suite_spec
    from neuclust.experiment.tasks import tasks_of
    from neuclust.registry import policy_config

    names = options.problem or ()
    folder = options.out or Path("results") / ("suite-quick" if options.quick else "suite")
    engine = make_engine(options.engine, options.workers, None)
    policies = options.policy or (QUICK_POLICIES if options.quick else DEFAULT_POLICIES)
    contestants = parse_contestants(policies, settings=options.settings or ())
    for contestant in contestants:
        policy_config(contestant.policy, contestant.preset, contestant.clusters, contestant.settings)
    chosen_problems(names, find_inputs(options.data))  # refused here, before anything is written
    require_writable("--out", folder)
    open_store(folder, make=True)
    inputs = _inputs(options.data, folder, names)
    problems = chosen_problems(names, inputs)
    if inputs.replay is None and (not names or "replay" in names):
        typer.echo("replay is left out: no raw ratings at hand (--data DIR with ml-latest-small in it).", err=True)
    count = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    seeds = range(options.first_seed, options.first_seed + count)
    spec = suite_spec(problems, contestants, seeds, inputs, options.rounds, options.quick)
    if options.references:
        _print_references(problems, inputs, spec)
        return
    tasks = tasks_of(spec)
    code = sweep_tasks(folder, tasks, engine, retry_failed=True, quiet=options.quiet, tables=False)
    _show(folder, tasks, _names(problems, inputs))
    raise typer.Exit(code)


def _inputs(data: Path | None, folder: Path, names: Sequence[str]) -> SuiteInputs:
    """Real files at hand; raw ratings are prepared for replay once, inside the folder of records."""
    from neuclust.experiment.suite import DATA_VARIABLE, RAW_FOLDER, find_inputs

    shared = os.environ.get(DATA_VARIABLE)
    place = data or (Path(shared) if shared else None)
    if place is None or not (place / RAW_FOLDER).is_dir() or (names and "replay" not in names):
        return find_inputs(data)
    prepared = (folder / "inputs" / "replay.npz").absolute()
    if not prepared.exists():
        from neuclust.data.raw import RawFile
        from neuclust.data.replay import ReplayOptions, prepare_replay

        ratings, movies = (RawFile(place / RAW_FOLDER / name) for name in ("ratings.csv", "movies.csv"))
        dataset, _ = prepare_replay(ratings, movies, ReplayOptions())
        with writing(prepared):
            dataset.save(prepared)
    return find_inputs(data, prepared)


def _names(problems: tuple[SuiteProblem, ...], inputs: SuiteInputs) -> dict[str, str]:
    """What each recorded environment is called in the table."""
    recorded = {problem.problem(inputs).name: problem.name for problem in problems}
    twins = {env for env, name in recorded.items() if env.endswith("(twin)") or name == "yelp"}
    return {env: f"{name} (twin)" if env in twins else name for env, name in recorded.items()}


def _show(folder: Path, tasks: tuple[Task, ...], names: Mapping[str, str]) -> None:
    """The table on stdout, and the report with the table beside it."""
    from neuclust.analysis.sources import read_source
    from neuclust.analysis.suite import suite_table
    from neuclust.cli.console import make_console
    from neuclust.cli.provenance import commands_of
    from neuclust.experiment.store import read_store
    from neuclust.files import write_text
    from neuclust.report.drawing import svg_text
    from neuclust.report.folder import PAGE, write_report
    from neuclust.report.suite import comma_separated, markdown, picture, rich_suite_table

    records = list(read_store(folder, keys={task.key for task in tasks}).values())
    if not records:
        return
    table = suite_table(records, names)
    make_console().print(rich_suite_table(table))
    report = folder / "report"
    report.mkdir(exist_ok=True)
    source = read_source(folder, on_bad=say_bad)
    write_report(source, report, title="Suite", command="neuclust suite", again=commands_of(source.records))
    for ending, text in (("md", markdown(table)), ("csv", comma_separated(table)), ("svg", svg_text(picture(table)))):
        write_text(report / f"suite.{ending}", text)
    typer.echo(f"{report / PAGE}, suite.md, suite.csv and suite.svg beside it", err=True)


def _print_references(problems: tuple[SuiteProblem, ...], inputs: SuiteInputs, spec: SweepSpec) -> None:
    """One line per problem: the mean over seeds of the regrets of policies that know the truth."""
    from statistics import fmean

    from neuclust.experiment.suite import references

    typer.echo("| problem | T | oracle earns | top K | static | one cluster | uniform |\n|---|---|---|---|---|---|---|")
    names = _names(problems, inputs)
    for problem, length in zip(problems, spec.rounds, strict=True):
        found = [references(problem.build(seed, length, inputs=inputs), length) for seed in spec.seeds]
        columns = ("oracle", "top_k", "static", "cluster", "uniform")
        cells = " | ".join(f"{fmean(getattr(one, column) for one in found):.1f}" for column in columns)
        typer.echo(f"| {names[problem.problem(inputs).name]} | {length} | {cells} |")
