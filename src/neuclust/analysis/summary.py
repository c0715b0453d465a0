"""The final table of a problem as numbers: least regret first, paired with the best learner, with notes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from neuclust.analysis.estimates import Estimate, number, sentence
from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.analysis.verdicts import Judged, couples_of, judge, paired_difference, powerless_note, reading_note
from neuclust.environments.rewards import DEFAULT_REWARD
from neuclust.experiment.problem import rewards_sentence
from neuclust.experiment.records import RunRecord

HARDLY = 1e-3  # per round: below, no slate is paid, every number of the run is 0 and says nothing
EASIER_REWARDS = "the slate rewards mean and at-least-one pay for fewer rewarded arms"


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
    notes += [
        f"{_name(run)} (seed {run.seed}): training failed {_times(run.failed_trainings)} (it blew up or found no "
        "step that helped) and kept the weights it had; where that happens often, lower the training step."
        for run in problem.runs
        if run.failed_trainings
    ]
    notes += [
        f"{_stopped(run)} with expected regret {number(run.expected_regret)} and is left out of the table."
        for run in problem.left_out
    ]
    return notes + [f"{_stopped(run)}." for run in problem.runs if run.interrupted]


def unpaid_notes(records: Sequence[RunRecord]) -> list[str]:
    """One sentence per problem whose slates cannot be paid, or never were, although arms were rewarded."""
    return [f"{problem.env}: {note}" for problem in problems(records) if (note := unpaid_note(problem))]


def unpaid_note(problem: ProblemRuns) -> str | None:
    """The sentence for one problem; None where slates are paid, or where no arm was rewarded either."""
    runs = problem.runs
    rounds, rewarded = sum(run.rounds for run in runs), sum(run.arm_successes for run in runs)
    best = sum(run.best_expected for run in runs) / rounds
    never = problem.rewards == "replayed" and not any(run.successes for run in runs)  # elsewhere it may be bad play
    if not rewarded or not (best < HARDLY or never):
        return None
    reward = runs[0].problem.get("slate_reward")
    named = f"the slate reward {reward}" if reward else f"the default slate reward, {DEFAULT_REWARD}"
    hardly = f"hardly any slate can be paid: the best ones earn {best:.2g} per round"
    what = hardly if best < HARDLY else f"no slate was paid in {rounds} rounds"
    return f"{what} under {named}, although arms were rewarded {rewarded:g} times; {EASIER_REWARDS}"


def floor_note(floor: float, rounds: int) -> str:
    """The floor F and how far a run may lie from it: per round in [0, 1], so Var ≤ F(1 − F/T) over T rounds."""
    if floor == 0:
        return "Nothing is left to chance here: clipped regret has a floor of 0, which a perfect policy reaches."
    spread = math.sqrt(max(0.0, floor * (1.0 - floor / rounds)))
    shown = f"{spread:.0f}" if spread >= 10 else f"{spread:.2g}"
    return (
        f"The floor of clipped regret, {number(floor)}, is an expectation: what a perfect policy pays on average. A "
        f"single run scatters about it, by up to about ±{shown} here (one standard deviation), and can fall below it; "
        "only what lies above it on average could have been avoided."
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _stopped(run: RunRecord) -> str:
    return f"{_name(run)} (seed {run.seed}) stopped after round {run.rounds} of {run.rounds_asked}"


def _name(of: Contender | RunRecord) -> str:
    return of.policy if of.preset == "default" else f"{of.policy} {of.preset}"
