"""A slate reward that no slate reaches: every number of such a run is 0, and says nothing."""

from collections.abc import Sequence

from neuclust.analysis.groups import ProblemRuns, problems
from neuclust.environments.rewards import DEFAULT_REWARD
from neuclust.experiment.records import RunRecord

HARDLY = 1e-3  # per round
EASIER_REWARDS = "the slate rewards mean and at-least-one pay for fewer rewarded arms"


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
    what = (
        f"hardly any slate can be paid: the best ones earn {best:.2g} per round"
        if best < HARDLY
        else f"no slate was paid in {rounds} rounds"
    )
    return f"{what} under {named}, although arms were rewarded {rewarded:g} times; {EASIER_REWARDS}"
