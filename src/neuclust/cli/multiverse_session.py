"""The work of `neuclust multiverse`: play what is missing, then write record, curve and page of what there is."""

import json
import time
from collections.abc import Callable, Collection
from pathlib import Path

import typer

from neuclust.analysis.multiverse.summary import summary_of
from neuclust.cli.commands.multiverse import MultiverseOptions
from neuclust.cli.interrupt import STOPPED, patient_interrupt
from neuclust.cli.options import deliver
from neuclust.errors import ConfigError
from neuclust.experiment.engines.engine import Engine
from neuclust.experiment.multiverse.playing import FAILED, Plan, Progress, play_plan
from neuclust.experiment.multiverse.record import record_of, write_record
from neuclust.experiment.multiverse.rows import RunKey, key_of_task, read_rows
from neuclust.experiment.sinks import JsonLines, folder_errors
from neuclust.files import write_text
from neuclust.report.drawing import svg_text
from neuclust.report.multiverse.curve import curve
from neuclust.report.multiverse.tables import page

RUNS, RECORD, CURVE, PAGE = "runs.jsonl", "record.json", "multiverse.svg", "index.md"


def execute(plan: Plan, folder: Path, options: MultiverseOptions, engine: Engine) -> int:
    """Play, write, show; the exit code."""
    files, say = _files(folder, options), _voice(options.quiet)
    held = read_rows(files)
    say(f"{len(plan.cells)} cells, {len(plan.tasks)} runs of {plan.grid.rounds} rounds, {_missing(plan, held)} to do")
    end = time.monotonic() + 60 * (float("inf") if options.minutes is None else options.minutes)
    with (
        patient_interrupt(lambda: say("Ctrl-C: stopping after this round; press it again to stop at once.")) as pressed,
        folder_errors(folder),
        JsonLines(folder / RUNS) as lines,
    ):

        def over() -> bool:
            return pressed() or time.monotonic() >= end

        done = play_plan(plan, engine, options.engine, held, lines.write, say, over)
        _write(plan, folder, files, options)
        left = _missing(plan, read_rows(files))
        return _conclude(done, left, pressed(), folder)


def show_plan(plan: Plan, folder: Path, options: MultiverseOptions) -> None:
    """The cells on stdout, one per line, with what is missing of them; nothing is written."""
    held = read_rows(_files(folder, options))
    for cell, keys in zip(plan.cells, Progress(plan, held, lambda _: None).left, strict=True):
        typer.echo(f"{cell.engine:9} {len(keys):4} runs to do  {plan.grid.title(cell)}")
    typer.echo(f"{len(plan.cells)} cells, {len(plan.tasks)} runs, {_missing(plan, held)} to do.", err=True)


def _files(folder: Path, options: MultiverseOptions) -> list[Path]:
    """Where runs are: the folder's, then those of earlier pieces, which must be there."""
    for file in options.done or ():
        if not file.is_file():
            raise ConfigError(f"expected the runs of an earlier piece, got no file {file}; drop it", field="done")
    return [folder / RUNS, *(options.done or ())]


def _voice(quiet: bool) -> Callable[[str], None]:
    """Lines on stderr; failures alone when quiet."""

    def say(text: str) -> None:
        if not quiet or text.startswith(FAILED):
            typer.echo(text, err=True)

    return say


def _missing(plan: Plan, held: Collection[RunKey]) -> int:
    return sum(key_of_task(task) not in held for task in plan.tasks)


def _write(plan: Plan, folder: Path, files: list[Path], options: MultiverseOptions) -> None:
    """Record, curve and page of the runs there are, and the verdict on stdout; nothing where there is no run."""
    rows = read_rows(files)
    wanted = {key_of_task(task) for task in plan.tasks}
    rows = {key: row for key, row in rows.items() if key in wanted}
    if not rows:
        return
    record = record_of(plan.grid, rows)
    write_record(folder / RECORD, record)
    write_text(folder / CURVE, svg_text(curve(record)))
    write_text(folder / PAGE, page(record, CURVE))
    summary = summary_of(record)

    def show() -> None:
        typer.echo(summary["verdict"]["sentence"])
        typer.echo(folder / PAGE)

    deliver(options.json, json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n", show)


def _conclude(done: Progress, left: int, pressed: bool, folder: Path) -> int:
    """What is left or failed, on stderr; the exit code."""
    if done.failed:
        failed = f"{done.failed} runs failed: the lines above say why, and the page shows their cells as failed"
        typer.echo(f"{failed}; the same command tries them again.", err=True)
    if left > done.failed:
        how = "Stopped by Ctrl-C" if pressed else "The time is over"
        kept = f"{left - done.failed} runs are left, the others are in {folder / RUNS}"
        typer.echo(f"{how}: {kept}; the same command takes up the rest.", err=True)
    return STOPPED if pressed and left else int(left > 0)
