"""What each learner and mechanism of `auto` is worth: the regret without it, on problems of the suite.

    python -m benchmarks.leave_one_out play --out docs/records/leave_one_out.jsonl --seeds 1100:1104 --workers 2
    python -m benchmarks.leave_one_out table docs/records/leave_one_out.jsonl

`play` plays `auto` whole and with one part left out, same seeds, one line per run; what the file holds is not played
again, and other options are those of `benchmarks.contest`. `table` prints the mean change of the regret in per cent of
the regret of the whole, with its paired standard error: a plus says that the part is worth having there. First over all
problems, with those it gains and loses most on by more than two standard errors, then problem by problem. Runs of parts
that are gone since are shown by their settings.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks import contest

LEARNERS = ("linear", "local", "logistic", "additive", "recent", "net", "index", "forest")

# part left out -> settings of `auto`
PARTS = {
    **{name: "ensemble.learners=" + ",".join(one for one in LEARNERS if one != name) for name in LEARNERS},
    "optimistic slot": "optimistic_slots=0",
    "exploring slots": "exploring.most=0",
    "fixed share": "ensemble.switching=0",
    "evidence steps": "ensemble.options.regression.steps=0;ensemble.options.logistic.tune_every=1000000",
    "change test": "ensemble.drift.threshold=none",
    "marginal gains": "marginal_gains.margin=1e9",
    "item effects": "items=false",
    "slot effects": "slots=false",
}
WHOLE = "auto"

# parts of the eight learners that docs/records/leave_one_out.jsonl was played with
_EIGHT = ("linear", "local", "quadratic", "logistic", "additive", "net", "stiff-net", "index")
EARLIER = {
    **{f"{name} (of eight)": "ensemble.learners=" + ",".join(one for one in _EIGHT if one != name) for name in _EIGHT},
    "averaging": "combine=leader",
}
PROBLEMS = (
    "ml-volatile", "ml-quadratic", "clusters", "bump", "quadratic", "yelp", "coverage", "cascade", "drift-abrupt",
    "drift-slow", "delayed", "turnover", "long-slate", "shop-rare", "shop-tastes", "shop-items", "shop-slots", "money",
)  # fmt: skip
ROUNDS = 500


def policy_without(part: str) -> str:
    """`auto` without this part, as `benchmarks.contest` names policies."""
    return f"{WHOLE}@{PARTS[part]}"


def differences(rows: Sequence[dict[str, Any]], policy: str) -> dict[str, list[float]]:
    """By problem: regret of `policy` less that of the whole, in per cent of the whole's mean, for every common seed."""
    regret: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        regret[row["problem"], row["policy"]][row["seed"]] = list(row["regret"].values())[-1]
    found = {}
    for problem in dict.fromkeys(row["problem"] for row in rows):
        whole, other = regret[problem, WHOLE], regret[problem, policy]
        common = sorted(whole.keys() & other.keys())
        if common:
            mean = fmean(whole[seed] for seed in common)
            found[problem] = [100 * (other[seed] - whole[seed]) / mean for seed in common]
    return found


def cell(changes: Sequence[float]) -> str:
    if len(changes) < 2:
        return f"{fmean(changes):+.0f}"
    return f"{fmean(changes):+.0f} ± {stdev(changes) / len(changes) ** 0.5:.0f}"


def summary(columns: dict[str, dict[str, list[float]]]) -> list[str]:
    """One row per part: the mean over problems, and the clearest gain and loss."""
    lines = ["| without | mean of problems | clearly worse on | clearly better on |", "|---|---|---|---|"]
    for name, found in columns.items():
        told = {problem: changes for problem, changes in found.items() if _clear(changes)}
        worse = [f"{problem} {cell(told[problem])}" for problem in told if fmean(told[problem]) > 0]
        better = [f"{problem} {cell(told[problem])}" for problem in told if fmean(told[problem]) < 0]
        mean = cell([fmean(changes) for changes in found.values()])
        lines.append(f"| {name} | {mean} | {', '.join(worse)} | {', '.join(better)} |")
    return lines


def _clear(changes: Sequence[float]) -> bool:
    return len(changes) > 1 and abs(fmean(changes)) > max(5.0, 2 * stdev(changes) / len(changes) ** 0.5)


def table(rows: Sequence[dict[str, Any]], policies: dict[str, str]) -> list[str]:
    """One row per problem, one column per part; below, the mean over problems and its standard error."""
    columns = {name: differences(rows, policy) for name, policy in policies.items()}
    columns = {name: found for name, found in columns.items() if found}
    problems = dict.fromkeys(problem for found in columns.values() for problem in found)
    lines = [*summary(columns), "", "| without | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    for problem in problems:
        cells = [cell(found[problem]) if problem in found else "" for found in columns.values()]
        lines.append(f"| {problem} | " + " | ".join(cells) + " |")
    means = [cell([fmean(changes) for changes in found.values()]) for found in columns.values()]
    return [*lines, "| mean of problems | " + " | ".join(means) + " |"]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("play", help="play what the file does not hold", add_help=False)
    reading = commands.add_parser("table", help="what every part is worth")
    reading.add_argument("file", type=Path)
    arguments, rest = parser.parse_known_args(words)
    if arguments.command == "play":
        parts = [word for part in [WHOLE, *map(policy_without, PARTS)] for word in ("--policy", part)]
        problems = [word for problem in PROBLEMS for word in ("--problem", problem)]
        contest.main([*parts, *problems, "--rounds", str(ROUNDS), *rest])
        return
    from neuclust.experiment.sinks import read_lines

    rows = read_lines(arguments.file)
    named = {part: policy_without(part) for part in PARTS}
    named |= {gone: f"{WHOLE}@{settings}" for gone, settings in EARLIER.items()}
    others = {row["policy"] for row in rows} - {WHOLE, *named.values()}
    sys.stdout.write("\n".join(table(rows, named | {policy: policy for policy in sorted(others)})) + "\n")


if __name__ == "__main__":
    main()
