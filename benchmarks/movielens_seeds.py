"""Who regrets least on MovieLens, over paired seeds? Mean ± standard error, and differences seed by seed.

    python -m benchmarks.movielens_seeds [offline] [--seeds 10] [--rounds 1000] [--jobs 2] [--json FILE]
    python -m benchmarks.movielens_seeds online [...]

`offline`: NeUClust (default and paper), CN-UCB and LinUCB on the paper's problem. `online`: NeUClust against
its online variant from a cold start, profiles made of 5 ratings a user. Every policy meets the same coins for a
seed. The real prepared file is played where it is at hand, else the twin. `--json` writes the records as
`neuclust run --json` does. Each run has one thread, so --jobs may be the number of cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.movielens_problem import movielens_file
from neuclust.analysis.estimates import Estimate, estimate
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.plan import Problem, make_plan
from neuclust.experiment.records import RunRecord, write_runs
from neuclust.experiment.run import RunLabel, run
from neuclust.report.results import text_table

OFFLINE = (Contestant("neuclust"), Contestant("neuclust", "paper"), Contestant("cn-ucb"), Contestant("linucb"))
ONLINE = (Contestant("neuclust"), Contestant("neuclust-online"))
COMPARISONS = {"offline": OFFLINE, "online": ONLINE}
START_RATINGS = 5


@dataclass(frozen=True, slots=True)
class Match:
    """One run: who plays which problem with which seed."""

    contestant: Contestant
    problem: Problem
    seed: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Play every match, then print the table and every pair's difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", nargs="?", choices=list(COMPARISONS), default="offline")
    parser.add_argument("--seeds", type=int, default=10, help="how many, from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--json", type=Path, default=None, help="where the records go")
    options = parser.parse_args(arguments)
    problem = _problem(options.comparison, options.rounds)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    matches = [Match(who, problem, seed) for seed in seeds for who in COMPARISONS[options.comparison]]
    records = []
    for record in _played(matches, options.jobs):
        records.append(record)
        print(f"{title(record)}, seed {record.seed}: {record.expected_regret:.2f}", file=sys.stderr, flush=True)
    if options.json is not None:
        write_runs(options.json, records)
    print(text_table(records))
    print("\n".join(pair_lines(records)))


def _problem(comparison: str, rounds: int) -> Problem:
    start_ratings = START_RATINGS if comparison == "online" else None
    return Problem(data=movielens_file(), rounds=rounds, start_ratings=start_ratings)


def _played(matches: Sequence[Match], jobs: int) -> Iterator[RunRecord]:
    """Records in the order of the matches; the workers read their thread limits when they start."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(play, matches)


def play(match: Match) -> RunRecord:
    """One run in a process of its own."""
    plan = make_plan(match.problem, [match.contestant], [match.seed])
    (seed, environment, contestant), *_ = plan.matches()
    label = RunLabel(contestant.policy, contestant.preset, env=match.problem.name, problem=match.problem.options)
    return run(contestant.build(environment, seed), environment, plan.rounds, seed, label=label)


def title(record: RunRecord) -> str:
    return record.policy if record.preset == "default" else f"{record.policy}:{record.preset}"


def pair_lines(records: Sequence[RunRecord]) -> list[str]:
    """For every two contestants the mean difference of their regrets over seeds, with its standard error."""
    regrets: dict[str, dict[int, float]] = {}
    for record in records:
        regrets.setdefault(title(record), {})[record.seed] = record.expected_regret
    names = list(regrets)
    pairs = [(left, right) for i, left in enumerate(names) for right in names[i + 1 :]]
    lines = ["paired differences of expected regret, mean ± s.e.; seeds the first one won"]
    for left, right in pairs:
        gaps = [regrets[left][seed] - regrets[right][seed] for seed in sorted(regrets[left])]
        won = sum(gap < 0 for gap in gaps)
        lines.append(f"  {f'{left} - {right}':42} {_words(estimate(gaps)):>18}   {won} of {len(gaps)}")
    return lines


def _words(value: Estimate) -> str:
    error = "" if value.error is None else f" ± {value.error:.2f}"
    return f"{value.mean:+.2f}{error}"


if __name__ == "__main__":
    main()
