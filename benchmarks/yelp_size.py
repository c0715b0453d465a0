"""What does NeUClust cost at Yelp size, and what does that cost depend on?

    python -m benchmarks.yelp_size [--rounds 1000] [--every 100] [--threads 2] [--set KEY=VALUE ...] [--policy linucb]

The Yelp twin (52,268 arms, 171 terms, K = 5), preset paper-yelp (m = 100, p = 17,200, exact full covariance, J = 40).
Every `--every` rounds one line: active columns q, distinct contexts, activation regions, past gradients n, how the
widths of that round were found and how many were computed, distinct training rows, and seconds so far.
`--policy linucb` prints the milliseconds of its selections instead.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
from collections.abc import Sequence
from time import perf_counter, process_time


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    parser.add_argument("--policy", choices=["neuclust", "linucb"], default="neuclust")
    options = parser.parse_args(arguments)
    os.environ["NUMBA_NUM_THREADS"] = str(options.threads)  # before Numba loads
    import torch

    torch.set_num_threads(options.threads)
    overrides = dict(setting.split("=", 1) for setting in options.set)
    if options.policy == "linucb":
        time_linear(options.rounds, options.seed, overrides)
    else:
        play(options.rounds, options.every, options.seed, overrides)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{options.threads} threads, {process_time():.1f} s of processor time in all, peak memory {peak:.2f} GiB")
    return 0


def play(rounds: int, every: int, seed: int, overrides: dict[str, str]) -> None:
    """The run, with what a round had to look at."""
    from neuclust.environments.catalogue import build_environment
    from neuclust.policies.neuclust import NeUClust
    from neuclust.registry import build_policy

    environment = build_environment("yelp-twin", slate_size=5, horizon=max(rounds, 2), seed=seed)
    began = perf_counter()
    policy = build_policy("neuclust", environment=environment, preset="paper-yelp", seed=seed, overrides=overrides)
    assert isinstance(policy, NeUClust)
    policy.clusters.partition(environment.round(1))
    print(f"clusters found in {perf_counter() - began:.1f} s")
    print("round   q distinct regions     n      way widths  rows  select  update  regret")
    select, update, regret = 0.0, 0.0, 0.0
    for t in range(1, rounds + 1):
        round = environment.round(t)
        began = perf_counter()
        slate = policy.select(round)
        select += perf_counter() - began
        choice, arms = policy.arms.last_choice, policy.arms
        assert choice is not None
        if t == 1 or t % every == 0:
            print(
                f"{t:5d} {choice.columns:3d} {choice.contexts:8d} {regions(policy, round):7d} "
                f"{arms.history.observations:5d} {choice.way:>8} {choice.widths:6d} {len(arms.history.contexts):5d} "
                f"{select:7.1f} {update:7.1f} {regret:7.2f}",
                flush=True,
            )
        feedback = environment.play(round, slate)
        regret += environment.best_expected_reward(round) - environment.expected_reward(round, slate)
        began = perf_counter()
        policy.update(round, slate, feedback)
        update += perf_counter() - began
    print(f"{rounds} rounds: select {select:.1f} s, update {update:.1f} s, expected regret {regret:.4f}")


def time_linear(rounds: int, seed: int, overrides: dict[str, str]) -> None:
    """Milliseconds of LinUCB's selections and updates; the first selections find what can be kept of the profiles."""
    from neuclust.environments.catalogue import build_environment
    from neuclust.registry import build_policy

    environment = build_environment("yelp-twin", slate_size=5, horizon=max(rounds, 2), seed=seed)
    policy = build_policy("linucb", environment=environment, seed=seed, overrides=overrides)
    select, update, active = [], [], []
    for t in range(1, rounds + 1):
        round = environment.round(t)
        began = perf_counter()
        slate = policy.select(round)
        chosen = perf_counter()
        feedback = environment.play(round, slate)
        ready = perf_counter()
        policy.update(round, slate, feedback)
        select.append(1000 * (chosen - began))
        update.append(1000 * (perf_counter() - ready))
        active.append(len(round.active))
    print(f"first selection {select[0]:.1f} ms; the others: active columns, median and largest milliseconds")
    for name, times in (("select", select[3:]), ("update", update[3:])):
        print(f"{name} {min(active)} to {max(active)} columns: {statistics.median(times):.2f} and {max(times):.2f} ms")


def regions(policy: object, round: object) -> int:
    """Activation regions of a round's distinct contexts."""
    from neuclust.core import Round
    from neuclust.kernels.network import augment, restrict
    from neuclust.kernels.regions import find_regions, group_rows
    from neuclust.models.encoder import active_contexts
    from neuclust.policies.neuclust import NeUClust

    assert isinstance(policy, NeUClust)
    assert isinstance(round, Round)
    contexts = active_contexts(round)
    first, _ = group_rows(contexts)
    x, columns = policy.arms.encoder.encode(contexts[first], round.active, policy.arms.encoder.scale_of(round))
    net = restrict(policy.arms.net, columns)
    return len(find_regions(net, augment(net, x)).first)


if __name__ == "__main__":
    sys.exit(main())
