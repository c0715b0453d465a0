"""Plays policies on problems of the suite with nothing but the core installed, and keeps one line per run.

    python -m benchmarks.contest --out runs.jsonl --policy auto --policy "linucb@alpha=0.3" --problem bump \
        --seeds 1000:1020 --rounds 1000 --movielens movielens-25m.npz --replay replay.npz --workers 2

A policy is NAME[:PRESET][@KEY=VALUE;KEY=VALUE]. What the file holds already is not played again, so an interrupted
contest goes on where it stopped. `--rounds` plays every problem that long; the regret along the way is kept every
100 rounds, so that one run serves all shorter horizons where the problem does not depend on its own. `--device cuda`
plays neuclust and cn-ucb on a GPU; such a run says nothing of seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

if TYPE_CHECKING:
    from neuclust.experiment.contestants import Contestant
    from neuclust.experiment.engines.engine import Progress
    from neuclust.experiment.run import Tally
    from neuclust.experiment.tasks import Task

STRIDE = 100


@dataclass(frozen=True, slots=True)
class Match:
    """One run: a policy on one instance of a problem of the suite, as they are named in the file."""

    problem: str
    policy: str
    seed: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Job:
    """A match, the task that plays it, and the device of the device engine where that plays it."""

    match: Match
    task: Task
    device: str | None = None


def play(job: Job, on_progress: Callable[[Progress], None]) -> dict[str, Any]:  # noqa: ARG001
    """Regret every 100 rounds and at the end, seconds of selecting and updating, restarts after changes."""
    if job.device is not None:
        return play_on_device(job, job.device)
    from neuclust.experiment.tasks import Hooks, play_task

    points: dict[int, float] = {}
    policies: list[Any] = []

    def note(tally: Tally) -> None:
        if tally.rounds % STRIDE == 0 or tally.rounds == job.match.rounds:
            points[tally.rounds] = round(tally.expected_regret, 4)

    record = play_task(job.task, Hooks(note, on_policy=policies.append))
    return {
        **asdict(job.match),
        "regret": points,
        "seconds": round(record.select_seconds + record.update_seconds, 2),
        "restarts": int(getattr(policies[0], "restarts", 0)),
    }


def play_on_device(job: Job, device: str) -> dict[str, Any]:
    """The same from the curve of a run of the device engine; its seconds would not compare with those of a core."""
    from neuclust.experiment.engines.device_engine import DeviceEngine
    from neuclust.experiment.engines.engine import Unwatched

    (outcome,) = DeviceEngine(device).play([job.task], Unwatched())
    curve, last = outcome.record().curve, job.match.rounds
    points = {t: round(regret, 4) for t, regret in curve if t % STRIDE == 0 or t == last}
    return {**asdict(job.match), "regret": points, "seconds": None, "restarts": 0}


def contestant(text: str) -> Contestant:
    """NAME[:PRESET][@KEY=VALUE;KEY=VALUE]."""
    from neuclust.experiment.contestants import parse_contestants

    name, _, settings = text.partition("@")
    (found,) = parse_contestants([name])
    return replace(found, settings=dict(part.split("=", 1) for part in settings.split(";") if part))


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Seed by seed, so that an interrupted contest has something of everything."""
    from neuclust.errors import ConfigError
    from neuclust.experiment.suite import SUITE, SuiteInputs
    from neuclust.experiment.tasks import Task, content_of

    known = {problem.name: problem for problem in SUITE}
    policies = {text: contestant(text) for text in arguments.policy}
    inputs = SuiteInputs(arguments.movielens, arguments.replay)
    lengths = {name: arguments.rounds or known[name].rounds for name in arguments.problem or known}
    problems = {}
    for name, rounds in lengths.items():
        try:
            problems[name] = known[name].problem(inputs, rounds)
        except ConfigError as error:  # recorded ratings that are not at hand
            sys.stderr.write(f"{name}: {error}\n")
    contents = {name: content_of(problem) for name, problem in problems.items()}
    first, _, last = arguments.seeds.partition(":")
    for seed in range(int(first), int(last)):
        for name, problem in problems.items():
            for text, who in policies.items():
                match = Match(name, text, seed, lengths[name])
                task = Task("", problem, contents[name], who, seed, lengths[name])
                yield Job(match, task, arguments.device)


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
    parser.add_argument("--device", help="cuda or cpu: plays on the device engine, which has neuclust and cn-ucb")
    parser.add_argument("--limit", type=float, help="seconds after which no more is waited for")
    arguments = parser.parse_args(words)
    from neuclust.experiment.engines.engine import Failure
    from neuclust.experiment.engines.processes import ProcessEngine
    from neuclust.experiment.sinks import JsonLines, read_lines

    rows = read_lines(arguments.out)
    held = {Match(row["problem"], row["policy"], row["seed"], row["rounds"]) for row in rows}
    todo = [job for job in jobs(arguments) if job.match not in held]
    end = time.monotonic() + (float("inf") if arguments.limit is None else arguments.limit)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an end by force would leave its workers playing on
    engine, done = ProcessEngine(arguments.workers), 0
    with JsonLines(arguments.out) as lines:
        for job, row in engine.map(play, todo, lambda: time.monotonic() >= end):
            done += 1
            if isinstance(row, Failure):
                sys.stderr.write(f"{job.match.problem} {job.match.policy} seed {job.match.seed}: {row.error}\n")
            else:
                lines.write(row)
    if done < len(todo):
        sys.stderr.write(f"stopped after {done} of {len(todo)} runs\n")


if __name__ == "__main__":
    main()
