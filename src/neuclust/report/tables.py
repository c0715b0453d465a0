"""The table under a comparison: who lost least, by how much, and whether that is more than noise."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from neuclust.analysis.groups import Contender, Estimate, ProblemRuns, estimate, problems
from neuclust.analysis.unpaid import unpaid_note
from neuclust.analysis.verdicts import Judged, common_gaps, couples_of, judge, powerless_note, reading_note
from neuclust.experiment.problem import rewards_sentence
from neuclust.experiment.records import RunRecord

if TYPE_CHECKING:
    from rich.table import Table

FEW_SEEDS = 5
NOISE = 2.0  # standard errors
UNBOUNDED = 10_000  # letters, more than any line has


@dataclass(frozen=True, slots=True)
class Row:
    """One contender; `difference` is its paired extra regret over the best learner, None for that one."""

    policy: str
    preset: str
    settings: str
    runs: int
    regret: Estimate
    difference: Estimate | None
    verdict: str  # best, reference, or the one of report/verdicts.py against the best
    clipped: Estimate
    floor: float
    successes: Estimate
    best_expected: float
    seconds: float
    select_seconds: float
    update_seconds: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of one problem, least regret first, and what to know when reading them."""

    env: str
    rounds: int
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def summaries(records: Sequence[RunRecord]) -> list[Summary]:
    """One summary a problem."""
    return [_summary(problem) for problem in problems(records)]


def _summary(problem: ProblemRuns) -> Summary:
    learners = [contender for contender in problem.contenders if not contender.knows_truth]
    best = learners[0] if learners else problem.contenders[0]
    judged = judge(couples_of(problem.contenders))
    verdicts = {each.one.key: each.verdict for each in judged if each.against is best}
    rows = tuple(_row(contender, best, verdicts.get(contender.key, "reference")) for contender in problem.contenders)
    return Summary(problem.env, problem.rounds, problem.description, rows, tuple(_notes(problem, rows, best, judged)))


def _row(contender: Contender, best: Contender, verdict: str) -> Row:
    difference = None if contender is best else paired_difference(contender, best)
    over_seeds = contender.over_seeds
    return Row(
        policy=contender.policy,
        preset=contender.preset,
        settings=contender.settings,
        runs=len(contender.runs),
        regret=over_seeds("expected_regret"),
        difference=difference,
        verdict="best" if contender is best else verdict,
        clipped=over_seeds("clipped_regret"),
        floor=over_seeds("clipped_floor").mean,
        successes=over_seeds("successes"),
        best_expected=over_seeds("best_expected").mean,
        seconds=over_seeds("seconds").mean,
        select_seconds=over_seeds("select_seconds").mean,
        update_seconds=over_seeds("update_seconds").mean,
    )


def paired_difference(contender: Contender, best: Contender) -> Estimate | None:
    """Mean and s.e. of regret − regret of `best` over the seeds both have played; None without one."""
    gaps = common_gaps(contender, best)
    return estimate(list(gaps.values())) if gaps else None


def is_within_noise(difference: Estimate) -> bool:
    """|difference| < 2 standard errors, or no difference at all."""
    return difference.error is not None and (difference.mean == 0.0 or abs(difference.mean) < NOISE * difference.error)


def _notes(problem: ProblemRuns, rows: Sequence[Row], best: Contender, judged: Sequence[Judged]) -> list[str]:
    notes = [floor_note(rows[0].floor, problem.rounds)]
    if (unpaid := unpaid_note(problem)) is not None:
        notes.insert(0, f"{unpaid[0].upper()}{unpaid[1:]}.")
    if problem.rewards in ("simulated", "replayed"):
        sentence = rewards_sentence(problem.rewards, problem.env)
        notes.append(f"{sentence[0].upper()}{sentence[1:]}.")
    alike = [row for row in rows if row.verdict == "noise"]
    if alike:
        names = ", ".join(_name(row.policy, row.preset) for row in alike)
        tests = sum(each.p is not None for each in judged)
        notes.append(
            f"Noise, no difference to {_name(best.policy, best.preset)} shown: {names} ({reading_note(tests)}; "
            "`neuclust compare` gives every p)."
        )
    if judged and problem.seeds == 1:
        notes.append("One seed has no standard error: run several (--seeds 10) before believing an order.")
    elif powerless := powerless_note(judged):
        notes.append(powerless)
    notes += [_failed_note(run) for contender in problem.contenders for run in contender.runs if run.failed_trainings]
    notes += [_left_out_note(run) for run in problem.left_out]
    partial = [run for contender in problem.contenders for run in contender.runs if run.interrupted]
    notes += [f"{_run_name(run)} stopped after round {run.rounds} of {run.rounds_asked}." for run in partial]
    return notes


def floor_note(floor: float, rounds: int) -> str:
    """What the floor is, and how far a single run may lie from it.

    A round's clipped regret is between 0 and 1 with mean f, hence has a variance of at most f(1 − f); over the rounds
    these add up to at most F(1 − F/T).
    """
    if floor == 0:
        return "Nothing is left to chance here: clipped regret has a floor of 0, which a perfect policy reaches."
    spread = math.sqrt(max(0.0, floor * (1.0 - floor / rounds)))
    shown = f"{spread:.0f}" if spread >= 10 else f"{spread:.2g}"
    return (
        f"The floor of clipped regret, {number(floor)}, is an expectation: what a perfect policy pays on average. A "
        f"single run scatters about it, by up to about ±{shown} here (one standard deviation), and can fall below it; "
        "only what lies above it on average could have been avoided."
    )


