"""`neuclust evaluate` on the command line: the log is opened, progress shown, results written, the best policy kept."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuclust.cli.commands.evaluate import EvaluateOptions
from neuclust.cli.console import make_console
from neuclust.cli.outputs import STDOUT, Outputs
from neuclust.cli.watching import watching
from neuclust.errors import ConfigError, writing
from neuclust.evaluation.candidates import Candidate
from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.evaluate import Question, evaluate
from neuclust.evaluation.results import Evaluation, best
from neuclust.evaluation.sources import Source, judge_columns, open_source, open_table, save_best
from neuclust.experiment.contestants import parse_contestants
from neuclust.files import write_text

TABLE, CSV, DOCUMENT, PICTURE = "table.txt", "table.csv", "evaluation.json", "evaluation"


def judge(log: Path, options: EvaluateOptions) -> int:
    """Evaluate, write and show; the exit code is 0, also where the log cannot tell."""
    outputs = Outputs(options.out, options.json, options.plot, options.save)
    outputs.check()
    question = question_of(options)
    console = make_console(stderr=True)

    def say(text: str) -> None:
        if not options.quiet:
            console.print(text, markup=False, soft_wrap=True)

    with watching(options.quiet) as watch:
        if options.target:
            if options.save is not None:
                raise ConfigError("expected policies to keep the best of, got columns; drop it", field="save")
            found = judge_columns(_columns(log, options, say), options.target, question, watch)
        else:
            source = open_source(log, options.format, options.skip_bad, say, options.column or ())
            candidates = candidates_of(options)
            found = evaluate(source.log, candidates, question, watch)
            if options.save is not None:
                say(_saved(source, candidates, found, options.save))
    deliver(found, outputs, say)
    return 0


def _columns(log: Path, options: EvaluateOptions, say: Callable[[str], None]) -> Any:
    """A long table, or the path of a Parquet log."""
    if options.format != "table":
        return log
    return open_table(log, options.column or (), options.target or (), options.skip_bad, say)


def question_of(options: EvaluateOptions) -> Question:
    """The question that the options ask."""
    choices: dict[str, tuple[str, ...]] = {"learning": ("frozen", "replay"), "unseen": ("error", "zero", "drop")}
    for name, known in choices.items():
        if getattr(options, name) not in (*known, None):
            raise ConfigError(f"expected {' or '.join(known)}, got {getattr(options, name)!r:.50}", field=name)
    names = ("reward", "estimator", "interval", "level", "learning", "fit", "hold_back", "unseen", "seed")
    given: dict[str, Any] = {name: getattr(options, name) for name in names}
    low, high = (None, None) if options.reward_range is None else reward_range(options.reward_range)
    return Question(**given, reward_low=low, reward_high=high)


def reward_range(text: str) -> tuple[float, float]:
    """`0:1` as two numbers, the smaller first."""
    low, _, high = text.partition(":")
    try:
        found = float(low), float(high)
        if found[0] < found[1] and abs(found[0]) < float("inf") > abs(found[1]):
            return found
    except ValueError:
        pass
    raise ConfigError(f"expected LOW:HIGH with LOW below HIGH, got {text!r:.50}; write 0:1", field="reward_range")


def candidates_of(options: EvaluateOptions) -> list[Candidate]:
    contestants = parse_contestants(options.policy or [], settings=options.settings or ())
    return [Candidate(each, options.seed, options.draws) for each in contestants]


def _saved(source: Source, candidates: list[Candidate], found: Evaluation, folder: Path) -> str:
    title = best(found.policies).policy
    chosen = next(each for each in candidates if each.title == title)
    with writing(folder):
        how = save_best(source, chosen, folder)
    return f"{title}, learned from the whole log, is in {folder}: {how}"


def deliver(found: Evaluation, outputs: Outputs, say: Any) -> None:
    """Files, the table on stdout, the sentences below it."""
    from neuclust.report.drawing import save_figure, save_figures
    from neuclust.report.evaluation import csv_table, evaluation_figure, text_table

    document = json.dumps(found.document(), indent=2, ensure_ascii=False) + "\n"
    for file in outputs.files(DOCUMENT):
        write_text(file, document)
    if outputs.plot is not None:
        save_figure(evaluation_figure(found), outputs.plot)
    if outputs.out is not None:
        write_text(outputs.out / TABLE, text_table(found))
        write_text(outputs.out / CSV, csv_table(found))
        save_figures({PICTURE: evaluation_figure(found)}, outputs.out)
    if outputs.json == STDOUT:
        sys.stdout.write(document)
        return
    sys.stdout.write(text_table(found) + "\n")
    for each in found.policies:
        sys.stdout.write(f"{each.verdict}.\n")
        for warning in each.warnings:
            say(f"warning: {each.policy}: {warning}")
    if found.winner is not None:
        held = f"The best, on {found.winner.rows:,} rows that took no part in the choice"
        sys.stdout.write(f"{held}: {found.winner.verdict}.\n")
    if found.policies:
        say(f"{found.policies[0].reason}.")
    for note in found.notes:
        say(f"note: {note}")


def list_estimators() -> None:
    """Every estimator with what it assumes."""
    width = max(map(len, ESTIMATORS))
    for name, spec in ESTIMATORS.items():
        sys.stdout.write(f"{name.ljust(width)}  {spec.assumption}\n")
