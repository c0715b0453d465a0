"""Runs of benchmarks.contest as the record behind docs/choosing.md, and the record as estimates over paired seeds."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from neuclust.experiment.suite import SUITE
from neuclust.registry import knows_truth
from tools.reproduction_page import with_error

OWN_HORIZON = {problem.name: problem.rounds for problem in SUITE}
LONG = 1000
HORIZON_BOUND = ("drift-abrupt", "drift-slow", "turnover")  # a longer run plays another world, not more of the same
EARLIER = {"drift-none": 400, "drift-abrupt": 400}  # kept as well: what a change costs once it lies back
DEVELOPMENT = (
    range(100, 108),
    range(200, 212),
    range(300, 304),
    range(400, 404),
    range(500, 521),
    range(600, 625),
    range(700, 712),
    range(720, 744),
    range(800, 812),
)
REPORTED = "2000:2020"

LINEAR = ("linucb", "lin-ts", "auto:linear")

Row = Mapping[str, Any]


def seed_range(text: str) -> range:
    """The seeds of FIRST:END, refused where one of them was used for development."""
    match = re.fullmatch(r"(\d+):(\d+)", text)
    seeds = range(int(match[1]), int(match[2])) if match else range(0)
    if not seeds:
        raise SystemExit(f"--seeds: expected FIRST:END with FIRST below END, got {text!r}; {REPORTED} are reported")
    refuse_development(seeds)
    return seeds


def refuse_development(seeds: Iterable[int]) -> None:
    """Seeds on which settings were chosen cannot be reported."""
    used = sorted(seed for seed in set(seeds) if any(seed in known for known in DEVELOPMENT))
    if used:
        raise SystemExit(f"seed {used[0]}: expected seeds that were not used for development; take {REPORTED}")


def read_rows(files: Iterable[Path]) -> Iterator[Row]:
    """Every run of files of benchmarks.contest."""
    for file in files:
        for place, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise SystemExit(f"{file}, line {place}: expected one run as JSON, got {error}; cut it out") from None


def serves(row: Row, horizon: int) -> bool:
    """Whether a run tells the regret after `horizon` rounds of the problem made for so many."""
    if row["rounds"] != horizon and (row["rounds"] < horizon or row["problem"] in HORIZON_BOUND):
        return False
    return str(horizon) in row["regret"]


def horizons(problem: str) -> tuple[int, ...]:
    """The problem's own length, and the long one."""
    return tuple(dict.fromkeys((OWN_HORIZON[problem], LONG)))


def condense(rows: Iterable[Row], seeds: range) -> dict[str, Any]:
    """The record: for every problem, horizon and policy the seeds, their regrets and least seconds per round."""
    found: dict[tuple[str, int, str], dict[int, Row]] = defaultdict(dict)
    for row in _once(row for row in rows if row["seed"] in seeds):
        for horizon in horizons(row["problem"]):
            runs = found[row["problem"], horizon, row["policy"]]
            known = runs.get(row["seed"])
            if serves(row, horizon) and (known is None or row["rounds"] < known["rounds"]):
                runs[row["seed"]] = row
    order = {name: place for place, name in enumerate(OWN_HORIZON)}
    keys = sorted((key for key in found if found[key]), key=lambda key: (order[key[0]], *key[1:]))
    return {"seeds": f"{seeds.start}:{seeds.stop}", "rows": [_kept(key, found[key]) for key in keys]}


def merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A record of the runs of both and the seeds of `after`, whose runs go first by problem, horizon, policy and seed.

    Where `after` has played a problem and horizon, rows of `before` with seeds outside its range are dropped: all
    policies of one table row have their seeds from one range.
    """
    reported = seed_range(after["seeds"])
    played = {(row["problem"], row["horizon"]) for row in after["rows"]}
    kept = [row for row in before["rows"] if within(row, reported) or (row["problem"], row["horizon"]) not in played]
    rows: dict[tuple[str, int, str], Row] = {}
    for row in [*kept, *after["rows"]]:
        key = row["problem"], row["horizon"], row["policy"]
        rows[key] = _joined(rows[key], row) if key in rows else row
    order = {name: place for place, name in enumerate(OWN_HORIZON)}
    keys = sorted(rows, key=lambda key: (order[key[0]], *key[1:]))
    return {"seeds": after["seeds"], "rows": [rows[key] for key in keys]}


def _joined(before: Row, after: Row) -> Row:
    """One row with the seeds of both; a seed that both have, and the seconds, are those of `after` if it has some."""
    told = [name for name in ("regret", "earlier") if name in after]
    runs = {
        seed: [row[name][place] for name in told] for row in (before, after) for place, seed in enumerate(row["seeds"])
    }
    seeds = sorted(runs)
    values = {name: [runs[seed][place] for seed in seeds] for place, name in enumerate(told)}
    seconds = before["seconds"] if after["seconds"] is None else after["seconds"]
    return {**after, "seeds": seeds, **values, "seconds": seconds}


def within(row: Row, seeds: range) -> bool:
    """Whether a row of a record has seeds of this range alone."""
    return all(seed in seeds for seed in row["seeds"])


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of problems we have, the same run once; the same run with another end is an error."""
    seen: dict[tuple[str, str, int, int], Any] = {}
    for row in rows:
        key = row["problem"], row["policy"], row["seed"], row["rounds"]
        if row["problem"] not in OWN_HORIZON:
            raise SystemExit(f"{row['problem']}: expected a problem of the suite ({', '.join(OWN_HORIZON)})")
        if seen.setdefault(key, row["regret"]) != row["regret"]:
            raise SystemExit(
                f"{key[0]}, {key[1]}, seed {key[2]}, {key[3]} rounds: expected one result, got two that differ; "
                "leave out the file of the older version"
            )
        yield row


def _kept(key: tuple[str, int, str], runs: Mapping[int, Row]) -> dict[str, Any]:
    problem, horizon, policy = key
    chosen = [runs[seed] for seed in sorted(runs)]
    times = [row["seconds"] / row["rounds"] for row in chosen if row["seconds"] is not None]  # None: a device
    quickest = min(times, default=None)  # others shared their core
    kept: dict[str, Any] = {
        "problem": problem,
        "horizon": horizon,
        "policy": policy,
        "seeds": sorted(runs),
        "regret": [round(row["regret"][str(horizon)], 2) for row in chosen],
        "seconds": None if quickest is None else float(f"{quickest:.3g}"),
    }
    if problem in EARLIER and horizon == OWN_HORIZON[problem]:
        kept["earlier"] = [round(row["regret"][str(EARLIER[problem])], 2) for row in chosen]
    return kept


def record_text(record: Mapping[str, Any]) -> str:
    """The record as JSON, a line for every problem, horizon and policy."""
    lines = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    return f'{{\n "seeds": {json.dumps(record["seeds"])},\n "rows": [\n{lines}\n ]\n}}\n'


