"""Run benchmarks by name: `python -m benchmarks [NAME ...] [--list] [--quick]`.

Named ones run at full size, or at a small one with --quick. Without a name all of them run at the small size,
which is what `make bench` does. Each script has options of its own: `python -m benchmarks.naive_ratio --help`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The question it answers, its module in this package, and its arguments at small and at full size."""

    summary: str
    module: str
    quick: str
    full: str = ""


BENCHMARKS = {
    "naive-ratio": Benchmark(
        "how much faster than a straightforward PyTorch version, at equal widths and slates",
        "naive_ratio",
        quick="--rounds 1 10",
    ),
    "peers": Benchmark(
        "selections and updates beside calvera, Vowpal Wabbit and mab2rec, with new arms in every round",
        "peers",
        quick="--arms 100 1000 --learn 50 --repeats 3 --patience 3",
        full="--json docs/records/peers.json",
    ),
    "long-life": Benchmark(
        "what updates, selections and saves of `auto` cost over a long life, with new arms in every round",
        "long_life",
        quick="--rounds 300 --block 100",
    ),
    "unseen": Benchmark(
        "regret on problems outside the suite: real tables, and truths that no learner is made of",
        "unseen",
        quick="play --out results/unseen.jsonl --policy auto --policy linucb --problem wine --rounds 60",
        full="play --out docs/records/unseen.jsonl --policy auto --policy linucb --policy neural-linear --seeds 0:3",
    ),
    "theory": Benchmark(
        "how good and how dear the quantities of the analysis are, up to the effective dimension of a million contexts",
        "theory",
        quick="--contexts 400 --large 6000 --rank 100",
        full="--json docs/records/theory.json",
    ),
    "scaling": Benchmark(
        "how time and memory grow with arms, rounds, parameters and slate size",
        "scaling",
        quick="--quick",
        full="--json docs/records/scaling.json --figure docs/figures/scaling.svg",
    ),
    "fresh-growth": Benchmark(
        "how updates and states of neural policies grow where every arm is new, with and without a bounded training",
        "fresh_growth",
        quick="--policies cn-ucb --slates 100 400 --memory none 500",
    ),
    "coverage": Benchmark(
        "how often intervals of off-policy estimates cover, and how wide they are, over fixed and learning loggers",
        "coverage",
        quick="--scale 0.005",
        full="--out docs/records/coverage.json",
    ),
    "movielens-offline": Benchmark(
        "regret of NeUClust, CN-UCB and LinUCB on MovieLens over paired seeds",
        "movielens_seeds",
        quick="offline --seeds 2 --rounds 100",
        full="offline",
    ),
    "movielens-online": Benchmark(
        "regret from a cold start, with and without tracking profiles, over paired seeds",
        "movielens_seeds",
        quick="online --seeds 2 --rounds 50",
        full="online",
    ),
    "twin-fidelity": Benchmark(
        "whether the synthetic MovieLens twin behaves like the real problem",
        "twin_fidelity",
        quick="--regrets-only --rounds 100 --seeds 1",
    ),
    "crossing": Benchmark(
        "how user and item columns should meet where nothing is stated: clicks collected on invented shops",
        "crossing",
        quick="--requests 100 --seeds 1 --policy linucb --rule true --rule none --rule default",
    ),
    "data-scale": Benchmark(
        "time and memory to prepare raw files of published size",
        "data_scale",
        quick="--ratings 1000000 --reviews 200000",
    ),
    "log-scale": Benchmark(
        "rows per second and memory of writing, checking and reading a log of decisions",
        "log_scale",
        quick="--decisions 5000",
        full="--decisions 1000000",
    ),
    "gpu": Benchmark(
        "seconds per run on a GPU, alone and with seeds batched, and whether it agrees with the CPU",
        "gpu",
        quick="--rounds 20 --seeds 2 --agreement-rounds 10 --only 'movielens seeds'",
        full="--json docs/records/gpu.json",
    ),
    "yelp-size": Benchmark(
        "time and memory of NeUClust at Yelp size, and what a round has to look at",
        "yelp_size",
        quick="--rounds 20 --every 5",
    ),
    "million-arms": Benchmark(
        "one selection among a million arms, masked and dense contexts",
        "million_arms",
        quick="--arms 100000 --rounds 20",
    ),
    "evaluate-scale": Benchmark(
        "how long a log with a target's chances as columns takes to judge, and how much memory",
        "evaluate_scale",
        quick="--rows 20000",
        full="--rows 10000000 --json docs/records/evaluate_scale.json",
    ),
    "estimator-bias": Benchmark(
        "the exact bias of every off-policy estimator where its assumption holds and where it does not",
        "estimator_bias",
        quick="--quick",
    ),
    "front-door": Benchmark(
        "clicks the recommender collects from raw tables, as a share of the same policy's on hand-made columns",
        "front_door",
        quick="--quick --shops linear nonlinear --policies linucb",
        full="--out docs/records/front_door.json",
    ),
    "recommend": Benchmark(
        "milliseconds of a recommendation and its parts, and what 64 in one call save",
        "recommend",
        quick="--quick",
        full="--json docs/records/recommend.json",
    ),
    "selection": Benchmark(
        "milliseconds of auto's selections among 300 to 100,000 arms, fresh and staying, beside plain products",
        "selection",
        quick="--arms 300 1000 --learn 20 --repeats 3",
        full="--json docs/records/selection.json",
    ),
    "startup": Benchmark(
        "how long `import neuclust` and commands that only show something take, beside a bare interpreter",
        "startup",
        quick="--repeats 3",
        full="--json docs/records/startup.json",
    ),
    "store-kills": Benchmark(
        "whether a store loses, repeats or reorders events when its writers are killed",
        "store_kills",
        quick="--store sqlite --kills 5",
        full="--store sqlite --kills 500 --json docs/records/store_kills.json",
    ),
    "store-kills-postgres": Benchmark(
        "the same with PostgreSQL, whose server is killed too",
        "store_kills",
        quick="--store postgres --kills 10",
        full="--store postgres --kills 500 --json docs/records/store_kills.json",
    ),
    "store-damage": Benchmark(
        "whether damage of a SQLite file, or of models and states in it, is ever read as if it were whole",
        "store_damage",
        quick="--trials 20",
        full="--trials 1000 --json docs/records/store_damage.json",
    ),
    "store-speed": Benchmark(
        "events per second that a store makes durable, on SQLite and on PostgreSQL",
        "store_speed",
        quick="--groups 30",
        full="--json docs/records/store_speed.json",
    ),
    "sweep-overhead": Benchmark(
        "throughput of a sweep with two workers against two processes of `neuclust run`",
        "sweep_overhead",
        quick="--seeds 2 --rounds 100",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """List or run; the exit code is 1 when a benchmark failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--list", action="store_true", help="say what there is, and leave")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"expected names among {', '.join(BENCHMARKS)}, got {', '.join(unknown)}")
    if options.list:
        print("\n".join(f"{name:18} {benchmark.summary}" for name, benchmark in BENCHMARKS.items()))
        return 0
    failed = [
        name for name in options.names or BENCHMARKS if not succeeds(name, quick=options.quick or not options.names)
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def succeeds(name: str, quick: bool) -> bool:
    """Run one benchmark under its heading, in a process of its own.

    A process that already loaded libraries would lend them to the next: its memory would count as the child's
    peak, and its threads could not be limited any more. One thread unless OMP_NUM_THREADS says otherwise: matrices
    this small gain nothing from more, and on a busy machine waiting threads cost many times the work.
    """
    benchmark = BENCHMARKS[name]
    print(f"== {name}: {benchmark.summary}{' (small size)' if quick else ''}", flush=True)
    words = shlex.split(benchmark.quick if quick else benchmark.full)
    environment = {"OMP_NUM_THREADS": "1"} | os.environ
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{benchmark.module}", *words], env=environment, check=False
    )
    print(flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
