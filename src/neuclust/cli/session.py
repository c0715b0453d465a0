"""The runs of `neuclust run`: play tasks, keep what is finished, draw it, say what happened."""

import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from neuclust.analysis.unpaid import unpaid_notes
from neuclust.cli.console import print_tables
from neuclust.cli.interrupt import STOPPED
from neuclust.cli.outputs import Outputs, check_outputs, draw, set_aside
from neuclust.cli.views import ONE_MORE_ROUND, View, watched
from neuclust.core import Policy
from neuclust.errors import NeuclustError, writing
from neuclust.experiment.engines.engine import InlineEngine, Outcome, make_engine
from neuclust.experiment.problem import rewards_sentence
from neuclust.experiment.records import RunRecord, runs_document
from neuclust.experiment.sinks import RunsFiles
from neuclust.experiment.tasks import Task, opened_problem


def execute(tasks: Sequence[Task], outputs: Outputs, quiet: bool, device: str | None = None) -> int:
    """Play every task, in batches where a device is named; the exit code is 0, or 130 after Ctrl-C."""
    check_outputs(outputs)
    policies: deque[Policy] = deque(maxlen=1)
    engine = make_engine(f"device:{device}") if device else InlineEngine(policies.append, titled=False).play
    sink = RunsFiles(outputs.run_files, tasks)
    try:
        with watched(quiet, len(tasks), ONE_MORE_ROUND) as view:
            if not quiet:
                view.say(rewards_sentence(opened_problem(tasks[0]).rewards, tasks[0].problem.name))
            for outcome in engine(tasks, view):
                _keep(outcome, sink, view, outputs.out)
    except NeuclustError:
        if sink.records:
            draw(outputs, sink.records)
        raise
    records = sink.records
    if outputs.save is not None and records:
        with writing(outputs.save):
            policies[-1].save(outputs.save)
    _conclude(outputs, records)
    for note in unpaid_notes(records):
        view.say(f"warning: {note}")
    if not view.stopped():
        return 0
    view.say(stopped_sentence(records, outputs.run_files))
    return STOPPED


def _keep(outcome: Outcome, sink: RunsFiles, view: View, folder: Path | None) -> None:
    """Write all records so far; those of an earlier command in the folder are kept under another name."""
    outcome.record()  # a run that failed ends the command
    earlier = None if sink.records else set_aside(folder)
    sink(outcome)
    view.ended(outcome)
    if earlier is not None:
        view.say(f"Earlier results of this folder are kept as {earlier}.")


def _conclude(outputs: Outputs, records: list[RunRecord]) -> None:
    """Files first, stdout last: a closed pipe must not cost a picture."""
    if records:
        draw(outputs, records)
    if outputs.json_to_stdout:
        sys.stdout.write(runs_document(records))
    elif outputs.json is None and records:
        print_tables(records)


def stopped_sentence(records: list[RunRecord], files: tuple[Path, ...]) -> str:
    """What was kept when Ctrl-C came."""
    if not records:
        return "Stopped before a round was played: nothing was written."
    whole = sum(not record.interrupted for record in records)
    finished = "1 finished run" if whole == 1 else f"{whole} finished runs"
    last = records[-1]
    kept = f"{finished} and {last.rounds} rounds of {last.policy}, seed {last.seed}," if last.interrupted else finished
    where = f" are in {' and '.join(map(str, files))}" if files else " are shown; --out DIR would have kept them"
    return f"Stopped by Ctrl-C: {kept}{where}."
