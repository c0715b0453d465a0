"""Regret on problems outside the suite: real tables of scikit-learn, and truths of kinds that no learner is made of.

    python -m benchmarks.unseen play --out runs.jsonl --policy auto --policy linucb --policy neural-linear --seeds 0:3
    python -m benchmarks.unseen table runs.jsonl

200 arms out of a pool are offered per round, slates have 5, rewards are coins. In `digits` and `digits16` (its 16
leading principal components) one of ten digits pays 0.9, another 0.5 and the others 0.05: a policy that likes the
second has to find the first. What the file holds is not played again. `table` prints regret ± standard error per
problem and policy, and the regret of the worst run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks.contest import Match  # noqa: E402

if TYPE_CHECKING:
    from neuclust.experiment.engines.engine import Progress

Floats = NDArray[np.float64]
Pool = tuple[Floats, Floats]  # contexts (n, d) and chances of a reward (n,)

OFFERED, SLATE, MARKS = 200, 5, (100, 200, 500, 1000, 2000, 4000)
DIM, SIZE = 12, 4_000  # of pools that are drawn


def digits(rng: np.random.Generator) -> Pool:
    """Pixels of 1,797 handwritten digits (d = 64)."""
    from sklearn.datasets import load_digits

    pixels, digit = load_digits(return_X_y=True)
    first, second = rng.choice(10, 2, replace=False)
    return pixels / 16.0, np.where(digit == first, 0.9, np.where(digit == second, 0.5, 0.05))


def digits16(rng: np.random.Generator) -> Pool:
    """Their 16 leading principal components."""
    from sklearn.decomposition import PCA

    pixels, chances = digits(rng)
    return PCA(16, random_state=0).fit_transform(pixels), chances


def cancer(rng: np.random.Generator) -> Pool:  # noqa: ARG001
    """569 cases of a medical table (d = 30)."""
    from sklearn.datasets import load_breast_cancer

    table, benign = load_breast_cancer(return_X_y=True)
    return (table - table.mean(0)) / table.std(0), np.where(benign == 0, 0.8, 0.1)


def wine(rng: np.random.Generator) -> Pool:
    """178 wines of three kinds (d = 13), twelve noisy copies of each."""
    from sklearn.datasets import load_wine

    table, kind = load_wine(return_X_y=True)
    table = np.repeat((table - table.mean(0)) / table.std(0), 12, 0)
    table = table + 0.5 * rng.standard_normal(table.shape)
    return table, np.array([0.1, 0.85, 0.3])[rng.permutation(3)][np.repeat(kind, 12)]


def net(rng: np.random.Generator, x: Floats) -> Floats:
    """One hidden layer of 8 tanh units."""
    weights = rng.standard_normal((8, DIM)) / np.sqrt(DIM) * 2
    return np.asarray(np.tanh(x @ weights.T) @ rng.standard_normal(8))


def net2(rng: np.random.Generator, x: Floats) -> Floats:
    """Two hidden layers, of 16 and 8 tanh units."""
    first, second = rng.standard_normal((16, DIM)) / np.sqrt(DIM) * 1.5, rng.standard_normal((8, 16)) / 4 * 2
    output = rng.standard_normal(8)
    return np.asarray(np.tanh(np.tanh(x @ first.T) @ second.T) @ output)


def trees(rng: np.random.Generator, x: Floats) -> Floats:
    """Five trees of depth 5, fitted to noise."""
    from sklearn.ensemble import RandomForestRegressor

    noise = rng.standard_normal(600)
    forest = RandomForestRegressor(5, max_depth=5, random_state=int(rng.integers(10**9))).fit(x[:600], noise)
    return np.asarray(forest.predict(x))


def crosses(rng: np.random.Generator, x: Floats) -> Floats:
    """A seventh of all products of two features, beside a linear part."""
    pairs = rng.standard_normal((DIM, DIM)) * (rng.random((DIM, DIM)) < 0.15)
    return np.asarray((x @ pairs * x).sum(1) + x @ rng.standard_normal(DIM) * 0.5)


def radial(rng: np.random.Generator, x: Floats) -> Floats:
    """Nearness to one of three points."""
    points = rng.standard_normal((3, DIM))
    return np.asarray(np.max(np.exp(-((x[:, None] - points[None]) ** 2).sum(-1) / (2 * DIM)), 1))


def linear(rng: np.random.Generator, x: Floats) -> Floats:
    return np.asarray(x @ rng.standard_normal(DIM))


def bilinear(rng: np.random.Generator) -> Pool:
    """6,000 pairs of 60 users and 400 items, features side by side (6 each); uᵀMv of rank 2."""
    rng.standard_normal((SIZE, DIM))  # what the other drawn pools take
    users, items = rng.standard_normal((60, 6)), rng.standard_normal((400, 6))
    user, item = rng.integers(60, size=6_000), rng.integers(400, size=6_000)
    matrix = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 6))
    return np.concatenate([users[user], items[item]], 1), chances_of(((users @ matrix)[user] * items[item]).sum(1))


def chances_of(scores: Floats) -> Floats:
    """σ(2s − 1.5) of scores brought to mean 0 and variance 1."""
    return np.asarray(1 / (1 + np.exp(1.5 - 2 * (scores - scores.mean()) / scores.std())))


def drawn(truth: Callable[[np.random.Generator, Floats], Floats]) -> Callable[[np.random.Generator], Pool]:
    """Gaussian contexts, and chances by a truth."""

    def pool(rng: np.random.Generator) -> Pool:
        x = rng.standard_normal((SIZE, DIM))
        return x, chances_of(truth(rng, x))

    return pool


POOLS: dict[str, Callable[[np.random.Generator], Pool]] = {
    **{pool.__name__: pool for pool in (digits, digits16, cancer, wine)},
    **{truth.__name__: drawn(truth) for truth in (net, net2, trees, crosses, radial, linear)},
    "bilinear": bilinear,
}


def play(match: Match, on_progress: Callable[[Progress], None]) -> dict[str, Any]:  # noqa: ARG001
    """Regret of the slates' mean rewards at the marks."""
    import torch

    from neuclust.core import Feedback, Round
    from neuclust.registry import build_policy

    contexts, chances = POOLS[match.problem](np.random.default_rng([match.seed, 77]))
    name, _, settings = match.policy.partition("@")
    changes = dict(part.split("=", 1) for part in settings.split(";") if part)
    player = build_policy(name, dim=contexts.shape[1], slate_size=SLATE, seed=match.seed, overrides=changes)
    lost, points = 0.0, {}
    for t in range(1, match.rounds + 1):
        rng = np.random.default_rng([match.seed, t, 5])
        arms = rng.choice(len(contexts), OFFERED, replace=False)
        coins, p = rng.random(OFFERED), chances[arms]
        round = Round(t, torch.from_numpy(arms), torch.from_numpy(contexts[arms]), None, SLATE)
        slate = player.select(round)
        shown = slate.positions.numpy()
        lost += float(np.sort(p)[-SLATE:].sum() - p[shown].sum()) / SLATE
        rewards = torch.from_numpy((coins[shown] < p[shown]).astype(np.float64))
        player.update(round, slate, Feedback(rewards, rewards.mean()))
        if t in MARKS or t == match.rounds:
            points[t] = round_to(lost)
    return {**asdict(match), "regret": points}


