"""Plays parts of a reproduction on a machine that has torch, numpy, scipy, scikit-learn and numba alone.

    python -m neuclust.experiment.reproduction.bare yelp --phase paper --phase clusters --workers 16 --out yelp.jsonl

One line of JSON per run, flushed as it ends; `neuclust reproduce --done yelp.jsonl` takes the lines up. What `--out` or
a file named by `--done` holds is not played again. Exit codes: 0 everything is there; 1 something is left or failed;
2 usage; 65 data.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "8" if any("device" in word for word in sys.argv) else "1")

if TYPE_CHECKING:
    from neuclust.experiment.tasks import Task


def tasks_of(arguments: argparse.Namespace) -> list[Task]:
    """The runs of the phases and policies asked for, phase by phase."""
    from neuclust.errors import ConfigError, one_of
    from neuclust.experiment.problem import Problem
    from neuclust.experiment.reproduction.phases import (
        PHASE_TITLES,
        SLATE_SIZE,
        STUDIES,
        all_tasks,
        full_scale,
        open_study,
        phases,
    )

    study = STUDIES[arguments.study]
    given = {"rounds": arguments.rounds, "runs": arguments.runs, "our_seeds": arguments.seeds}
    given |= {"cluster_seeds": arguments.cluster_seeds, "cluster_numbers": arguments.clusters}
    scale = replace(full_scale(study), **{key: value for key, value in given.items() if value is not None})
    data = None if arguments.data is None else arguments.data.absolute()
    layout = open_study(study, Problem(env=study.twin, data=data, slate_size=SLATE_SIZE), scale)
    found = {phase.name: phase for phase in phases(layout, authors=True)}
    for name in arguments.phase:
        if name not in found:
            raise ConfigError(f"--phase: {one_of(name, [name for name in PHASE_TITLES if name in found])}")
    wanted = all_tasks(found[name] for name in arguments.phase)
    return [task for task in wanted if not arguments.policy or task.contestant.policy in arguments.policy]


def play(arguments: argparse.Namespace) -> int:
    from neuclust.experiment.engines.engine import Failure, Unwatched, make_engine
    from neuclust.experiment.reproduction.lines import line_of, read_runs_of
    from neuclust.experiment.sinks import JsonLines

    began = time.monotonic()
    held = read_runs_of([arguments.out, *arguments.done])
    found = tasks_of(arguments)
    tasks = [task for task in found if task.key not in held]
    say(f"{len(found)} runs, {len(tasks)} to do")
    if arguments.list:
        for task in tasks:
            say(task.title)
        return 0
    end, played, failed = began + 60 * arguments.minutes, 0, 0
    engine = make_engine(arguments.engine, arguments.workers)
    with JsonLines(arguments.out) as lines:
        for outcome in engine(tasks, Unwatched(lambda: time.monotonic() >= end)) if tasks else ():
            if isinstance(outcome.result, Failure):
                failed += 1
                say(f"failed: {outcome.task.title}: {outcome.result.error}")
            elif not outcome.interrupted:
                played += 1
                lines.write(line_of(outcome.task.key, outcome.result))
                say(f"{time.monotonic() - began:6.0f} s  {outcome.task.title}: {outcome.result.expected_regret:.1f}")
    say(f"{played} runs played in {time.monotonic() - began:.0f} s; {failed} failed; {len(tasks) - played} left")
    return 0 if played == len(tasks) else 1


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.split(",")}))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("movielens", "yelp"), help="which data set of the paper")
    parser.add_argument("--data", type=Path, help="a prepared .npz file; without one the twin is played")
    parser.add_argument("--phase", action="append", required=True, help="paper, readings, ours, clusters or authors")
    parser.add_argument("--policy", action="append", default=[], help="only this policy; may be repeated")
    parser.add_argument("--rounds", type=int, help="per run; default 1000")
    parser.add_argument("--runs", type=int, help="seeds of the paper's protocol")
    parser.add_argument("--seeds", type=int, help="seeds of ours, of the readings and of the authors' settings")
    parser.add_argument("--clusters", type=_numbers, help="numbers of clusters: 1,10,22")
    parser.add_argument("--cluster-seeds", type=int, help="seeds for the number of clusters")
    parser.add_argument("--out", type=Path, required=True, help="lines of JSON, one per run; appended to")
    parser.add_argument("--done", type=Path, action="append", default=[], help="lines of earlier pieces")
    parser.add_argument("--engine", default="processes", help="processes, inline, device or device:cuda")
    parser.add_argument("--workers", type=int, help="with the engine processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which the work stops")
    parser.add_argument("--list", action="store_true", help="say what would be played, and leave")
    arguments = parser.parse_args(words)
    from neuclust.errors import NeuclustError

    try:
        return play(arguments)
    except NeuclustError as error:
        say(f"reproduction: {error}")
        return int(error.exit_code)


if __name__ == "__main__":
    raise SystemExit(main())
