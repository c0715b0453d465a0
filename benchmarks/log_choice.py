"""Is the policy that a log prefers the one that earns most? Policies ranked from logs and by playing them.

    python -m benchmarks.log_choice play --out runs.jsonl --share 0.05 --share 0.2 --workers 2
    python -m benchmarks.log_choice table runs.jsonl

20 variants (ten problems of the suite with 20 offered arms and slates of 3, two seeds each). `linucb` learns and logs
20,000 slates with exploring slots. Candidates are fitted on the first half of the log, frozen and estimated from the
second, by `neuclust.evaluation.evaluate`; then the same frozen policies are played on 2,000 fresh rounds, where the
true means tell what their slates earn. One line per variant and share: estimates, intervals, truths, rank correlation
(Spearman), and the regret of choosing the largest estimate. What the file holds is not played again.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

if TYPE_CHECKING:
    from neuclust.core import Policy
    from neuclust.evaluation.candidates import Candidate

PROBLEMS = (
    "clusters", "bump", "quadratic", "ml-paper", "ml-volatile", "ml-ideal", "ml-quadratic", "yelp-volatile",
    "drift-none", "shop-tastes",
)  # fmt: skip
CANDIDATES = ("linucb", "auto:linear", "popular", "uniform")
ROWS, PLAYED, ARMS, SLATE = 20_000, 2_000, 20, 3


def environment(problem: str, seed: int, rows: int) -> Any:
    from neuclust.environments.catalogue import build_environment

    return build_environment(problem, slate_size=SLATE, horizon=rows + PLAYED, seed=seed, arms_per_round=ARMS)


def write_log(path: Path, problem: str, seed: int, share: float, rows: int) -> None:
    """`linucb` with exploring slots learns and logs."""
    from neuclust.logs import LogWriter, RunStart
    from neuclust.policies.exploring import Exploring
    from neuclust.registry import build_policy
    from neuclust.slates.propensities import Exploration

    world = environment(problem, seed, rows)
    policy = Exploring(build_policy("linucb", environment=world, seed=seed), Exploration(share, ARMS, 1.0), seed)
    with LogWriter(path) as log:
        log.start(RunStart(f"{problem}-{seed}", "linucb", SLATE, world.dim))
        for t in range(1, rows + 1):
            round = world.round(t)
            slate = policy.select(round)
            feedback = world.play(round, slate)
            log.decided(round, slate, feedback)
            policy.update(round, slate, feedback)


def truths(policies: Mapping[str, Policy], problem: str, seed: int, rows: int) -> dict[str, float]:
    """What each frozen policy earns per slate on fresh rounds: Σ of true means."""
    world, earned = environment(problem, seed, rows), dict.fromkeys(policies, 0.0)
    for t in range(rows + 1, rows + PLAYED + 1):
        round = world.round(t)
        means = world.means(round)
        for name, policy in policies.items():
            earned[name] += float(means[policy.select(round).positions].sum())
    return {name: total / PLAYED for name, total in earned.items()}


def candidates(made: dict[str, Policy]) -> list[Candidate]:
    """The candidates; the policies that are fitted come into `made`."""
    from neuclust.evaluation.candidates import Candidate
    from neuclust.experiment.contestants import parse_contestants

    class Kept(Candidate):
        def built(self, dim: int, slate_size: int) -> Policy:
            made[self.title] = super().built(dim, slate_size)
            return made[self.title]

    return [Kept(each) for each in parse_contestants(CANDIDATES)]


def play(match: tuple[str, int, float, int]) -> dict[str, Any]:
    """One variant and share."""
    from scipy.stats import spearmanr

    from neuclust.evaluation.evaluate import Question, evaluate
    from neuclust.logs import open_log

    problem, seed, share, rows = match
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        write_log(path, problem, seed, share, rows)
        made: dict[str, Policy] = {}
        found = evaluate(open_log(path), candidates(made), Question(hold_back=0.0))
    truth = truths(made, problem, seed, rows)
    estimates = {each.policy: each.estimate for each in found.policies}
    names = list(truth)
    chosen = max(names, key=lambda name: estimates[name])
    return {
        "problem": problem, "seed": seed, "share": share, "rows": rows, "estimator": found.policies[0].estimator,
        "truth": truth, "estimates": estimates, "intervals": {each.policy: each.interval for each in found.policies},
        "ess": {each.policy: each.ess for each in found.policies}, "chosen": chosen,
        "correlation": float(spearmanr([truth[n] for n in names], [estimates[n] for n in names]).statistic),
        "regret": max(truth.values()) - truth[chosen], "spread": max(truth.values()) - min(truth.values()),
        "logged": found.logged.value,
    }  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Per share and per log: rank correlation and regret of the choice."""
    yield "| explored | logs | rank correlation | best chosen | regret of the choice | of the spread |"
    yield "|---|---|---|---|---|---|"
    for share in sorted({row["share"] for row in rows}):
        some = [row for row in rows if row["share"] == share]
        regrets = [row["regret"] for row in some]
        yield (
            f"| {share:.0%} | {len(some)} | {_mean([row['correlation'] for row in some])} | "
            f"{sum(row['regret'] == 0 for row in some)} | {_mean(regrets)} | "
            f"{_mean([row['regret'] / row['spread'] for row in some])} |"
        )
    yield ""
    yield "| problem | explored | best by playing | chosen | regret | rank correlation | estimator | least ESS |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: (row["problem"], row["share"], row["seed"])):
        best = max(row["truth"], key=lambda name: row["truth"][name])
        yield (
            f"| `{row['problem']}` {row['seed']} | {row['share']:.0%} | `{best}` {row['truth'][best]:.3f} | "
            f"`{row['chosen']}` | "
            f"{row['regret']:.3f} | {row['correlation']:.2f} | {row['estimator']} | {min(row['ess'].values()):.0f} |"
        )


def _mean(values: Sequence[float]) -> str:
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{fmean(values):.3f} ± {error:.3f}"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    playing = modes.add_parser("play")
    playing.add_argument("--out", type=Path, required=True)
    playing.add_argument("--share", type=float, action="append")
    playing.add_argument("--problem", action="append")
    playing.add_argument("--seeds", default="7000:7002", help="FIRST:END")
    playing.add_argument("--rows", type=int, default=ROWS)
    playing.add_argument("--workers", type=int, default=1)
    modes.add_parser("table").add_argument("file", type=Path)
    arguments = parser.parse_args(words)
    if arguments.mode == "table":
        rows = [json.loads(line) for line in arguments.file.read_text(encoding="utf-8").splitlines()]
        print("\n".join(table(rows)))
        return
    first, _, last = arguments.seeds.partition(":")
    known = arguments.out.read_text(encoding="utf-8").splitlines() if arguments.out.exists() else []
    done = {(row["problem"], row["seed"], row["share"]) for row in map(json.loads, known)}
    matches = [
        (problem, seed, share, arguments.rows)
        for seed in range(int(first), int(last))
        for problem in arguments.problem or PROBLEMS
        for share in arguments.share or (0.05, 0.2)
        if (problem, seed, share) not in done
    ]
    with get_context("spawn").Pool(arguments.workers) as pool, arguments.out.open("a", encoding="utf-8") as out:
        for row in pool.imap_unordered(play, matches):
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"{row['problem']} {row['seed']} {row['share']}: correlation {row['correlation']:.2f}")


if __name__ == "__main__":
    main()
