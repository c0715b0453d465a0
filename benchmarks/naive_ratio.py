"""How much faster is NeUClust than a straightforward PyTorch version of it, with the same result?

    python -m benchmarks.naive_ratio [--rounds 1 10 50] [--seed 0]

Both play the MovieLens problem (10,168 arms, 20 genres, K = 5, 22 clusters) with the `paper` preset on one
thread. Up to the last timed round the naive version learns from the same slates; in the timed rounds it selects
too. There both must give the same widths (to 1e-8) and the same slate, else the run ends with an error: a ratio
between unequal answers would mean nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.movielens_problem import movielens_dataset
from benchmarks.naive_reference import NaiveNeUClust
from neuclust.core import Feedback, Round, Slate
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment
from neuclust.policies.neuclust import NeUClust
from neuclust.registry import policy_config

SLATE_SIZE = 5
TARGET = 50
TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one round, ours and the naive version's."""

    t: int
    select: float
    update: float
    naive_select: float
    naive_update: float

    @property
    def ratio(self) -> float:
        return (self.naive_select + self.naive_update) / (self.select + self.update)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, compare and print one line a timed round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 10, 50], help="the rounds to time")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        report(measure(sorted(set(options.rounds)), options.seed))
    finally:
        torch.set_num_threads(threads)


def measure(rounds: Sequence[int], seed: int) -> list[Timing]:
    """Both versions side by side up to the last of `rounds`, timed in each of them."""
    dataset = movielens_dataset()
    print(f"{dataset.name}: {len(dataset.arms):,} arms, K = {SLATE_SIZE}, preset paper, one thread")
    environment = profile_environment(dataset, slate_size=SLATE_SIZE, horizon=max(rounds[-1], 2), seed=seed)
    _warm_up(environment, seed)
    policy = _policy(environment, seed)
    policy.select(environment.round(2))  # finds the clusters, which Algorithm 2 does before its loop
    naive = naive_twin_of(policy, environment.round(1))
    timings = []
    for t in range(1, rounds[-1] + 1):
        timing = _play(policy, naive, environment, t, timed=t in rounds)
        if timing is not None:
            timings.append(timing)
    return timings


def naive_twin_of(policy: NeUClust, round: Round) -> NaiveNeUClust:
    """A naive version that starts from the policy's weights and clusters."""
    config = policy.config.arms
    assert config.training.step is not None  # the paper's preset names one
    return NaiveNeUClust(
        theta=list(policy.arms.net.weights),
        slate=list(policy.slates.net.parameters),
        labels=policy.clusters.partition(round).labels,
        gamma=config.schedule.gamma,
        ridge=config.confidence.ridge,
        step=config.training.step,
        steps=config.training.steps,
    )


def _policy(environment: SlateEnvironment, seed: int) -> NeUClust:
    return NeUClust(policy_config("neuclust", "paper"), environment.dim, SLATE_SIZE, seed)


def _warm_up(environment: SlateEnvironment, seed: int) -> None:
    """Compiled loops and library start-up belong to no round."""
    policy = NeUClust(policy_config("neuclust", "paper", clusters=1), environment.dim, SLATE_SIZE, seed)
    naive = naive_twin_of(policy, environment.round(1))
    for t in (1, 2):
        round = environment.round(t)
        slate = policy.select(round)
        feedback = environment.play(round, slate)
        policy.update(round, slate, feedback)
        naive.gradient(round.contexts[0])
        _naive_update(naive, round.contexts, slate, feedback)


def _play(
    policy: NeUClust, naive: NaiveNeUClust, environment: SlateEnvironment, t: int, *, timed: bool
) -> Timing | None:
    round = environment.round(t)
    contexts = round.contexts / policy.arms.encoder.scale_of(round)
    start = time.perf_counter()
    slate = policy.select(round)
    select = time.perf_counter() - start
    naive_select = _compare_selection(policy, naive, round, slate, contexts) if timed else 0.0
    feedback = environment.play(round, slate)
    start = time.perf_counter()
    policy.update(round, slate, feedback)
    update = time.perf_counter() - start
    naive_update = _naive_update(naive, contexts, slate, feedback)
    _require_equal(f"round {t}: weights after training", _flat(policy), _flat_naive(naive))
    seconds = (select, update, naive_select, naive_update)
    return Timing(t, *(1000 * value for value in seconds)) if timed else None


def _compare_selection(policy: NeUClust, naive: NaiveNeUClust, round: Round, slate: Slate, contexts: Tensor) -> float:
    """Seconds the naive version takes to select, after its answer was found equal."""
    start = time.perf_counter()
    choice = naive.select(contexts)
    seconds = time.perf_counter() - start
    widths = policy.arms.scores(round).bonuses / policy.arms.gamma()
    _require_equal(f"round {round.t}: widths of all arms", widths, choice.widths)
    if slate.positions.tolist() != choice.positions.tolist():
        raise SystemExit(
            f"round {round.t}: expected equal slates, got {slate.positions.tolist()} and the naive version's "
            f"{choice.positions.tolist()}"
        )
    return seconds


def _naive_update(naive: NaiveNeUClust, contexts: Tensor, slate: Slate, feedback: Feedback) -> float:
    start = time.perf_counter()
    naive.update(contexts[slate.positions], feedback.arm_rewards, float(feedback.slate_reward))
    return time.perf_counter() - start


def _require_equal(what: str, ours: Tensor, naive: Tensor) -> None:
    gap = float((ours - naive).abs().max())
    if not gap <= TOLERANCE:
        raise SystemExit(f"{what}: expected a difference of at most {TOLERANCE:g}, got {gap:.3g}")


def _flat(policy: NeUClust) -> Tensor:
    return torch.cat([p.flatten() for p in (*policy.arms.net.weights, *policy.slates.net.parameters)])


def _flat_naive(naive: NaiveNeUClust) -> Tensor:
    return torch.cat([p.detach().flatten() for p in (*naive.theta, *naive.slate)])


def report(timings: Sequence[Timing]) -> None:
    """Milliseconds a round and the ratio, then the ratio over all timed rounds."""
    print(f"{'round':>5} {'select ms':>10} {'naive':>9} {'update ms':>10} {'naive':>9} {'ratio':>7}")
    for row in timings:
        print(
            f"{row.t:5d} {row.select:10.2f} {row.naive_select:9.1f} {row.update:10.2f} {row.naive_update:9.1f} "
            f"{row.ratio:6.0f}x"
        )
    ours = sum(row.select + row.update for row in timings)
    naive = sum(row.naive_select + row.naive_update for row in timings)
    verdict = "reached" if naive >= TARGET * ours else "missed"
    print(f"all timed rounds: {naive / ours:.0f}x, target {TARGET}x {verdict}; equal widths and slates in each")


if __name__ == "__main__":
    main()
