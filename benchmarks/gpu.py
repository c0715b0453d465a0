"""How long do runs take on a GPU, alone and batched, and do they agree with the CPU?

    python -m benchmarks.gpu [--device cuda] [--rounds 1000] [--seeds 20] [--only NAME ...] [--json FILE]

Seconds are wall-clock for whole runs, clustering and scoring against the truth included, after a few rounds that
compile and load everything. `agreement` lets the GPU follow what the CPU played: same slates, scores within rounding.
Without a CUDA device everything is measured on the CPU. The real MovieLens file is played where it is at hand, else
the twin; Yelp is the twin.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.movielens_problem import movielens_file
from neuclust.experiment.engines.device import BatchRun, run_batch, trace_batch
from neuclust.experiment.engines.device.runner import usable_device
from neuclust.experiment.problem import Problem, open_problem
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import RunLabel
from neuclust.registry import policy_config

WARM_UP = 12
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for, print a table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=20, help="runs of the batched measurement")
    parser.add_argument("--agreement-rounds", type=int, default=300)
    parser.add_argument("--only", nargs="*", choices=list(MEASUREMENTS), default=list(MEASUREMENTS))
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args(arguments)
    machine = describe(options.device)
    print(", ".join(f"{name} {value}" for name, value in machine.items()), flush=True)
    rows = []
    for name in options.only:
        row = {"name": name} | MEASUREMENTS[name](options)
        rows.append(row)
        print("  ".join(f"{key} {_short(value)}" for key, value in row.items()), flush=True)
    if options.json is not None:
        words = [f"OMP_NUM_THREADS={torch.get_num_threads()}", "python -m benchmarks.gpu", *(arguments or sys.argv[1:])]
        document = {"command": " ".join(words), "machine": machine, "figures": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def describe(device: str) -> dict[str, str]:
    """The device and the versions behind the figures."""
    on_gpu = usable_device(device).type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    return {"device": name} | versions | ({"cuda": str(torch.version.cuda)} if on_gpu else {})


def movielens() -> Problem:
    return Problem(data=movielens_file())


def yelp() -> Problem:
    return Problem(env="yelp-twin")


def runs_of(problem: Problem, rounds: int, policy: str, preset: str, seeds: Sequence[int]) -> list[BatchRun]:
    """The same policy with several seeds; environments are made beforehand, as a sweep does."""
    environment_of = open_problem(replace(problem, rounds=rounds)).environment
    config, label = policy_config(policy, preset), RunLabel(policy, preset, env=problem.name)
    return [BatchRun(config, environment_of(seed), seed, label) for seed in seeds]


def timed(problem: Problem, policy: str, preset: str, count: Callable[[Any], int]) -> Callable[[Any], Row]:
    def measure(options: Any) -> Row:
        seeds = range(count(options))
        run_batch(runs_of(problem, WARM_UP, policy, preset, seeds), WARM_UP, device=options.device)
        runs = runs_of(problem, options.rounds, policy, preset, seeds)
        if options.device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        records = run_batch(runs, options.rounds, device=options.device)
        seconds = time.perf_counter() - began
        return {
            "policy": f"{policy}:{preset}", "problem": problem.name, "runs": len(runs), "rounds": options.rounds,
            "seconds": seconds, "seconds_a_run": seconds / len(runs), "regret": _mean_regret(records),
            "device_gib": _peak(options.device),
        }  # fmt: skip

    return measure


def agreement(problem: Problem, policy: str, preset: str, share: int) -> Callable[[Any], Row]:
    """The device follows the slates the CPU chose; what it would have chosen, and how it scored them."""

    def measure(options: Any) -> Row:
        rounds = min(options.rounds, options.agreement_rounds // share)
        runs = runs_of(problem, rounds, policy, preset, range(2))
        began = time.perf_counter()
        recorded = trace_batch(runs, rounds, device="cpu")
        cpu_seconds = time.perf_counter() - began
        followed = trace_batch(runs, rounds, device=options.device, forced=recorded.slates)
        free = trace_batch(runs, rounds, device=options.device)
        same = (followed.slates == recorded.slates).all(-1)
        return {
            "policy": f"{policy}:{preset}", "problem": problem.name, "runs": len(runs), "rounds": rounds,
            "equal_slates": int(same.sum()), "of": same.numel(),
            "equal_slates_free": int((free.slates == recorded.slates).all(-1).sum()),
            "largest_gap_of_means": float((followed.means - recorded.means)[same].abs().max()),
            "largest_gap_of_bonuses": float((followed.bonuses - recorded.bonuses)[same].abs().max()),
            "cpu_seconds": cpu_seconds,
        }  # fmt: skip

    return measure


def _one(_: Any) -> int:
    return 1


def _seeds(options: Any) -> int:
    return int(options.seeds)


MEASUREMENTS: dict[str, Callable[[Any], Row]] = {
    "movielens default": timed(movielens(), "neuclust", "default", _one),
    "movielens paper": timed(movielens(), "neuclust", "paper", _one),
    "movielens cn-ucb": timed(movielens(), "cn-ucb", "default", _one),
    "movielens seeds": timed(movielens(), "neuclust", "default", _seeds),
    "movielens paper seeds": timed(movielens(), "neuclust", "paper", _seeds),
    "yelp": timed(yelp(), "neuclust", "paper-yelp", _one),
    "agreement default": agreement(movielens(), "neuclust", "default", 1),
    "agreement paper": agreement(movielens(), "neuclust", "paper", 1),
    "agreement yelp": agreement(yelp(), "neuclust", "paper-yelp", 5),
}


def _mean_regret(records: Sequence[RunRecord]) -> float:
    return sum(record.expected_regret for record in records) / len(records)


def _peak(device: str) -> float | None:
    return torch.cuda.max_memory_allocated() / 2**30 if device.startswith("cuda") else None


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
