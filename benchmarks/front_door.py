"""What the recommender collects from raw tables, beside the same policy on columns made by hand, in simulated shops.

    python -m benchmarks.front_door --workers 16 --seeds 10 --requests 3000 --out front_door.json

Sides: `handmade` (full one-hots of the columns that matter and the true crosses), `stated` (a Recommender with raw
tables, crosses and matches stated), `inferred` (the same without them); by flag also `every` (hand-made columns of all
columns, relevant or not, and the true crosses) and `plain` (a Recommender that is told nothing).
Expected clicks are exact, Σ position · chance of the slates shown. What the file holds already is not played again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

import numpy as np  # noqa: E402  (after the number of threads)
import torch  # noqa: E402

from benchmarks.handmade import HandMade  # noqa: E402
from benchmarks.shop import ITEM_ID, SLATE_SIZE, USER_ID, Request, Shop, Whole  # noqa: E402
from benchmarks.shops import SHOPS  # noqa: E402
from benchmarks.tables import machine, markdown  # noqa: E402
from neuclust import Category, Features, Recommender  # noqa: E402
from neuclust.core import Feedback, Round  # noqa: E402
from neuclust.files import write_text  # noqa: E402
from neuclust.registry import build_policy  # noqa: E402

SIDES = ("handmade", "stated", "inferred", "every", "plain")
USUAL_SIDES, USUAL_POLICIES = SIDES[:3], ("linucb", "auto:linear")
PARTS = 10  # of the learning curve

Play = Callable[[int, Request], Whole]  # shows a slate, learns its clicks, returns the item rows in slot order


@dataclass(frozen=True, slots=True)
class Job:
    """One run."""

    shop: str
    policy: str
    side: str
    seed: int
    requests: int


# --- one run ----------------------------------------------------------------------------------------------------------


def by_hand(shop: Shop, policy: str, columns: HandMade) -> Play:
    """The policy itself on hand-made columns, updated at once."""
    first = shop.request(1)
    width = columns.rows(first.user_row, first.context, first.item_rows).shape[1]
    learner = build_policy(policy, dim=width, slate_size=SLATE_SIZE, seed=shop.seed)

    def play(t: int, request: Request) -> Whole:
        rows = columns.rows(request.user_row, request.context, request.item_rows)
        round = Round(t, torch.from_numpy(request.item_rows), torch.from_numpy(rows), None, SLATE_SIZE)
        slate = learner.select(round)
        shown: Whole = request.item_rows[slate.positions.numpy()]
        clicks = torch.from_numpy(shop.clicks(t, request, shown))
        learner.update(round, slate, Feedback(clicks, clicks.sum()))
        return shown

    return play


def from_tables(shop: Shop, policy: str, side: str) -> Play:
    """A Recommender on the raw tables, told its clicks after every request."""
    place = {row[ITEM_ID]: number for number, row in enumerate(shop.items)}
    recommender = Recommender(
        shop.items, item_id=ITEM_ID, users=shop.users, user_id=USER_ID, slate_size=SLATE_SIZE, policy=policy,
        seed=shop.seed, features=declared(shop, side),
    )  # fmt: skip

    def play(t: int, request: Request) -> Whole:
        choice = recommender.recommend(user=request.user, eligible=request.eligible, context=request.context)
        shown = np.array([place[item] for item in choice.items])
        clicks = shop.clicks(t, request, shown)
        recommender.feedback(choice.id, {item: 1 for item, click in zip(choice.items, clicks, strict=True) if click})
        return shown

    return play


def declared(shop: Shop, side: str) -> Features | None:
    """What the recommender is told: bins (cut by scikit-learn) and levels of context, and unless they are inferred the
    crosses and matches with the width they need."""
    if side == "plain":
        return None
    from sklearn.preprocessing import KBinsDiscretizer

    bins = {
        name: KBinsDiscretizer(count, encode="onehot-dense", strategy="quantile", subsample=None)
        for name, count in shop.bins.items()
    }
    told: dict[str, Any] = {"items": bins} if bins else {}
    if shop.context_levels:
        told["context"] = {name: Category(levels) for name, levels in shop.context_levels.items()}
    if side == "stated":
        told |= {"cross": shop.cross, "match": shop.match, "width": shop.width}
    return Features(**told)


def played(job: Job) -> dict[str, Any]:
    """Expected clicks of the run, of random and of best slates, also in tenths, and milliseconds per request."""
    torch.set_num_threads(1)
    shop = SHOPS[job.shop](job.seed)
    if job.side in ("handmade", "every"):
        play = by_hand(shop, job.policy, shop.expert if job.side == "handmade" else shop.every)
    else:
        play = from_tables(shop, job.policy, job.side)
    totals, seconds = np.zeros((3, PARTS)), 0.0
    for t in range(1, job.requests + 1):
        request = shop.request(t)
        start = time.perf_counter()
        shown = play(t, request)
        seconds += time.perf_counter() - start
        totals[:, (t - 1) * PARTS // job.requests] += (shop.expected(request, shown), *shop.bounds(request))
    names = ("clicks", "random", "best")
    sums = {name: round(float(row.sum()), 3) for name, row in zip(names, totals, strict=True)}
    curves = {f"{name}_tenths": row.round(3).tolist() for name, row in zip(names, totals, strict=True)}
    return {**asdict(job), **sums, **curves, "milliseconds": round(1000 * seconds / job.requests, 3)}


# --- the comparison ---------------------------------------------------------------------------------------------------


def share(run: dict[str, Any]) -> float:
    """The part of the possible gain over random slates."""
    return float((run["clicks"] - run["random"]) / (run["best"] - run["random"]))


def rise(run: dict[str, Any]) -> tuple[float, float]:
    """The share of the gain in the first and in the last tenth."""
    ends = ({name: run[f"{name}_tenths"][part] for name in ("clicks", "random", "best")} for part in (0, -1))
    first, last = (share(end) for end in ends)
    return first, last


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error over seeds (NaN for a single one)."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.fmean(values), error


def summary(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per shop, policy and side: means over seeds, and the ratio to `handmade`, paired by seed."""
    groups: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["shop"], run["policy"], run["side"]), {})[run["seed"]] = run
    rows = []
    for (shop, policy, side), found in sorted(groups.items(), key=lambda group: _order(*group[0])):
        reference = groups.get((shop, policy, "handmade"), {})
        ratios = [run["clicks"] / reference[seed]["clicks"] for seed, run in found.items() if seed in reference]
        row: dict[str, Any] = {"shop": shop, "policy": policy, "side": side, "seeds": len(found)}
        row |= {name: statistics.fmean(run[name] for run in found.values()) for name in ("clicks", "random", "best")}
        row["share"], row["share_error"] = mean_and_error([share(run) for run in found.values()])
        row["share_first"], row["share_last"] = (
            statistics.fmean(ends) for ends in zip(*(rise(run) for run in found.values()), strict=True)
        )
        row["milliseconds"] = statistics.fmean(run["milliseconds"] for run in found.values())
        if ratios and side != "handmade":
            row["ratio"], row["ratio_error"] = mean_and_error(ratios)
            row["ratio_seeds"] = len(ratios)
        rows.append(row)
    return rows


