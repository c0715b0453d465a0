"""`neuclust theory` on the command line: the problem is opened, progress shown, the analysis written and printed."""

import json
import shlex
import sys
from dataclasses import fields, replace

from neuclust.analysis.theory.contexts import Sampling
from neuclust.analysis.theory.document import document
from neuclust.analysis.theory.played import Game, RunNumbers, watch_run
from neuclust.analysis.theory.problem import ProblemNumbers, Shape, problem_numbers
from neuclust.analysis.theory.recorded import Recorded, choose
from neuclust.cli.commands.theory import TheoryOptions
from neuclust.cli.console import make_console
from neuclust.cli.outputs import STDOUT, Outputs, require_writable, say_bad
from neuclust.cli.watching import Watch, watching
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant, parse_contestants
from neuclust.experiment.problem import DEFAULT_ENV, Problem, open_problem
from neuclust.files import write_text

DOCUMENT, PAGE = "theory.json", "theory.html"
POLICY = "neuclust"
WORK, LEAST_PLAYED = 1_000_000_000, 20  # numbers in the contexts of all rounds played, and rounds at least


def look(options: TheoryOptions) -> None:
    """Analyse, write, print."""
    outputs = Outputs(out=options.out, json=options.json)
    Outputs(json=options.json).check()
    if options.out is not None:
        require_writable("--out", options.out)  # the folder is made when there is something to put there
    with watching(options.quiet) as watch:
        recorded = None if options.run is None else chosen(options)
        contestant = _contestant(options) if recorded is None else recorded.contestant
        numbers, run = analyse(options, contestant, recorded, watch)
    deliver(numbers, run, outputs, options)


def chosen(options: TheoryOptions) -> Recorded:
    """The recorded runs that the options ask for."""
    from neuclust.experiment.store import read_records

    assert options.run is not None
    return choose(list(read_records(options.run, on_bad=say_bad).values()), options.env, options.policy)


def _contestant(options: TheoryOptions) -> Contestant:
    (one,) = parse_contestants([options.policy or POLICY], settings=options.settings or ())
    return one


def _problem(options: TheoryOptions) -> Problem:
    if options.env == "replay":
        raise ConfigError("replay needs a prepared file of ratings; name the file instead", field="env")
    name = options.env or DEFAULT_ENV
    return Problem(name, data=options.data, slate_size=options.slate_size, rounds=options.rounds)


def analyse(
    options: TheoryOptions, contestant: Contestant, recorded: Recorded | None, watch: Watch
) -> tuple[ProblemNumbers, RunNumbers | None]:
    """The problem's numbers, and those of a run, unless none is to be played."""
    problem = _problem(options) if recorded is None else recorded.problem(options.data)
    seed = options.seed if recorded is None else recorded.first.seed
    opened = open_problem(problem)
    environment = opened.environment(seed)
    shape = Shape.of(contestant)
    numbers = problem_numbers(environment, shape, Sampling(options.contexts, options.first, options.seed), watch)
    most = opened.rounds if recorded is None else recorded.first.rounds
    rounds = affordable(environment, most) if options.play is None else min(options.play, most)
    if rounds == 0:
        return numbers, None
    curves = recorded.curves if recorded is not None and rounds == most else []
    run = watch_run(Game(environment, contestant, seed, rounds), numbers, curves, watch)
    if recorded is not None and rounds == most:
        run = replace(run, same_as_recorded=recorded.agrees(float(run.series("regret").sum())))
    return numbers, run


def affordable(environment: SlateEnvironment, most: int) -> int:
    """Rounds that are played where nobody says how many: all, or fewer where a round has very many numbers."""
    return min(most, max(LEAST_PLAYED, WORK // (environment.n_arms * environment.dim)))


def deliver(numbers: ProblemNumbers, run: RunNumbers | None, outputs: Outputs, options: TheoryOptions) -> None:
    """Files, then the answers on stdout, or the document alone."""
    made = json.dumps(document(numbers, run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if outputs.out is not None:
        from neuclust.report.drawing import save_figures
        from neuclust.report.theory.page import page
        from neuclust.report.theory.pictures import pictures

        drawn = pictures(numbers, run)
        written = page(numbers, run, drawn, _command(options))
        require_writable("--out", outputs.out, make=True)
        save_figures({each.name: each.figure for each in drawn}, outputs.out)
        write_text(outputs.out / PAGE, written)
    for file in outputs.files(DOCUMENT):
        write_text(file, made)
    if outputs.json == STDOUT:
        sys.stdout.write(made)
        return
    from neuclust.report.theory.text import text

    sys.stdout.write(text(numbers, run))
    if run is None or options.quiet:
        return
    notes = []
    if run.same_as_recorded is False:
        notes.append("the run played again has another regret than its record: another version or engine made it")
    if options.play is None and run.rounds < numbers.sizes.rounds:
        notes.append(f"{run.rounds:,} of {numbers.sizes.rounds:,} rounds were played; --play N plays more")
    for said in notes:
        make_console(stderr=True).print(f"note: {said}", markup=False, soft_wrap=True)


def _command(options: TheoryOptions) -> str:
    """The command that makes this page again."""
    words = ["neuclust", "theory"]
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name not in ("settings", "quiet", "json") and value is not None and value != field.default:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    words += [part for each in options.settings or () for part in ("--set", each)]
    return shlex.join(words)
