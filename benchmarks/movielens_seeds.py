"""Which policy has the least regret on MovieLens, over paired seeds? Means, and differences seed by seed.

    python -m benchmarks.movielens_seeds [offline] [--seeds 10] [--rounds 1000] [--jobs 2] [--json FILE]
    python -m benchmarks.movielens_seeds online [...]

`offline`: NeUClust (default and paper), CN-UCB and LinUCB on the paper's problem. `online`: NeUClust against
its online variant from a cold start, profiles made of 5 ratings per user. All policies share the random
numbers of a seed. The real prepared file is played where it is at hand, else the twin. `--json` writes the records as
`neuclust run --json` does. Each run has one thread, so --jobs may be the number of cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.movielens_problem import movielens_file
from neuclust.analysis.estimates import Estimate, estimate
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.engines.engine import play
from neuclust.experiment.problem import Problem
from neuclust.experiment.records import RunRecord, write_runs
from neuclust.experiment.tasks import make_tasks
from neuclust.report.results import text_table

OFFLINE = (Contestant("neuclust"), Contestant("neuclust", "paper"), Contestant("cn-ucb"), Contestant("linucb"))
ONLINE = (Contestant("neuclust"), Contestant("neuclust-online"))
COMPARISONS = {"offline": OFFLINE, "online": ONLINE}
START_RATINGS = 5


def main(arguments: Sequence[str] | None = None) -> None:
    """Play every run, then print the table and every pair's difference."""
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
    tasks = make_tasks(problem, COMPARISONS[options.comparison], seeds)
    records = []
    for record in play(tasks, "processes", workers=options.jobs):
        records.append(record)
        print(f"{title(record)}, seed {record.seed}: {record.expected_regret:.2f}", file=sys.stderr, flush=True)
    order = [who.title for who in COMPARISONS[options.comparison]]
    records.sort(key=lambda record: (record.seed, order.index(title(record))))
    if options.json is not None:
        write_runs(options.json, records)
    print(text_table(records))
    print("\n".join(pair_lines(records)))


def _problem(comparison: str, rounds: int) -> Problem:
    start_ratings = START_RATINGS if comparison == "online" else None
    return Problem(data=movielens_file(), rounds=rounds, start_ratings=start_ratings)


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