def _order(shop: str, policy: str, side: str) -> tuple[int, str, int]:
    return list(SHOPS).index(shop), policy, SIDES.index(side)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """As Markdown: expected clicks over all requests, shares in per cent, ± one standard error over seeds."""
    header = ["shop", "policy", "side", "seeds", "clicks", "random", "best", "share of the gain"]
    header += ["first to last tenth", "of hand-made", "ms"]
    return markdown(header, [_cells(row) for row in rows], words=3)


def _cells(row: dict[str, Any]) -> list[str]:
    ratio = f"{100 * row['ratio']:.1f} ± {100 * row['ratio_error']:.1f} %" if "ratio" in row else ""
    counts = [f"{row[name]:.1f}" for name in ("clicks", "random", "best")]
    gain = f"{100 * row['share']:.1f} ± {100 * row['share_error']:.1f} %"
    ends = f"{100 * row['share_first']:.0f} to {100 * row['share_last']:.0f} %"
    return [
        row["shop"],
        row["policy"],
        row["side"],
        str(row["seeds"]),
        *counts,
        gain,
        ends,
        ratio,
        f"{row['milliseconds']:.2f}",
    ]


# --- the command ------------------------------------------------------------------------------------------------------


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Seed by seed, so that an interrupted comparison has something of everything."""
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for shop in arguments.shops:
            for policy in arguments.policies:
                for side in arguments.sides:
                    yield Job(shop, policy, side, seed, arguments.requests)


def held_runs(path: Path | None) -> list[dict[str, Any]]:
    """The runs of an earlier file."""
    if path is None or not path.is_file():
        return []
    runs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return runs


def job_of(run: dict[str, Any]) -> Job:
    return Job(run["shop"], run["policy"], run["side"], run["seed"], run["requests"])


def play_all(todo: Sequence[Job], workers: int, on_run: Callable[[dict[str, Any]], None]) -> int:
    """Play in processes; the number of runs that failed."""
    failed = 0
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool, ExitStack() as stack:
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)  # an interrupt waits for no further run
        waiting = {pool.submit(played, job): job for job in todo}
        for number, future in enumerate(as_completed(waiting), 1):
            job, error = waiting[future], future.exception()
            name = f"{job.shop} {job.policy} {job.side} seed {job.seed}"
            if error is None:
                on_run(future.result())
                sys.stderr.write(f"{number}/{len(todo)} {name}: share {100 * share(future.result()):.1f} %\n")
            else:
                failed += 1
                sys.stderr.write(f"{number}/{len(todo)} {name}: failed: {type(error).__name__}: {error}\n")
    return failed


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shops", nargs="+", choices=list(SHOPS), default=list(SHOPS))
    parser.add_argument("--policies", nargs="+", default=list(USUAL_POLICIES))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(USUAL_SIDES))
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="JSON of every run; runs it holds are not played again")
    parser.add_argument("--quick", action="store_true", help="2 seeds of 300 requests")
    arguments = parser.parse_args(words)
    if arguments.quick:
        arguments.seeds, arguments.requests = 2, 300
    if arguments.requests < PARTS or arguments.seeds < 1 or arguments.workers < 1:
        parser.error(f"expected at least {PARTS} requests, 1 seed and 1 worker")
    return arguments


def main(words: Sequence[str] | None = None) -> int:
    """The exit code is 1 where a run failed."""
    arguments = parsed(words)
    runs = held_runs(arguments.out)
    held, wanted = {job_of(run) for run in runs}, list(jobs(arguments))
    settings = {name: value for name, value in vars(arguments).items() if name != "out"}
    command = "python -m benchmarks.front_door " + " ".join(sys.argv[1:] if words is None else words)
    record = {"command": command, "settings": settings, "machine": machine(), "runs": runs}

    def keep(run: dict[str, Any]) -> None:
        runs.append(run)
        if arguments.out is not None:
            write_text(arguments.out, json.dumps(record, indent=1) + "\n")

    missing = [job for job in wanted if job not in held]
    failed = play_all(missing, arguments.workers, keep)
    shown = summary([run for run in runs if job_of(run) in set(wanted)])
    print(table(shown))
    if arguments.out is not None and missing:  # a file that held all of it keeps its command and its machine
        write_text(arguments.out, json.dumps(record | {"summary": shown}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
