"""Tasks played on the command line, for one command or into a folder of records: progress, tables, exit code."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from neuclust.analysis.estimates import counted
from neuclust.analysis.summary import unpaid_notes
from neuclust.cli.console import print_tables
from neuclust.cli.interrupt import STOPPED
from neuclust.cli.outputs import Outputs
from neuclust.cli.views import ONE_MORE_ROUND, watched
from neuclust.core import Policy
from neuclust.errors import NeuclustError, writing
from neuclust.experiment.engines.engine import Engine, InlineEngine, Outcome, make_engine
from neuclust.experiment.problem import rewards_sentence
from neuclust.experiment.records import RunRecord, runs_document
from neuclust.experiment.sinks import FAILURES, RunsFiles
from neuclust.experiment.store import read_store
from neuclust.experiment.sweep import Standing, sweep
from neuclust.experiment.tasks import Task, opened_problem, run_name


def play_tasks(tasks: Sequence[Task], outputs: Outputs, quiet: bool, device: str | None = None) -> int:
    """Play every task, in batches where a device is named; the exit code is 0, or 130 after Ctrl-C."""
    outputs.check()
    policies: deque[Policy] = deque(maxlen=1)
    sink = RunsFiles(outputs.files(), tasks)
    try:
        with outputs.logging(map(run_name, tasks)) as log, watched(quiet, len(tasks), ONE_MORE_ROUND) as view:
            inline = InlineEngine(policies.append, titled=False, log=log).play
            engine = make_engine(f"device:{device}") if device else inline
            if not quiet:
                view.say(rewards_sentence(opened_problem(tasks[0]).rewards, tasks[0].problem.name))
            for outcome in engine(tasks, view):
                outcome.record()  # a run that failed ends the command
                earlier = None if sink.records else outputs.set_aside()
                sink(outcome)
                view.ended(outcome)
                if earlier is not None:
                    view.say(f"Earlier results of this folder are kept as {earlier}.")
    except NeuclustError:
        if sink.records:
            outputs.draw(sink.records)
        raise
    records = sink.records
    if outputs.save is not None and records:
        with writing(outputs.save):
            policies[-1].save(outputs.save)
    if records:
        outputs.draw(records)
    if outputs.json_to_stdout:  # stdout last: a closed pipe must not cost a picture
        sys.stdout.write(runs_document(records))
    elif outputs.json is None and records:
        print_tables(records)
    for note in unpaid_notes(records):
        view.say(f"warning: {note}")
    if not view.stopped():
        return 0
    view.say(_stopped_sentence(records, outputs))
    return STOPPED


def _stopped_sentence(records: list[RunRecord], outputs: Outputs) -> str:
    """What was kept when Ctrl-C came."""
    if not records:
        return "Stopped before a round was played: nothing was written."
    whole = sum(not record.interrupted for record in records)
    finished, last = counted(whole, "finished run"), records[-1]
    kept = f"{finished} and {last.rounds} rounds of {last.policy}, seed {last.seed}," if last.interrupted else finished
    files = " and ".join(map(str, outputs.files()))
    return f"Stopped by Ctrl-C: {kept} are {f'in {files}' if files else 'shown; --out DIR would have kept them'}."


def sweep_tasks(
    folder: Path,
    tasks: Sequence[Task],
    engine: Engine,
    retry_failed: bool,
    quiet: bool,
    tables: bool = True,
    also: Callable[[Outcome], None] | None = None,
) -> int:
    """Play what is missing, of which `also` is told, and return the exit code; without `tables` the caller shows its
    own."""
    with watched(quiet) as view:
        after = sweep(folder, tasks, engine, view, retry_failed=retry_failed, also=also)
    if tables and not quiet and after.held:
        records = list(read_store(folder, keys={task.key for task in after.held}).values())
        print_tables(records)
        for note in unpaid_notes(records):
            typer.echo(f"warning: {note}", err=True)
    code = conclude(after, view.stopped() and bool(after.missing))
    if code == 0 and not quiet:
        typer.echo(f"All {after.total} runs are in {folder}.", err=True)
    return code


def conclude(after: Standing, stopped: bool) -> int:
    """What is missing or failed, on stderr; the exit code."""
    if stopped or after.missing:
        how = "Stopped by Ctrl-C" if stopped else "Ended early"
        kept = f"{len(after.held)} of {after.total} runs are in {after.folder}"
        typer.echo(f"{how}: {kept}; the same command takes up the rest.", err=True)
        return STOPPED if stopped else 1
    if after.failed:
        failed = f"{len(after.failed)} of {after.total} runs failed: {after.folder / FAILURES} says why"
        typer.echo(f"{failed}; --retry-failed tries them again.", err=True)
        return 1
    return 0
