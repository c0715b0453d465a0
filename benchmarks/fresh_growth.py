"""How do updates and saved states of neural policies grow where every arm is new, with and without a bounded training?

    python -m benchmarks.fresh_growth [--policies cn-ucb neuclust] [--slates 200 1000 ...] [--memory none default 4096]

The problem of benchmarks/fresh_arms.py, d = 20, K = 5. The history is filled with slates at random without training;
at every number of slates three updates are timed in processor time of one thread, after one that is not. `default` is
the preset's own `arms.training.memory`. The exponent is that of benchmarks/growth.py over the upper half of the points.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import torch

from benchmarks.fresh_arms import FreshArms
from benchmarks.growth import exponent
from benchmarks.tables import described, machine, markdown, one_thread, short
from neuclust.core import Round, Slate
from neuclust.policies.combinatorial_neural import CombinatorialNeuralUCB
from neuclust.policies.neuclust import NeUClust
from neuclust.randomness import stream
from neuclust.registry import build_policy

OFFERED, TIMED = 100, 4
Neural = NeUClust | CombinatorialNeuralUCB
Point = tuple[int, float, float]  # slates, milliseconds per update, megabytes of saved state


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=["cn-ucb", "neuclust"], choices=["cn-ucb", "neuclust"])
    parser.add_argument("--slates", nargs="+", type=int, default=[200, 1_000, 5_000, 10_000, 20_000])
    parser.add_argument("--memory", nargs="+", default=["none", "default"], metavar="CONTEXTS")
    options = parser.parse_args(arguments)
    one_thread()
    print(described(machine()), flush=True)
    rows = []
    for name in options.policies:
        for memory in options.memory:
            points = measured(made(name, memory), options.slates)
            cells = [f"{short(spent)} ms, {short(size)} MB" for _, spent, size in points]
            growth = [exponent([(point[0], point[part]) for point in points]) for part in (1, 2)]
            rows.append([name, memory, *cells, *(f"{one:.2f}" for one in growth)])
            print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    slates = [f"{number:,} slates" for number in options.slates]
    print(markdown(["policy", "memory", *slates, "exponent of updates", "of states"], rows, words=2))


def made(name: str, memory: str) -> Neural:
    """The policy of the default preset with this memory."""
    settings = {} if memory == "default" else {"arms.training.memory": memory}
    if name == "neuclust" and memory == "none":
        settings["slate.training.memory"] = "none"
    policy = build_policy(name, environment=FreshArms(), overrides=settings)
    assert isinstance(policy, NeUClust | CombinatorialNeuralUCB)
    return policy


def measured(policy: Neural, slates: Sequence[int]) -> list[Point]:
    """Updates after so many slates, ascending."""
    problem, t, points = FreshArms(), 0, []
    for wanted in slates:
        while t < wanted - TIMED:
            t += 1
            learn_untrained(policy, problem, problem.round(t, OFFERED))
        spent = []
        for _ in range(TIMED):
            t += 1
            round = problem.round(t, OFFERED)
            slate = policy.select(round)
            feedback = problem.play(round, slate)
            began = time.process_time()
            policy.update(round, slate, feedback)
            spent.append(1000 * (time.process_time() - began))
        size = sum(tensor.numel() * tensor.element_size() for tensor in policy.state_dict().values()) / 1e6
        points.append((wanted, statistics.median(spent[1:]), size))
    return points


def learn_untrained(policy: Neural, problem: FreshArms, round: Round) -> None:
    """A slate at random joins covariance and history."""
    chosen = stream(0, "slates", round.t).choice(OFFERED, round.slate_size, replace=False)
    nothing = torch.zeros(round.slate_size, dtype=torch.float64)
    slate = Slate(torch.from_numpy(chosen), nothing, nothing)
    policy.arms.observe(round, slate, problem.play(round, slate))
    policy.arms.history.end_update()


if __name__ == "__main__":
    main()
