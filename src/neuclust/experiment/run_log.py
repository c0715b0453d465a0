"""The log of a run: each decision as it is played, and feedback that arrives after its round."""

from typing import Any

from neuclust.core import Environment, Feedback, Policy, Round, Slate
from neuclust.environments.rewards import SlateReward
from neuclust.logs import LogWriter, RunStart
from neuclust.policies.wiring import check_update


class RunLog:
    """Writes one run to a log; decisions are numbered by their rounds, versions count the updates before a choice."""

    def __init__(self, writer: LogWriter, start: RunStart) -> None:
        self._writer, self._updates = writer, 0
        writer.start(start)

    def decided(self, round: Round, slate: Slate, feedback: Feedback | None) -> None:
        """A decision, with its feedback where that comes with the end of its round."""
        self._writer.decided(round, slate, feedback, id=str(round.t), version=str(self._updates))

    def updated(self, now: int, round: Round, slate: Slate, feedback: Feedback) -> None:
        """An update that the end of round `now` brought; feedback of an earlier round is written here."""
        self._updates += 1
        if round.t < now:
            arms = round.arm_ids[slate.positions].tolist()
            values = dict(zip(arms, feedback.arm_rewards.tolist(), strict=True))
            self._writer.heard(str(round.t), values, slate_reward=float(feedback.slate_reward))


def run_start(name: str, title: str, policy: Policy, environment: Environment) -> RunStart:
    """What the log says of a run of this name: who plays, sizes, whether it learns, and what a slate pays."""
    pays: Any = getattr(environment, "pays", None)
    values = pays.values if isinstance(pays, SlateReward) else None
    learning = getattr(type(policy), "update", None) is not check_update  # which checks feedback and learns nothing
    sizes = environment.slate_size, environment.dim
    return RunStart(name, title, *sizes, learning, getattr(pays, "name", None), values)
