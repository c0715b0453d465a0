"""Plays the runs of a reproduction and of sweeps on a machine that has the core alone, and brings them home.

    # there, with torch, numpy, scipy and scikit-learn
    python -m tools.portable play --out runs.jsonl --study movielens --data movielens-25m.npz --seeds 20 \
        --authors --sweep experiments/ablations/clusters.toml --workers 16 --limit 540
    # here
    python -m tools.portable take runs.jsonl --into results/reproduction-movielens/records
    python -m tools.portable take runs.jsonl --into results/ablation-clusters \
        --sweep experiments/ablations/clusters.toml

`play` keeps one line per run, named by the key that the same run has in a folder of records; what the file holds
already is not played again. `take` writes those lines, or those of one sweep, into such a folder, where `neuclust
reproduce` and `neuclust sweep` find them done. Both machines must hold the same sources: the key contains their hash.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

if TYPE_CHECKING:
    from neuclust.experiment.tasks import Task


def study_tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    """Every run of `neuclust reproduce` with the same options."""
    from neuclust.experiment.problem import Problem
    from neuclust.experiment.reproduction.phases import SLATE_SIZE, STUDIES, all_tasks, full_scale, open_study, phases

    study = STUDIES[arguments.study]
    scale = replace(full_scale(study), our_seeds=arguments.seeds)
    problem = Problem(env=study.twin, data=arguments.data, slate_size=SLATE_SIZE)
    found = phases(open_study(study, problem, scale), authors=arguments.authors, policies=arguments.policy)
    yield from (task for task in all_tasks(found) if task.contestant.policy not in arguments.without)


def sweep_tasks(files: Sequence[Path]) -> Iterator[Task]:
    """Every run of these experiment files."""
    from neuclust.experiment.spec import read_spec
    from neuclust.experiment.tasks import tasks_of

    for file in files:
        yield from tasks_of(read_spec(file))


def play(arguments: argparse.Namespace) -> int:
    """Play what is missing until the time is over; 0 where nothing is left."""
    from neuclust.experiment.engines.engine import Failure, Unwatched, make_engine
    from neuclust.experiment.sinks import JsonLines, read_lines

    tasks = {task.key: task for task in sweep_tasks(arguments.sweep)}
    if arguments.study is not None:
        tasks |= {task.key: task for task in study_tasks(arguments)}
    held = {row["key"] for row in read_lines(arguments.out)}
    todo = [task for key, task in tasks.items() if key not in held]
    end = time.monotonic() + arguments.limit
    engine = make_engine("processes", arguments.workers)
    done = failed = 0
    with JsonLines(arguments.out) as lines:
        for outcome in engine(todo, Unwatched(lambda: time.monotonic() >= end)) if todo else ():
            if isinstance(outcome.result, Failure):
                failed += 1
                sys.stderr.write(f"{outcome.task.title}: {outcome.result.error}\n")
            else:
                done += 1
                lines.write({"key": outcome.task.key, "record": outcome.result.to_json()})
    left = len(todo) - done - failed
    sys.stderr.write(f"{done} runs played, {failed} failed, {left} left of {len(tasks)}\n")
    return 0 if left == 0 and failed == 0 else 1


def take(arguments: argparse.Namespace) -> int:
    """Write lines into a folder of records."""
    from neuclust.experiment.records import record_from_json
    from neuclust.experiment.sinks import read_lines
    from neuclust.experiment.store import open_store, write_run
    from neuclust.experiment.tasks import labelled

    asked = {task.key: task for task in sweep_tasks(arguments.sweep)}
    found = {
        row["key"]: row["record"] for row in read_lines(arguments.file) if row["key"] in asked or not arguments.sweep
    }
    open_store(arguments.into, make=True)
    for key, row in found.items():
        record = record_from_json(row, f"{arguments.file}: run {key}")
        write_run(arguments.into, key, labelled(record, asked[key]) if key in asked else record)
    sys.stderr.write(f"{len(found)} runs are in {arguments.into}\n")
    return 0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    playing = actions.add_parser("play", help="play runs and keep them as lines")
    playing.add_argument("--out", type=Path, required=True)
    playing.add_argument("--study", choices=("movielens", "yelp"))
    playing.add_argument("--data", type=Path)
    playing.add_argument("--seeds", type=int, default=20)
    playing.add_argument("--authors", action="store_true")
    playing.add_argument("--policy", action="append", default=[], help="policies of our protocol; default: all")
    playing.add_argument("--without", action="append", default=[], help="policies to leave for another time")
    playing.add_argument("--sweep", type=Path, action="append", default=[])
    playing.add_argument("--workers", type=int, default=os.cpu_count())
    playing.add_argument("--limit", type=float, default=float("inf"), help="seconds after which the work stops")
    playing.set_defaults(act=play)
    taking = actions.add_parser("take", help="write lines into a folder of records")
    taking.add_argument("file", type=Path)
    taking.add_argument("--into", type=Path, required=True)
    taking.add_argument("--sweep", type=Path, action="append", default=[], help="only the runs of this file")
    taking.set_defaults(act=take)
    arguments = parser.parse_args(words)
    return int(arguments.act(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
