"""Golden traces: what every policy and preset plays, so that a change of structure can prove it changed nothing.

    python -m tools.golden record results/golden.json          # before the change
    python -m tools.golden check results/golden.json           # after it, on the same machine

Every policy and preset plays six problems with two seeds for 60 rounds, and the neural ones a few rounds of the paper's
problems at full size. Of every run the file keeps the slates, their
means and bonuses and the regrets as one checksum each: equal checksums are equal bits. Floating-point results depend on
the processor and its libraries, so the traces of one machine say nothing about another; that is why the traces are not
committed, and only the counts of a check are (docs/records/golden.json).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

PROBLEMS = ("clusters", "bump", "ml-volatile", "yelp-volatile", "cascade", "delayed")
SEEDS, ROUNDS, SLATE_SIZE = (1, 2), 60, 5
# at full size other code runs (active columns, pruning, caches of profiles shown again)
LARGE, LARGE_ROUNDS = ("movielens-twin", "yelp-twin"), 12
LARGE_POLICIES = ("auto", "neuclust", "neuclust-online", "cn-ucb", "linucb")
LARGE_PRESETS = ("default", "paper", "paper-yelp", "paper-raw")
TRACES = ("slates", "scores", "regrets")
Case = tuple[str, str, str, int]


def cases() -> Iterator[Case]:
    """Every (problem, policy, preset, seed) to be played, problem by problem, since workers keep problems."""
    from neuclust.registry import POLICIES

    for problem in PROBLEMS:
        for name, spec in POLICIES.items():
            for preset in spec.presets:
                yield from ((problem, name, preset, seed) for seed in SEEDS)
    for problem in LARGE:
        for name in LARGE_POLICIES:
            yield from ((problem, name, preset, 1) for preset in LARGE_PRESETS if preset in POLICIES[name].presets)


def label_of(case: Case) -> str:
    """A run's name in the file."""
    problem, name, preset, seed = case
    return f"{problem} {name}:{preset} seed {seed}"


def trace(case: Case) -> tuple[str, dict[str, str]]:
    """One run's name and its checksums, or how it was refused."""
    label = label_of(case)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        return label, _played(*case)
    except Exception as error:  # a policy that refuses a problem must go on refusing it
        return label, {"refused": type(error).__name__}


def _played(problem: str, name: str, preset: str, seed: int) -> dict[str, str]:
    from neuclust.environments.catalogue import build_environment
    from neuclust.environments.problem import arrival, scored
    from neuclust.registry import build_policy

    rounds = LARGE_ROUNDS if problem in LARGE else ROUNDS
    environment = build_environment(problem, slate_size=SLATE_SIZE, horizon=rounds, seed=seed)
    policy = build_policy(name, preset=preset, environment=environment, seed=seed)
    sums = {kind: hashlib.sha256() for kind in TRACES}
    waiting = []
    for t in range(1, rounds + 1):
        round = environment.round(t)
        slate = policy.select(round)
        feedback = environment.play(round, slate)
        waiting.append((arrival(environment, t), t, round, slate, feedback))
        for due in sorted((entry for entry in waiting if entry[0] == t), key=lambda entry: entry[1]):
            policy.update(*due[2:])
        score = scored(environment, round, slate, feedback)
        sums["slates"].update(round.arm_ids[slate.positions].numpy().tobytes())
        sums["scores"].update(torch.cat([slate.means, slate.bonuses]).double().numpy().tobytes())
        regrets = [score.expected_regret, score.clipped_regret, score.realised_regret, score.expected]
        sums["regrets"].update(torch.tensor(regrets, dtype=torch.float64).numpy().tobytes())
    return {kind: digest.hexdigest()[:32] for kind, digest in sums.items()}


def play_all(workers: int, only: str = "") -> dict[str, dict[str, str]]:
    """Every case's checksums, a line of progress per hundred."""
    every = [case for case in cases() if only in label_of(case)]
    traces = {}
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for done, (label, sums) in enumerate(pool.imap(trace, every), 1):
            traces[label] = sums
            if done % 100 == 0 or done == len(every):
                print(f"{done} of {len(every)}", file=sys.stderr)
    return traces


def differences(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> list[str]:
    """A line per run that is not what it was."""
    lines = [f"{label}: only before the change" for label in before.keys() - after.keys()]
    lines += [f"{label}: only after the change" for label in after.keys() - before.keys()]
    for label in before.keys() & after.keys():
        changed = [kind for kind, sums in before[label].items() if after[label].get(kind) != sums]
        lines += (
            [f"{label}: other {', '.join(changed)}"] if changed or before[label].keys() != after[label].keys() else []
        )
    return sorted(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Record golden traces, or check them.")
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="runs whose name holds this text")
    parser.add_argument("--counts", type=Path, help="check: write how many runs were equal to this JSON file")
    options = parser.parse_args()
    traces = play_all(options.workers, options.only)
    if options.action == "record":
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(json.dumps(traces, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{len(traces)} traces in {options.file}")
        return 0
    before = json.loads(options.file.read_text(encoding="utf-8"))
    different = differences({label: sums for label, sums in before.items() if options.only in label}, traces)
    print("\n".join([*different, f"{len(traces)} runs compared, {len(different)} differ"]))
    if options.counts is not None:
        refused = sum("refused" in sums for sums in traces.values())
        counts = {"runs": len(traces), "equal": len(traces) - len(different), "refused": refused, "differ": different}
        options.counts.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
