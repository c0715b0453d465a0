"""The work of `neuclust tune`: search, report, keep, and print the budget and the result."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from neuclust.analysis.compare import Comparison, compare
from neuclust.analysis.estimates import counted, number
from neuclust.analysis.summary import unpaid_notes
from neuclust.cli.console import make_console
from neuclust.cli.interrupt import STOPPED
from neuclust.cli.outputs import Outputs
from neuclust.cli.provenance import option_words
from neuclust.cli.views import ONE_MORE_ROUND, View, watched
from neuclust.experiment.held_out import Split, split_problem
from neuclust.experiment.problem import rewards_sentence
from neuclust.experiment.tuning.trials import TrialResult
from neuclust.experiment.tuning.tune import Tuning, TuningPlan, tune
from neuclust.files import write_text
from neuclust.report.comparison import comparison_json, print_comparisons
from neuclust.report.tables import terminal_table

SCHEMA = 1
RESULT = "tune.json"
SHOWN = 20  # trials in the table
ADVICE = {  # what fresh seeds say about the tuned setting, by verdict
    "less regret": "Fresh seeds confirm it: the tuned setting has less regret than the preset.",
    "more regret": "The tuned setting is worse than the preset on fresh seeds: keep the preset.",
}
UNTOLD = "Fresh seeds do not tell the tuned setting from the preset: there is no reason to leave the preset."


def execute(plan: TuningPlan, outputs: Outputs, quiet: bool) -> int:
    """Tune, write and print; the exit code is 0, or 130 after Ctrl-C."""
    split = split_problem(plan.problem)
    outputs.check()
    with watched(quiet, plan.most_runs, ONE_MORE_ROUND) as view:
        if not quiet:
            view.say(rewards_sentence(split.report.rewards, plan.problem.name))
        tuning = tune(plan, split, outputs.out, view, trial_lines(view, quiet))
    comparison = compare(tuning.report, baseline=f"{plan.policy}:{plan.preset}")[0] if tuning.report else None
    document = json.dumps(tuning_json(plan, split, tuning, comparison), indent=2, allow_nan=False) + "\n"
    for file in outputs.files(RESULT):
        write_text(file, document)
    if outputs.json_to_stdout:
        sys.stdout.write(document)
    elif outputs.json is None:
        _print(plan, split, tuning, comparison)
    for note in unpaid_notes(tuning.report):
        view.say(f"warning: {note}")
    if tuning.stopped:
        view.say(_stopped_sentence(tuning, outputs.out))
    return STOPPED if tuning.stopped else 0


def trial_lines(view: View, quiet: bool) -> Callable[[TrialResult], None]:
    """Shows a line per trial, or nothing when quiet."""

    def show(result: TrialResult) -> None:
        regret = "-" if result.regret is None else number(result.regret)
        pruned = ", given up" if result.state == "pruned" else ""
        played = f"expected regret {regret} over {counted(result.seeds, 'seed')}{pruned}"
        what = f"failed ({result.reason})" if result.state == "failed" else played
        view.say(f"trial {settings_text(result.settings)}: {what}")

    return (lambda _: None) if quiet else show


def settings_text(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def budget(plan: TuningPlan, split: Split, tuning: Tuning) -> dict[str, int | bool]:
    """What was allowed and what was spent on the search."""
    return {
        "trials": plan.trials,
        "tune_seeds": len(plan.tune_seeds),
        "rounds": split.rounds,
        "exhaustive": plan.exhaustive,
        "trials_tried": len(tuning.trials),
        "runs_played": sum(trial.seeds for trial in tuning.trials),
    }


def run_command(plan: TuningPlan, split: Split, best: Mapping[str, str]) -> str:
    """The command line that plays the best setting on the report's seeds (from the first to the last)."""
    problem = plan.problem
    source = {"env": problem.env} if problem.data is None else {"data": problem.data}
    first, last = min(plan.report_seeds), max(plan.report_seeds)
    options = {
        **source,
        "rounds": split.rounds,
        "slate_size": problem.slate_size,
        **problem.options,
        "policy": plan.policy if plan.preset == "default" else f"{plan.policy}:{plan.preset}",
        "set": [f"{key}={value}" for key, value in best.items()],
        "seeds": last - first + 1,
        "first_seed": first,
    }
    return shlex.join(["neuclust", "run", *option_words(options)])


def tuning_json(plan: TuningPlan, split: Split, tuning: Tuning, comparison: Comparison | None) -> dict[str, Any]:
    """The result as plain JSON values; `report` is null where tuning was stopped before it."""
    return {
        "schema": SCHEMA,
        "policy": plan.policy,
        "preset": plan.preset,
        "env": plan.problem.name,
        "rounds": split.rounds,
        "split": split.note,
        "tune_seeds": list(plan.tune_seeds),
        "report_seeds": list(plan.report_seeds),
        "budget": budget(plan, split, tuning),
        "best": tuning.best,
        "trials": [
            {key: value for key, value in asdict(trial).items() if key != "reason" or value} for trial in tuning.trials
        ],
        "report": None if comparison is None else comparison_json(comparison),
        "command": None if tuning.best is None else run_command(plan, split, tuning.best),
        "stopped": tuning.stopped,
    }


def _print(plan: TuningPlan, split: Split, tuning: Tuning, comparison: Comparison | None) -> None:
    console = make_console()
    say = partial(console.print, markup=False, soft_wrap=True)
    say(f"{plan.policy}:{plan.preset} on {plan.problem.name}, {len(plan.tune_seeds)} seeds to tune on")
    rows = [
        (settings_text(each.settings), "-" if each.regret is None else number(each.regret), str(each.seeds), each.state)
        for each in sorted(tuning.trials, key=_rank)
    ]
    headings = ("settings", "expected regret", "seeds", "state")
    console.print(terminal_table(headings, rows[:SHOWN], ("settings", "state")))
    if len(rows) > SHOWN:
        say(f"({len(rows) - SHOWN} more trials are in the JSON)")
    spent = budget(plan, split, tuning)
    way = "every setting of the grid" if plan.exhaustive else "settings proposed by Optuna's TPE"
    given_up = sum(trial.state == "pruned" for trial in tuning.trials)
    say(
        f"Budget: {spent['trials']} trials on {spent['tune_seeds']} seeds of {split.rounds} rounds ({way}); spent: "
        f"{spent['trials_tried']} trials, {spent['runs_played']} runs, {given_up} trials given up early. A fair "
        "comparison gives every policy the same --trials, --tune-seeds and --rounds."
    )
    say(f"Seeds and rounds: {split.note}.")
    if comparison is not None:
        say(f"\nThe best setting and the untouched preset on {len(plan.report_seeds)} fresh seeds:")
        print_comparisons(console, [comparison])
        say(ADVICE.get(comparison.pairs[0].verdict, UNTOLD))
    if tuning.best is not None:
        say(f"To run the best setting: {run_command(plan, split, tuning.best)}")


def _rank(trial: TrialResult) -> tuple[int, float]:
    """Complete ones first, then by regret: a mean over fewer seeds is not comparable."""
    order = ("complete", "pruned", "failed").index(trial.state)
    return order, float("inf") if trial.regret is None else trial.regret


def _stopped_sentence(tuning: Tuning, folder: Path | None) -> str:
    trials = counted(len(tuning.trials), "finished trial")
    if folder is None:
        return f"Stopped by Ctrl-C after {trials}; --out DIR would have kept them."
    return f"Stopped by Ctrl-C: {trials} and every finished run are in {folder}; the same command goes on from there."