def round_to(value: float) -> float:
    return float(f"{value:.3f}")


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Regret per problem and policy over all its seeds, at the end of its runs."""
    found: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["problem"], row["rounds"]][row["policy"]].append(row["regret"][str(row["rounds"])])
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    yield "| problem | rounds | " + " | ".join(f"`{policy}`" for policy in policies) + " |"
    yield "|---" * (2 + len(policies)) + "|"
    for (problem, rounds), by_policy in found.items():
        cells = (cell(by_policy[policy]) if policy in by_policy else "–" for policy in policies)
        yield f"| `{problem}` | {rounds} | " + " | ".join(cells) + " |"


def cell(values: Sequence[float]) -> str:
    """`23.0 ± 1.2 (28.4 of 3)`: the worst run of so many."""
    error = f" ± {stdev(values) / len(values) ** 0.5:.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{error} ({max(values):.1f} of {len(values)})"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play", help="play what the file does not hold")
    playing.add_argument("--out", type=Path, required=True)
    playing.add_argument("--policy", action="append", required=True, help="NAME[:PRESET][@KEY=VALUE;KEY=VALUE]")
    playing.add_argument("--problem", action="append", choices=list(POOLS))
    playing.add_argument("--seeds", default="0:1", help="FIRST:END")
    playing.add_argument("--rounds", type=int, default=500)
    playing.add_argument("--workers", type=int, default=os.cpu_count())
    commands.add_parser("table", help="regret per problem and policy").add_argument("file", type=Path)
    arguments = parser.parse_args(words)
    from neuclust.experiment.sinks import read_lines

    if arguments.command == "table":
        sys.stdout.write("\n".join(table(read_lines(arguments.file))) + "\n")
        return
    first, _, last = arguments.seeds.partition(":")
    matches = [
        Match(problem, policy, seed, arguments.rounds)
        for seed in range(int(first), int(last))
        for problem in arguments.problem or POOLS
        for policy in arguments.policy
    ]
    contest(matches, arguments.out, arguments.workers)


def contest(matches: Sequence[Match], out: Path, workers: int) -> None:
    """Play what the file does not hold, and write a line per run."""
    from neuclust.experiment.engines.engine import Failure
    from neuclust.experiment.engines.processes import ProcessEngine
    from neuclust.experiment.sinks import JsonLines, read_lines

    keys = ("problem", "policy", "seed", "rounds")
    held = {Match(*(row[key] for key in keys)) for row in read_lines(out)}
    with JsonLines(out) as lines:
        todo = [match for match in matches if match not in held]
        for match, row in ProcessEngine(workers).map(play, todo, lambda: False):
            if isinstance(row, Failure):
                sys.stderr.write(f"{match.problem} {match.policy} seed {match.seed}: {row.error}\n")
            else:
                lines.write(row)


if __name__ == "__main__":
    main()
