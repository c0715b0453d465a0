"""What a policy costs over a long life on fresh arms: milliseconds of updates and selections, and the size of its save.

    OMP_NUM_THREADS=1 python -m benchmarks.long_life --rounds 20000 --arms 300 --out life.json

Every round offers new arms (`benchmarks/fresh_arms.py`), so that no table of contexts stays small by itself. One line
per block of rounds: median, mean and worst milliseconds of the processor's time, MB of the state, regret per round.
`exponent` is the slope of the logarithm of milliseconds per round against that of the round, by least squares over the
blocks after the first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.fresh_arms import FreshArms
from neuclust.core import Policy
from neuclust.registry import build_policy

Block = dict[str, float]


def megabytes(policy: Policy) -> float:
    """MB of the tensors of a save."""
    return sum(tensor.numel() * tensor.element_size() for tensor in policy.state_dict().values()) / 1e6


def summary(name: str, seconds: Sequence[float]) -> Block:
    """Median, mean and worst milliseconds."""
    values = 1e3 * np.asarray(seconds)
    found = {"median": np.median(values), "mean": values.mean(), "worst": values.max()}
    return {f"{name}_{what}_ms": round(float(value), 3) for what, value in found.items()}


def exponent(blocks: Sequence[Block]) -> float | None:
    """b of ms ∝ tᵇ over the blocks after the first, t the middle of a block; None for fewer than two."""
    if len(blocks) < 3:
        return None
    middles = [(one["first"] + one["last"]) / 2 for one in blocks[1:]]
    costs = [one["update_mean_ms"] + one["select_mean_ms"] for one in blocks[1:]]
    return round(float(np.polyfit(np.log(middles), np.log(costs), 1)[0]), 4)


def live(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play all rounds; a report that is written after every block, so that an interrupted life is not lost."""
    world = FreshArms(arguments.dim, arguments.slate, arguments.seed)
    policy = build_policy(arguments.policy, dim=arguments.dim, slate_size=arguments.slate, seed=arguments.seed)
    blocks: list[Block] = []
    updates: list[float] = []
    report: dict[str, Any] = {"policy": arguments.policy, "arms": arguments.arms, "dim": arguments.dim}
    for first in range(1, arguments.rounds + 1, arguments.block):
        last = min(first + arguments.block - 1, arguments.rounds)
        selecting, updating, lost = [], [], 0.0
        for t in range(first, last + 1):
            round = world.round(t, arguments.arms)
            start = time.process_time()
            slate = policy.select(round)
            selected = time.process_time()
            feedback = world.play(round, slate)
            again = time.process_time()
            policy.update(round, slate, feedback)
            updating.append(time.process_time() - again)
            selecting.append(selected - start)
            lost += world.regret(round, slate.positions)
        updates += updating
        block = {"first": first, "last": last, **summary("update", updating), **summary("select", selecting)}
        blocks.append(block | {"saved_mb": megabytes(policy), "regret": round_regret(lost, last - first + 1)})
        report |= summary("update", updates) | {"exponent": exponent(blocks), "blocks": blocks}
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(report, indent=1))
    return report


def round_regret(lost: float, rounds: int) -> float:
    """Regret per round."""
    return round(lost / rounds, 4)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="auto", help="NAME[:PRESET]")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--arms", type=int, default=300)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--slate", type=int, default=5)
    parser.add_argument("--block", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    torch.set_num_threads(1)
    report = live(parser.parse_args(words))
    for block in report["blocks"]:
        print(json.dumps(block))
    print(json.dumps({key: value for key, value in report.items() if key != "blocks"}))


if __name__ == "__main__":
    main()
