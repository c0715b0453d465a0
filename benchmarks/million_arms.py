"""How long does one selection among a million arms take, exact widths and all?

    python -m benchmarks.million_arms [--arms 1000000] [--rounds 1000] [--repeats 5] [--threads 2]

NeUClust (preset paper: m = 20, d = 20, p = 420, 22 clusters) first learns from `--rounds` rounds of 2,000 of the arms,
then selects from all of them: once with masked contexts (a query of three of the twenty features) and once with dense
ones. Each line gives the median time of a selection (on a busy machine trust the processor time), how the widths were
found, and how many had to be computed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
from collections.abc import Sequence
from time import perf_counter, process_time

DIM, K, CLUSTERS, OFFERED, MASKED = 20, 5, 22, 2_000, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn and select, masked and dense."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=["masked", "dense"])
    options = parser.parse_args(arguments)
    os.environ["NUMBA_NUM_THREADS"] = str(options.threads)  # before Numba loads
    import torch

    torch.set_num_threads(options.threads)
    for kind in ("masked", "dense") if options.only is None else (options.only,):
        print(measured(kind, options.arms, options.rounds, options.repeats), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{options.threads} threads, peak memory {peak:.2f} GiB (profiles alone {options.arms * DIM * 8 / 2**30:.2f})"
    )
    return 0


def measured(kind: str, arms: int, rounds: int, repeats: int) -> str:
    """One line for one kind of contexts."""
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from neuclust.core import Round
    from neuclust.environments.dealing import Arms, Simulated
    from neuclust.environments.problem import ProblemSpec
    from neuclust.environments.profiles import tanh_affinity
    from neuclust.environments.slates import SlateEnvironment
    from neuclust.policies.neuclust import NeUClust
    from neuclust.randomness import stream
    from neuclust.registry import policy_config
    from neuclust.slates.clustering import nearest

    rng = stream(0, "million arms")
    profiles = torch.from_numpy(0.5 + 4.5 * rng.random((arms, DIM)))
    queries = np.zeros((rounds + repeats, DIM))
    for row in queries:
        row[rng.choice(DIM, MASKED, replace=False)] = 1.0

    class Nearest:
        """Clusters around some of the arms: k-means itself is not what is timed here."""

        def fit_predict(self, X: NDArray[np.float64], y: None = None) -> NDArray[np.int64]:  # noqa: ARG002
            points = torch.from_numpy(X)
            labels: NDArray[np.int64] = nearest(points, points[:CLUSTERS]).numpy()
            return labels

    policy = NeUClust(
        policy_config("neuclust", "paper"), DIM, K, clusterer=Nearest(), catalogue=(torch.arange(arms), profiles)
    )
    few = SlateEnvironment(
        "few",
        Arms(profiles[:OFFERED].clone(), torch.arange(OFFERED)),
        Simulated(tanh_affinity(profiles[:OFFERED]), torch.from_numpy(queries) if kind == "masked" else None),
        ProblemSpec(slate_size=K, horizon=rounds + repeats),
    )
    for t in range(1, rounds + 1):
        round = few.round(t)
        slate = policy.select(round)
        policy.update(round, slate, few.play(round, slate))
    ids, seconds, processor = torch.arange(arms), [], []
    for t in range(rounds, rounds + repeats + 1):  # the first finds what can be kept of the profiles
        query = None if kind == "dense" else torch.from_numpy(queries[t - 1])
        round = Round(t, ids, profiles, query, K)
        began, busy = perf_counter(), process_time()
        policy.select(round)
        seconds.append(perf_counter() - began)
        processor.append(process_time() - busy)
    choice = policy.arms.last_choice
    assert choice is not None
    wall, busy_time = (1000 * statistics.median(times[1:]) for times in (seconds, processor))
    return (
        f"{kind}: {arms:,} arms, {choice.columns} active columns, after {rounds} rounds: "
        f"{wall:.0f} ms a selection, {busy_time:.0f} ms of processor time (the first {1000 * seconds[0]:.0f} ms); "
        f"{choice.way}, {choice.widths:,} widths computed"
    )


if __name__ == "__main__":
    sys.exit(main())