def _failed_note(run: RunRecord) -> str:
    often = "once" if run.failed_trainings == 1 else f"{run.failed_trainings} times"
    return (
        f"{_run_name(run)}: training failed {often} (it blew up or found no step that helped) and kept the weights it "
        "had; where that happens often, lower the training step."
    )


def _left_out_note(run: RunRecord) -> str:
    return (
        f"{_run_name(run)} stopped after round {run.rounds} of {run.rounds_asked} with expected regret "
        f"{number(run.expected_regret)} and is left out of the table."
    )


def _run_name(run: RunRecord) -> str:
    return f"{_name(run.policy, run.preset)} (seed {run.seed})"


def _name(policy: str, preset: str) -> str:
    return policy if preset == "default" else f"{policy} {preset}"


def number(value: float) -> str:
    """As many decimals as a reader can use: 320.1, 13.42, 0.213."""
    return f"{value:.{decimals(value)}f}"


def decimals(value: float) -> int:
    size = abs(value)
    return 1 if size >= 100 else 2 if size >= 1 else 3


def with_error(value: Estimate, sign: bool = False) -> str:
    """`13.42 ± 0.81`, both with the decimals of the mean."""
    places = decimals(value.mean)
    mean = f"{value.mean:{'+' if sign else ''}.{places}f}"
    return mean if value.error is None else f"{mean} ± {value.error:.{places}f}"


def versus_best(row: Row) -> str:
    """The cell that says how far behind the best learner a row is, with the verdict where it is not simply more."""
    if row.verdict in ("best", "reference") or row.difference is None:
        return row.verdict if row.verdict in ("best", "reference") else "-"
    gap = with_error(row.difference, sign=True)
    return gap if row.verdict == "more regret" else f"{gap} ({row.verdict})"


def cells(row: Row) -> dict[str, str]:
    """The words of a row by heading, in the order of the table."""
    return {
        "policy": row.policy,
        "preset": f"{row.preset} ({row.settings})" if row.settings else row.preset,
        "expected\nregret": with_error(row.regret),
        "versus\nbest": versus_best(row),
        "clipped\nregret": with_error(row.clipped),
        "its\nfloor": number(row.floor),
        "\nsuccesses": with_error(row.successes),
        "seconds\na run": f"{row.seconds:.2f}",
        "select +\nupdate": f"{row.select_seconds:.2f} + {row.update_seconds:.2f}",
    }


# What a narrow window can do without, the least needed first.
DISPENSABLE = ("select +\nupdate", "\nsuccesses", "seconds\na run", "preset", "versus\nbest")


def rich_table(summary: Summary, width: int) -> Table:
    """The summary as a Rich table (text left, numbers right), without the columns that `width` has no room for."""
    left_out: list[str] = []
    table = _table(summary, left_out)
    for heading in DISPENSABLE:
        if _width(table) <= width:
            break
        left_out.append(heading)
        table = _table(summary, left_out)
    if left_out:
        names = ", ".join(" ".join(heading.split()) for heading in left_out)
        table.caption = f"(the window is too narrow for: {names})"
    return table


def _table(summary: Summary, left_out: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [{key: text for key, text in cells(row).items() if key not in left_out} for row in summary.rows]
    table = Table(title=Text(summary.title), title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD)
    for heading in rows[0]:
        justify: Literal["left", "right"] = "left" if heading in ("policy", "preset") else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    for words, row in zip(rows, summary.rows, strict=True):
        best = row.verdict == "best" and len(rows) > 1
        table.add_row(*map(Text, words.values()), style="bold" if best else None)
    return table


def _width(table: Table) -> int:
    from rich.console import Console

    return Console(width=UNBOUNDED).measure(table).maximum


def text_table(records: Sequence[RunRecord], width: int = UNBOUNDED) -> str:
    """All summaries as plain text."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    for summary in summaries(records):
        console.print(rich_table(summary, width))
        for note in summary.notes:
            console.print(note, markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


CSV_COLUMNS = (
    "env", "rounds", "policy", "preset", "settings", "seeds", "expected_regret", "expected_regret_se",
    "difference_to_best", "difference_se", "verdict", "clipped_regret", "clipped_regret_se", "clipped_floor",
    "successes", "successes_se", "best_expected", "seconds", "select_seconds", "update_seconds",
)  # fmt: skip


def csv_table(records: Sequence[RunRecord]) -> str:
    """All summaries as CSV with full precision; an empty cell where there is no number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for summary in summaries(records):
        writer.writerows(_csv_row(summary, row) for row in summary.rows)
    return out.getvalue()


def _csv_row(summary: Summary, row: Row) -> list[object]:
    gap = ("", "") if row.difference is None else (row.difference.mean, row.difference.error)
    return [
        summary.env, summary.rounds, row.policy, row.preset, row.settings, row.runs,
        row.regret.mean, row.regret.error, *gap, row.verdict,
        row.clipped.mean, row.clipped.error, row.floor, row.successes.mean, row.successes.error,
        row.best_expected, row.seconds, row.select_seconds, row.update_seconds,
    ]  # fmt: skip
