"""Does the synthetic MovieLens twin behave like the real problem? Prints both side by side.

    python -m benchmarks.twin_fidelity [FILE.npz] [--rounds 1000] [--seeds 3] [--policy NAME ...] [--regrets-only]

First the statistics of users, movies, rounds and clusters; then the expected regret of policies on both, averaged
over seeds, and whether the twin comes within 10 % of the real problem or within 3. FILE.npz is the prepared real
problem; without it, `movielens-25m.npz` is looked for in the folder named by NEUCLUST_SHARED_DATA, then in
../shared/data. Without a real file the twin is described alone.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.twin import movielens_twin
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment
from neuclust.experiment.run import RunLabel, run
from neuclust.registry import build_policy

SLATE_SIZE = 5
CLUSTERS = 22
PLAYERS = ("uniform", "static", "linucb", "cn-ucb", "neuclust")
NEAR_SHARE, NEAR_REGRET = 0.1, 3.0  # a twin's regret is near within the larger of the two
QUANTILES = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
Column = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line per statistic and one per policy: real, twin, and how far apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=_default_file())
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--policy", action="append", help=f"plays on both; default: {', '.join(PLAYERS)}")
    parser.add_argument("--regrets-only", action="store_true", help="leave the statistics out")
    options = parser.parse_args(arguments)
    datasets = {"twin": movielens_twin()}
    if options.file.is_file():
        datasets = {"real": load_dataset(options.file), **datasets}
    else:
        print(f"{options.file}: no such file, so the twin is described alone")
    if not options.regrets_only:
        print_side_by_side({name: describe(data, options.rounds) for name, data in datasets.items()})
        print()
    print_regrets(datasets, options.rounds, options.seeds, options.policy or PLAYERS)


def describe(dataset: ProfileDataset, rounds: int) -> Column:
    """Everything about the problem itself that the twin is judged by, as name -> number."""
    environment = profile_environment(dataset, slate_size=SLATE_SIZE, horizon=rounds)
    return {
        **_profile_statistics(dataset),
        **_movie_statistics(dataset, rounds),
        **_round_statistics(dataset, environment),
        **_cluster_statistics(dataset, environment),
    }


def print_side_by_side(columns: dict[str, Column]) -> None:
    names = list(columns)
    print(f"{'':44}" + "".join(f"{name:>12}" for name in names) + (f"{'difference':>12}" if len(names) > 1 else ""))
    for key in columns[names[0]]:
        values = [columns[name][key] for name in names]
        line = f"{key:44}" + "".join(f"{value:12.4f}" for value in values)
        print(line + (f"{values[-1] - values[0]:12.4f}" if len(values) > 1 else ""))


def _default_file() -> Path:
    shared = os.environ.get("NEUCLUST_SHARED_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
    return Path(shared) / "movielens-25m.npz"


def _profile_statistics(dataset: ProfileDataset) -> Column:
    arms, present = dataset.arms.astype(np.float64), dataset.arms > 0
    entries = np.where(present, arms, np.nan)
    means, spreads = np.nanmean(entries, 1), np.nanstd(entries, 1)
    column = {"users": float(len(arms)), "mean norm of a profile": float(np.linalg.norm(arms, axis=1).mean())}
    column["users with 5.0 throughout"] = float(((arms >= 5) | ~present).all(1).sum())
    column |= {f"user mean, quantile {q:g}": float(np.quantile(means, q)) for q in QUANTILES}
    column |= {f"profile s.d., quantile {q:g}": float(np.quantile(spreads, q)) for q in QUANTILES[1:-1]}
    column["mean correlation between genres"] = _mean_correlation(entries)
    for g, genre in enumerate(dataset.features):
        column[f"{genre}: share missing"] = float((~present[:, g]).mean())
        column[f"{genre}: mean"] = float(np.nanmean(entries[:, g]))
        column[f"{genre}: s.d."] = float(np.nanstd(entries[:, g]))
        column[f"{genre}: entries at 5.0"] = float((arms[:, g] >= 5).sum())
        column[f"{genre}: share on half stars"] = _share_on_half_stars(arms[present[:, g], g])
    return column | _missing_together(dataset, present)


def _mean_correlation(entries: NDArray[np.float64]) -> float:
    """Over all pairs of genres, each from the users who have both."""
    present = (~np.isnan(entries)).astype(np.float64)
    standard = np.nan_to_num((entries - np.nanmean(entries, 0)) / np.nanstd(entries, 0))
    return float((standard.T @ standard / (present.T @ present)).mean())


def _share_on_half_stars(entries: NDArray[np.float64]) -> float:
    return float((np.abs(2 * entries - np.round(2 * entries)) < 1e-4).mean())


def _missing_together(dataset: ProfileDataset, present: NDArray[np.bool_]) -> Column:
    """How often two of the three genres most often missing are missing together."""
    rarest = np.argsort(present.mean(0))[:3]
    pairs = [(int(g), int(h)) for i, g in enumerate(rarest) for h in rarest[i + 1 :]]
    return {
        f"missing together: {dataset.features[g]}, {dataset.features[h]}": float((~present[:, [g, h]]).all(1).mean())
        for g, h in pairs
    }


def _movie_statistics(dataset: ProfileDataset, rounds: int) -> Column:
    played = dataset.rounds[:rounds]
    return {
        "genres a movie, played rounds": float(played.sum(1).mean()),
        "genres a movie, all rounds": float(dataset.rounds.sum(1).mean()),
        "distinct genre sets, played rounds": float(len(np.unique(played, axis=0))),
    }


def _round_statistics(dataset: ProfileDataset, environment: SlateEnvironment) -> Column:
    means = _all_means(environment)
    best = torch.topk(means, SLATE_SIZE, dim=1).values
    ideal = environment.reward.expected(best)
    static = torch.topk(means.sum(0), SLATE_SIZE).indices
    tied = (means >= means.max(1, keepdim=True).values - 1e-12).sum(1).double()
    contexts = [len(np.unique(dataset.arms[:, query > 0], axis=0)) for query in dataset.rounds[: len(means) : 10]]
    column = {
        "mean reward over arms and rounds": float(means.mean()),
        "best slate u*, smallest": float(ideal.min()),
        "best slate u*, largest": float(ideal.max()),
        "random slate E[u]": _random_reward(environment, means),
        "regret of the best static slate": float((ideal - environment.reward.expected(means[:, static])).sum()),
        "clipped regret's floor": float((ideal * (1 - ideal)).sum()),
        "arms tied at the optimum, fewest": float(tied.min()),
        "arms tied at the optimum, median": float(tied.median()),
        "arms tied at the optimum, most": float(tied.max()),
        "distinct contexts a round, median": float(np.median(contexts)),
        "distinct contexts a round, tenth": float(np.quantile(contexts, 0.1)),
    }
    column["regret of uniform, expected"] = float(ideal.sum()) - len(means) * column["random slate E[u]"]
    return column


def _all_means(environment: SlateEnvironment) -> torch.Tensor:
    """μ, (T, N)."""
    return torch.stack([environment.means(environment.round(t)) for t in range(1, environment.horizon + 1)])


def _random_reward(environment: SlateEnvironment, means: torch.Tensor, slates: int = 50) -> float:
    draws = torch.from_numpy(np.random.default_rng(0).integers(means.shape[1], size=(len(means), slates, SLATE_SIZE)))
    chosen = torch.gather(means.unsqueeze(1).expand(-1, slates, -1), 2, draws)
    return float(environment.reward.expected(chosen).mean())


def _cluster_statistics(dataset: ProfileDataset, environment: SlateEnvironment) -> Column:
    """The k-means curve, the sizes of 22 clusters, and what the best slate inside one cluster loses."""
    fits = {k: KMeans(k, n_init=10, random_state=0).fit(dataset.arms) for k in (2, 5, 10, 15, CLUSTERS, 30)}
    column = {
        f"within-cluster squares a user, {k} clusters": fit.inertia_ / len(dataset.arms) for k, fit in fits.items()
    }
    sizes = np.bincount(fits[CLUSTERS].labels_)
    column |= {f"size of the {name} of {CLUSTERS} clusters": float(pick(sizes)) for name, pick in _SIZES.items()}
    means, labels = _all_means(environment), torch.from_numpy(fits[CLUSTERS].labels_.astype(np.int64))
    inside = [
        environment.reward.expected(torch.topk(means[:, labels == c], SLATE_SIZE, dim=1).values)
        for c in range(CLUSTERS)
        if sizes[c] >= SLATE_SIZE
    ]
    ideal = environment.reward.expected(torch.topk(means, SLATE_SIZE, dim=1).values)
    column["regret of the best slate inside a cluster"] = float((ideal - torch.stack(inside).max(0).values).sum())
    return column


_SIZES: dict[str, Callable[[NDArray[np.int64]], np.generic]] = {
    "smallest": np.min,
    "median": np.median,
    "largest": np.max,
}


def print_regrets(datasets: dict[str, ProfileDataset], rounds: int, seeds: int, policies: Sequence[str]) -> None:
    """Mean expected regret over the seeds with its standard error, and whether the twin is near."""
    print(f"{f'expected regret, {rounds} rounds, seeds 0 to {seeds - 1}':44}" + "".join(f"{n:>18}" for n in datasets))
    for name in policies:
        played = [np.array([_regret(data, name, rounds, seed) for seed in range(seeds)]) for data in datasets.values()]
        cells = "".join(f"{regrets.mean():10.3f} ± {_error(regrets):5.3f}" for regrets in played)
        near = len(played) < 2 or is_near(float(played[0].mean()), float(played[1].mean()))
        verdict = "" if len(played) < 2 else "   within 10 % or 3" if near else "   APART"
        print(f"{name:44}{cells}{verdict}", flush=True)


def is_near(real: float, twin: float) -> bool:
    """|twin − real| is at most 10 % of real, or at most 3."""
    return abs(twin - real) <= max(NEAR_SHARE * abs(real), NEAR_REGRET)


def _error(regrets: NDArray[np.float64]) -> float:
    return float(regrets.std(ddof=1) / np.sqrt(len(regrets))) if len(regrets) > 1 else 0.0


def _regret(dataset: ProfileDataset, name: str, rounds: int, seed: int) -> float:
    """Expected regret of one run."""
    environment = profile_environment(dataset, slate_size=SLATE_SIZE, horizon=rounds, seed=seed)
    policy = build_policy(name, environment=environment, seed=seed)
    return run(policy, environment, rounds, seed, label=RunLabel(name)).expected_regret


if __name__ == "__main__":
    main()
