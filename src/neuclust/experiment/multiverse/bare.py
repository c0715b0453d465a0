"""Plays a grid of readings on a machine that has torch, numpy, scipy, scikit-learn and numba alone.

    python -m neuclust.experiment.multiverse.bare --data movielens-25m.npz \
        --engine device:cuda --minutes 8 --out multiverse.jsonl

One line of JSON per run, flushed as it ends. What `--out` or a file named by `--done` holds is not played again:
the same command takes up the rest. Exit codes: 0 everything is there; 1 something is left or failed; 2 usage; 65 data.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuclust.experiment.multiverse.grids import FULL

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1" if "processes" in sys.argv else "8")


def play(arguments: argparse.Namespace) -> int:
    from neuclust.experiment.engines.engine import make_engine
    from neuclust.experiment.multiverse.grid import read_grid
    from neuclust.experiment.multiverse.playing import cells_for, plan_of, play_plan
    from neuclust.experiment.multiverse.rows import read_rows
    from neuclust.experiment.problem import DEFAULT_ENV, Problem
    from neuclust.experiment.sinks import JsonLines

    began = time.monotonic()
    grid = read_grid(arguments.grid)
    grid = replace(grid, rounds=arguments.rounds or grid.rounds, seeds=grid.seeds[: arguments.seeds])
    cells = cells_for(grid, arguments.engine, arguments.marked)[: arguments.cells]
    plan = plan_of(grid, Problem(arguments.env or DEFAULT_ENV, arguments.data), cells)
    held = read_rows([arguments.out, *arguments.done])
    say(f"{len(cells)} cells, {len(plan.tasks)} runs, {sum(1 for _ in held)} lines found")
    if arguments.list:
        for cell in cells:
            say(f"{cell.engine:9} {grid.title(cell)}")
        return 0
    end = began + 60 * arguments.minutes
    engine = make_engine(arguments.engine, arguments.workers)
    with JsonLines(arguments.out) as lines:
        done = play_plan(plan, engine, arguments.engine, held, lines.write, say, lambda: time.monotonic() >= end)
    left = len(cells) - done.complete
    seconds = time.monotonic() - began
    each = f", {seconds / done.played:.2f} s a run" if done.played else ""
    say(f"{done.played} runs played in {seconds:.0f} s{each}; {done.failed} failed; {left} of {len(cells)} cells left")
    return 0 if not left and not done.failed else 1


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--grid", type=Path, default=FULL, help="the file that declares the readings; default: %(default)s"
    )
    parser.add_argument("--data", type=Path, help="a prepared .npz file; without one a built-in problem is played")
    parser.add_argument("--env", help="the built-in problem that is played without a file")
    parser.add_argument("--out", type=Path, required=True, help="lines of JSON, one per run; appended to")
    parser.add_argument("--done", type=Path, action="append", default=[], help="lines of earlier pieces")
    parser.add_argument("--engine", default="device:cuda", help="device:cuda, device, processes or inline")
    parser.add_argument("--workers", type=int, help="with the engine processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which the work stops")
    parser.add_argument("--rounds", type=int, help="other than the file's, for a trial")
    parser.add_argument("--seeds", type=int, help="the first so many of the file's")
    parser.add_argument("--cells", type=int, help="the first so many of the cells this engine plays")
    parser.add_argument("--marked", choices=("device", "processes"), help="only cells declared for this engine")
    parser.add_argument("--list", action="store_true", help="say what would be played, and leave")
    arguments = parser.parse_args(words)
    from neuclust.errors import NeuclustError

    try:
        return play(arguments)
    except NeuclustError as error:
        say(f"multiverse: {error}")
        return int(error.exit_code)


if __name__ == "__main__":
    raise SystemExit(main())