def digest_of(record: Mapping[str, Any]) -> str:
    """Tells records apart, so that a picture of an older one is noticed."""
    return hashlib.sha256(record_text(record).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a ratio of means over `pairs` seeds, and its standard error; None from one seed."""

    value: float
    error: float | None
    pairs: int

    def __str__(self) -> str:
        return with_error(self.value, self.error).replace("-", "−")

    def surely_off(self, level: float) -> bool:
        """Whether more than two standard errors lie between value and level."""
        return self.error is not None and abs(self.value - level) > 2 * self.error


@dataclass(frozen=True, slots=True)
class Score:
    """Regrets of one policy on one problem by seed, and seconds per round; None where no core played it."""

    regret: Mapping[int, float]
    seconds: float | None
    earlier: Mapping[int, float]

    @property
    def mean(self) -> float:
        return fmean(self.regret.values())


Scores = Mapping[str, Score]  # by policy, in the order of their names


@dataclass(frozen=True, slots=True)
class Contest:
    """Scores by problem and horizon; `reasons` say why `auto` is behind where it is, `older` which problems and
    horizons were played with other seeds than those reported."""

    scores: Mapping[tuple[str, int], Scores]
    reasons: Mapping[str, str]
    older: Collection[tuple[str, int]] = ()

    def at(self, problem: str, horizon: int | None = None) -> Scores:
        """Scores after so many rounds, by default the problem's own length; empty where nothing was played."""
        return self.scores.get((problem, horizon or OWN_HORIZON[problem]), {})

    def mark(self, problem: str, horizon: int | None = None) -> str:
        """A dagger where the seeds are older than those reported."""
        return " †" if (problem, horizon or OWN_HORIZON[problem]) in self.older else ""

    def played(self, which: str) -> list[tuple[str, int, Scores]]:
        """Problems of the suite with their scores after their own length ("own") or another one ("1000")."""
        asked = [(name, own if which == "own" else int(which)) for name, own in OWN_HORIZON.items()]
        return [(name, horizon, self.at(name, horizon)) for name, horizon in asked if self.at(name, horizon)]


def contest(record: Mapping[str, Any], reasons: Mapping[str, str] | None = None) -> Contest:
    """The record by problem, horizon and policy."""
    scores: dict[tuple[str, int], dict[str, Score]] = defaultdict(dict)
    for row in record["rows"]:
        refuse_development(row["seeds"])
        regret = dict(zip(row["seeds"], row["regret"], strict=True))
        earlier = dict(zip(row["seeds"], row["earlier"], strict=True)) if "earlier" in row else {}
        scores[row["problem"], row["horizon"]][row["policy"]] = Score(regret, row["seconds"], earlier)
    reported = seed_range(record["seeds"])
    older = {(row["problem"], row["horizon"]) for row in record["rows"] if not within(row, reported)}
    return Contest(scores, reasons or {}, older)


def mean_of(values: Sequence[float]) -> Estimate:
    """Mean and standard error of values (n,)."""
    return Estimate(fmean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None, len(values))


def ratio_of(tops: Sequence[float], bottoms: Sequence[float]) -> Estimate:
    """Ratio of the means of pairs (n,), its error by the delta method: s.e. of (top − ratio · bottom) / mean bottom."""
    bottom = fmean(bottoms)
    if bottom == 0:
        return Estimate(math.inf, None, len(tops))
    ratio = fmean(tops) / bottom
    left = mean_of([top - ratio * below for top, below in zip(tops, bottoms, strict=True)])
    return Estimate(ratio, None if left.error is None else left.error / abs(bottom), len(tops))


def aligned(*by_seed: Mapping[int, float]) -> list[list[float]]:
    """Values of the seeds that all have, in the order of the seeds."""
    common = sorted(set.intersection(*(set(values) for values in by_seed)))
    return [[values[seed] for seed in common] for values in by_seed]


def difference(left: Score, right: Score) -> Estimate | None:
    """Regret of the left less that of the right, seed by seed; None without a common seed."""
    lefts, rights = aligned(left.regret, right.regret)
    return mean_of([one - other for one, other in zip(lefts, rights, strict=True)]) if lefts else None


def is_linear(policy: str) -> bool:
    """One shared linear model: linucb, lin-ts, or auto left with its linear learner."""
    title, _, settings = policy.partition("@")
    name = title.partition(":")[0]
    alone = {"ensemble.learners=linear", "team.learners=linear"}  # the latter in records before it was renamed
    return name in LINEAR or title in LINEAR or (name == "auto" and not alone.isdisjoint(settings.split(";")))


def is_rival(policy: str) -> bool:
    """Every policy but `auto` itself and those that know the truth."""
    return policy != "auto" and not knows_truth(re.split("[:@]", policy)[0])


def best(scores: Scores, among: Callable[[str], bool]) -> str | None:
    """The least mean regret of those with at least a quarter of the keenest policy's seeds; None without any."""
    most = max((len(score.regret) for score in scores.values()), default=0)
    asked = [name for name, score in scores.items() if among(name) and 4 * len(score.regret) >= most]
    return min(asked, key=lambda name: (scores[name].mean, name), default=None)


def winner(scores: Scores) -> str | None:
    """The least mean regret of all policies that do not know the truth."""
    return best(scores, lambda policy: policy == "auto" or is_rival(policy))
