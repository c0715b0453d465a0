"""The loop of a run: a policy selects, the environment pays, the policy updates, the score is added up."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import TypedDict, Unpack

from neuclust import __version__
from neuclust.core import Environment, Policy
from neuclust.environments.problem import RoundScore, arrival, scored
from neuclust.errors import ConfigError, StateError
from neuclust.experiment.delayed_feedback import DelayedFeedback
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run_log import RunLog

CURVE_POINTS = 200


@dataclass(frozen=True, slots=True)
class RunLabel:
    """What a record says of how its policy and problem were made."""

    policy: str
    preset: str = "default"
    env: str = ""  # empty: the environment's own name
    clusters: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: Mapping[str, str | int | None] = field(default_factory=dict)
    rewards: str = ""  # whose are played: built-in, simulated or replayed


@dataclass(slots=True)
class Tally:
    """Sums over the rounds so far, and the curve points met on the way."""

    rounds_asked: int
    rounds: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)  # of the expected regret
    reward_curve: list[tuple[int, float]] = field(default_factory=list)  # of the expected reward
    chosen_clusters: list[int] = field(default_factory=list)
    expected_regret: float = 0.0
    clipped_regret: float = 0.0
    expected_clipped_regret: float = 0.0
    clipped_floor: float = 0.0
    realised_regret: float = 0.0
    expected_reward: float = 0.0
    best_expected: float = 0.0
    successes: float = 0.0
    arm_successes: float = 0.0
    mean_gap: float = 0.0
    select_seconds: float = 0.0
    update_seconds: float = 0.0

    def add(self, score: RoundScore) -> None:
        """Count one more round."""
        self.rounds += 1
        self.expected_regret += score.expected_regret
        self.clipped_regret += score.clipped_regret
        self.expected_clipped_regret += score.expected_clipped_regret
        self.clipped_floor += score.clipped_floor
        self.successes += score.realised_reward
        self.best_expected += score.best_expected
        self.expected_reward += score.expected
        self.realised_regret += score.realised_regret
        self.mean_gap += score.mean_gap
        if not math.isfinite(self.expected_regret + self.realised_regret):
            raise StateError(f"round {self.rounds}: expected a finite regret and reward, got {score}")
        if is_curve_point(self.rounds, self.rounds_asked):
            self.mark()

    def mark(self) -> None:
        """Put this round on the curves, once."""
        if self.rounds and (not self.curve or self.curve[-1][0] != self.rounds):
            self.curve.append((self.rounds, self.expected_regret))
            self.reward_curve.append((self.rounds, self.expected_reward))


def is_curve_point(t: int, rounds: int) -> bool:
    """Whether round t is one of at most 200 evenly spaced points that end with the last round."""
    return t * CURVE_POINTS // rounds > (t - 1) * CURVE_POINTS // rounds


class Hooks(TypedDict, total=False):
    """`on_round` gets the sums after every round; `stop`, called before it, may end the run as `interrupted`; `log`
    writes every decision."""

    on_round: Callable[[Tally], None] | None
    stop: Callable[[], bool] | None
    log: RunLog | None


def run(
    policy: Policy, environment: Environment, rounds: int, seed: int, *, label: RunLabel, **hooks: Unpack[Hooks]
) -> RunRecord:
    """Play `rounds` rounds and return their record, with `seed` written down; feedback may have a later `arrival`."""
    if not 1 <= rounds <= environment.horizon:
        raise ConfigError(f"{environment.name}: expected 1 to {environment.horizon} rounds, got {rounds}")
    on_round, stop, log = hooks.get("on_round"), hooks.get("stop"), hooks.get("log")
    tally, pending, began = Tally(rounds), DelayedFeedback(), perf_counter()
    for t in range(1, rounds + 1):
        if stop is not None and stop():
            break
        round = environment.round(t)
        asked = perf_counter()
        slate = policy.select(round)
        selected = perf_counter()
        feedback = environment.play(round, slate)
        due = arrival(environment, round.t)
        if log is not None:
            log.decided(round, slate, feedback if due == round.t else None)
        paid = perf_counter()
        pending.add((round, slate, feedback), due)
        for update in pending.due(round.t):
            policy.update(*update)
            if log is not None:
                log.updated(round.t, *update)
        tally.update_seconds += perf_counter() - paid
        tally.select_seconds += selected - asked
        tally.add(scored(environment, round, slate, feedback))
        tally.arm_successes += float(feedback.arm_rewards.nansum())
        if slate.cluster is not None:
            tally.chosen_clusters.append(slate.cluster)
        if on_round is not None:
            on_round(tally)
    tally.mark()  # an interrupted run ends off the grid
    failed = int(getattr(policy, "failed_trainings", 0))
    return make_record(tally, environment, label, seed, perf_counter() - began, failed)


def make_record(
    tally: Tally, environment: Environment, label: RunLabel, seed: int, seconds: float, failed: int
) -> RunRecord:
    """What a run's sums say, under its label."""
    row = asdict(label) | asdict(tally) | {"env": label.env or environment.name, "slate_size": environment.slate_size}
    row |= {name: tuple(row[name]) for name in ("curve", "reward_curve", "chosen_clusters")}
    row |= {"interrupted": tally.rounds < tally.rounds_asked, "failed_trainings": failed, "version": __version__}
    return RunRecord(**row, seed=seed, seconds=seconds)
