"""Milliseconds of `auto`'s selections by number of arms: fresh arms, a catalogue that stays, and the plain path.

`python -m benchmarks.selection [--arms N ...] [--learn T] [--repeats R] [--json FILE]`. All three are measured in turn
in one run, as processor time of one thread, so that a busy machine changes them little; the plain path computes the
same scores by library products.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.fresh_arms import FreshArms
from neuclust.core import Round
from neuclust.kernels.scoring.arm_scores import LANES
from neuclust.policies.auto.context_reader import ContextReader
from neuclust.policies.auto.policy import Auto, AutoConfig

ARMS = (300, 1_000, 10_000, 100_000)
LEARNING_ARMS = 1_000
COMPILED = (
    "features",
    "learners.forest_regression",
    "learners.index_regression",
    "learners.net_regression",
)  # modules that ask whether loops serve


def learned(problem: FreshArms, slates: int) -> Auto:
    """`auto` after so many slates of fresh arms."""
    policy = Auto(AutoConfig(), problem.dim, problem.slate_size)
    for t in range(1, slates + 1):
        round = problem.round(t, LEARNING_ARMS)
        slate = policy.select(round)
        policy.update(round, slate, problem.play(round, slate))
    return policy


def milliseconds(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - start)


def plain(call: Callable[[], object]) -> float:
    """The time of a call without compiled loops."""
    patches = [patch(f"neuclust.policies.auto.{name}.serves", return_value=False) for name in COMPILED]
    for each in patches:
        each.start()
    try:
        return milliseconds(call)
    finally:
        for each in patches:
            each.stop()


def measured(policy: Auto, problem: FreshArms, arms: int, repeats: int) -> dict[str, Any]:
    """Medians over rounds, and how many slates of the two paths are equal."""
    stay = problem.round(1, arms)
    policy.select(stay)
    times: dict[str, list[float]] = {"fresh": [], "staying": [], "plain": []}
    equal = 0
    for t in range(1_001, 1_001 + repeats):
        fresh = problem.round(t, arms)
        kept = Round(t, stay.arm_ids, stay.profiles, None, stay.slate_size)
        times["fresh"].append(milliseconds(partial(policy.select, fresh)))
        copy = Round(t, fresh.arm_ids, fresh.profiles.clone(), None, fresh.slate_size)  # read anew
        times["plain"].append(plain(partial(policy.select, copy)))
        policy.select(kept)
        times["staying"].append(milliseconds(partial(policy.select, kept)))
        equal += same_slates(policy, fresh)
    found: dict[str, Any] = {name: median(values) for name, values in times.items()}
    found |= {"arms": arms, "ratio": found["plain"] / found["fresh"], "equal slates": f"{equal} of {repeats}"}
    return found | {"parts": parts(policy, fresh, repeats)}


def same_slates(policy: Auto, round: Round) -> bool:
    """Whether both paths choose the same arms in the same order."""
    found: list[list[int]] = [policy.select(round).positions.tolist()]
    copy = Round(round.t, round.arm_ids, round.profiles.clone(), None, round.slate_size)
    plain(lambda: found.append(policy.select(copy).positions.tolist()))
    return found[0] == found[1]


def parts(policy: Auto, round: Round, repeats: int) -> dict[str, float]:
    """Medians of reading the contexts and of every learner's scores."""
    assert policy.ensemble is not None
    blocks, learners = policy.ensemble.blocks, policy.ensemble.learners
    times: dict[str, list[float]] = {"reading": [], "clusters": [], **{name: [] for name in learners}}
    for _ in range(repeats):
        reader = ContextReader()
        times["reading"].append(milliseconds(partial(reader.read, blocks, round.contexts)))
        features = reader.read(blocks, round.contexts)[0]
        if blocks.clusters is not None:
            times["clusters"].append(milliseconds(partial(getattr, features, "groups")))
        for name, learner in learners.items():
            times[name].append(milliseconds(partial(learner.scores, features, round.t)))
    return {name: median(values) for name, values in times.items() if values}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, nargs="+", default=list(ARMS))
    parser.add_argument("--learn", type=int, default=200, help="slates before the timed rounds")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    problem = FreshArms()
    first = milliseconds(
        lambda: Auto(AutoConfig(), problem.dim, problem.slate_size).select(problem.round(1, LANES * 16))
    )
    print(f"first call {first:,.0f} ms")
    policy = learned(problem, options.learn)
    rows = [measured(policy, problem, arms, options.repeats) for arms in options.arms]
    print("| arms | fresh ms | staying ms | plain ms | plain / fresh | equal slates | parts of a fresh one, ms |")
    print("|---:|---:|---:|---:|---:|---|---|")
    for row in rows:
        pieces = ", ".join(f"{name} {value:.2g}" for name, value in row["parts"].items())
        times = " | ".join(f"{row[name]:,.3g}" for name in ("fresh", "staying", "plain", "ratio"))
        print(f"| {row['arms']:,} | {times} | {row['equal slates']} | {pieces} |")
    if options.json is not None:
        options.json.write_text(
            json.dumps({"first call": first, "learned": options.learn, "rows": rows}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
