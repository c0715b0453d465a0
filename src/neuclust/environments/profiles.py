"""A prepared dataset as an environment: the paper's simulated rewards, or a replay of recorded ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers
from neuclust.environments.dealing import Arms, MeanRewards, Recorded, Simulated
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream

Floats = NDArray[np.float32]

RATING_NOISE = 0.9  # s.d. of one rating around the user's mean for such a movie
SMALLEST_RATING, LARGEST_RATING = 0.5, 5.0
SPARSE = 0.2  # share of non-zero entries below which the truth is computed on those alone
SMALLEST_POOL = 100  # unplayed queries that suffice to draw start ratings from


@dataclass(frozen=True, slots=True)
class TanhAffinity:
    """μ = tanh(s/4), s = <a, x> / ‖a ⊙ x‖₀, 0 without overlap: (n,).

    Profiles are kept by column, (d, N), so that a round reads the columns of its query alone.
    """

    columns: Tensor
    present: Tensor  # (d, N) 1.0 where a profile has an entry

    @classmethod
    def of(cls, profiles: Tensor) -> TanhAffinity:
        columns = profiles.T.to(torch.float64).clone(memory_format=torch.contiguous_format)
        return cls(columns, (columns != 0).to(torch.float64))

    def __call__(self, positions: Tensor | None, query: Tensor | None) -> Tensor:
        weights = self.columns.new_ones(len(self.columns)) if query is None else query.to(torch.float64)
        active = torch.nonzero(weights).flatten()
        columns, present = self.columns[active], self.present[active]
        if positions is not None:
            columns, present = columns[:, positions], present[:, positions]
        overlap = present.sum(0).clamp_(min=1.0)
        return (weights[active] @ columns).div_(overlap).div_(4.0).tanh_()


@dataclass(frozen=True, slots=True)
class SparseTanhAffinity:
    """The same truth from the non-zero entries alone: profiles and 1[x ≠ 0], (N, d) by row."""

    profiles: csr_matrix
    present: csr_matrix

    @classmethod
    def of(cls, profiles: Tensor) -> SparseTanhAffinity:
        rows = csr_matrix(profiles.numpy().astype(np.float64))
        return cls(rows, csr_matrix((np.ones_like(rows.data), rows.indices, rows.indptr), shape=rows.shape))

    def __call__(self, positions: Tensor | None, query: Tensor | None) -> Tensor:
        weights = np.ones(self.profiles.shape[1]) if query is None else query.numpy().astype(np.float64)
        profiles, present = self.profiles, self.present
        if positions is not None:
            profiles, present = profiles[positions.numpy()], present[positions.numpy()]
        overlap = np.maximum(present @ (weights != 0).astype(np.float64), 1.0)
        return torch.from_numpy(np.tanh(profiles @ weights / overlap / 4.0))


def tanh_affinity(profiles: Tensor) -> MeanRewards:
    """The paper's truth, in the form that is quicker for these profiles (N, d)."""
    sparse = float((profiles != 0).double().mean()) < SPARSE
    return SparseTanhAffinity.of(profiles) if sparse else TanhAffinity.of(profiles)


