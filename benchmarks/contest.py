"""Plays policies on problems of the suite with nothing but the core installed, and keeps one line a run.

    python -m benchmarks.contest --out runs.jsonl --policy auto --policy "linucb@alpha=0.3" --problem bump \
        --seeds 1000:1020 --rounds 1000 --movielens movielens-25m.npz --replay replay.npz --workers 2

A policy is NAME[:PRESET][@KEY=VALUE;KEY=VALUE]. What the file holds already is not played again, so an interrupted
contest goes on where it stopped. `--rounds` plays every problem that long; the regret along the way is kept every
100 rounds, so that one run serves all shorter horizons where the problem does not depend on its own.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

STRIDE = 100


@dataclass(frozen=True, slots=True)
class Match:
    """One run: a policy on one instance of a problem."""

    problem: str
    policy: str
    seed: int
    rounds: int

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.problem, self.policy, self.seed, self.rounds


def play(match: Match, movielens: Path | None, replay: Path | None) -> dict[str, Any]:
    """Regret every 100 rounds and at the end, seconds of selecting and updating, restarts after changes."""
    import torch

    from neuclust.experiment.run import RunLabel, Tally, run
    from neuclust.experiment.suite import SUITE, SuiteInputs
    from neuclust.registry import build_policy

    torch.set_num_threads(1)
    problem = next(one for one in SUITE if one.name == match.problem)
    environment = problem.build(match.seed, match.rounds, inputs=SuiteInputs(movielens, replay))
    title, _, settings = match.policy.partition("@")
    name, _, preset = title.partition(":")
    overrides = dict(text.split("=", 1) for text in settings.split(";") if text)
    policy = build_policy(
        name, preset=preset or "default", environment=environment, seed=match.seed, overrides=overrides
    )
    points: dict[int, float] = {}

    def note(tally: Tally) -> None:
        if tally.rounds % STRIDE == 0 or tally.rounds == match.rounds:
            points[tally.rounds] = round(tally.expected_regret, 4)

    record = run(policy, environment, match.rounds, match.seed, label=RunLabel(name), on_round=note)
    return {
        **asdict(match),
        "regret": points,
        "seconds": round(record.select_seconds + record.update_seconds, 2),
        "restarts": int(getattr(policy, "restarts", 0)),
    }


def matches(arguments: argparse.Namespace) -> Iterator[Match]:
    """Seed by seed, so that an interrupted contest has something of everything."""
    from neuclust.experiment.suite import SUITE

    known = {problem.name: problem for problem in SUITE}
    first, _, last = arguments.seeds.partition(":")
    for seed in range(int(first), int(last)):
        for name in arguments.problem or known:
            for policy in arguments.policy:
                yield Match(name, policy, seed, arguments.rounds or known[name].rounds)


def held(out: Path) -> set[tuple[str, str, int, int]]:
    """Runs a file holds already."""
    if not out.exists():
        return set()
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(row["problem"], row["policy"], row["seed"], row["rounds"]) for row in rows}


def _task(given: tuple[Match, Path | None, Path | None]) -> dict[str, Any]:
    try:
        return play(*given)
    except Exception as error:
        return {**asdict(given[0]), "error": f"{type(error).__name__}: {error}"}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policy", action="append", required=True)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--seeds", default="0:1", help="FIRST:END")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--movielens", type=Path, help="movielens-25m.npz; without it a twin")
    parser.add_argument("--replay", type=Path, help="ratings prepared by `neuclust data prepare replay`")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, help="seconds after which no more is waited for")
    arguments = parser.parse_args(words)
    known = held(arguments.out)
    todo = [(one, arguments.movielens, arguments.replay) for one in matches(arguments) if one.key not in known]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an end by force would leave its workers playing on
    pool = ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn"))
    tasks = [pool.submit(_task, given) for given in todo]
    done = 0
    try:
        with arguments.out.open("a", encoding="utf-8") as file:
            for task in as_completed(tasks, arguments.limit):
                row, done = task.result(), done + 1
                if "error" in row:
                    sys.stderr.write(f"{row['problem']} {row['policy']} seed {row['seed']}: {row['error']}\n")
                    continue
                file.write(json.dumps(row) + "\n")
                file.flush()
    except TimeoutError:
        sys.stderr.write(f"stopped after {done} of {len(todo)} runs\n")
    finally:
        _stop(pool)


def _stop(pool: ProcessPoolExecutor) -> None:
    """Leave runs in the middle: they are played again the next time."""
    workers = list(pool._processes.values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


if __name__ == "__main__":
    main()
