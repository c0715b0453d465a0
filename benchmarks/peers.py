"""How long do selections and updates take beside other libraries, on one problem with new arms in every round?

    python -m benchmarks.peers [--arms 100 1000 10000] [--learn 200] [--repeats 5] [--patience 20] [--json FILE]

d = 20, K = 5. All first learn from the same `--learn` rounds of 100 new arms, which gives the regret, a check
that all of them do learn. Then come `--repeats` timed rounds of every size, in turn, so that a busy machine is busy for
all. Times are medians of processor time: with one thread for all, what a quiet machine takes, whatever else runs; the
record has the wall-clock times too. Turning arrays into a library's input is outside the clock. A library whose rounds
of one size have taken `--patience` seconds plays no more of that size: the column `rounds` says how many there were.

Peers: pip install 'neuclust[bench]'. Those that are not installed are named and skipped.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from benchmarks.fresh_arms import FreshArms
from benchmarks.players import Contender, Player, contenders
from benchmarks.tables import described, machine, markdown, one_thread, short, version, write_record
from neuclust.core import Slate

LEARNING_ARMS = 100
PACKAGES = ("calvera", "vowpalwabbit", "mab2rec")
YARDSTICK = "neuclust"


@dataclass(frozen=True, slots=True)
class Moment:
    """One reading of the two clocks, in milliseconds."""

    wall: float
    processor: float

    @staticmethod
    def now() -> Moment:
        return Moment(1000 * time.perf_counter(), 1000 * time.process_time())

    def until(self, later: Moment) -> Moment:
        return Moment(later.wall - self.wall, later.processor - self.processor)


@dataclass
class Timings:
    """Every timed round of one contender at one size."""

    name: str
    arms: int
    select: list[Moment] = field(default_factory=list)
    update: list[Moment] = field(default_factory=list)

    @property
    def medians(self) -> tuple[float, float]:
        """Processor milliseconds of a selection and of an update."""
        select, update = (statistics.median(spent.processor for spent in part) for part in (self.select, self.update))
        return select, update


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn, time, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--learn", type=int, default=200, help="rounds to learn from before the timed ones")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds a contender may take at one size")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contenders whose name begins so")
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args(arguments)
    one_thread()
    about = machine(*PACKAGES)
    print(described(about), flush=True)
    problem = FreshArms()
    players = made(problem, options.only)
    gc.freeze()  # the libraries themselves need no sweeping
    regrets = {name: learned(problem, name, player, options.learn) for name, player in players.items()}
    timings = []
    for arms in options.arms:
        rows = timed(problem, players, arms, options.learn, options.repeats, options.patience)
        print(report(arms, rows, regrets, options.learn), flush=True)
        timings += rows
    about["load_at_the_end"] = machine()["load"]
    words = " ".join(["OMP_NUM_THREADS=1 python -m benchmarks.peers", *(arguments or sys.argv[1:])])
    write_record(
        options.json,
        {"command": words, "machine": about, "regret": regrets, "rounds": [asdict(row) for row in timings]},
    )


def made(problem: FreshArms, only: Sequence[str] | None) -> dict[str, Player]:
    """Every contender that is installed, by name; a line for those that are not."""
    wanted = [c for c in contenders() if only is None or c.name.lower().startswith(tuple(map(str.lower, only)))]
    found = {contender.name: _made(contender, problem) for contender in wanted}
    return {name: player for name, player in found.items() if player is not None}


def _made(contender: Contender, problem: FreshArms) -> Player | None:
    try:
        return contender.make(problem)
    except (ImportError, RuntimeError) as error:  # a torchvision for another torch raises the latter
        if not contender.package:
            raise
        reason = "is not installed" if version(contender.package) == "-" else f"cannot be imported ({error})"
        print(f"{contender.name}: {contender.package} {reason}; pip install 'neuclust[bench]'", flush=True)
        return None


def learned(problem: FreshArms, name: str, player: Player, rounds: int) -> float:
    """Play rounds 1 to `rounds` of 100 arms; the regret per round of the second half."""
    total, half, began = 0.0, rounds // 2, time.perf_counter()
    for t in range(1, rounds + 1):
        regret, _, _ = played(problem, player, t, LEARNING_ARMS)
        total += regret if t > half else 0.0
    print(f"{name}: learned from {rounds} rounds in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return total / max(1, rounds - half)


def timed(
    problem: FreshArms, players: dict[str, Player], arms: int, learned: int, repeats: int, patience: float
) -> list[Timings]:
    """`repeats` rounds of this size in turn, after one that is not counted; a slow contender keeps that one."""
    rows, spent, base = [Timings(name, arms) for name in players], dict.fromkeys(players, 0.0), learned + arms
    for repeat in range(repeats + 1):
        for row, player in zip(rows, players.values(), strict=True):
            if spent[row.name] > patience and row.select:
                continue
            gc.collect()  # one library's rubbish is not to be swept up in another's time
            _, select, update = played(problem, player, base + repeat + 1, arms)
            spent[row.name] += (select.wall + update.wall) / 1000
            if repeat > 0 or spent[row.name] > patience:
                row.select.append(select)
                row.update.append(update)
    return rows


def played(problem: FreshArms, player: Player, t: int, arms: int) -> tuple[float, Moment, Moment]:
    """One round: its regret, and the time of selection and update."""
    round = problem.round(t, arms)
    prepared = player.prepare(round)
    start = Moment.now()
    positions = player.select(prepared)
    chosen = Moment.now()
    where = torch.from_numpy(positions).to(torch.int64)
    nothing = torch.zeros(len(where), dtype=torch.float64)
    feedback = problem.play(round, Slate(where, nothing, nothing))
    ready = Moment.now()
    player.update(prepared, positions, feedback)
    return problem.regret(round, where), start.until(chosen), ready.until(Moment.now())


def report(arms: int, rows: Sequence[Timings], regrets: dict[str, float], learn: int) -> str:
    """The table of a size: medians, how many times our selection and our round they take, regret a round."""
    what = {contender.name: contender.what for contender in contenders()}
    ours = next((row.medians for row in rows if row.name == YARDSTICK), None)
    cells = [[row.name, what.get(row.name, ""), *_cells(row, ours), f"{regrets[row.name]:.2f}"] for row in rows]
    header = ["", "computes", "select ms", "ratio", "update ms", "ratio of a round", "rounds", "regret a round"]
    return f"{arms:,} new arms a round, after {learn} rounds\n\n{markdown(header, cells, words=2)}\n"


def _cells(row: Timings, ours: tuple[float, float] | None) -> list[str]:
    select, update = row.medians
    ratios = ("-", "-") if ours is None else (short(select / ours[0]), short((select + update) / sum(ours)))
    return [short(select), ratios[0], short(update), ratios[1], str(len(row.select))]


if __name__ == "__main__":
    main()