def profile_environment(dataset: ProfileDataset, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """The paper's problem on a dataset, sized by `spec` or its fields; the horizon defaults to all its rounds.

    A dataset with offers is replayed instead (`replay_environment`). With `start_ratings` the agent sees profiles made
    of that many noisy ratings per arm, with their `counts`; mean rewards stay those of the dataset's profiles.
    """
    spec = ProblemSpec.of(spec, fields, horizon=len(dataset.rounds))
    if dataset.offers is not None:
        refuse_simulation(dataset.name, arms_per_round=spec.arms_per_round, start_ratings=spec.start_ratings)
        return replay_environment(dataset, spec)
    check_affinity(dataset)
    shown, counts = dataset.arms, dataset.counts
    if spec.start_ratings is not None:
        shown, counts = start_profiles(dataset, spec.start_ratings, spec.horizon, spec.seed)
    truth = tanh_affinity(torch.tensor(dataset.arms, dtype=torch.float64))
    rounds = Simulated(truth, torch.tensor(dataset.rounds, dtype=torch.float64))
    return SlateEnvironment(dataset.name, dataset_arms(dataset, shown, counts), rounds, spec)


@dataclass(frozen=True, slots=True)
class PlayedBack:
    """Round t is the recorded round at `order[t - 1]`: rows offered (n,) and what each paid (n,)."""

    offers: Offers
    order: NDArray[np.int64]

    def __call__(self, t: int) -> tuple[Tensor, Tensor]:
        arms, rewards = self.offers.of(int(self.order[t - 1]))
        return torch.tensor(arms, dtype=torch.int64), torch.tensor(rewards, dtype=torch.float64)


def replay_environment(dataset: ProfileDataset, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """The recorded rounds of a dataset, in an order dealt by the seed; a shorter horizon plays the first of them.

    Arms pay what they paid, 0 or 1, without noise: the best slate is the best in hindsight, and clipped regret equals
    expected regret with floor 0.
    """
    spec = ProblemSpec.of(spec, fields, horizon=len(dataset.rounds))
    if dataset.offers is None:
        raise DataError(f"{dataset.name}: expected recorded offers to play back, got a dataset without")
    smallest = int(dataset.offers.sizes.min())
    if spec.slate_size > smallest:
        wanted = f"a slate size from 1 to the {smallest} arms of the smallest round"
        advice = "prepare the replay with more arms per round"
        raise ConfigError(f"{dataset.name}: expected {wanted}, got {spec.slate_size}; {advice}")
    order = stream(spec.seed, "replay order").permutation(len(dataset.rounds))
    rounds = Recorded(PlayedBack(dataset.offers, order), torch.tensor(dataset.rounds[order], dtype=torch.float64))
    return SlateEnvironment(dataset.name, dataset_arms(dataset, dataset.arms, dataset.counts), rounds, spec)


def dataset_arms(dataset: ProfileDataset, profiles: Floats, counts: Floats | None) -> Arms:
    """The arms of a dataset with these profiles and counts, (N, d) each."""
    known = None if counts is None else torch.tensor(counts, dtype=torch.float64)
    ids = torch.tensor(dataset.arm_ids, dtype=torch.int64)
    return Arms(torch.tensor(profiles, dtype=torch.float64), ids, known)


def check_affinity(dataset: ProfileDataset) -> None:
    """Refuse features that the paper's simulated reward cannot take: tanh(s/4) is a probability only for s ≥ 0."""
    for name, array in (("arms", dataset.arms), ("rounds", dataset.rounds)):
        if (array < 0).any():
            row, column = np.argwhere(array < 0)[0]
            wanted = "non-negative features for the paper's simulated reward tanh(s/4)"
            got = f"the negative entry {name}[{row}, {column}] = {array[row, column]:g}"
            advice = "give the dataset recorded rewards (offers), or shift features to 0 or more"
            raise DataError(f"{dataset.name}: expected {wanted}, got {got}; {advice}")


def refuse_simulation(dataset: object, **options: int | None) -> None:
    """Refuse options that would change recorded rounds; `dataset` is its name or file."""
    for name, value in options.items():
        if value is not None:
            wanted = f"none with {dataset}, which plays back recorded rewards of the arms that were really there"
            advice = "drop it, or simulate rewards on a dataset without offers"
            raise ConfigError(f"expected {wanted}, got {value}; {advice}", field=name)


def start_profiles(dataset: ProfileDataset, n_ratings: int, horizon: int, seed: int) -> tuple[Floats, Floats]:
    """Profiles (N, d) and counts (N, d) from `n_ratings` simulated ratings per arm, of queries after the horizon.

    A rating is the arm's mean over the query's features that it has + N(0, 0.9²), in [0.5, 5], in half stars.
    """
    if n_ratings < 1:
        raise ConfigError(f"expected at least 1 rating per arm, got {n_ratings}", field="start_ratings")
    generator = stream(seed, "start ratings")
    later = dataset.rounds[horizon:]
    pool = (later if len(later) >= SMALLEST_POOL else dataset.rounds) != 0
    present = dataset.arms != 0
    movies = _draw_overlapping(present, pool, n_ratings, generator)
    sums, counts = np.zeros(dataset.arms.shape), np.zeros(dataset.arms.shape)
    for picked in movies.T:
        rated = present & pool[picked]  # (N, d); empty for an arm that shares nothing with any query
        liking = (dataset.arms * rated).sum(1, dtype=np.float64) / np.maximum(rated.sum(1), 1)
        rating = liking + RATING_NOISE * generator.standard_normal(len(liking))
        stars = np.round(2 * np.clip(rating, SMALLEST_RATING, LARGEST_RATING)) / 2
        sums += rated * stars[:, None]
        counts += rated
    return (sums / np.maximum(counts, 1)).astype(np.float32), counts.astype(np.float32)


def _draw_overlapping(
    present: NDArray[np.bool_], pool: NDArray[np.bool_], n: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """For each arm n queries of the pool that share a feature with it, with replacement: (N, n)."""
    drawn = generator.integers(len(pool), size=(len(present), n))
    missed: NDArray[np.bool_] = ~np.any(present[:, None, :] & pool[drawn], axis=-1)
    for arm in np.flatnonzero(missed.any(1)):
        sharing = np.flatnonzero(np.any(pool[:, present[arm]], axis=1))
        if len(sharing):
            drawn[arm, missed[arm]] = generator.choice(sharing, size=int(missed[arm].sum()))
    return drawn
