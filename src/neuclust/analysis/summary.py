"""The final table of a problem as numbers: least regret first, paired with the best learner, with notes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from neuclust.analysis.estimates import Estimate, number, sentence
from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.analysis.unpaid import unpaid_note
from neuclust.analysis.verdicts import Judged, couples_of, judge, paired_difference, powerless_note, reading_note
from neuclust.experiment.problem import rewards_sentence
from neuclust.experiment.records import RunRecord


@dataclass(frozen=True, slots=True)
class Row:
    """One contender; `difference` is its paired extra regret over the best learner, None for that one."""

    contender: Contender
    best: Contender
    difference: Estimate | None
    verdict: str  # best, reference, or that of `analysis.verdicts` against the best

    def over_seeds(self, column: str) -> Estimate:
        return self.contender.over_seeds(column)


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of one problem, least regret first, and what to know when reading them."""

    problem: ProblemRuns
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.problem.description

    @property
    def best(self) -> Row | None:
        """The learner with the least regret; None where only yardsticks have played."""
        return next((row for row in self.rows if row.verdict == "best" and not row.contender.knows_truth), None)


def summaries(records: Sequence[RunRecord]) -> list[Summary]:
    """One summary per problem."""
    return [summarise(problem) for problem in problems(records)]


def summarise(problem: ProblemRuns) -> Summary:
    best = next(iter(problem.learners), problem.contenders[0])
    judged = judge(couples_of(problem.contenders))
    verdicts = {each.one.key: each.verdict for each in judged if each.against is best}
    rows = tuple(
        Row(one, best, None, "best")
        if one is best
        else Row(one, best, paired_difference(one, best), verdicts.get(one.key, "reference"))
        for one in problem.contenders
    )
    return Summary(problem, rows, tuple(_notes(problem, rows, best, judged)))


def _notes(problem: ProblemRuns, rows: Sequence[Row], best: Contender, judged: Sequence[Judged]) -> list[str]:
    unpaid = unpaid_note(problem)
    notes = [] if unpaid is None else [sentence(unpaid)]
    notes.append(floor_note(rows[0].over_seeds("clipped_floor").mean, problem.rounds))
    if problem.rewards in ("simulated", "replayed"):
        notes.append(sentence(rewards_sentence(problem.rewards, problem.env)))
    if alike := [_name(row.contender) for row in rows if row.verdict == "noise"]:
        tests = reading_note(sum(each.p is not None for each in judged))
        notes.append(
            f"Noise, no difference to {_name(best)} shown: {', '.join(alike)} ({tests}; comparing the records gives "
            "every p)."
        )
    if judged and problem.seeds == 1:
        notes.append("One seed has no standard error: run several, ten for instance, before believing an order.")
    elif powerless := powerless_note(judged):
        notes.append(powerless)
    notes += [_failed_note(run) for run in problem.runs if run.failed_trainings]
    notes += [
        f"{_stopped(run)} with expected regret {number(run.expected_regret)} and is left out of the table."
        for run in problem.left_out
    ]
    return notes + [f"{_stopped(run)}." for run in problem.runs if run.interrupted]


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


def _stopped(run: RunRecord) -> str:
    return f"{_run_name(run)} stopped after round {run.rounds} of {run.rounds_asked}"


def _run_name(run: RunRecord) -> str:
    return f"{_name(run)} (seed {run.seed})"


def _name(of: Contender | RunRecord) -> str:
    return of.policy if of.preset == "default" else f"{of.policy} {of.preset}"
