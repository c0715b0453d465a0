"""What does a sweep cost over bare processes? Throughput of `neuclust sweep --workers 2` against two `neuclust run`.

    python -m benchmarks.sweep_overhead [--seeds 6] [--rounds 300] [--repeats 1] [--env movielens-twin]

The same runs both ways, start-up included: the two processes take half of the seeds each, the sweep all of them. The
ratio is above 1 where the sweep is quicker (it balances its workers), and should not be below 0.9. On a busy machine
repeat: both ways are timed in turn, and the median ratio counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

POLICIES = ("neuclust", "cn-ucb", "linucb")
WORKERS = 2
WANTED = 0.9


def main(arguments: Sequence[str] | None = None) -> int:
    """Time both ways in turn; the exit code is 1 where a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6, help="an even number")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--env", default="movielens-twin")
    options = parser.parse_args(arguments)
    seeds = options.seeds + options.seeds % WORKERS
    runs, ratios = seeds * len(POLICIES), []
    _timed([_run_command(options.env, 3, 0, 1)])  # compiled loops are made once and kept
    for _ in range(options.repeats):
        half = seeds // WORKERS
        processes = _timed([_run_command(options.env, options.rounds, n * half, half) for n in range(WORKERS)])
        with tempfile.TemporaryDirectory() as folder:
            swept = _timed([_sweep_command(Path(folder), options.env, options.rounds, seeds)])
        ratios.append(processes / swept)
        print(
            f"{runs} runs of {options.rounds} rounds on {options.env}: two processes {processes:.1f} s "
            f"({runs / processes:.2f} runs/s), sweep with two workers {swept:.1f} s ({runs / swept:.2f} runs/s), "
            f"ratio {processes / swept:.3f}"
        )
    print(f"throughput of the sweep over that of two processes: {median(ratios):.3f} (wanted: at least {WANTED})")
    return 0


def _run_command(env: str, rounds: int, first: int, seeds: int) -> list[str]:
    policies = [word for policy in POLICIES for word in ("--policy", policy)]
    scope = ["--env", env, "--rounds", str(rounds), "--first-seed", str(first), "--seeds", str(seeds)]
    return [*_neuclust("run"), *scope, *policies, "--quiet", "--json", "-"]


def _sweep_command(folder: Path, env: str, rounds: int, seeds: int) -> list[str]:
    policies = "".join(f'[[policy]]\npolicy = "{policy}"\n' for policy in POLICIES)
    file = folder / "overhead.toml"
    file.write_text(f'rounds = {rounds}\nseeds = {seeds}\n[[environment]]\nenv = "{env}"\n{policies}')
    return [*_neuclust("sweep"), str(file), "--out", str(folder / "out"), "--workers", str(WORKERS), "--quiet"]


def _neuclust(command: str) -> list[str]:
    return [sys.executable, "-m", "neuclust", command]


def _timed(commands: Sequence[Sequence[str]]) -> float:
    """Seconds until the last of the commands, started together, is done."""
    began = perf_counter()
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(f"a command failed with exit code {max(codes, key=abs)}")
    return perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
