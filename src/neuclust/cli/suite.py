"""`neuclust suite`: policies on every problem of the suite, one table, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuclust.cli.folders import require_writable
from neuclust.cli.run import limit_threads
from neuclust.errors import writing

if TYPE_CHECKING:
    from neuclust.experiment.suite import SuiteInputs, SuiteProblem
    from neuclust.experiment.tasks import Task

DEFAULT_POLICIES = ("auto", "neuclust", "cn-ucb", "linucb", "lin-ts", "static", "cluster-oracle", "uniform")
QUICK_POLICIES = ("auto", "neuclust", "linucb", "uniform")
SEEDS, QUICK_SEEDS = 5, 1


def suite(
    quick: Annotated[bool, typer.Option("--quick", help="A first look: few policies, one seed, short runs.")] = False,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="NAME", help="A policy, again for more.", show_default=False)
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option("--problem", metavar="NAME", help="A problem, again for more. Default: all.", show_default=False),
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", show_default=False)] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", min=1, help="Default: 5, or 1 with --quick.")] = None,
    first_seed: Annotated[int, typer.Option(metavar="S", min=0, help="The first seed.")] = 0,
    rounds: Annotated[int | None, typer.Option(metavar="T", min=1, help="Rounds of every problem.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: results/suite, or suite-quick.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", min=1, help="Runs at once. Default: the cores.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of real files. Default: NEUCLUST_SHARED_DATA, or twins."),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="process, inline or ray.")] = "process",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but failures and the table.")] = False,
    references: Annotated[
        bool, typer.Option("--references", help="Print what frames each problem, and leave.")
    ] = False,
) -> None:
    """Play policies on every problem of the suite; what the folder holds already is not played again."""
    limit_threads(1)
    from neuclust.cli.sweep import execute
    from neuclust.experiment.contestants import parse_contestants
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.store import open_store
    from neuclust.experiment.suite import chosen_problems, find_inputs, suite_spec
    from neuclust.experiment.tasks import tasks_of
    from neuclust.registry import policy_config

    folder = out or Path("results") / ("suite-quick" if quick else "suite")
    chosen = make_engine(engine, workers, None)
    contestants = parse_contestants(policy or _default_policies(quick), settings=set_ or ())
    for contestant in contestants:
        policy_config(contestant.policy, contestant.preset, contestant.clusters, contestant.settings)
    chosen_problems(problem or (), find_inputs(data))  # refused here, before anything is written
    require_writable("--out", folder)
    open_store(folder, make=True)
    inputs = _inputs(data, folder, problem or ())
    problems = chosen_problems(problem or (), inputs)
    _say_left_out(problem or (), problems)
    count = seeds or (QUICK_SEEDS if quick else SEEDS)
    used = range(first_seed, first_seed + count)
    spec = suite_spec(problems, contestants, used, inputs, rounds, quick)
    if references:
        _print_references(problems, inputs, spec.rounds, spec.seeds)
        return
    tasks = tasks_of(spec)
    code = execute(folder, tasks, chosen, retry_failed=True, quiet=quiet, tables=False)
    _show(folder, tasks, problems, inputs)
    raise typer.Exit(code)


def _default_policies(quick: bool) -> list[str]:
    from neuclust.registry import POLICIES

    return [name for name in (QUICK_POLICIES if quick else DEFAULT_POLICIES) if name in POLICIES]


def _inputs(data: Path | None, folder: Path, names: list[str] | tuple[()]) -> SuiteInputs:
    """Real files at hand; raw ratings are prepared for replay once, inside the folder of records."""
    import os

    from neuclust.experiment.suite import DATA_VARIABLE, RAW_FOLDER, find_inputs

    found = find_inputs(data)
    named = data or (Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None)
    raw = None if named is None else named / RAW_FOLDER
    if raw is None or not raw.is_dir() or (names and "replay" not in names):
        return found
    prepared = (folder / "inputs" / "replay.npz").absolute()
    if not prepared.exists():
        _prepare_replay(raw, prepared)
    return find_inputs(data, prepared)


def _prepare_replay(raw: Path, prepared: Path) -> None:
    from neuclust.cli.data.prepare import movielens_files
    from neuclust.data.replay import ReplayOptions, prepare_replay

    files = movielens_files(raw / "ratings.csv", raw / "movies.csv", None)
    with writing(prepared):
        prepare_replay(*files, ReplayOptions())[0].save(prepared)


def _say_left_out(asked: list[str] | tuple[()], played: tuple[SuiteProblem, ...]) -> None:
    if "replay" not in {problem.name for problem in played} and (not asked or "replay" in asked):
        typer.echo("replay is left out: no raw ratings at hand (--data DIR with ml-latest-small in it).", err=True)


def _names(problems: tuple[SuiteProblem, ...], inputs: SuiteInputs) -> dict[str, str]:
    """What each recorded environment is called in the table."""
    names = {}
    for problem in problems:
        recorded = problem.problem(inputs).name
        twin = " (twin)" if recorded.endswith("(twin)") or problem.name == "yelp" else ""
        names[recorded] = f"{problem.name}{twin}"
    return names


def _show(folder: Path, tasks: tuple[Task, ...], problems: tuple[SuiteProblem, ...], inputs: SuiteInputs) -> None:
    from neuclust.analysis.sources import read_source
    from neuclust.analysis.suite import suite_table
    from neuclust.cli.console import make_console
    from neuclust.cli.folders import say_bad
    from neuclust.cli.provenance import commands_of
    from neuclust.experiment.store import read_store
    from neuclust.files import write_text
    from neuclust.report.drawing import svg_text
    from neuclust.report.folder import PAGE, write_report
    from neuclust.report.suite import comma_separated, markdown, picture, rich_suite_table

    keys = {task.key for task in tasks}
    records = list(read_store(folder, keys=keys).values())
    if not records:
        return
    table = suite_table(records, _names(problems, inputs))
    make_console().print(rich_suite_table(table))
    report = folder / "report"
    report.mkdir(exist_ok=True)
    source = read_source(folder, on_bad=say_bad)
    write_report(source, report, title="Suite", command="neuclust suite", again=commands_of(source.records))
    write_text(report / "suite.md", markdown(table))
    write_text(report / "suite.csv", comma_separated(table))
    write_text(report / "suite.svg", svg_text(picture(table)))
    typer.echo(f"{report / PAGE}, suite.md, suite.csv and suite.svg beside it", err=True)


def _print_references(
    problems: tuple[SuiteProblem, ...], inputs: SuiteInputs, rounds: tuple[int, ...], seeds: tuple[int, ...]
) -> None:
    """One line a problem: the mean over seeds of what those who know the truth would lose."""
    from statistics import fmean

    from neuclust.experiment.suite import References, references

    typer.echo("| problem | T | oracle earns | top K | static | one cluster | uniform |\n|---|---|---|---|---|---|---|")
    names = _names(problems, inputs)
    for problem, length in zip(problems, rounds, strict=True):
        found: list[References] = [references(problem.build(seed, length, inputs=inputs), length) for seed in seeds]
        columns = ("oracle", "top_k", "static", "cluster", "uniform")
        cells = " | ".join(f"{fmean(getattr(one, column) for one in found):.1f}" for column in columns)
        typer.echo(f"| {names[problem.problem(inputs).name]} | {length} | {cells} |")
